// What the views are narrowed to: the weight, the menu of filters, chips that undo them, and whether waiting counts.

import { h, replace, select } from "./dom.js"
import { duration, percent, safe } from "./format.js"
import { ORIGINS } from "./filters.js"
import { menu } from "./menu.js"
import { readTime, writeTime } from "./time_range.js"
import { labelRows } from "./views/labels.js"
import { inWords } from "./views/requests.js"

// Names that a filter has: what it does, and an example of a name that it takes.
const LISTS = {
  focus: ["Only samples that have a method in their stack", "Cart#total, rack  "],
  hide: ["Leave frames out; what they took counts for their callers", "Array#each"],
  blackbox: ["Fold everything below a method into it", "Array#each, gems/rack  b"],
}
const ONLY = { app: "the application", gems: "gems", stdlib: "Ruby’s own", native: "native code" }
// What the switches of the menu depend on.
const CHOSEN = ["weight", "thread", "state", "view", "label", "gc", "request", "only", "native"]
const TAKES = "a method, class, gem, shared object, or a path with a slash"

export class Narrowing {
  constructor(app) {
    this.app = app
    this.weigh = h("span", { class: "weigh" })
    this.filters = h("div", { class: "filters" })
    this.fields = Object.fromEntries(Object.keys(LISTS).map((list) => [list, this.nameField(list)]))
    this.fold = this.fields.blackbox
    this.time = h("input", {
      type: "text",
      class: "fold",
      placeholder: "2s..5s, 500ms.., ..1m",
      "aria-label": "Time: a part of the whole, from and to",
      title: "A part of the time since the start: 2s..5s, 500ms.., ..1m",
      spellcheck: "false",
      onchange: () => this.setTime(this.time.value.trim()),
    })
    this.said = h("p", { class: "refused", role: "status" })
    // What is not chosen often; what is chosen there stands as a chip below.
    this.menu = menu(
      "Filters",
      this.filters,
      h("label", { class: "field" }, h("span", {}, "time"), this.time),
      Object.entries(this.fields).map(([list, field]) => h("label", { class: "field" }, h("span", {}, list), field)),
      this.said,
    )
    this.chips = h("div", {
      class: "chips",
      role: "group",
      "aria-label": "What the views are narrowed to",
      hidden: true,
    })
    this.apart = h("p", { class: "apart", role: "status", hidden: true })
    this.left = h("p", { class: "left", role: "status", hidden: true })
  }

  nameField(list) {
    const [does, example] = LISTS[list]
    const field = h("input", {
      type: "text",
      class: "fold",
      placeholder: example,
      "aria-label": `${list[0].toUpperCase()}${list.slice(1)}: ${does[0].toLowerCase()}${does.slice(1)}`,
      title: `${does}: ${TAKES}`,
      spellcheck: "false",
      onkeydown: (event) => event.key === "Enter" && this.addName(list, field.value.trim()),
    })
    return field
  }

  // names: of the parts of the state that changed, or null for all.
  update(names) {
    this.showFilters(names)
    this.showChips()
    this.showWaiting()
    this.showLeft()
    if (document.activeElement !== this.time) this.time.value = writeTime(this.app.state)
  }

  openFold() {
    this.menu.open = true
    this.fold.focus()
  }

  close() {
    for (const field of Object.values(this.fields)) field.value = ""
    this.said.textContent = ""
    this.menu.open = false
    this.menu.querySelector("summary").focus()
  }

  // list: a key of LISTS
  addName(list, name) {
    if (!name) return
    const { recording, state } = this.app
    this.said.textContent = recording.matching(name).length ? "" : `${this.unknown(name)}.`
    if (this.said.textContent) return
    this.fields[list].value = ""
    if (!state[list].includes(name)) this.app.toggleName(list, name)
  }

