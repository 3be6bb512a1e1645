// The page of a recording: what is selected above, the time line, and one of several views below. A view has `element` and
// `update(changed)`, which draws what the app's state asks for; `changed` names the parts of it that changed, null for all.

import { h, replace, select, oncePerFrame } from "./dom.js"
import { duration, percent, place, safe, things } from "./format.js"
import { State } from "./state.js"
import { Timeline } from "./timeline.js"
import { FlameView } from "./views/flame.js"
import { MethodsView } from "./views/methods.js"
import { TreeView } from "./views/tree.js"
import { SourceView } from "./views/source.js"
import { ThreadsView } from "./views/threads.js"
import { LabelsView, labelRows } from "./views/labels.js"
import { QueriesView } from "./views/queries.js"
import { RequestsView, inWords } from "./views/requests.js"
import { GrowthView } from "./views/growth.js"
import { TestsView } from "./views/tests.js"
import { GcView } from "./views/gc.js"
import { ObjectsView } from "./views/objects.js"
import { SyscallsView } from "./views/syscalls.js"
import { AboutView } from "./views/about.js"
import { theme } from "./theme.js"
import { frame, help } from "./frame.js"
import { menu, offer } from "./menu.js"
import { size, splitter } from "./splitter.js"

const KEYS = [
  ["1 … 9", "the views, from left to right"],
  ["/", "search"],
  ["Enter, n; Shift + Enter, N", "the next match of the search; the one before"],
  ["b", "blackbox: fold everything below a method, or a path with a slash, into it"],
  ["m", "only the application’s frames, or all"],
  ["w", "count the time in which threads waited, or what they ran only"],
  ["i", "bottom up: from the methods to their callers, in tree and flame graph; or top down"],
  ["Esc", "clear the search, zoom out, look at everything again"],
  ["t", "light or dark"],
  ["?", "this list"],
  ["Flame graph", ""],
  ["click, Enter", "zoom to a frame; on the first row: zoom out"],
  ["double click, c", "callers and callees of a frame"],
  ["f", "focus on the frame’s method: only what it and those below it took; or no longer"],
  ["b", "blackbox the frame, or no longer"],
  ["right click, menu key", "what can be done with the frame’s method"],
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
  ["Panels", ""],
  ["drag the line between them", "other sizes; a double click resets"],
  ["arrow keys, Home on the line", "the same"],
  ["Tables", ""],
  ["arrow keys, Page Up, Home …", "move"],
  ["Enter", "choose"],
  ["f, b, c, menu key", "of methods: as in the flame graph"],
  ["← →", "close and open in a tree"],
]

