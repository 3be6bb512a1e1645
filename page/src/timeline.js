// Threads over time: one lane each, states stacked by their share of every column, its requests below it as bars; above
// them garbage collection. A range is brushed with the pointer, or with the arrow keys on its two handles.

import { h, fit, css, middle, oncePerFrame } from "./dom.js"
import { paintAxis } from "./axis.js"
import { duration } from "./format.js"
import { firstAfter } from "./rows.js"
import { BINS, put, spread } from "./timeline_bins.js"
import { paintRequests } from "./timeline_requests.js"
import { facts } from "./views/requests.js"

const LANE = 18
const NEAR = 3 // pixels beside a bar that still mean it
const MOST = 12 // lanes shown until all are asked for

export class Timeline {
  // brushed(from, to): ns, or null and null; chose(key): a thread's lane was clicked; asked(mark): a request was.
  constructor(recording, { brushed, chose, asked }) {
    Object.assign(this, { recording, brushed, chose, asked, request: null, from: null, to: null, thread: "busy" })
    this.all = false
    this.box = h("div", { class: "lanes" })
    this.shade = [h("div", { class: "shade" }), h("div", { class: "shade" })]
    this.handles = ["from", "to"].map((end) =>
      h("div", {
        class: "handle",
        role: "slider",
        tabindex: "0",
        "aria-label": end === "from" ? "start of the range" : "end of the range",
        "aria-orientation": "horizontal",
        onkeydown: (event) => this.key(event, end),
      }),
    )
    this.over = h("div", { class: "brush" }, this.shade, this.handles)
    this.tip = h("div", { class: "tip", role: "tooltip", hidden: true })
    this.axis = h("canvas", { class: "axis", "aria-hidden": "true" })
    this.legend = h("div", { class: "legend" })
    this.element = h(
      "section",
      { class: "timeline", "aria-label": "Timeline" },
      (this.wrap = h("div", { class: "lanes-wrap" }, h("div", { class: "lanes-inner" }, this.box, this.over))),
      h("div", { class: "axis-row" }, h("span", { class: "lane-name" }), this.axis),
      this.legend,
      this.tip,
    )
    this.draw = oncePerFrame(() => this.paint())
    this.bins = new Map()
    this.build()
    new ResizeObserver(() => this.draw()).observe(this.element)
    this.listen()
  }

  build() {
    const { lanes, runs, sampled, states: titles } = this.recording
    const shown = sampled ? lanes.filter((thread) => thread.rows) : []
    const some = this.all ? shown : shown.slice(0, MOST)
    this.lanes = []
    this.drawn = null
    if (runs.length)
      this.lanes.push({
        name: "GC",
        title: "garbage collection",
        bins: () => this.collections(),
        colours: ["--gc-mark", "--gc-sweep"],
      })
    for (const thread of some) {
      this.lanes.push({
        thread,
        name: thread.title,
        title: this.laneTitle(thread),
        bins: () => this.states(thread),
        colours: titles.map((_, state) => `--s${state}`),
      })
      const marks = this.marksOf(thread)
      if (marks.length)
        this.lanes.push({
          thread,
          marks,
          name: "requests",
          title:
            `Requests of ${thread.title}: ${marks.length}; ` +
            "arrow keys go from one to another, Enter looks at one alone",
        })
    }
    this.box.replaceChildren(
      ...this.lanes.map((lane) => {
        lane.canvas = h("canvas", lane.marks ? { "aria-hidden": "true" } : { role: "img", "aria-label": lane.title })
        if (lane.marks) return this.requestLane(lane)
        lane.button = lane.thread
          ? h(
              "button",
              { class: "lane-name", title: lane.title, onclick: () => this.chose(lane.thread.key) },
              middle(lane.name),
            )
          : h("span", { class: "lane-name" }, lane.name)
        return h("div", { class: "lane" }, lane.button, lane.canvas)
      }),
    )
    const more = shown.length - some.length
    const states = [...titles.keys()].filter((state) => shown.some((thread) => thread.states[state] > 0))
    this.legend.replaceChildren(
      ...states.map((state) => h("span", { class: "key" }, h("i", { class: `swatch s${state}` }), titles[state])),
      ...(runs.length
        ? [
            h("span", { class: "key" }, h("i", { class: "swatch gc-mark" }), "marking"),
            h("span", { class: "key" }, h("i", { class: "swatch gc-sweep" }), "sweeping"),
          ]
        : []),
      ...(this.lanes.some((lane) => lane.marks)
        ? [
            h(
              "span",
              { class: "key" },
              `below a thread: its requests${this.labelName ? `, coloured by ${this.labelName}` : ""}`,
            ),
          ]
        : []),
      ...(more > 0 || (this.all && shown.length > MOST)
        ? [
            h(
              "button",
              {
                class: "link",
                onclick: () => {
                  this.all = !this.all
                  this.build()
                  this.draw()
                },
              },
              this.all ? "fewer threads" : `${more} more threads`,
            ),
          ]
        : []),
      (this.said = h("span", { class: "range said", role: "status" })),
      (this.rangeText = h("span", { class: "range", role: "status" })),
    )
  }

