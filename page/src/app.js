// The page of a recording: what is selected above, the time line, and one of several views below. A view has `element` and
// `update(changed)`, which draws what the app's state asks for; `changed` names the parts of it that changed, null for all.

import { h, replace, select, oncePerFrame } from "./dom.js"
import { duration, safe, things } from "./format.js"
import { State } from "./state.js"
import { Timeline } from "./timeline.js"
import { FlameView } from "./views/flame.js"
import { MethodsView } from "./views/methods.js"
import { TreeView } from "./views/tree.js"
import { SourceView } from "./views/source.js"
import { ThreadsView } from "./views/threads.js"
import { LabelsView, labelRows } from "./views/labels.js"
import { RequestsView, inWords } from "./views/requests.js"
import { GcView } from "./views/gc.js"
import { ObjectsView } from "./views/objects.js"
import { SyscallsView } from "./views/syscalls.js"
import { AboutView } from "./views/about.js"
import { theme } from "./theme.js"
import { frame, help } from "./frame.js"

const KEYS = [
  ["1 … 9", "the views, from left to right"],
  ["/", "search"],
  ["b", "blackbox: fold everything below a method, or a path with a slash, into it"],
  ["Esc", "clear the search, or zoom out"],
  ["t", "light or dark"],
  ["?", "this list"],
  ["Flame graph", ""],
  ["click, Enter", "zoom to a frame; on the first row: zoom out"],
  ["double click, c", "callers and callees of a frame"],
  ["b", "blackbox the frame, or no longer"],
  ["arrow keys", "caller, heaviest callee, siblings"],
  ["Ctrl + wheel, + and −", "zoom"],
  ["drag, Shift + wheel, a and d", "move sideways"],
  ["Backspace", "zoom out by one frame"],
  ["Time line", ""],
  ["drag", "choose a range: everything follows"],
  ["Shift + drag", "move the range"],
  ["click, double click", "the whole recording again"],
  ["arrow keys on a handle", "move one end; with Shift faster"],
  ["click a request", "its thread and time, in every view"],
  ["← → ↑ ↓ on requests", "earlier, later, slower, faster; Enter chooses"],
  ["Tables", ""],
  ["arrow keys, Page Up, Home …", "move"],
  ["Enter", "choose"],
  ["← →", "close and open in a tree"],
]

