// Places whose objects stay and keep growing: rates, and living objects over time beside resident memory.

import { css, h, middle, replace } from "../dom.js"
import { bytes, count, duration, place, things } from "../format.js"
import { LAST, Table } from "../table.js"
import { amount } from "./columns.js"
import { Chart, short, timeAxis } from "./chart.js"

const MOST = 5 // lines of one chart
const rounded = (number) => (Math.abs(number) < 1000 ? Math.round(number) : Number(number.toPrecision(3)))

export class GrowthView {
  constructor(app) {
    this.app = app
    const { about, strings } = app.recording
    this.growth = about.growth
    this.rows = this.growth.sites.map((site) => ({
      ...site,
      path: strings[site.path],
      class: strings[site.class],
      holders: site.holders?.map((path) => path.map((step) => strings[step])) ?? null,
    }))
    this.chosen = null
    this.table = new Table({
      label: "Places that grow",
      columns: [],
      sorted: ["bytes", true],
      chosen: (row) => {
        this.chosen = this.chosen === row ? null : row
        this.update()
      },
      empty: this.growth.judged ? "No place's objects keep growing." : "Whether objects keep growing is not known.",
    })
    this.living = new Chart("Living objects of these places over time", () => this.livingPlot())
    this.rss = new Chart("Resident memory over time", () => this.rssPlot())
    this.holders = h("div", { class: "notes" })
    this.element = h(
      "div",
      { class: "view objects" },
      this.notes(),
      h("div", { class: "charts" }, this.living.element, this.rss.element),
      this.holders,
      this.table.element,
    )
  }

  notes() {
    const several = this.growth.processes.length > 1
    const looked = this.growth.processes.map((process) => {
      const which = several ? `process ${process.pid}: ` : ""
      const runs = `${things(process.judged, "collection")} looked at, ${count(process.full)} of them full`
      return `${which}${runs}, after ${duration(process.warm_up_ns)} of warm-up`
    })
    return h(
      "div",
      { class: "notes" },
      h("p", {}, `${looked.join(" · ")}. `, h("span", { class: "muted" }, this.growth.rule)),
      this.growth.losses.map((text) => h("p", { class: "warning" }, text)),
    )
  }

  get shown() {
    return this.chosen ? [this.chosen] : this.found().slice(0, MOST)
  }

  found() {
    const search = this.app.state.search.trim().toLowerCase()
    return this.rows.filter((row) => !search || `${row.class} ${row.path}:${row.line}`.toLowerCase().includes(search))
  }

  plot(data, values, series) {
    return {
      data,
      options: {
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, high ? high * 1.08 : 1] } },
        series: [{}, ...series],
        axes: [timeAxis, { values: (_, splits) => splits.map(values), size: 68 }],
      },
    }
  }

  // Places of several processes have points of their own: null where one has none.
  livingPlot() {
    const rows = this.shown
    const at = [...new Set(rows.flatMap((row) => row.living.map(([ns]) => ns)))].sort((a, b) => a - b)
    const index = new Map(at.map((ns, number) => [ns, number]))
    const lines = rows.map((row) => {
      const line = Array(at.length).fill(null)
      for (const [ns, low, high] of row.living) line[index.get(ns)] = (low + high) / 2
      return line
    })
    return this.plot(
      [at, ...lines],
      short,
      lines.map(() => ({ stroke: css("--accent"), width: 1.5, spanGaps: true, points: { show: false } })),
    )
  }

  rssPlot() {
    const [most] = [...this.growth.processes].sort((a, b) => b.points - a.points)
    const points = most?.rss ?? []
    const data = [points.map(([ns]) => ns), points.map(([, size]) => size)]
    return this.plot(data, bytes, [
      { stroke: css("--accent"), fill: css("--accent-soft"), width: 1.5, points: { show: false } },
    ])
  }

  update() {
    const { recording } = this.app
    const known = (key, label, title, text, least) => ({
      ...amount(key, label, "count", (row) => row[key], "6.6rem"),
      title,
      least,
      sort: (row) => row[key] ?? LAST,
      text: (row) => (row[key] === null ? "" : text(row[key])),
    })
    const signed = (number) => `+${bytes(number)}`
    this.table.setColumns([
      {
        key: "rate",
        label: "objects/min",
        number: true,
        wide: "7.6rem",
        sort: (row) => row.objects_per_minute.point,
        text: (row) => `+${count(rounded(row.objects_per_minute.point))}`,
      },
      {
        key: "interval",
        label: "99% interval",
        number: true,
        wide: "14rem",
        least: 980,
        sort: (row) => row.objects_per_minute.low ?? LAST,
        text: ({ objects_per_minute: { low, high } }) =>
          low === null || high === null ? "" : `${count(rounded(low))} … ${count(rounded(high))}`,
      },
      known("bytes_per_minute", "bytes/min", null, signed),
      known("objects", "grew by", "objects, in the points looked at", (number) => `+${count(number)}`, 640),
      known("bytes", "bytes", "by which it grew", signed, 640),
      known("living_objects", "living", "objects, at the last point looked at", count, 760),
      known(
        "rss_share",
        "of RSS",
        "part of the growth of resident memory in the same time",
        (share) => `${Math.round(share * 100)}%`,
        860,
      ),
      {
        key: "class",
        label: "class",
        wide: "16%",
        sort: (row) => row.class,
        text: (row) => row.class,
        tip: (row) => row.class,
      },
      {
        key: "place",
        label: "where",
        class: "path grow",
        sort: (row) => `${row.path}:${String(row.line).padStart(8, "0")}`,
        node: (row) => middle(place(row.path, row.line, recording.base)),
        tip: (row) => row.path,
      },
    ])
    const rows = this.found()
    this.table.show(rows, this.chosen)
    const held = this.shown.filter((row) => row.holders)
    replace(
      this.holders,
      held.flatMap((row) =>
        (row.holders.length ? row.holders : [["nothing that was found"]]).map((path) =>
          h(
            "p",
            {},
            h("span", { class: "muted" }, `${row.class} ${place(row.path, row.line, recording.base)} is held by `),
            path.join(" → "),
          ),
        ),
      ),
    )
    this.living.element.hidden = !rows.length
    if (rows.length) this.living.show(170)
    this.rss.element.hidden = !this.growth.processes.some((process) => process.rss.length > 1)
    if (!this.rss.element.hidden) this.rss.show(170)
  }
}
