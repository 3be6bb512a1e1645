// The flame graph of what is selected.

import { h, replace } from "../dom.js"
import { value, percent, count } from "../format.js"
import { KIND_NAMES } from "../recording.js"
import { Flame, boxColour } from "../flame.js"

export class FlameView {
  constructor(app) {
    this.app = app
    this.flame = new Flame(app.recording, { label: "Flame graph", moved: (zoom) => app.state.set({ zoom }), chosen: (method) => app.showMethod(method), folded: (method) => app.toggleBlackbox(app.recording.methods[method].name) })
    this.bar = h("div", { class: "bar-row" })
    this.note = h("p", { class: "empty", hidden: true })
    this.element = h("div", { class: "view flame-view" }, this.bar, this.note, this.flame.element)
  }

  update(changed) {
    const { state, recording, weight, filter } = this.app
    const timed = recording.timed(weight.name)
    const order = timed && state.order === "time" ? "time" : "heavy"
    const threads = recording.selectedLanes(filter).filter((lane) => lane.rows)
    const thread = filter.request ? recording.selected(filter).find((part) => part.rows) : threads[0] && recording.joined(threads[0])
    replace(
      this.bar,
      timed &&
        h(
          "div",
          { class: "segments", role: "group", "aria-label": "Order" },
          [
            ["heavy", "heaviest first"],
            ["time", "time order"],
          ].map(([key, text]) => h("button", { "aria-pressed": String(order === key), onclick: () => this.app.state.set({ order: key, zoom: null }) }, text)),
        ),
      order === "time" && thread && h("span", { class: "muted" }, `thread ${thread.title}${threads.length > 1 ? ": choose another above" : ""}`),
      h("span", { class: "muted", role: "status" }, this.found(order)),
      h("span", { class: "space" }),
      this.kinds(),
      h("button", { class: "small", onclick: () => this.flame.reset(), disabled: !state.zoom }, "Reset zoom"),
    )
    const restore = !changed || changed.includes("zoom") || changed.includes("order") || changed.includes("view")
    const matches = this.app.matches()
    let nothing = ""
    if (order === "time") {
      if (thread) this.flame.showTime(thread, filter.from ?? thread.start, filter.to ?? thread.end, filter.state, { labelled: recording.labelled(filter), folds: recording.boxes(filter.blackbox), strict: Boolean(filter.request) })
      else nothing = "No samples of such a thread."
    } else {
      const weighed = recording.weighed(weight.name, filter)
      this.flame.showTree(weighed, weight.unit)
      if (!weighed.total) nothing = `No ${weight.title} in what is selected.`
    }
    this.note.hidden = !nothing
    this.note.textContent = nothing
    this.flame.element.hidden = Boolean(nothing)
    this.flame.search(matches)
    if (restore && !nothing && JSON.stringify(this.flame.state()) !== JSON.stringify(state.zoom)) this.flame.restore(state.zoom)
  }

  // What the search found, each stack counted once.
  found(order) {
    const matches = this.app.matches()
    if (!matches) return ""
    const methods = matches.reduce((sum, one) => sum + one, 0)
    if (order === "time") return `${count(methods)} methods match`
    const { recording, weight, filter } = this.app
    const { totals, total } = recording.weighed(weight.name, filter)
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
    return `${count(methods)} method${methods === 1 ? "" : "s"} match: ${value(sum, weight.unit)}, ${percent(sum, total)}`
  }

  kinds() {
    const kinds = [...new Set(this.app.recording.methods.slice(2, -1).map((method) => method.kind))].filter((kind) => kind !== "other")
    return h(
      "span",
      { class: "legend" },
      Object.keys(KIND_NAMES)
        .filter((kind) => kinds.includes(kind))
        .map((kind) => h("span", { class: "key" }, h("i", { class: "swatch", style: { background: boxColour({ kind, name: "" }, this.app.theme) } }), KIND_NAMES[kind])),
    )
  }
}
