// Who calls a method, and what it calls.

import { h, replace } from "../dom.js"
import { value, percent, place } from "../format.js"
import { KIND_NAMES } from "../kinds.js"
import { Flame } from "../flame.js"
import { Table } from "../table.js"
import { callersTree, calleesTree } from "../tree.js"
import { Chains } from "./chains.js"
import { name, nameColumn, placeColumn, share, amount } from "./columns.js"

// What the panel can show: its key, its button.
const KINDS = [
  ["tables", "tables"],
  ["chains", "chains of callers"],
  ["flames", "flame graphs"],
]

export class Detail {
  constructor(app) {
    this.app = app
    const columns = []
    const chosen = (row) => row.method && row.method.id !== 0 && app.state.set({ method: row.method.id })
    this.callers = new Table({
      label: "Callers",
      columns,
      sorted: ["total", true],
      chosen,
      ...app.ofRows,
      empty: "Nobody: the thread begins with it.",
    })
    this.callees = new Table({
      label: "Callees",
      columns,
      sorted: ["total", true],
      chosen,
      ...app.ofRows,
      empty: "Nothing: it calls no other method.",
    })
    const flame = (label) =>
      new Flame(app.recording, { label, ...app.ofFrames, chosen: (method) => app.state.set({ method }) })
    this.above = flame("Flame graph of the callers")
    this.below = flame("Flame graph of the callees")
    this.head = h("div", { class: "detail-head" })
    this.body = h("div", { class: "detail-body" })
    this.chains = new Chains(app)
    this.kind = "tables"
    this.element = h("aside", { class: "detail", "aria-label": "Callers and callees" }, this.head, this.body)
  }

  update() {
    const { recording, weight, worked: filter, state } = this.app
    const method = recording.methods[state.method]
    this.element.hidden = !method || method.id === 0
    if (this.element.hidden) return
    const weighed = recording.weighed(weight.name, filter)
    const sums = recording.byMethod(weight.name, filter)
    const total = sums.total[method.id]
    replace(
      this.head,
      h(
        "div",
        { class: "detail-title" },
        h("h2", {}, name(method, this.app)),
        h(
          "button",
          { class: "close", "aria-label": "Close", onclick: () => this.app.state.set({ method: null }) },
          "×",
        ),
      ),
      h("p", { class: "path" }, place(method.path, method.line, recording.base) || KIND_NAMES[method.kind]),
      h(
        "p",
        {},
        ...[
          ["total", total],
          ["self", sums.self[method.id]],
        ].map(
          ([word, sum], at) => `${at ? " · " : ""}${word} ${value(sum, weight.unit)} (${percent(sum, weighed.total)})`,
        ),
      ),
      h(
        "div",
        { class: "bar-row" },
        h(
          "div",
          { class: "segments", role: "group", "aria-label": "Show" },
          KINDS.map(([kind, text]) =>
            h(
              "button",
              {
                "aria-pressed": String(this.kind === kind),
                onclick: () => {
                  this.kind = kind
                  this.update()
                },
              },
              text,
            ),
          ),
        ),
        h(
          "button",
          {
            class: "small",
            "aria-pressed": String(state.blackbox.includes(method.name)),
            title: "Fold everything below it into it, in every view",
            onclick: () => this.app.toggleBlackbox(method.name),
          },
          "Blackbox",
        ),
        h(
          "button",
          {
            class: "small",
            "aria-pressed": String(state.focus.includes(method.name)),
            title: "Only samples that have it in their stack, in every view (f)",
            onclick: () => this.app.toggleFocus(method.id),
          },
          "Focus",
        ),
        h(
          "button",
          {
            class: "small",
            "aria-pressed": String(recording.root === method.id),
            title: "Stacks from it on: only what it and those below it took, in every view (r)",
            onclick: () => this.app.toggleRoot(method.id),
          },
          "Root",
        ),
        method.path &&
          this.app.hasSource(method.path) &&
          h(
            "button",
            { class: "small", onclick: () => this.app.state.set({ view: "source", file: method.path }) },
            "Source",
          ),
      ),
    )
    if (this.kind === "flames") this.showGraphs(method, weighed)
    else if (this.kind === "chains") this.showChains(method, weighed)
    else this.showTables(method, weighed.total, total)
  }

  showChains(method, weighed) {
    replace(this.body, h("h3", {}, "Chains of callers"), this.chains.element)
    this.chains.showCallers(method, weighed)
  }

  // whole, total: what shares are of
  showTables(method, whole, total) {
    const { recording, weight, worked: filter } = this.app
    const { callers, callees } = recording.neighbours(method.id, weight.name, filter)
    const rows = (sums) =>
      [...sums]
        .map(([id, total]) => ({
          method: id === 0 ? { ...recording.methods[0], name: "(start of the thread)" } : recording.methods[id],
          total,
        }))
        .filter((row) => row.total > 0)
    for (const table of [this.callers, this.callees])
      table.setColumns([
        share("total", "of all", whole, (row) => row.total),
        { ...share("share", "of it", total, (row) => row.total), least: 340 },
        amount("value", weight.short, weight.unit, (row) => row.total),
        nameColumn(this.app),
        placeColumn(this.app),
      ])
    replace(this.body, h("h3", {}, "Called by"), this.callers.element, h("h3", {}, "Calls"), this.callees.element)
    this.callers.show(rows(callers))
    this.callees.show(rows(callees))
  }

  showGraphs(method, weighed) {
    const { recording, weight } = this.app
    replace(
      this.body,
      h("h3", {}, "Called by (callers below)"),
      this.above.element,
      h("h3", {}, "Calls"),
      this.below.element,
    )
    const { parents, keys } = recording.tree
    this.above.showTree(callersTree(parents, keys, recording.outer, weighed.totals, method.id), weight.unit)
    this.below.showTree(calleesTree(recording.tree, recording.outer, weighed, method.id), weight.unit)
  }
}
