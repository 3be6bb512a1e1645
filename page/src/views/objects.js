// Objects by place: how many, how old, what they cost.

import uPlot from "uplot"
import { css, h, middle, replace, select } from "../dom.js"
import { duration, count, bytes, place } from "../format.js"
import { Table, LAST } from "../table.js"
import { share, amount } from "./columns.js"
import { Chart, timeAxis, short } from "./chart.js"

export class ObjectsView {
  constructor(app) {
    this.app = app
    this.table = new Table({
      label: "Objects by place",
      columns: [],
      sorted: ["count", true],
      empty: "No place matches.",
    })
    this.notes = h("div", { class: "notes" })
    this.rate = new Chart("Objects allocated a second, between runs of the garbage collector", () => this.ratePlot())
    this.bar = h("div", { class: "bar-row" })
    this.element = h("div", { class: "view objects" }, this.notes, this.rate.element, this.bar, this.table.element)
  }

  ratePlot() {
    const { recording, filter } = this.app
    const runs = recording.runs.filter((run) => run.runs > 0)
    const at = []
    const rate = []
    runs.forEach((run, number) => {
      const before = number ? runs[number - 1].at : 0
      if (run.at <= before) return
      at.push(run.at)
      rate.push((run.allocated / (run.at - before)) * 1e9)
    })
    if (at.length) {
      at.unshift(0)
      rate.unshift(rate[0])
    }
    return {
      data: [at, rate],
      options: {
        scales: {
          x: { time: false, range: () => [filter.from ?? 0, filter.to ?? recording.span] },
          y: { range: (_, low, high) => [0, high ? high * 1.08 : 1] },
        },
        series: [
          {},
          {
            stroke: css("--accent"),
            fill: css("--accent-soft"),
            width: 1.5,
            paths: uPlot.paths.stepped({ align: -1 }),
            points: { show: false },
          },
        ],
        axes: [timeAxis, { values: (_, splits) => splits.map(short), size: 56 }],
      },
    }
  }

  update() {
    const { recording, state } = this.app
    const { about } = recording
    const objects = about.objects
    const keys = {
      place: ["path", "line", "class"],
      path: ["path"],
      class: ["class"],
      method: ["method", "path"],
      type: ["type"],
    }[state.by] || ["path", "line", "class"]
    const search = state.search.toLowerCase()
    const whole = objects.total.objects
    const age = (row) => (row.freed + row.retained ? row.total_age / (row.freed + row.retained) : null)
    const plain = (key, label, wide, title, least) => ({
      ...amount(key, label, "count", (row) => row[key], wide),
      title,
      least,
    })
    // What stands for no place comes last, and is no part of the program's objects.
    const own = (column) => ({ ...column, sort: (row) => (row.special ? LAST : column.sort(row)) })
    const part = { ...share("count", "objects", whole, (row) => row.count), wide: "6.2rem" }
    this.table.setColumns(
      [
        {
          ...part,
          text: (row) => (row.special ? "" : part.text(row)),
          bar: (row) => (row.special ? 0 : part.bar(row)),
        },
        plain("count_value", "", "6.4rem", undefined, 460),
        amount("bytes", "bytes", "bytes", (row) => row.bytes, "6.6rem"),
        ...(objects.ends
          ? [
              plain("old", "old", "5rem", "survived three collections", 860),
              ...(objects.retained ? [plain("retained", "retained", "5.8rem", "lived at the end", 700)] : []),
              ...(objects.retained_bytes
                ? [
                    {
                      ...amount("retained_bytes", "retained bytes", "bytes", (row) => row.retained_bytes, "8.4rem"),
                      title: "of what lived at the end",
                      least: 1020,
                    },
                  ]
                : []),
              {
                key: "age",
                label: "mean age",
                title: "in collections",
                number: true,
                wide: "6.4rem",
                least: 780,
                sort: age,
                text: (row) => (age(row) === null ? "–" : age(row).toFixed(1)),
              },
              plain("max_age", "max age", "6rem", "in collections", 940),
            ]
          : []),
        { ...amount("gc_ns", "GC charged", "ns", (row) => row.gc_ns, "7.4rem"), least: 560 },
        ...(keys.includes("class")
          ? [
              {
                key: "class",
                label: "class",
                wide: "16%",
                sort: (row) => row.class,
                text: (row) => row.class,
                tip: (row) => row.class,
              },
            ]
          : []),
        ...(keys.includes("type")
          ? [{ key: "type", label: "type", sort: (row) => row.type, text: (row) => row.type || row.path || "" }]
          : []),
        ...(keys.includes("method")
          ? [
              {
                key: "method",
                label: "method",
                wide: "26%",
                sort: (row) => row.method,
                text: (row) => row.method,
                tip: (row) => row.method,
              },
            ]
          : []),
        ...(keys.includes("path")
          ? [
              {
                key: "place",
                label: "where",
                sort: (row) => `${row.path}:${String(row.line ?? 0).padStart(8, "0")}`,
                class: "path grow",
                node: (row) => middle(place(row.path, row.line ?? 0, recording.base)),
                tip: (row) => row.path,
              },
            ]
          : []),
      ]
        .map((column) =>
          column.key === "count_value"
            ? {
                ...column,
                sort: (row) => row.count,
                text: (row) => `${objects.looked_at ? "~" : ""}${count(row.count)}`,
                label: "count",
              }
            : column,
        )
        .map(own),
    )
    this.table.show(recording.siteRows(keys, search))
    replace(
      this.notes,
      h(
        "p",
        {},
        `${objects.looked_at ? "~" : ""}${count(whole)} objects, ${bytes(objects.total.bytes)}; `,
        `${duration(objects.gc_ns)} of garbage collection. `,
        h("span", { class: "muted" }, objects.model),
      ),
      objects.losses.map((text) => h("p", { class: "warning" }, text)),
      this.app.filter.from !== null &&
        h(
          "p",
          { class: "muted" },
          "Objects are counted by place over the whole recording; the range does not narrow this table.",
        ),
    )
    replace(
      this.bar,
      select(
        "a row for each",
        [
          ["place", "line and class"],
          ["path", "file"],
          ["class", "class"],
          ["method", "method"],
          ["type", "type"],
        ],
        state.by,
        (by) => this.app.state.set({ by }),
      ),
    )
    this.rate.element.hidden = !recording.runs.some((run) => run.runs > 0)
    if (!this.rate.element.hidden) this.rate.show(120)
  }
}
