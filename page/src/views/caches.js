// Which lines empty caches of the VM: a time line of changes beside garbage collection, and the rows of the text. A mark
// or a row shows its stack.

import { css, fit, h, middle, oncePerFrame, replace } from "../dom.js"
import { count, duration, place, safe } from "../format.js"
import { paintAxis } from "../axis.js"
import { Table } from "../table.js"
import { amount } from "./columns.js"

const LANE = 18
const NEAR = 6 // pixels beside a mark that still mean it
// What a change empties, in the order of the lanes.
const GROUPS = {
  constants: "constants",
  classes: "classes",
  ancestors: "mixins",
  methods: "methods",
  operators: "operators",
  class_variables: "class variables",
  shapes: "shapes",
  tracing: "tracing",
}

export class CachesView {
  constructor(app) {
    this.app = app
    this.caches = app.recording.about.caches
    this.marks = this.caches.marks.map(([at, row, times, stack]) => ({ at, row: this.caches.rows[row], times, stack }))
    this.lanes = Object.keys(GROUPS).filter((group) => this.marks.some((mark) => mark.row.group === group))
    this.at = -1
    this.canvas = h("canvas", { "aria-hidden": "true" })
    this.axis = h("canvas", { class: "axis", "aria-hidden": "true" })
    this.box = h(
      "div",
      {
        class: "caches-marks",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "time line",
        "aria-label": "Changes over time; arrow keys go from one to another, Enter shows its stack",
        onclick: (event) => this.clicked(event),
        onkeydown: (event) => this.key(event),
      },
      this.canvas,
      this.axis,
    )
    this.table = new Table({
      label: "Changes that empty caches",
      columns: this.columns(),
      chosen: (row) => this.show(row, row.stack),
      empty: "No change empties a cache here.",
    })
    this.stack = h("section", { class: "caches-stack", "aria-live": "polite", hidden: true })
    const names = [...(this.runs.length ? ["GC"] : []), ...this.lanes.map((group) => GROUPS[group])]
    this.element = h(
      "div",
      { class: "view page-scroll caches" },
      h("div", { class: "caches-words" }, this.words()),
      h(
        "div",
        { class: "caches-time" },
        h(
          "div",
          { class: "caches-names" },
          names.map((name) => h("span", {}, name)),
        ),
        this.box,
      ),
      this.stack,
      this.table.element,
      h("p", { class: "muted" }, safe(this.caches.order)),
      this.caches.advice.map((text) => h("p", {}, safe(text))),
    )
    this.draw = oncePerFrame(() => this.paint())
    new ResizeObserver(() => this.draw()).observe(this.box)
  }

  get runs() {
    return this.app.recording.runs
  }

  // What one pixel row of the time line spans, ns: samples may end before the last change.
  get span() {
    return Math.max(this.app.recording.span, this.marks[this.marks.length - 1]?.at ?? 0, 1)
  }

  words() {
    const { counters, losses, notes } = this.caches
    return [
      ...counters.map(({ count: number, text, name }) =>
        h("p", {}, `${count(number)} ${safe(text)} (${name ? `counted by Ruby: ${safe(name)}` : "counted by Pitwall"})`),
      ),
      ...[...losses, ...notes].map((text) => h("p", { class: "muted" }, safe(text))),
    ]
  }

  columns() {
    const { sampled, counts_misses: misses } = this.caches
    const words = (row) => `${safe(row.kind)}: ${safe(row.subject)}`
    return [
      amount("count", "changes", "count", (row) => row.count, "5rem"),
      ...(sampled ? [amount("time", "time", "ns", (row) => row.time_ns ?? 0, "5rem")] : []),
      ...(misses ? [amount("misses", "misses ≤", "count", (row) => row.misses ?? 0, "6rem")] : []),
      { key: "what", label: "what", sort: words, text: words, class: "grow" },
      { key: "counters", label: "counters", wide: "20%", sort: (row) => row.counters, text: (row) => safe(row.counters) },
      {
        key: "place",
        label: "where",
        wide: "30%",
        sort: (row) => row.path,
        class: "path",
        node: (row) => middle(place(row.path, row.line, this.app.recording.base)),
      },
    ]
  }

  // A mark's or a row's stack, the innermost frame first.
  show(row, stack, mark = null) {
    const { base } = this.app.recording
    const when = mark ? ` at ${duration(mark.at)}${mark.times > 1 ? `, ${count(mark.times)} times near it` : ""}` : ""
    this.stack.hidden = false
    replace(
      this.stack,
      h("h3", {}, `${safe(row.kind)}: ${safe(row.subject)}${when}`),
      h(
        "ol",
        {},
        this.caches.stacks[stack].map(([name, path, line]) =>
          h("li", {}, safe(name), " ", h("span", { class: "path" }, place(path, line, base))),
        ),
      ),
    )
  }

  choose(number) {
    this.at = number
    const mark = this.marks[number]
    if (mark) this.show(mark.row, mark.stack, mark)
    this.draw()
  }

  clicked(event) {
    const bounds = this.canvas.getBoundingClientRect()
    const lane = Math.floor((event.clientY - bounds.top) / LANE) - (this.runs.length ? 1 : 0)
    const x = event.clientX - bounds.left
    let found = -1
    let best = NEAR
    this.marks.forEach((mark, number) => {
      const away = Math.abs((mark.at / this.span) * bounds.width - x)
      if (this.lanes[lane] === mark.row.group && away <= best) [found, best] = [number, away]
    })
    if (found >= 0) this.choose(found)
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const last = this.marks.length - 1
    const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last, Enter: this.at, " ": this.at }
    if (!(event.key in to)) return
    event.preventDefault()
    event.stopPropagation()
    this.choose(Math.max(0, Math.min(last, to[event.key])))
  }

  paint() {
    const width = this.box.clientWidth
    if (width < 20) return
    const before = this.runs.length ? 1 : 0
    const context = fit(this.canvas, width, LANE * (this.lanes.length + before))
    const at = (ns) => Math.min(width - 2, (ns / this.span) * width)
    context.clearRect(0, 0, width, LANE * (this.lanes.length + before))
    for (const run of this.runs) {
      context.fillStyle = css(run.major ? "--gc-mark" : "--gc-sweep")
      context.fillRect(at(run.at), 2, Math.max(1, at(run.end) - at(run.at)), LANE - 4)
    }
    this.marks.forEach((mark, number) => {
      context.fillStyle = css(number === this.at ? "--text" : "--accent")
      const lane = this.lanes.indexOf(mark.row.group) + before
      context.fillRect(at(mark.at), lane * LANE + 2, number === this.at ? 4 : 2, LANE - 4)
    })
    paintAxis(this.axis, width, this.span)
  }

  update() {
    const search = this.app.state.search.trim().toLowerCase()
    const fits = (row) => `${row.kind} ${row.subject} ${row.path}`.toLowerCase().includes(search)
    this.table.show(this.caches.rows.filter((row) => !search || fits(row)))
    this.draw()
  }
}
