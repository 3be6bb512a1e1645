// The page of a history: a list of series, the newest change first, and the chosen series beside it.

import { h, svg } from "./dom.js"
import { safe } from "./format.js"
import { frame, help } from "./frame.js"
import { size, splitter } from "./splitter.js"
import { State } from "./state.js"
import { LAST, Table } from "./table.js"
import { theme } from "./theme.js"
import { SeriesView } from "./views/series.js"

const KEYS = [
  ["/", "search"],
  ["Esc", "clear the search"],
  ["t", "light or dark"],
  ["?", "this list"],
  ["List and table", ""],
  ["arrow keys, Page Up, Home …", "move"],
  ["Enter", "choose"],
  ["Chart", ""],
  ["point, or ← →", "one result"],
  ["drag", "a part of the chart"],
  ["double click, or Esc", "the whole chart"],
]
const TREND = 48 // points of a small trend, at most

// The series of the data, with their runs looked up.
export function seriesOf(data) {
  const { times, commits, rubies, hosts, series } = data.object
  const commit = data.column(data.object.commit, Int32Array)
  const ruby = data.column(data.object.ruby, Int32Array)
  return series.map((one) => {
    const runs = data.column(one.runs, Int32Array)
    const changes = one.changes.map((change) => ({ ...change, commit: safe(change.commit ?? "") }))
    return {
      ...one,
      name: safe(one.name),
      metric: safe(one.metric),
      unit: safe(one.unit),
      key: `${one.name}, ${one.metric}, ${one.host}`,
      about: safe(hosts[one.host] ?? ""),
      lows: one.lows ?? Array.from(runs, () => null),
      highs: one.highs ?? Array.from(runs, () => null),
      known: Boolean(one.lows),
      times: Array.from(runs, (run) => times[run]),
      commits: Array.from(runs, (run) => safe(commits[commit[run]])),
      rubies: Array.from(runs, (run) => safe(rubies[ruby[run]])),
      changes,
      last: changes.at(-1),
    }
  })
}

export class HistoryApp {
  constructor(data) {
    const { object } = data
    this.series = seriesOf(data)
    this.state = new State(() => this.redraw())
    this.help = help(KEYS)
    this.search = h("input", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search series",
      oninput: () => this.state.set({ search: this.search.value }),
    })
    this.list = new Table({
      label: "Series",
      columns: this.columns(),
      sorted: ["since", true],
      chosen: (row) => this.state.set({ series: row.key }),
      empty: "No series of that name.",
    })
    this.list.follows = true
    this.view = new SeriesView(this.state)
    this.main = h(
      "main",
      { tabindex: "-1" },
      h(
        "div",
        { class: "view split history" },
        this.list.element,
        splitter(this.state, {
          name: "detail",
          label: "Width of the chosen series",
          side: "right",
          panel: () => this.view.element,
        }),
        this.view.element,
      ),
    )
    this.element = frame(
      { title: safe(object.title), facts: object.facts, help: () => this.help.showModal() },
      h("div", { class: "toolbar alone" }, h("span", { class: "space" }), this.search),
      this.main,
      this.help,
    )
    addEventListener("keydown", (event) => this.key(event))
  }

  columns() {
    const hosts = new Set(this.series.map((row) => row.host)).size > 1
    return [
      {
        key: "name",
        label: "case and metric",
        class: "grow",
        sort: (row) => `${row.name}, ${row.metric}`,
        text: (row) => `${row.name}, ${row.metric}`,
        prose: true,
        tip: (row) => `${row.name}, ${row.metric}`,
      },
      hosts && {
        key: "host",
        label: "host",
        wide: "8.8rem",
        class: "path",
        sort: (row) => row.host,
        text: (row) => row.host,
        prose: true,
        tip: (row) => row.about,
      },
      { key: "trend", label: "trend", wide: "6.4rem", least: 540, node: (row) => trend(row.values) },
      {
        key: "newest",
        label: "newest",
        wide: "7.8rem",
        number: true,
        least: 700,
        sort: (row) => row.values.at(-1) ?? LAST,
        text: (row) => row.newest,
      },
      {
        key: "change",
        label: "last change",
        wide: "7.6rem",
        number: true,
        sort: (row) => row.last?.ratio ?? LAST,
        node: (row) => row.last && h("span", { class: row.last.worse ? "bad" : "good" }, row.last.change),
      },
      {
        key: "since",
        label: "since",
        wide: "7.2rem",
        number: true,
        title: "when the last change came",
        sort: (row) => row.last?.time ?? LAST,
        text: (row) => row.last?.since.slice(0, 10),
        tip: (row) => row.last?.since,
      },
    ].filter(Boolean)
  }

  get theme() {
    return theme.now
  }

  begin() {
    this.redraw()
  }

  // Series that have each word of the search in their name, metric, host or commits of changes.
  found() {
    const words = this.state.search.toLowerCase().split(/\s+/).filter(Boolean)
    return this.series.filter((row) => {
      const commits = row.changes.map(({ commit }) => commit).join(" ")
      const text = `${row.name}, ${row.metric} ${row.host} ${row.about} ${commits}`.toLowerCase()
      return words.every((word) => text.includes(word))
    })
  }

  redraw() {
    if (this.search.value !== this.state.search) this.search.value = this.state.search
    size(this.element, this.state)
    const rows = this.found()
    this.list.show(rows, rows.find((row) => row.key === this.state.series) ?? null)
    if (rows.length && this.list.active < 0) this.list.activate(0)
    this.view.show(rows.length ? this.list.wanted : null)
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return
    if (event.key === "Escape") {
      this.state.set({ search: "" })
      if (event.target === this.search) this.main.focus()
    } else if (/^(input|select|textarea)$/i.test(event.target.tagName)) return
    else if (event.key === "/") {
      event.preventDefault()
      this.search.focus()
      this.search.select()
    } else if (event.key === "?") this.help.showModal()
    else if (event.key === "t") theme.toggle()
  }
}

// Values as a small line, from the lowest to the highest. Neighbours share a point, which is their median.
function trend(values) {
  const points = Math.min(TREND, values.length)
  if (points < 2) return null
  const drawn = Array.from({ length: points }, (_, at) => {
    const part = values.slice(Math.floor((at * values.length) / points), Math.floor(((at + 1) * values.length) / points))
    return part.sort((a, b) => a - b)[part.length >> 1]
  })
  const low = Math.min(...drawn)
  const high = Math.max(...drawn)
  const y = (number) => (high === low ? 9 : 16 - ((number - low) / (high - low)) * 14)
  return svg(
    "svg",
    { viewBox: `0 0 ${points - 1} 18`, preserveAspectRatio: "none", class: "trend", "aria-hidden": "true" },
    svg("polyline", { points: drawn.map((number, at) => `${at},${y(number).toFixed(2)}`).join(" ") }),
  )
}
