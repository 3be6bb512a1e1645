// The chains of callers of a method, opened step by step. Shares are of the whole.

import { middle } from "../dom.js"
import { Outline } from "../outline.js"
import { callersTree } from "../tree.js"
import { dot, placeColumn, share, amount } from "./columns.js"

export class Chains extends Outline {
  constructor(app) {
    super("Chains of callers", app.ofRows)
    this.app = app
    this.element = this.table.element
  }

  children(node) {
    return this.weighed.children(node)
  }
  parent(node) {
    return this.weighed.tree.parents[node]
  }

  // weighed: the tree of which the method's callers are shown
  showCallers(method, weighed) {
    const { recording } = this.app
    const { parents, keys } = recording.tree
    this.weighed = callersTree(parents, keys, recording.outer, weighed.totals, method.id)
    this.whole = weighed.total
    if (this.method !== method.id) {
      this.method = method.id
      this.open.clear()
      if (this.children(0).length) this.openChain(this.children(0)[0])
    }
    this.update()
  }

  update() {
    const { recording, weight } = this.app
    const { tree, totals } = this.weighed
    this.table.setColumns([
      { ...share("total", "of all", this.whole, (row) => row.total), sort: null },
      { ...amount("value", weight.short, weight.unit, (row) => row.total), sort: null },
      {
        key: "name",
        label: "method, and below it who called it",
        class: "grow",
        node: (row) => this.cell(row, dot(row.method, this.app), middle(row.method.name)),
        tip: (row) => row.method.name,
      },
      { ...placeColumn(this.app), sort: null, least: 520 },
    ])
    this.show(this.rows((node) => ({ method: recording.methods[tree.keys[node]], total: totals[node] })))
  }
}
