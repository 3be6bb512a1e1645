// What the views are narrowed to: the weight, the menu of filters, chips that undo them, and whether waiting counts.

import { h, replace, select } from "./dom.js"
import { duration, percent, safe } from "./format.js"
import { menu } from "./menu.js"
import { labelRows } from "./views/labels.js"
import { inWords } from "./views/requests.js"

const FOLD = "Fold everything below a method, or a path with a slash, into it"

export class Narrowing {
  constructor(app) {
    this.app = app
    this.weigh = h("span", { class: "weigh" })
    this.filters = h("div", { class: "filters" })
    this.fold = h("input", {
      type: "text",
      class: "fold",
      placeholder: "Array#each, gems/rack  b",
      "aria-label": `Blackbox: ${FOLD[0].toLowerCase()}${FOLD.slice(1)}`,
      title: `${FOLD}: Array#each, gems/rack`,
      spellcheck: "false",
      onkeydown: (event) => event.key === "Enter" && this.addBlackbox(this.fold.value.trim()),
    })
    this.said = h("p", { class: "refused", role: "status" })
    // What is not chosen often; what is chosen there stands as a chip below.
    this.menu = menu(
      "Filters",
      this.filters,
      h("label", { class: "field" }, h("span", {}, "blackbox"), this.fold),
      this.said,
    )
    this.chips = h("div", {
      class: "chips",
      role: "group",
      "aria-label": "What the views are narrowed to",
      hidden: true,
    })
    this.apart = h("p", { class: "apart", role: "status", hidden: true })
  }

  // names: of the parts of the state that changed, or null for all.
  update(names) {
    this.showFilters(names)
    this.showChips()
    this.showWaiting()
  }

  openFold() {
    this.menu.open = true
    this.fold.focus()
  }

  close() {
    this.fold.value = this.said.textContent = ""
    this.menu.open = false
    this.menu.querySelector("summary").focus()
  }

  addBlackbox(name) {
    if (!name) return
    const known = this.app.recording.matching(name).length > 0
    this.said.textContent = known
      ? ""
      : `No method or path “${safe(name)}” in the recording: type Array#each, each, or gems/rack.`
    if (!known) return
    this.fold.value = ""
    if (!this.app.state.blackbox.includes(name)) this.app.toggleBlackbox(name)
  }

  // What can't be told of a weight isn't asked.
  showFilters(names) {
    if (names && !names.some((name) => ["weight", "thread", "state", "view", "label", "gc", "request"].includes(name)))
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
    )
    if (focused) this.app.element.querySelector(`.toolbar select[aria-label="${CSS.escape(focused)}"]`)?.focus()
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
      recording.focus > 0 &&
        chip(`focus on ${recording.methods[recording.focus].name}`, "Look at everything again", () =>
          state.set({ focus: null, zoom: null }),
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
          `blackbox ${safe(name)}${this.app.recording.matching(name).length ? "" : " (not in this recording)"}`,
          `No longer blackbox ${safe(name)}`,
          () => this.app.toggleBlackbox(name),
        ),
      ),
    )
    this.chips.hidden = !this.chips.firstChild
    if (focused) (this.chips.querySelector("button") ?? this.app.main).focus()
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