  get labelName() {
    return this.recording.labelNames[0]
  }

  // A thread's requests by their beginnings.
  marksOf(thread) {
    if (!this.byThread) {
      this.byThread = new Map()
      for (const mark of this.recording.marks)
        this.byThread.get(mark.thread.lane)?.push(mark) ?? this.byThread.set(mark.thread.lane, [mark])
    }
    return [...(this.byThread.get(thread) ?? [])].sort((a, b) => a.start - b.start)
  }

  requestLane(lane) {
    lane.starts = Float64Array.from(lane.marks, (mark) => mark.start)
    lane.longest = lane.marks.reduce((most, mark) => Math.max(most, mark.ns), 0)
    lane.at = -1
    lane.button = h("span", { class: "lane-name" }, lane.name)
    lane.box = h(
      "div",
      {
        class: "requests-lane",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "requests",
        "aria-label": lane.title,
        onkeydown: (event) => this.requestKey(event, lane),
        onfocus: () => lane.at >= 0 && this.point(lane),
        onblur: () => this.point(null),
      },
      lane.canvas,
    )
    return h("div", { class: "lane requests" }, lane.button, lane.box)
  }

  // One request alone is looked at, or none.
  look(mark) {
    this.request = mark
    this.draw()
  }

  // Earlier, later; slower, faster.
  requestKey(event, lane) {
    const { marks } = lane
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    const ranked = { ArrowUp: 1, ArrowDown: -1 }[event.key]
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      !(sideways || ranked || ["Home", "End", "Enter", " ", "Escape"].includes(event.key))
    )
      return
    event.preventDefault()
    event.stopPropagation()
    if (event.key === "Escape") return this.request ? this.set(null, null, true) : this.point(null)
    if (event.key === "Enter" || event.key === " ") return lane.at >= 0 && this.asked(marks[lane.at])
    if (ranked) {
      const order = [...marks.keys()].sort((a, b) => marks[a].number - marks[b].number)
      lane.at = lane.at < 0 ? order[0] : order[Math.min(marks.length - 1, Math.max(0, order.indexOf(lane.at) - ranked))]
    } else
      lane.at =
        event.key === "Home"
          ? 0
          : event.key === "End"
            ? marks.length - 1
            : lane.at < 0
              ? 0
              : Math.min(marks.length - 1, Math.max(0, lane.at + sideways))
    this.point(lane)
  }

  // Says what the keys are at, and shows it.
  point(lane) {
    this.pointed = lane && lane.at >= 0 ? lane.marks[lane.at] : null
    this.said.textContent = this.pointed ? facts(this.pointed).join(" · ") : ""
    this.tip.hidden = !this.pointed
    if (this.pointed) {
      const bounds = lane.canvas.getBoundingClientRect()
      this.showTip(
        this.pointed,
        bounds.left + (Math.max(0, this.pointed.start) / this.recording.span) * bounds.width,
        bounds.bottom - 12,
      )
    }
    this.draw()
  }

  // At a place of the window.
  showTip(mark, x, y) {
    const [words, ...rest] = facts(mark)
    this.tip.replaceChildren(h("strong", {}, words), ...rest.map((text) => h("span", {}, text)))
    this.tip.hidden = false
    const room = this.element.getBoundingClientRect()
    this.tip.style.left = `${Math.max(4, Math.min(x - room.left + 12, room.width - this.tip.offsetWidth - 8))}px`
    this.tip.style.top = `${y - room.top + 16}px`
  }

  // The request below the pointer: the shortest of those there, else the nearest one beside it.
  requestAt(event) {
    const lane = this.lanes.find(({ marks, canvas }) => {
      const bounds = marks && canvas.getBoundingClientRect()
      return bounds && event.clientY >= bounds.top && event.clientY < bounds.bottom
    })
    if (!lane) return null
    const bounds = lane.canvas.getBoundingClientRect()
    const ns = ((event.clientX - bounds.left) / bounds.width) * this.recording.span
    const near = (NEAR / bounds.width) * this.recording.span
    let found = null
    let best = Infinity
    for (
      let at = firstAfter(lane.starts, ns + near) - 1;
      at >= 0 && lane.starts[at] + lane.longest >= ns - near;
      at--
    ) {
      const mark = lane.marks[at]
      const beside = Math.max(0, mark.start - ns, ns - mark.end)
      const rank = beside > 0 ? 1e15 + beside : mark.ns
      if (beside <= near && rank < best) [found, best] = [mark, rank]
    }
    return found
  }

  laneTitle(thread) {
    const times = `${duration(thread.wall)} wall, ${duration(thread.cpu)} CPU`
    return `${thread.title}: ${times}; ${this.recording.statesInWords(thread)}`
  }

  // By bin and state, the share of the bin's time.
  states(thread) {
    const kinds = this.recording.states.length
    return this.binned(thread.key, kinds, (bins, width) => {
      for (const { ends, state, rows, start } of thread.parts) {
        let began = start
        for (let row = 0; row < rows; row++) {
          spread(bins, kinds, state[row], began / width, ends[row] / width)
          began = ends[row]
        }
      }
    })
  }

  collections() {
    return this.binned("gc", 2, (bins, width) => {
      for (const run of this.recording.runs) {
        // The longest pause lies where it was, the rest over the run's span; marking comes first.
        const marking = run.total ? run.marking / run.total : 0
        const rest = Math.max(0, run.total - run.longest)
        put(bins, 2, run.longestAt / width, (run.longestAt + run.longest) / width, run.longest, marking, width)
        if (rest > 0) put(bins, 2, run.at / width, Math.max(run.end, run.at + rest) / width, rest, marking, width)
      }
    })
  }

  binned(key, kinds, fill) {
    let bins = this.bins.get(key)
    if (!bins) {
      this.bins.set(key, (bins = new Float32Array(BINS * kinds)))
      fill(bins, this.recording.span / BINS)
    }
    return bins
  }

  paint() {
    const width = this.trackWidth()
    if (width < 20) return
    // A range being brushed changes what lies over the lanes, not them.
    const drawn = [width, window.devicePixelRatio, document.documentElement.dataset.theme].join()
    if (this.drawn !== drawn) {
      this.drawn = drawn
      this.paintLanes(width)
      paintAxis(this.axis, width, this.recording.span)
    }
    const marked = [drawn, this.request?.number, this.pointed?.number].join()
    if (this.marked !== marked) {
      this.marked = marked
      for (const lane of this.lanes) if (lane.marks) paintRequests(this, lane, width)
    }
    for (const lane of this.lanes) {
      if (lane.thread && !lane.marks) lane.button.setAttribute("aria-pressed", String(this.thread === lane.thread.key))
      lane.button.parentElement.classList.toggle(
        "off",
        Boolean(lane.thread) &&
          !(
            this.thread === "all" ||
            this.thread === lane.thread.key ||
            (this.thread === "busy" && !(this.recording.hasIdle && lane.thread.idle))
          ),
      )
    }
    this.paintBrush(width)
  }

  paintLanes(width) {
    for (const lane of this.lanes) {
      if (lane.marks) continue
      const context = fit(lane.canvas, width, LANE)
      const colours = lane.colours.map((name) => css(name) || css("--s-other"))
      const kinds = colours.length
      const bins = lane.bins()
      context.clearRect(0, 0, width, LANE)
      for (let x = 0; x < width; x++) {
        const from = Math.floor((x / width) * BINS)
        const to = Math.max(from + 1, Math.floor(((x + 1) / width) * BINS))
        let y = LANE - 1
        for (let kind = 0; kind < kinds; kind++) {
          let share = 0
          for (let bin = from; bin < to; bin++) share += bins[bin * kinds + kind]
          share = Math.min(1, share / (to - from))
          const height = share * (LANE - 2)
          if (height < 0.25) continue
          context.fillStyle = colours[kind]
          context.fillRect(x, y - height, 1, height)
          y -= height
        }
      }
    }
  }

  paintBrush(width) {
    const { span } = this.recording
    const on = this.from !== null
    const left = on ? (this.from / span) * width : 0
    const right = on ? (this.to / span) * width : width
    this.over.classList.toggle("on", on)
    this.shade[0].style.width = `${left}px`
    this.shade[1].style.left = `${right}px`
    this.shade[1].style.width = `${Math.max(0, width - right)}px`
    this.handles[0].style.left = `${left}px`
    this.handles[1].style.left = `${right}px`
    this.handles.forEach((handle, end) => {
      handle.setAttribute("aria-valuemin", "0")
      handle.setAttribute("aria-valuemax", String(Math.round(span / 1e6)))
      handle.setAttribute("aria-valuenow", String(Math.round((end ? (this.to ?? span) : (this.from ?? 0)) / 1e6)))
      handle.setAttribute("aria-valuetext", duration(end ? (this.to ?? span) : (this.from ?? 0)))
    })
    this.rangeText.replaceChildren(
      ...(on
        ? [
            `${duration(this.from)} to ${duration(this.to)} · ${duration(this.to - this.from)} of ${duration(span)}`,
            h("button", { class: "link", onclick: () => this.set(null, null, true) }, "whole recording"),
          ]
        : []),
    )
  }

  trackWidth() {
    return this.over.clientWidth
  }

  set(from, to, tell = false) {
    this.from = from
    this.to = to
    this.draw()
    if (tell) this.brushed(from, to)
  }

  listen() {
    let began = null
    const ns = (event) => {
      const bounds = this.over.getBoundingClientRect()
      return Math.min(1, Math.max(0, (event.clientX - bounds.left) / bounds.width)) * this.recording.span
    }
    const range = (a, b) => this.set(Math.min(a, b), Math.max(a, b), true)
    this.over.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return
      const at = ns(event)
      const handle = this.handles.indexOf(event.target)
      const inside = handle < 0 && event.shiftKey && this.from !== null && at > this.from && at < this.to
      began = {
        x: event.clientX,
        at,
        anchor: handle === 0 ? (this.to ?? this.recording.span) : handle === 1 ? (this.from ?? 0) : at,
        handle,
        shift: inside ? [this.from, this.to] : null,
      }
      this.over.setPointerCapture(event.pointerId)
      event.preventDefault()
    })
    this.over.addEventListener("pointermove", (event) => {
      const mark = began ? null : this.requestAt(event)
      this.over.style.cursor = mark ? "pointer" : ""
      mark ? this.showTip(mark, event.clientX, event.clientY) : (this.tip.hidden = true)
      if (!began || (began.handle < 0 && Math.abs(event.clientX - began.x) < 3)) return
      if (!began.shift) return range(began.anchor, ns(event))
      const by = Math.min(this.recording.span - began.shift[1], Math.max(-began.shift[0], ns(event) - began.at))
      range(began.shift[0] + by, began.shift[1] + by)
    })
    this.over.addEventListener("pointerup", (event) => {
      const clicked = began && began.handle < 0 && Math.abs(event.clientX - began.x) < 3
      began = null
      if (!clicked) return
      const mark = this.requestAt(event)
      if (mark && mark !== this.request) this.asked(mark)
      else if (!mark && this.from !== null) this.set(null, null, true)
    })
    this.over.addEventListener("pointerleave", () => {
      this.tip.hidden = true
    })
    this.over.addEventListener("dblclick", (event) => this.requestAt(event) || this.set(null, null, true))
  }

  key(event, end) {
    const { span } = this.recording
    const step = span / (event.shiftKey ? 20 : 200)
    const by = {
      ArrowLeft: -step,
      ArrowDown: -step,
      ArrowRight: step,
      ArrowUp: step,
      PageUp: span / 20,
      PageDown: -span / 20,
    }[event.key]
    let from = this.from ?? 0
    let to = this.to ?? span
    if (event.key === "Escape") {
      event.preventDefault()
      event.stopPropagation()
      return this.set(null, null, true)
    }
    const target =
      event.key === "Home"
        ? 0
        : event.key === "End"
          ? span
          : by === undefined
            ? null
            : (end === "from" ? from : to) + by
    if (target === null) return
    event.preventDefault()
    if (end === "from") from = Math.min(Math.max(0, target), to - span / 1e4)
    else to = Math.max(Math.min(span, target), from + span / 1e4)
    from <= 0 && to >= span ? this.set(null, null, true) : this.set(from, to, true)
  }
}