  unknown(name) {
    const near = this.app.recording.names.near(name)
    return `No “${safe(name)}” in the recording${
      near.length ? `: did you mean ${near.map(safe).join(" or ")}?` : `: type ${TAKES}, e.g. Array#each or gems/rack`
    }`
  }

  setTime(text) {
    const range = text === "" || text === ".." ? { from: null, to: null } : readTime(text)
    const { span } = this.app.recording
    this.said.textContent = !range
      ? `“${safe(text)}”: write the time as FROM..TO, e.g. 2s..5s, 500ms.. or ..1m.`
      : range.from > span
        ? `“${safe(text)}” begins after the recording’s end: it is ${duration(span)} long.`
        : ""
    if (!this.said.textContent)
      this.app.state.set({ ...range, request: null, ...(this.app.state.order === "time" ? { zoom: null } : {}) })
  }

  // What can't be told of a weight isn't asked.
  showFilters(names) {
    if (names && !names.some((name) => CHOSEN.includes(name)))
      return
    if (
      this.filters.contains(document.activeElement) &&
      names &&
      !names.includes("weight") &&
      !names.includes("request")
    )
      return
    const { recording, weight, state } = this.app
    const { lanes, threads } = recording
    const focused = document.activeElement?.getAttribute?.("aria-label")
    replace(
      this.weigh,
      recording.weights.length > 1 &&
        select(
          "weight",
          recording.weights.map((one) => [one.name, one.title]),
          weight.name,
          (name) => this.app.state.set({ weight: name, zoom: state.order === "time" ? null : state.zoom }),
        ),
    )
    replace(
      this.filters,
      (lanes.length > 1 || recording.hasIdle) &&
        recording.threaded(weight.name) &&
        select(
          "thread",
          [
            ...(recording.hasIdle && this.app.idleAsked
              ? [
                  ["busy", "all but idle"],
                  ["all", "all"],
                ]
              : [["busy", "all"]]),
            ...lanes.slice(0, 500).map((lane) => [lane.key, lane.title]),
          ],
          this.app.filter.thread === "all" && !(recording.hasIdle && this.app.idleAsked)
            ? "busy"
            : this.app.filter.thread,
          (thread) => this.app.state.set({ thread, request: null }),
        ),
      recording.hasStates &&
        recording.timed(weight.name) &&
        select(
          "state",
          [
            ["all", "all"],
            ...recording.states
              .map((title, at) => [at, title])
              .filter(([at]) => threads.some((thread) => thread.states[at] > 0)),
          ],
          this.app.filter.state,
          (value) => this.app.state.set({ state: value }),
        ),
      recording.labelNames.length > 0 &&
        recording.timed(weight.name) &&
        select(
          "label",
          [["", "all"], ...this.labels().map((text) => [text, text.replace("=", ": ")])],
          this.app.filter.label,
          (label) => this.app.state.set({ label, request: null }),
        ),
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
          (gc) => this.app.state.set({ gc }),
        ),
      select("only", this.origins(), state.only, (only) => this.app.state.set({ only, zoom: null })),
      recording.folds &&
        h(
          "label",
          { class: "field switch", title: "Native frames, or their weight at the Ruby frame that called them (u)" },
          h("span", {}, "native"),
          h("input", {
            type: "checkbox",
            "aria-label": "Show native frames",
            checked: recording.native,
            onchange: () => this.app.toggleNative(),
          }),
        ),
    )
    if (focused) this.app.element.querySelector(`.toolbar select[aria-label="${CSS.escape(focused)}"]`)?.focus()
  }

  // Whose frames can be shown alone: [["", "all"], ["app", "the application"], …, ["rack", "rack"]].
  origins() {
    const { recording, state } = this.app
    const gems = (this.gems ||= [...new Set(recording.methods.map(({ gem }) => gem).filter(Boolean))].sort())
    const whose = ORIGINS.map((key, at) => recording.methods.some(({ origin }) => origin === at) && [key, ONLY[key]])
    const known = [["", "all frames"], ...whose.filter(Boolean), ...gems.slice(0, 500).map((gem) => [gem, gem])]
    return known.some(([key]) => key === state.only) ? known : [...known, [state.only, safe(state.only)]]
  }

  // What narrows the views: each is a button that takes it away.
  showChips() {
    const { state, request, recording, filter } = this.app
    const lane = !request && recording.lane(state.thread)
    const focused = this.chips.contains(document.activeElement)
    const chip = (text, label, away) =>
      h(
        "button",
        { class: "chip", "aria-label": label, title: label, onclick: away },
        h("span", {}, text),
        h("span", { "aria-hidden": "true" }, "×"),
      )
    replace(
      this.chips,
      request &&
        chip(
          `request ${request.number}: ${inWords(request.labels)}, ${duration(request.ns)}`,
          `No longer request ${request.number} alone`,
          () => state.set({ request: null, zoom: null }),
        ),
      !request &&
        (state.from !== null || state.to !== null) &&
        chip(`time ${writeTime(state)}`, "The whole time again", () => state.set({ from: null, to: null })),
      ["focus", "hide"].map((list) =>
        state[list].map((name) =>
          chip(`${list} ${this.named(name)}`, `No longer ${list} ${safe(name)}`, () => this.app.toggleName(list, name)),
        ),
      ),
      state.only &&
        chip(`only ${ONLY[state.only] ?? safe(state.only)}`, "Everybody’s frames again", () =>
          state.set({ only: "", zoom: null }),
        ),
      state.native && chip("native frames", "Fold native frames", () => state.set({ native: "", zoom: null })),
      recording.root > 0 &&
        chip(`stacks from ${recording.methods[recording.root].name}`, "Whole stacks again", () =>
          state.set({ root: null, zoom: null }),
        ),
      lane &&
        chip(`thread ${lane.title}`, `No longer thread ${lane.title} alone`, () =>
          state.set({ thread: this.app.usual }),
        ),
      filter.state !== "all" &&
        chip(recording.states[filter.state], `No longer ${recording.states[filter.state]} alone`, () =>
          state.set({ state: "all" }),
        ),
      filter.label &&
        chip(filter.label.replace("=", ": "), `No longer ${filter.label} alone`, () => state.set({ label: "" })),
      filter.gc &&
        chip(
          filter.gc === "apart" ? "collection apart" : "collection charged to its caller",
          "Collection in place again",
          () => state.set({ gc: "" }),
        ),
      state.blackbox.map((name) =>
        chip(
          `blackbox ${this.named(name)}`,
          `No longer blackbox ${safe(name)}`,
          () => this.app.toggleBlackbox(name),
        ),
      ),
    )
    this.chips.hidden = !this.chips.firstChild
    if (focused) (this.chips.querySelector("button") ?? this.app.main).focus()
  }

  named(name) {
    return `${safe(name)}${this.app.recording.matching(name).length ? "" : " (not in this recording)"}`
  }

  // One line: what filters leave, which of them leaves nothing, and which don't change what is shown.
  showLeft() {
    const words = [this.emptied() || this.leaves(), this.heedless()].filter(Boolean)
    this.left.hidden = !words.length
    replace(this.left, words.join(" "))
  }

  // What stays the same in this view.
  heedless() {
    const { state, tab } = this.app
    const without = tab.refuses.filter((name) => name !== "time" && state[name].length)
    const change = without.length > 1 ? "do not change it" : "does not change it"
    return without.length && `This view has no stacks: ${without.join(" and ")} ${change}.`
  }

  leaves() {
    const { state, recording, weight, filter } = this.app
    if (!state.focus.length || this.app.tab.refuses.includes("focus")) return ""
    const [part, whole] = recording.part(weight.name, filter)
    return `Focus on ${state.focus.map(safe).join(", ")}: ${percent(part, whole)} of the whole.`
  }

  emptied() {
    const { state, recording, weight, filter } = this.app
    const unknown = [...state.focus, ...state.hide].find((name) => !recording.matching(name).length)
    if (unknown) return `${this.unknown(unknown)}.`
    const whose = ONLY[state.only] ?? `a gem “${safe(state.only)}”`
    if (state.only && !recording.keeping) return `No frame of ${whose} in the recording.`
    const [part, whole] = recording.part(weight.name, filter)
    if (part > 0 || !whole) return ""
    if (state.from !== null && !recording.sums(weight.name, filter).some((own) => own > 0))
      return `Time ${writeTime(state)}: nothing was sampled in it of what is looked at.`
    const names = state.focus.map(safe).join(", ")
    return names && `Focus on ${names}: no sample of what is looked at has it in its stack.`
  }

  // One line: how long threads waited, and for what.
  showWaiting() {
    const { waiting, state, tab } = this.app
    const shown = waiting && tab.waits && !(tab.key === "flame" && state.order === "time")
    const longest = shown && waiting.rows.slice(0, 3).map(([name, ns]) => `${name} ${duration(ns)}`)
    this.apart.hidden = !shown
    if (!shown) return
    replace(
      this.apart,
      h("strong", {}, "Waiting"),
      ` ${duration(waiting.total)} of ${duration(waiting.all)} (${percent(waiting.total, waiting.all)}): `,
      `${[...longest, waiting.rows.length > 3 && "others"].filter(Boolean).join(", ")}. `,
      state.waiting ? "The figures below count it. " : "Below is the time in which threads ran. ",
      h(
        "button",
        { class: "link", title: "w", onclick: () => this.app.toggleWaiting() },
        state.waiting ? "Leave waiting out" : "Count waiting, too",
      ),
    )
  }

  // "name=value" of those that most time has, and the one that is asked for.
  labels() {
    this.knownLabels ||= this.app.recording.labelNames.flatMap((name) =>
      labelRows(this.app.recording, name, { thread: "all", state: "all", from: null, to: null })
        .filter((row) => row.value !== null)
        .sort((a, b) => b.wall - a.wall)
        .slice(0, 200)
        .map((row) => `${name}=${row.value}`),
    )
    return this.app.state.label && !this.knownLabels.includes(this.app.state.label)
      ? [...this.knownLabels, this.app.state.label]
      : this.knownLabels
  }
}