export class RecordingApp {
  constructor(recording) {
    this.recording = recording
    const { about } = recording
    this.state = new State((names) => this.changed(names))
    if (about.start.mine) this.state.mine = about.start.mine
    if (!this.state.weight && about.start.weight) this.state.weight = about.start.weight
    const views = [
      ["flame", "Flame graph", FlameView],
      ["tree", "Call tree", TreeView],
      ["methods", "Methods", MethodsView],
      ["source", "Source", (recording.sampled || about.objects) && SourceView], // calls have no lines
      ["threads", "Threads", recording.lanes.length && ThreadsView],
      ["requests", "Requests", (recording.marks.length || recording.works.length) && RequestsView],
      ["queries", "Queries", recording.queries.length && QueriesView],
      ["tests", "Tests", about.tests && TestsView],
      ["labels", "Labels", recording.labelNames.length && LabelsView],
      ["gc", "GC", recording.runs.length && GcView],
      ["objects", "Objects", about.objects && ObjectsView],
      ["growth", "Growth", about.growth && GrowthView],
      ["syscalls", "System calls", about.syscalls && SyscallsView],
      ["about", "About", AboutView],
    ]
    this.views = views.filter(([, , View]) => View)
    if (!recording.weights.length) this.views = this.views.filter(([key]) => ["requests", "queries", "tests", "gc", "growth", "syscalls", "about"].includes(key))
    this.made = {}
    this.main = h("main", { tabindex: "-1" })
    this.tabs = h("div", { role: "tablist", "aria-label": "Views", class: "tabs" })
    this.weigh = h("span", { class: "weigh" })
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
      placeholder: "Array#each, gems/rack  b",
      "aria-label": "Blackbox: fold everything below a method, or a path with a slash, into it",
      title: "Fold everything below a method, or a path with a slash, into it: Array#each, gems/rack",
      spellcheck: "false",
      onkeydown: (event) => event.key === "Enter" && this.addBlackbox(this.fold.value.trim()),
    })
    this.onlyMine = h(
      "button",
      { class: "small", "aria-label": "Only my code", title: "Only the application’s frames (m): what gems, Ruby and C functions cost counts for the frame that called them", onclick: () => this.toggleMine() },
      "Only mine",
    )
    this.said = h("p", { class: "refused", role: "status" })
    // What is not chosen often; what is chosen there stands as a chip below.
    this.menu = menu("Filters", this.filters, h("label", { class: "field" }, h("span", {}, "blackbox"), this.fold), this.said)
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "What the views are narrowed to", hidden: true })
    this.above = h("div", {})
    this.stands = about.findings.length > 0 && this.findings()
    // From this width on there is room for an overview beside the flame graph.
    this.wide = matchMedia("(min-width: 1400px)")
    this.wide.addEventListener("change", () => this.changed(null))
    this.apart = h("p", { class: "apart", role: "status", hidden: true })
    this.element = frame(
      { title: about.programs.join(", ") || "recording", facts: this.facts(), help: () => this.help.showModal() },
      about.warnings.length > 0 && h("p", { class: "warning banner" }, about.warnings.join(" · ")),
      this.above,
      this.timeline && [this.timeline.element, splitter(this.state, { name: "timeline", label: "Height of the time line", side: "above", panel: () => this.timeline.wrap })],
      h("div", { class: "toolbar" }, this.tabs, h("div", { class: "tools" }, this.weigh, recording.weights.length > 0 && [this.menu, this.onlyMine], this.search)),
      this.chips,
      this.apart,
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

  // What stands out; each opens to its two commands.
  findings() {
    const { about, base } = this.recording
    const at = (finding) => finding.path && this.hasSource(finding.path) && h("button", { class: "small", onclick: () => this.state.set({ view: "source", file: finding.path, search: "" }), title: place(finding.path, finding.line, base) }, "source")
    return h(
      "section",
      { class: "findings", "aria-label": "What stands out" },
      about.findings.map((finding) =>
        h(
          "details",
          {},
          h("summary", {}, h("span", {}, safe(finding.text)), " ", at(finding)),
          h("p", {}, "more: ", h("code", {}, safe(finding.more))),
          finding.proof && h("p", {}, "proof of a fix: ", h("code", {}, safe(finding.proof))),
        ),
      ),
    )
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
    if (request) return { thread: request.thread.key, state, from: request.from, to: request.to, label: "", request: request.number, blackbox, gc: this.recording.collecting.length ? this.state.gc : "" }
    const label = this.recording.labelNames.length ? this.state.label : ""
    // As --label and --state do, those count every thread.
    const usual = thread === "all" || label || state !== "all" ? "all" : "busy"
    return {
      thread: this.recording.lane(thread)?.key ?? usual,
      state,
      from,
      to,
      blackbox,
      label,
      gc: this.recording.collecting.length ? this.state.gc : "",
    }
  }

  // Waiting of what is looked at, where it stands apart from the work unless it is asked for; else null. A request is looked at whole.
  get waiting() {
    const { recording, filter, weight } = this
    if (weight.name !== "wall" || !recording.timed("wall") || filter.state !== "all" || filter.request) return null
    return recording.waiting({ ...filter, from: null, to: null }).much ? recording.waiting(filter) : null
  }

  // As `filter`, of views that weigh stacks: what threads ran.
  get worked() {
    return this.waiting && this.state.waiting !== "all" ? { ...this.filter, state: "0" } : this.filter
  }

  toggleWaiting() {
    this.state.set({ waiting: this.state.waiting ? "" : "all", zoom: null })
  }

  // Whether idle threads may be left out: under a label and in a state every thread counts.
  get idleAsked() {
    return !this.filter.label && this.filter.state === "all"
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

  toggleMine() {
    this.state.set({ mine: this.state.mine ? "" : "only", zoom: null })
  }

  // Only what a method and those below it took, or everything again.
  toggleFocus(method) {
    this.state.set({ focus: this.recording.focus === method ? null : method, zoom: null })
  }

  toggleInverted() {
    this.state.set({ inverted: this.state.inverted ? "" : "1", order: "heavy", zoom: null })
  }

  // What can be done with a method.
  offer(id, event) {
    const method = this.recording.methods[id]
    const { recording, state } = this
    offer(
      [
        [recording.focus === id ? "Look at everything again" : "Focus on this", "f", () => this.toggleFocus(id)],
        [state.blackbox.includes(method.name) ? "No longer blackbox" : "Blackbox", "b", () => this.toggleBlackbox(method.name)],
        ["Callers and callees", "c", () => this.showMethod(id)],
        [state.inverted ? "Top down" : "Bottom up", "i", () => this.toggleInverted()],
        this.hasSource(method.path) && method.path && ["Source", "", () => this.showLine(method.path)],
      ],
      event,
    )
  }

  // Options of flame graphs, and of tables whose rows have a method.
  get ofFrames() {
    return {
      chosen: (id) => this.showMethod(id),
      folded: (id) => this.toggleBlackbox(this.recording.methods[id].name),
      focused: (id) => this.toggleFocus(id),
      asked: (id, event) => this.offer(id, event),
    }
  }
  get ofRows() {
    const { chosen, folded, focused, asked } = this.ofFrames
    const keys = { c: chosen, b: folded, f: focused }
    return { keys: Object.fromEntries(Object.entries(keys).map(([key, work]) => [key, (row) => work(row.method.id)])), asked: (row, event) => asked(row.method.id, event) }
  }

  // The tree that is looked at, from the top or from the ends of the stacks.
  get stacks() {
    const { recording, weight, worked, state } = this
    return state.inverted ? recording.inverted(weight.name, worked) : recording.weighed(weight.name, worked)
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
      recording.about.start.view || (!recording.weights.length && this.syscalls ? "syscalls" : null) || (!recording.sampled && !recording.traced && recording.about.objects ? (recording.about.growth ? "growth" : "objects") : recording.traced && !recording.sampled ? "tree" : "flame")
    return this.views.some(([key]) => key === wanted) ? wanted : this.views[0][0]
  }

  hasSource(path) {
    return this.views.some(([key]) => key === "source") && this.recording.methods.some((method) => method.path === path)
  }

  // The source of a file, where it is on the page.
  showLine(path) {
    if (this.hasSource(path)) this.state.set({ view: "source", file: path, search: "" })
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
    this.recording.look(state.mine === "only", this.recording.methods[state.focus] ? state.focus : 0)
    this.onlyMine.setAttribute("aria-pressed", String(this.recording.mine))
    if (this.search.value !== state.search) this.search.value = state.search
    size(this.element, state)
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
      this.tabs.querySelector("[aria-selected=true]").scrollIntoView?.({ block: "nearest", inline: "nearest" })
      this.made[view] ||= new View(this)
      replace(this.main, h("div", { id: "view", role: "tabpanel", "aria-labelledby": `tab-${view}` }, this.made[view].element))
      this.main.dataset.view = view
    }
    const holder = this.wide.matches && view === "flame" ? this.made.flame.overview.findings : this.above
    if (this.stands && this.stands.parentNode !== holder) holder.append(this.stands)
    if (this.timeline) {
      Object.assign(this.timeline, { thread: this.filter.thread })
      const { from, to, request } = this.filter
      this.timeline.set(from, to)
      this.timeline.look(request ? this.request : null)
    }
    this.showFilters(names)
    this.showChips()
    this.showWaiting()
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
      this.weigh,
      recording.weights.length > 1 &&
        select(
          "weight",
          recording.weights.map((one) => [one.name, one.title]),
          weight.name,
          (name) => this.state.set({ weight: name, zoom: this.state.order === "time" ? null : this.state.zoom }),
        ),
    )
    replace(
      this.filters,
      (lanes.length > 1 || recording.hasIdle) &&
        recording.threaded(weight.name) &&
        select(
          "thread",
          [
            ...(recording.hasIdle && this.idleAsked
              ? [
                  ["busy", "all but idle"],
                  ["all", "all"],
                ]
              : [["busy", "all"]]),
            ...lanes.slice(0, 500).map((lane) => [lane.key, lane.title]),
          ],
          this.filter.thread === "all" && !(recording.hasIdle && this.idleAsked) ? "busy" : this.filter.thread,
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
    if (focused) this.element.querySelector(`.toolbar select[aria-label="${CSS.escape(focused)}"]`)?.focus()
  }

  // What narrows the views: each is a button that takes it away.
  showChips() {
    const { state, request, recording, filter } = this
    const lane = !request && recording.lane(state.thread)
    const focused = this.chips.contains(document.activeElement)
    const chip = (text, label, away) => h("button", { class: "chip", "aria-label": label, title: label, onclick: away }, h("span", {}, text), h("span", { "aria-hidden": "true" }, "×"))
    replace(
      this.chips,
      request && chip(`request ${request.number}: ${inWords(request.labels)}, ${duration(request.ns)}`, `No longer request ${request.number} alone`, () => state.set({ request: null, zoom: null })),
      recording.focus > 0 && chip(`focus on ${recording.methods[recording.focus].name}`, "Look at everything again", () => state.set({ focus: null, zoom: null })),
      lane && chip(`thread ${lane.title}`, `No longer thread ${lane.title} alone`, () => state.set({ thread: this.usual })),
      filter.state !== "all" && chip(recording.states[filter.state], `No longer ${recording.states[filter.state]} alone`, () => state.set({ state: "all" })),
      filter.label && chip(filter.label.replace("=", ": "), `No longer ${filter.label} alone`, () => state.set({ label: "" })),
      filter.gc && chip(filter.gc === "apart" ? "collection apart" : "collection charged to its caller", "Collection in place again", () => state.set({ gc: "" })),
      state.blackbox.map((name) =>
        chip(`blackbox ${safe(name)}${this.recording.matching(name).length ? "" : " (not in this recording)"}`, `No longer blackbox ${safe(name)}`, () => this.toggleBlackbox(name)),
      ),
    )
    this.chips.hidden = !this.chips.firstChild
    if (focused) (this.chips.querySelector("button") ?? this.main).focus()
  }

  // One line: how long threads waited, and for what.
  showWaiting() {
    const { waiting, state } = this
    const shown = waiting && ["flame", "tree", "methods", "source"].includes(this.view) && !(this.view === "flame" && state.order === "time")
    const longest = shown && waiting.rows.slice(0, 3).map(([name, ns]) => `${name} ${duration(ns)}`)
    this.apart.hidden = !shown
    if (!shown) return
    replace(
      this.apart,
      h("strong", {}, "Waiting"),
      ` ${duration(waiting.total)} of ${duration(waiting.all)} (${percent(waiting.total, waiting.all)}): ${[...longest, waiting.rows.length > 3 && "others"].filter(Boolean).join(", ")}. `,
      state.waiting ? "The figures below count it. " : "Below is the time in which threads ran. ",
      h("button", { class: "link", title: "w", onclick: () => this.toggleWaiting() }, state.waiting ? "Leave waiting out" : "Count waiting, too"),
    )
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
    if (event.key === "Escape" && this.menu.open) {
      this.fold.value = this.said.textContent = ""
      this.menu.open = false
      this.menu.querySelector("summary").focus()
      return
    }
    if (event.key === "Escape" && event.target === this.search) {
      this.state.set({ search: "" })
      this.main.focus()
      return
    }
    if (event.key === "Enter" && event.target === this.search) return this.made[this.view].step?.(event.shiftKey ? -1 : 1)
    if (typing) return
    if (event.key === "/") {
      event.preventDefault()
      this.search.focus()
      this.search.select()
    } else if (event.key === "b" && this.fold.isConnected) {
      event.preventDefault()
      this.menu.open = true
      this.fold.focus()
    } else if (event.key === "?") this.help.showModal()
    else if (event.key === "t") theme.toggle()
    else if (event.key === "m" && this.recording.weights.length) this.toggleMine()
    else if (/^[1-9]$/.test(event.key) && this.views[event.key - 1]) this.state.set({ view: this.views[event.key - 1][0] })
    else if (event.key === "i" && this.recording.weights.length) this.toggleInverted()
    else if (event.key === "w" && this.waiting) this.toggleWaiting()
    else if (["n", "N"].includes(event.key)) this.made[this.view].step?.(event.key === "n" ? 1 : -1)
    else if (event.key === "Escape") this.state.set(this.state.search ? { search: "" } : this.state.zoom ? { zoom: null } : { focus: null })
  }
}
