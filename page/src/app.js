// The page of a recording: what is selected above, the time line, and one of several views below. A view has `element`
// and `update(changed)`, which draws what the app's state asks for; `changed` names the parts of it that changed, null
// for all.

import { h, replace, oncePerFrame } from "./dom.js"
import { duration, things } from "./format.js"
import { State } from "./state.js"
import { Timeline } from "./timeline.js"
import { theme } from "./theme.js"
import { findings } from "./findings.js"
import { frame, help } from "./frame.js"
import { KEYS, pressed } from "./keys.js"
import { offer } from "./menu.js"
import { Narrowing } from "./narrowing.js"
import { size, splitter } from "./splitter.js"
import { tabsOf } from "./tabs.js"

export class RecordingApp {
  constructor(recording) {
    this.recording = recording
    const { about } = recording
    this.state = new State((names) => this.changed(names))
    this.state.begin(about.start)
    this.views = tabsOf(recording)
    this.made = {}
    this.main = h("main", { tabindex: "-1" })
    this.tabs = h("div", { role: "tablist", "aria-label": "Views", class: "tabs" })
    this.search = h("input", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search methods and files",
      oninput: () => this.state.set({ search: this.search.value }),
    })
    this.timeline =
      recording.sampled || recording.runs.length
        ? new Timeline(recording, {
            brushed: (from, to) =>
              this.state.set({ from, to, request: null, ...(this.state.order === "time" ? { zoom: null } : {}) }),
            chose: (key) => this.state.set({ thread: this.filter.thread === key ? this.usual : key, request: null }),
            asked: (mark) => this.chooseRequest(mark.number),
          })
        : null
    this.narrowing = new Narrowing(this)
    this.onlyMine = h(
      "button",
      {
        class: "small",
        "aria-label": "Only my code",
        title:
          "Only the application’s frames (m): what gems, Ruby and C functions cost " +
          "counts for the frame that called them",
        onclick: () => this.toggleMine(),
      },
      "Only mine",
    )
    this.above = h("div", {})
    this.stands = about.findings.length > 0 && findings(this)
    // From this width on there is room for an overview beside the flame graph.
    this.wide = matchMedia("(min-width: 1400px)")
    this.wide.addEventListener("change", () => this.changed(null))
    this.element = frame(
      { title: about.programs.join(", ") || "recording", facts: this.facts(), help: () => this.help.showModal() },
      about.warnings.length > 0 && h("p", { class: "warning banner" }, about.warnings.join(" · ")),
      this.above,
      this.timeline && [
        this.timeline.element,
        splitter(this.state, {
          name: "timeline",
          label: "Height of the time line",
          side: "above",
          panel: () => this.timeline.wrap,
        }),
      ],
      h(
        "div",
        { class: "toolbar" },
        this.tabs,
        h(
          "div",
          { class: "tools" },
          this.narrowing.weigh,
          recording.weights.length > 0 && [this.narrowing.menu, this.onlyMine],
          this.search,
        ),
      ),
      this.narrowing.chips,
      this.narrowing.apart,
      this.narrowing.left,
      this.main,
    )
    this.help = help(KEYS)
    this.element.append(this.help)
    this.draw = oncePerFrame(() => this.update())
    this.pending = null
    addEventListener("keydown", (event) => pressed(this, event))
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
    const { thread, blackbox } = this.state
    const { from, to } = this.range
    const state = this.recording.states[this.state.state] ? this.state.state : "all"
    const { request } = this
    if (request)
      return {
        thread: request.thread.key,
        state,
        from: request.from,
        to: request.to,
        label: "",
        request: request.number,
        blackbox,
        gc: this.recording.collecting.length ? this.state.gc : "",
      }
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

  // The time that is looked at, in ns; null and null: all of it.
  get range() {
    const { from, to } = this.state
    if (from === null && to === null) return { from, to }
    return { from: from ?? 0, to: to ?? Math.max(this.recording.span, from) + 1 }
  }

