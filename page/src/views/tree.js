// The call tree from the root down, opened step by step.

import { h } from "../dom.js"
import { Outline } from "../outline.js"
import { dot, placeColumn, share, amount } from "./columns.js"

export class TreeView extends Outline {
  constructor(app) {
    super("Call tree")
    this.app = app
    this.element = h("div", { class: "view tree-view" }, h("div", { class: "bar-row" }, this.buttons), this.table.element)
  }

  children(node) {
    return this.weighed.children(node)
  }
  parent(node) {
    return this.app.recording.tree.parents[node]
  }

  update() {
    const { recording, weight, filter } = this.app
    const weighed = (this.weighed = recording.weighed(weight.name, filter))
    if (!this.begun) {
      this.begun = true
      this.begin((node) => weighed.totals[node], weighed.total)
    }
    const other = (wanted) => (wanted !== weight.name && recording.weights.some((one) => one.name === wanted) ? recording.weighed(wanted, filter) : null)
    const [calls, wait] = recording.traced && !recording.bySite(weight.name) ? [other("calls"), weight.name === "wall" ? other("wait") : null] : []
    const rows = this.rows((node) => ({
      method: recording.methods[recording.tree.keys[node]],
      total: weighed.totals[node] + (wait ? wait.totals[node] : 0),
      self: weighed.selfs[node],
      calls: calls?.selfs[node],
      wait: wait?.selfs[node],
    }))
    const whole = weighed.total + (wait ? wait.total : 0)
    this.table.setColumns([
      { ...share("total", "total", whole, (row) => row.total), sort: null },
      { ...amount("total_value", weight.short, weight.unit, (row) => row.total), sort: null },
      { ...amount("self", "self", weight.unit, (row) => row.self), sort: null },
      ...(wait
        ? [
            { ...amount("wait", "wait", "ns", (row) => row.wait), sort: null },
            { ...amount("child", "child", "ns", (row) => row.total - row.self - row.wait), sort: null },
          ]
        : [{ ...amount("child", "below", weight.unit, (row) => row.total - row.self), sort: null, least: 760 }]),
      ...(calls ? [{ ...amount("calls", "calls", "count", (row) => row.calls), sort: null }] : []),
      { key: "name", label: "method", class: "grow", node: (row) => this.cell(row, dot(row.method, this.app), h("span", {}, row.method.name)) },
      { ...placeColumn(this.app), sort: null, wide: "24%", least: 720 },
    ])
    this.show(rows)
  }
}
