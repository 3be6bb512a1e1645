// When the garbage collector ran, why, and what it interrupted.

import uPlot from "uplot"
import { css, h, middle, replace } from "../dom.js"
import { duration, count, place } from "../format.js"
import { Table } from "../table.js"
import { axisText } from "../axis.js"
import { name, share, amount } from "./columns.js"
import { Chart, timeAxis, short } from "./chart.js"

export class GcView {
  constructor(app) {
    this.app = app
    this.totals = h("p", {})
    this.pauses = new Chart("Longest pause of each run", () => this.pausePlot())
    this.living = new Chart("Slots living after each run", () => this.livingPlot())
    this.causes = new Table({ label: "Why it ran", columns: [], sorted: ["total", true] })
    this.longest = new Table({
      label: "Longest pauses",
      columns: [],
      sorted: ["ns", true],
      chosen: (row) => row.code && app.showMethod(row.code.method.id),
    })
    this.element = h(
      "div",
      { class: "view page-scroll" },
      this.totals,
      h("div", { class: "charts" }, this.pauses.element, this.living.element),
      h(
        "div",
        { class: "tables" },
        h("section", {}, h("h3", {}, "Why it ran"), this.causes.element),
        h("section", {}, h("h3", {}, "Longest pauses, and what they interrupted"), this.longest.element),
      ),
    )
  }

  get runs() {
    const { from, to } = this.app.filter
    const { runs } = this.app.recording
    return from === null ? runs : runs.filter((run) => run.longestAt >= from && run.longestAt <= to)
  }

  pausePlot() {
    const runs = [...this.runs].sort((a, b) => a.longestAt - b.longestAt)
    const points = (fill) => ({ show: true, size: 5, fill, stroke: fill, width: 0 })
    return {
      data: [
        runs.map((run) => run.longestAt),
        runs.map((run) => (run.major ? null : run.longest)),
        runs.map((run) => (run.major ? run.longest : null)),
      ],
      options: {
        scales: {
          x: { time: false, range: () => this.range },
          y: { range: (_, low, high) => [0, high ? high * 1.08 : 1] },
        },
        series: [
          {},
          { label: "minor", paths: () => null, points: points(css("--accent")) },
          { label: "major", paths: () => null, points: points(css("--gc-mark")) },
        ],
        axes: [
          timeAxis,
          { values: (_, splits) => splits.map((ns) => axisText(ns, splits[1] - splits[0] || 1)), size: 64 },
        ],
      },
    }
  }

  livingPlot() {
    const runs = this.runs.filter((run) => run.living > 0)
    return {
      data: [runs.map((run) => run.at), runs.map((run) => run.living)],
      options: {
        scales: {
          x: { time: false, range: () => this.range },
          y: { range: (_, low, high) => [0, high ? high * 1.08 : 1] },
        },
        series: [
          {},
          { stroke: css("--accent"), width: 1.5, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
        ],
        axes: [timeAxis, { values: (_, splits) => splits.map(short), size: 56 }],
      },
    }
  }

  update() {
    const { recording, filter } = this.app
    const runs = this.runs
    this.range = [filter.from ?? 0, filter.to ?? recording.span]
    const sum = (key) => runs.reduce((total, run) => total + run[key], 0)
    const total = sum("total")
    const sorted = runs.map((run) => run.longest).sort((a, b) => a - b)
    const quantile = (part) =>
      sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] : 0
    replace(
      this.totals,
      `${count(sum("runs"))} runs, ${count(sum("majors"))} major, took ${duration(total)}: `,
      `${duration(sum("marking"))} marking, ${duration(sum("sweeping"))} sweeping. `,
      `Longest pause ${duration(quantile(1))}, median of each run’s longest ${duration(quantile(0.5))}, `,
      `99% below ${duration(quantile(0.99))}.`,
      recording.about.gc.merged && " So many runs that neighbours were recorded as one.",
      h(
        "span",
        { class: "legend" },
        h("span", { class: "key" }, h("i", { class: "swatch accent" }), "minor"),
        h("span", { class: "key" }, h("i", { class: "swatch gc-mark" }), "major"),
      ),
    )
    this.pauses.show()
    this.living.show()
    const causes = new Map()
    for (const run of runs) {
      const row = causes.get(run.reason) || { reason: run.reason, runs: 0, total: 0, longest: 0, allocated: 0 }
      causes.set(run.reason, row)
      row.runs += run.runs
      row.total += run.total
      row.longest = Math.max(row.longest, run.longest)
      row.allocated += run.allocated
    }
    this.causes.setColumns([
      amount("runs", "runs", "count", (row) => row.runs, "4.4rem"),
      amount("total", "time", "ns", (row) => row.total),
      share("share", "of GC", total, (row) => row.total),
      amount("longest", "longest", "ns", (row) => row.longest),
      amount("allocated", "objects", "count", (row) => row.allocated, "6.8rem"),
      { key: "reason", label: "why", sort: (row) => row.reason, text: (row) => row.reason, class: "grow" },
    ])
    this.causes.show([...causes.values()])
    const longest = [...runs]
      .sort((a, b) => b.longest - a.longest)
      .slice(0, 50)
      .map((run) => {
        const row = recording.rowAt(run.thread, run.longestAt)
        return { run, ns: run.longest, at: run.longestAt, code: row < 0 ? null : recording.code(run.thread.node[row]) }
      })
    this.longest.setColumns([
      amount("ns", "pause", "ns", (row) => row.ns, "5.6rem"),
      amount("at", "at", "ns", (row) => row.at, "5.4rem"),
      {
        key: "kind",
        label: "kind",
        wide: "4.4rem",
        sort: (row) => (row.run.major ? 1 : 0),
        text: (row) => (row.run.major ? "major" : "minor"),
      },
      {
        key: "method",
        label: "what ran",
        sort: (row) => row.code?.method.name ?? "",
        class: "grow",
        node: (row) => (row.code ? name(row.code.method, this.app) : h("span", { class: "muted" }, "no sample")),
      },
      {
        key: "place",
        label: "where",
        wide: "30%",
        sort: (row) => row.code?.method.path ?? "",
        class: "path",
        node: (row) => (row.code ? middle(place(row.code.method.path, row.code.line, recording.base)) : ""),
      },
    ])
    this.longest.show(longest)
  }
}