  // Waiting of what is looked at, where it stands apart from the work unless it is asked for; else null. A request is
  // looked at whole.
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
    this.toggleName("blackbox", name)
  }

  // list: "focus", "hide" or "blackbox"
  toggleName(list, name) {
    const names = this.state[list]
    const changed = names.includes(name) ? names.filter((one) => one !== name) : [...names, name]
    this.state.set({ [list]: changed, zoom: null })
  }

  toggleMine() {
    this.state.set({ only: this.state.only === "app" ? "" : "app", zoom: null })
  }

  toggleNative() {
    this.state.set({ native: this.recording.native ? "" : "1", ...this.noNative(), zoom: null })
  }

  // Where native frames alone are shown, folding them would leave nothing.
  noNative() {
    return this.state.only === "native" ? { only: "" } : {}
  }

  // Only samples with a method in their stack, or everything again.
  toggleFocus(method) {
    this.toggleName("focus", this.recording.methods[method].name)
  }

  // Stacks as if threads began with a method, or as they are.
  toggleRoot(method) {
    this.state.set({ root: this.recording.root === method ? null : method, zoom: null })
  }

  toggleHidden(method) {
    this.toggleName("hide", this.recording.methods[method].name)
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
        [
          state.focus.includes(method.name) ? "No longer focus" : "Focus: samples with it",
          "f",
          () => this.toggleFocus(id),
        ],
        [recording.root === id ? "Whole stacks again" : "Root: stacks from here on", "r", () => this.toggleRoot(id)],
        [state.hide.includes(method.name) ? "No longer hide" : "Hide", "h", () => this.toggleHidden(id)],
        [
          state.blackbox.includes(method.name) ? "No longer blackbox" : "Blackbox",
          "b",
          () => this.toggleBlackbox(method.name),
        ],
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
      keys: {
        f: (id) => this.toggleFocus(id),
        r: (id) => this.toggleRoot(id),
        h: (id) => this.toggleHidden(id),
      },
      asked: (id, event) => this.offer(id, event),
    }
  }
  get ofRows() {
    const { chosen, folded, keys: others, asked } = this.ofFrames
    const keys = { c: chosen, b: folded, ...others }
    return {
      keys: Object.fromEntries(Object.entries(keys).map(([key, work]) => [key, (row) => work(row.method.id)])),
      asked: (row, event) => asked(row.method.id, event),
    }
  }

  // The tree that is looked at, from the top or from the ends of the stacks.
  get stacks() {
    const { recording, weight, worked, state } = this
    return state.inverted ? recording.inverted(weight.name, worked) : recording.weighed(weight.name, worked)
  }

  get view() {
    return this.views.some(({ key }) => key === this.state.view) ? this.state.view : this.first
  }

  // The tab that is open: {key, title, waits, make}.
  get tab() {
    return this.views.find(({ key }) => key === this.view)
  }

  // What was recorded says what comes first.
  get first() {
    const { recording } = this
    const wanted =
      recording.about.start.view ||
      (!recording.weights.length && this.syscalls ? "syscalls" : null) ||
      (!recording.sampled && !recording.traced && recording.about.objects
        ? recording.about.growth
          ? "growth"
          : "objects"
        : recording.traced && !recording.sampled
          ? "tree"
          : "flame")
    return this.views.some(({ key }) => key === wanted) ? wanted : this.views[0].key
  }

  hasSource(path) {
    return (
      this.views.some(({ key }) => key === "source") && this.recording.methods.some((method) => method.path === path)
    )
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
    const { focus, hide, only } = state
    const root = this.recording.methods[state.root] ? state.root : 0
    this.recording.look({ native: state.native === "1", focus, hide, only, root })
    this.onlyMine.setAttribute("aria-pressed", String(this.recording.mine))
    if (this.search.value !== state.search) this.search.value = state.search
    size(this.element, state)
    const { view } = this
    if (this.shown !== view || names === null) {
      replace(
        this.tabs,
        this.views.map(({ key, title }, at) =>
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
      this.tabs.querySelector("[aria-selected=true]").scrollIntoView?.({ block: "nearest", inline: "nearest" })
      this.made[view] ||= this.tab.make(this)
      replace(
        this.main,
        h("div", { id: "view", role: "tabpanel", "aria-labelledby": `tab-${view}` }, this.made[view].element),
      )
      this.main.dataset.view = view
    }
    const holder = this.wide.matches && view === "flame" ? this.made.flame.overview.findings : this.above
    if (this.stands && this.stands.parentNode !== holder) holder.append(this.stands)
    if (this.timeline) {
      Object.assign(this.timeline, { thread: this.filter.thread })
      const { from, to, request } = this.filter
      this.timeline.set(from, to === null ? null : Math.min(to, this.recording.span))
      this.timeline.look(request ? this.request : null)
    }
    this.narrowing.update(names)
    const fresh = this.shown !== view
    this.shown = view
    this.made[view].update(fresh ? null : names)
  }

  tabKey(event, at) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!by) return
    event.preventDefault()
    const key = this.views[(at + by + this.views.length) % this.views.length].key
    this.state.set({ view: key })
    requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(`tab-${key}`)?.focus()))
  }
}
