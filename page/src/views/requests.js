// The slowest requests and jobs, and what was sampled in the one that is chosen.

import { h, replace } from "../dom.js"
import { value, duration, count, percent, things } from "../format.js"
import { eachRow } from "../rows.js"
import { Flame } from "../flame.js"
import { splitter } from "../splitter.js"
import { Table } from "../table.js"
import { amount, counterColumns, counterNotes } from "./columns.js"
import { byQuery, queryColumns, summed } from "./queries.js"
import { TreeView } from "./tree.js"

// "route: orders#show, tenant: acme"
export const inWords = (labels) =>
  Object.entries(labels)
    .map(([name, text]) => `${name}: ${text}`)
    .join(", ") || "(without labels)"

const SHOWN = [
  ["time", "time order"],
  ["heavy", "heaviest first"],
  ["tree", "call tree"],
]

export class RequestsView {
  constructor(app) {
    this.app = app
    const { recording } = app
    this.table = new Table({
      label: "Slowest requests",
      columns: [],
      sorted: ["took", true],
      chosen: (row) => app.chooseRequest(row.number),
      empty: "No request ended in what is selected.",
    })
    this.longest = recording.marks.reduce((most, mark) => Math.max(most, mark.ns), 1)
    this.several = new Set(recording.marks.map((mark) => mark.thread.process)).size > 1
    const all = recording.works.reduce((sum, work) => sum + work.count, 0)
    const ended = `${things(Math.max(all, recording.marks.length), "request")} that ended`
    this.note = h(
      "p",
      { class: "muted note" },
      recording.marks.length ? `The slowest of ${ended}` : `None of ${ended} was kept one by one`,
      "; of each second the slowest are known one by one. ",
      "A request that is chosen narrows every view to its thread and time.",
      counterNotes(recording, recording.marks),
    )
    // What isn't told by time is not what a request did.
    const timed = Object.create(app, {
      weight: { get: () => (recording.timed(app.weight.name) ? app.weight : recording.weight("wall")) },
    })
    this.timed = timed
    this.flame = new Flame(recording, { label: "Flame graph of the request", ...app.ofFrames })
    this.tree = new TreeView(timed)
    this.shown = "time"
    this.queries = new Table({
      label: "Queries of the request",
      columns: [],
      sorted: ["ns", true],
      chosen: (row) => row.query.path && app.showLine(row.query.path, row.query.line),
    })
    this.head = h("div", { class: "detail-head" })
    this.body = h("div", { class: "detail-body" })
    this.detail = h("aside", { class: "detail", "aria-label": "The chosen request" }, this.head, this.body)
    this.element = h(
      "div",
      { class: "view split requests" },
      h("section", { class: "code" }, this.note, this.table.element),
      splitter(app.state, { name: "detail", label: "Width of the request", side: "right", panel: () => this.detail }),
      this.detail,
    )
  }

  // Those of the thread, range and label that are looked at beside the request.
  marks() {
    const { recording, state } = this.app
    const { from, to } = state
    const wanted = recording.labelled({ label: state.label })
    const sets = wanted && new Set(recording.labelSets.filter((_, at) => wanted[at]))
    const lane = recording.lane(state.thread)
    return recording.marks.filter(
      (mark) =>
        (!sets || sets.has(mark.labels)) &&
        (!lane || mark.thread.lane === lane) &&
        (from === null || (mark.end > from && mark.start < to)),
    )
  }

  update() {
    const { app } = this
    const request = app.request
    const search = app.state.search.trim().toLowerCase()
    const rows = this.marks().filter(
      (mark) => !search || `${inWords(mark.labels)} ${mark.thread.title}`.toLowerCase().includes(search),
    )
    this.table.setColumns([
      {
        key: "number",
        label: "request",
        number: true,
        wide: "4.8rem",
        sort: (row) => -row.number,
        text: (row) => String(row.number),
      },
      { ...amount("took", "took", "ns", (row) => row.ns), bar: (row) => row.ns / this.longest },
      ...(this.app.recording.queries.length ? this.asked() : []),
      {
        ...amount("at", "began after", "ns", (row) => Math.max(0, row.start), "7rem"),
        least: this.app.recording.queries.length ? 680 : 520,
      },
      ...counterColumns(
        this.app.recording.counters,
        this.app.recording.marks,
        this.app.recording.queries.length ? 800 : 640,
        (row, at) => row.counters[at],
      ),
      ...(this.several
        ? [
            {
              key: "pid",
              label: "process",
              number: true,
              wide: "5.4rem",
              sort: (row) => row.thread.pid ?? 0,
              text: (row) => String(row.thread.pid ?? ""),
            },
          ]
        : []),
      {
        key: "labels",
        label: "what",
        class: "grow",
        sort: (row) => inWords(row.labels),
        text: (row) => inWords(row.labels),
        tip: (row) => inWords(row.labels),
      },
      {
        key: "thread",
        label: "thread",
        wide: request ? "22%" : "18%",
        sort: (row) => row.thread.name,
        text: (row) => row.thread.name,
        tip: (row) => row.thread.title,
      },
    ])
    this.table.show(rows, rows.find((row) => row === request) ?? null)
    this.element.classList.toggle("has-detail", Boolean(request))
    this.detail.hidden = !request
    if (request) this.draw(request)
  }

