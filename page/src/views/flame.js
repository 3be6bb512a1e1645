// The flame graph of what is selected.

import { h, replace } from "../dom.js"
import { value, percent, count } from "../format.js"
import { KIND_NAMES } from "../kinds.js"
import { Flame } from "../flame.js"
import { boxColour } from "../flame_colours.js"
import { search } from "../tree.js"
import { splitter } from "../splitter.js"
import { Overview } from "./overview.js"
import { Steps } from "./steps.js"

export class FlameView {
  constructor(app) {
    this.app = app
    this.flame = new Flame(app.recording, {
      label: "Flame graph",
      moved: (zoom) => app.state.set({ zoom }),
      ...app.ofFrames,
    })
    this.steps = new Steps((node) => this.flame.show(node))
    this.bar = h("div", { class: "bar-row" })
    this.note = h("p", { class: "empty", hidden: true })
    this.overview = new Overview(app)
    this.element = h(
      "div",
      { class: "view flame-view" },
      h("div", { class: "flame-main" }, this.bar, this.note, this.flame.element),
      splitter(app.state, {
        name: "beside",
        label: "Width of the overview",
        side: "right",
        panel: () => this.overview.element,
      }),
      this.overview.element,
    )
  }

  update(changed) {
    const { state, recording, weight, filter } = this.app
    const timed = recording.timed(weight.name)
    const order = timed && state.order === "time" ? "time" : "heavy"
    const threads = recording.selectedLanes(filter).filter((lane) => lane.rows)
    const thread = filter.request
      ? recording.selected(filter).find((part) => part.rows)
      : threads[0] && recording.joined(threads[0])
    replace(
      this.bar,
      h(
        "div",
        { class: "segments", role: "group", "aria-label": "Order" },
        [["heavy", "", "heaviest first"], ["heavy", "1", "bottom up"], timed && ["time", "", "time order"]]
          .filter(Boolean)
          .map(([key, inverted, text]) =>
            h(
              "button",
              {
                "aria-pressed": String(order === key && (key === "time" || state.inverted === inverted)),
                onclick: () => state.set({ order: key, inverted, zoom: null }),
              },
              text,
            ),
          ),
      ),
      order === "time" &&
        thread &&
        h("span", { class: "muted" }, `thread ${thread.title}${threads.length > 1 ? ": choose another above" : ""}`),
      h("span", { class: "muted", role: "status" }, this.found(order)),
      this.steps.element,
      h("span", { class: "space" }),
      this.kinds(),
      h("button", { class: "small", onclick: () => this.flame.reset(), disabled: !state.zoom }, "Reset zoom"),
    )
    const restore = !changed || changed.includes("zoom") || changed.includes("order") || changed.includes("view")
    const matches = this.app.matches()
    let nothing = ""
    if (order === "time") {
      if (thread)
        this.flame.showTime(thread, filter.from ?? thread.start, filter.to ?? thread.end, filter.state, {
          labelled: recording.labelled(filter),
          folds: recording.boxes(filter.blackbox),
          strict: Boolean(filter.request),
        })
      else nothing = "No samples of such a thread."
      this.steps.show([], "")
    } else {
      const weighed = this.app.stacks
      this.flame.showTree(weighed, weight.unit)
      if (!weighed.total) nothing = `No ${weight.title} in what is selected.`
    }
    // While a range is dragged, only what is looked at follows at once.
    clearTimeout(this.later)
    if (this.app.wide.matches) {
      if (changed?.every((name) => name === "from" || name === "to"))
        this.later = setTimeout(() => this.overview.update(), 150)
      else this.overview.update()
    }
    this.note.hidden = !nothing
    this.note.textContent = nothing
    this.flame.element.hidden = Boolean(nothing)
    this.flame.search(matches)
    if (restore && !nothing && !this.flame.ahead && JSON.stringify(this.flame.state()) !== JSON.stringify(state.zoom))
      this.flame.restore(state.zoom)
    if (order === "heavy")
      this.steps.show(matches ? search(this.app.stacks, matches) : [], state.search, !changed && state.zoom !== null)
  }

  step(by) {
    this.steps.step(by)
  }

  // What the search found, each stack counted once.
  found(order) {
    const matches = this.app.matches()
    if (!matches) return ""
    const methods = matches.reduce((sum, one) => sum + one, 0)
    if (order === "time") return `${count(methods)} methods match`
    const { recording, weight, worked } = this.app
    const { totals, total } = recording.weighed(weight.name, worked)
    const { parents, keys } = recording.tree
    const inside = new Uint8Array(parents.length)
    let sum = 0
    for (let node = 1; node < parents.length; node++) {
      inside[node] = inside[parents[node]]
      if (!inside[node] && matches[keys[node]]) {
        inside[node] = 1
        sum += totals[node]
      }
    }
    const noun = methods === 1 ? "method" : "methods"
    return `${count(methods)} ${noun} match: ${value(sum, weight.unit)}, ${percent(sum, total)}`
  }

  kinds() {
    const kinds = [...new Set(this.app.recording.methods.slice(2, -1).map((method) => method.kind))].filter(
      (kind) => kind !== "other" && (kind !== "native" || this.app.recording.native || !this.app.recording.folds),
    )
    return h(
      "span",
      { class: "legend" },
      Object.keys(KIND_NAMES)
        .filter((kind) => kinds.includes(kind))
        .map((kind) =>
          h(
            "span",
            { class: "key" },
            h("i", { class: "swatch", style: { background: boxColour({ kind, name: "" }, this.app.theme) } }),
            KIND_NAMES[kind],
          ),
        ),
    )
  }
}