export class RecordingApp {
  constructor(recording) {
    this.recording = recording
    const { about } = recording
    this.state = new State((names) => this.changed(names))
    if (!this.state.weight && about.start.weight) this.state.weight = about.start.weight
    const views = [
      ["flame", "Flame graph", FlameView],
      ["tree", "Call tree", TreeView],
      ["methods", "Methods", MethodsView],
      ["source", "Source", (recording.sampled || about.objects) && SourceView], // calls have no lines
      ["threads", "Threads", recording.lanes.length && ThreadsView],
      ["requests", "Requests", (recording.marks.length || recording.works.length) && RequestsView],
      ["labels", "Labels", recording.labelNames.length && LabelsView],
      ["gc", "GC", recording.runs.length && GcView],
      ["objects", "Objects", about.objects && ObjectsView],
      ["syscalls", "System calls", about.syscalls && SyscallsView],
      ["about", "About", AboutView],
    ]
    this.views = views.filter(([, , View]) => View)
    if (!recording.weights.length) this.views = this.views.filter(([key]) => ["requests", "gc", "syscalls", "about"].includes(key))
    this.made = {}
    this.main = h("main", { tabindex: "-1" })
    this.tabs = h("div", { role: "tablist", "aria-label": "Views", class: "tabs" })
    this.filters = h("div", { class: "filters" })
    this.search = h("input", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search methods and files",
      oninput: () => this.state.set({ search: this.search.value }),
    })
    this.timeline =
      recording.sampled || recording.runs.length
        ? new Timeline(recording, {
            brushed: (from, to) => this.state.set({ from, to, request: null, ...(this.state.order === "time" ? { zoom: null } : {}) }),
            chose: (key) => this.state.set({ thread: this.filter.thread === key ? this.usual : key, request: null }),
            asked: (mark) => this.chooseRequest(mark.number),
          })
        : null
    this.fold = h("input", {
      type: "text",
      class: "fold",
      placeholder: "Blackbox  b",
      "aria-label": "Blackbox: fold everything below a method, or a path with a slash, into it",
      title: "Fold everything below a method, or a path with a slash, into it: Array#each, gems/rack",
      spellcheck: "false",
      onkeydown: (event) => event.key === "Enter" && this.addBlackbox(this.fold.value.trim()),
    })
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "What the views are narrowed to", hidden: true })
    this.said = h("p", { class: "refused", role: "status" })
    this.element = frame(
      { title: about.programs.join(", ") || "recording", facts: this.facts(), help: () => this.help.showModal() },
      about.warnings.length > 0 && h("p", { class: "warning banner" }, about.warnings.join(" · ")),
      this.timeline?.element,
      h("div", { class: "toolbar" }, this.tabs, h("span", { class: "space" }), this.filters, recording.weights.length > 0 && this.fold, this.search),
      this.said,
      this.chips,
      this.main,
    )
    this.help = help(KEYS)
    this.element.append(this.help)
    this.draw = oncePerFrame(() => this.update())
    this.pending = null
    addEventListener("keydown", (event) => this.key(event))
  }

  facts() {
    const { about, lanes, processes } = this.recording
    const samples = about.losses.captures
    return [
      about.rubies.map((ruby) => ruby.replace(/^(\S+ \S+).*$/, "$1")).join(", "),
      `${duration(about.elapsed_ns)} wall`,
      about.cpu_ns > 0 && `${duration(about.cpu_ns)} CPU`,
      samples > 0 && this.recording.sampled && things(samples, "sample"),
      lanes.length > 1 && things(lanes.length, "thread"),
      processes > 1 && things(processes, "process").replace("processs", "processes"),
    ]
  }

  get theme() {
    return theme.now
  }
  get usual() {
    return "busy"
  }
  get data() {
    return this.recording.data
  }
  get base() {
    return this.recording.base
  }
  get syscalls() {
    return this.recording.about.syscalls
  }
  get weight() {
    return this.recording.weight(this.state.weight)
  }

  // What of the recording is looked at, as its own functions take it.
  get filter() {
    const { thread, from, to, blackbox } = this.state
    const state = this.recording.states[this.state.state] ? this.state.state : "all"
    const { request } = this
    if (request) return { thread: request.thread.key, state, from: request.start, to: request.end, label: "", request: request.number, blackbox, gc: this.recording.collecting.length ? this.state.gc : "" }
    return {
      thread: thread === "all" ? thread : (this.recording.lane(thread)?.key ?? "busy"),
      state,
      from,
      to,
      blackbox,
      label: this.recording.labelNames.length ? this.state.label : "",
      gc: this.recording.collecting.length ? this.state.gc : "",
    }
  }

  // The request that is looked at, or null.
  get request() {
    return (this.state.request && this.recording.marks[this.state.request - 1]) || null
  }

  chooseRequest(number) {
    this.state.set({ request: this.state.request === number ? null : number, zoom: null })
  }

  toggleBlackbox(name) {
    const { blackbox } = this.state
    this.state.set({ blackbox: blackbox.includes(name) ? blackbox.filter((one) => one !== name) : [...blackbox, name], zoom: null })
  }

  addBlackbox(name) {
    if (!name) return
    const known = this.recording.matching(name).length > 0
    this.said.textContent = known ? "" : `No method or path “${safe(name)}” in the recording: type Array#each, each, or gems/rack.`
    if (!known) return
    this.fold.value = ""
    if (!this.state.blackbox.includes(name)) this.toggleBlackbox(name)
  }

  get view() {
    return this.views.some(([key]) => key === this.state.view) ? this.state.view : this.first
  }

  // What was recorded says what comes first.
  get first() {
    const { recording } = this
    const wanted =
      recording.about.start.view || (!recording.weights.length && this.syscalls ? "syscalls" : null) || (!recording.sampled && !recording.traced && recording.about.objects ? "objects" : recording.traced && !recording.sampled ? "tree" : "flame")
    return this.views.some(([key]) => key === wanted) ? wanted : this.views[0][0]
  }

  hasSource(path) {
    return this.views.some(([key]) => key === "source") && this.recording.methods.some((method) => method.path === path)
  }

  showMethod(method) {
    this.state.set({ view: "methods", method })
  }

  // By method whether the search means it, or null.
  matches() {
    const text = this.state.search.trim().toLowerCase()
    if (!text) return null
    if (this.searched !== text) {
      this.searched = text
      this.found = Uint8Array.from(this.recording.methods, (method, at) =>
        at > 0 && (method.name.toLowerCase().includes(text) || method.path.toLowerCase().includes(text)) ? 1 : 0,
      )
    }
    return this.found
  }

  begin() {
    this.changed(null)
  }

  redraw() {
    this.timeline?.draw()
    this.changed(null)
  }

  // names: of the parts of the state that changed, or null for all.
  changed(names) {
    this.pending = names === null || this.pending === "all" ? "all" : [...(this.pending || []), ...names]
    this.draw()
  }

  update() {
    const names = this.pending === "all" ? null : this.pending
    this.pending = null
    const { state } = this
    if (this.search.value !== state.search) this.search.value = state.search
    const { view } = this
    if (this.shown !== view || names === null) {
      replace(
        this.tabs,
        this.views.map(([key, title], at) =>
          h(
            "button",
            {
              role: "tab",
              id: `tab-${key}`,
              "aria-selected": String(key === view),
              "aria-controls": "view",
              tabindex: key === view ? "0" : "-1",
              title: `${title} (${at + 1})`,
              onclick: () => this.state.set({ view: key }),
              onkeydown: (event) => this.tabKey(event, at),
            },
            title,
          ),
        ),
      )
      const [, , View] = this.views.find(([key]) => key === view)
      this.made[view] ||= new View(this)
      replace(this.main, h("div", { id: "view", role: "tabpanel", "aria-labelledby": `tab-${view}` }, this.made[view].element))
      this.main.dataset.view = view
    }
    if (this.timeline) {
      Object.assign(this.timeline, { thread: this.filter.thread })
      const { from, to, request } = this.filter
      this.timeline.set(from, to)
      this.timeline.look(request ? this.request : null)
    }
    this.showFilters(names)
    this.showChips()
    const fresh = this.shown !== view
    this.shown = view
    this.made[view].update(fresh ? null : names)
  }

  // What can't be told of a weight isn't asked.
  showFilters(names) {
    if (names && !names.some((name) => ["weight", "thread", "state", "view", "label", "gc", "request"].includes(name))) return
    if (this.filters.contains(document.activeElement) && names && !names.includes("weight") && !names.includes("request")) return
    const { recording, weight, state } = this
    const { lanes, threads } = recording
    const focused = document.activeElement?.getAttribute?.("aria-label")
    replace(
      this.filters,
      recording.weights.length > 1 &&
        select(
          "weight",
          recording.weights.map((one) => [one.name, one.title]),
          weight.name,
          (name) => this.state.set({ weight: name, zoom: this.state.order === "time" ? null : this.state.zoom }),
        ),
      (lanes.length > 1 || recording.hasIdle) &&
        recording.threaded(weight.name) &&
        select(
          "thread",
          [
            ...(recording.hasIdle
              ? [
                  ["busy", "all but idle"],
                  ["all", "all"],
                ]
              : [["busy", "all"]]),
            ...lanes.slice(0, 500).map((lane) => [lane.key, lane.title]),
          ],
          this.filter.thread === "all" && !recording.hasIdle ? "busy" : this.filter.thread,
          (thread) => this.state.set({ thread, request: null }),
        ),
      recording.hasStates &&
        recording.timed(weight.name) &&
        select("state", [["all", "all"], ...recording.states.map((title, at) => [at, title]).filter(([at]) => threads.some((thread) => thread.states[at] > 0))], this.filter.state, (value) =>
          this.state.set({ state: value }),
        ),
      recording.labelNames.length > 0 &&
        recording.timed(weight.name) &&
        select("label", [["", "all"], ...this.labels().map((text) => [text, text.replace("=", ": ")])], this.filter.label, (label) => this.state.set({ label, request: null })),
      recording.collecting.length > 0 &&
        !recording.bySite(weight.name) &&
        select(
          "GC",
          [
            ["", "in place"],
            ["apart", "apart"],
            ["caller", "its caller’s"],
          ],
          state.gc,
          (gc) => this.state.set({ gc }),
        ),
    )
    if (focused) this.filters.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus()
  }

  // What narrows the views and no list shows: each is a button that takes it away.
  showChips() {
    const { state, request } = this
    const focused = this.chips.contains(document.activeElement)
    const chip = (text, label, away) => h("button", { class: "chip", "aria-label": label, title: label, onclick: away }, h("span", {}, text), h("span", { "aria-hidden": "true" }, "×"))
    replace(
      this.chips,
      request && chip(`request ${request.number}: ${inWords(request.labels)}, ${duration(request.ns)}`, `No longer request ${request.number} alone`, () => state.set({ request: null, zoom: null })),
      state.blackbox.map((name) =>
        chip(`blackbox ${safe(name)}${this.recording.matching(name).length ? "" : " (not in this recording)"}`, `No longer blackbox ${safe(name)}`, () => this.toggleBlackbox(name)),
      ),
    )
    this.chips.hidden = !this.chips.firstChild
    if (focused) (this.chips.querySelector("button") ?? this.main).focus()
  }

  // "name=value" of those that most time has, and the one that is asked for.
  labels() {
    this.knownLabels ||= this.recording.labelNames.flatMap((name) =>
      labelRows(this.recording, name, { thread: "all", state: "all", from: null, to: null })
        .filter((row) => row.value !== null)
        .sort((a, b) => b.wall - a.wall)
        .slice(0, 200)
        .map((row) => `${name}=${row.value}`),
    )
    return this.state.label && !this.knownLabels.includes(this.state.label) ? [...this.knownLabels, this.state.label] : this.knownLabels
  }

  tabKey(event, at) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!by) return
    event.preventDefault()
    const key = this.views[(at + by + this.views.length) % this.views.length][0]
    this.state.set({ view: key })
    requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(`tab-${key}`)?.focus()))
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return
    const typing = /^(input|select|textarea)$/i.test(event.target.tagName)
    if (event.key === "Escape" && event.target === this.fold) {
      this.fold.value = this.said.textContent = ""
      this.main.focus()
      return
    }
    if (event.key === "Escape" && event.target === this.search) {
      this.state.set({ search: "" })
      this.main.focus()
      return
    }
    if (typing) return
    if (event.key === "/") {
      event.preventDefault()
      this.search.focus()
      this.search.select()
    } else if (event.key === "b" && this.fold.isConnected) {
      event.preventDefault()
      this.fold.focus()
    } else if (event.key === "?") this.help.showModal()
    else if (event.key === "t") theme.toggle()
    else if (/^[1-9]$/.test(event.key) && this.views[event.key - 1]) this.state.set({ view: this.views[event.key - 1][0] })
    else if (event.key === "Escape") this.state.set(this.state.search ? { search: "" } : { zoom: null })
  }
}