  // How often it asked databases, how often for the same from one line, and how much of its time that took.
  asked() {
    const sums = new Map()
    const sum = (row) => {
      if (!sums.has(row)) sums.set(row, summed(row.queries))
      return sums.get(row)
    }
    const least = 420
    return [
      { ...amount("queries", "queries", "count", (row) => sum(row).count, "5rem"), least },
      {
        ...amount("repeats", "repeats", "count", (row) => sum(row).repeats, "5rem"),
        title: "of the same query from one line",
        least,
        text: (row) => (sum(row).repeats > 1 ? count(sum(row).repeats) : ""),
      },
      {
        ...amount("sql", "sql", "ns", (row) => sum(row).ns / Math.max(1, row.ns), "5.2rem"),
        title: "queries’ part of its time",
        least: least + 120,
        text: (row) => (sum(row).count ? percent(sum(row).ns, row.ns) : ""),
      },
    ]
  }

  // How its samples spent their time, and what took them.
  draw(request) {
    const { app, timed } = this
    const { recording } = app
    const { weight } = timed
    const sums = { wall: 0, cpu: 0, captures: 0, states: recording.noStates() }
    const every = { ...app.filter, state: "all" }
    eachRow(request.thread, every, recording.labelled(every), (row, wall, cpu, captures) => {
      sums.wall += wall
      sums.cpu += cpu
      sums.captures += captures
      sums.states[request.thread.state[row]] += wall
    })
    const states = recording.statesInWords(sums)
    const asked = summed(request.queries)
    const shown = request.queries.length ? [...SHOWN, ["queries", "queries"]] : SHOWN
    const current = shown.some(([key]) => key === this.shown) ? this.shown : "time"
    replace(
      this.head,
      h(
        "div",
        { class: "detail-title" },
        h("h2", {}, inWords(request.labels)),
        h(
          "button",
          {
            class: "close",
            "aria-label": "Close: the whole recording again",
            onclick: () => app.state.set({ request: null, zoom: null }),
          },
          "×",
        ),
      ),
      h(
        "p",
        { class: "path" },
        `request ${request.number} · ${duration(request.ns)} from ${duration(Math.max(0, request.start))}`,
        ` · thread ${request.thread.title}`,
      ),
      h(
        "p",
        {},
        sums.wall
          ? [
              `sampled ${duration(sums.wall)}, CPU ${duration(sums.cpu)}, ${things(sums.captures, "sample")}`,
              states && ` · ${states}`,
            ]
          : "No sample fell into it: it was shorter than the interval, or its thread was not seen.",
      ),
      request.queries.length > 0 &&
        h(
          "p",
          {},
          `queries: ${count(asked.count)}`,
          asked.repeats > 1 && `, the same from one line up to ${things(asked.repeats, "time")}`,
          `, ${duration(asked.ns)} (${percent(asked.ns, request.ns)} of its time)`,
          asked.cached > 0 && `, ${count(asked.cached)} answered by a cache`,
        ),
      (sums.wall > 0 || request.queries.length > 0) &&
        h(
          "div",
          { class: "bar-row" },
          h(
            "div",
            { class: "segments", role: "group", "aria-label": "Show" },
            shown.map(([key, text]) =>
              h(
                "button",
                {
                  "aria-pressed": String(current === key),
                  onclick: () => {
                    this.shown = key
                    this.update()
                  },
                },
                text,
              ),
            ),
          ),
        ),
    )
    if (current === "queries") {
      if (this.body.firstChild !== this.queries.element) replace(this.body, this.queries.element)
      this.queries.setColumns(queryColumns(app, { whole: request.ns, one: true }))
      return this.queries.show(byQuery(request.queries))
    }
    if (!sums.wall) return replace(this.body)
    const element = current === "tree" ? this.tree.element : this.flame.element
    if (this.body.firstChild !== element) replace(this.body, element)
    if (current === "tree") return this.tree.update()
    const { filter } = app
    const options = { labelled: recording.labelled(filter), folds: recording.boxes(filter.blackbox), strict: true }
    current === "time"
      ? this.flame.showTime(request.thread, filter.from, filter.to, filter.state, options)
      : this.flame.showTree(recording.weighed(weight.name, filter), weight.unit)
    this.flame.search(app.matches())
  }
}

// What is said of a request where it is pointed at.
export const facts = (mark) => [
  inWords(mark.labels),
  `request ${count(mark.number)} · ${value(mark.ns, "ns")}`,
  `began after ${duration(Math.max(0, mark.start))} · thread ${mark.thread.title}`,
]
