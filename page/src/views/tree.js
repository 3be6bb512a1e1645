// The call tree from the root down, opened step by step.

import { h, middle, replace } from "../dom.js"
import { Outline } from "../outline.js"
import { search } from "../tree.js"
import { Steps } from "./steps.js"
import { dot, placeColumn, share, amount } from "./columns.js"

export class TreeView extends Outline {
  constructor(app) {
    super("Call tree", app.ofRows)
    this.app = app
    this.bar = h("div", { class: "bar-row" })
    this.steps = new Steps((node) => this.go(node))
    this.element = h("div", { class: "view tree-view" }, this.bar, this.table.element)
  }

  // Opens the way to a node.
  go(node) {
    for (let above = this.parent(node); above; above = this.parent(above)) this.open.add(above)
    for (const one of this.weighed.tree.path(node)) this.unfolded.add(one)
    this.active = node
    this.update()
    this.table.reveal()
  }

  step(by) {
    this.steps.step(by)
  }

  children(node) {
    return this.weighed.children(node)
  }
  parent(node) {
    return this.weighed.tree.parents[node]
  }

  // "12 frames, Rack::Runtime#call to Rails::Engine#call"
  runName({ run }) {
    const name = (node) => this.app.recording.methods[this.weighed.tree.keys[node]].name
    return `${run.length} frames, ${name(run[0])} to ${name(run.at(-1))}`
  }

  // Frames of other code that only lead on are no place to stop at.
  passing(node) {
    const { recording } = this.app
    return (
      !this.weighed.inverted &&
      recording.methods[this.weighed.tree.keys[node]].kind !== "app" &&
      this.weighed.selfs[node] * 200 < this.weighed.total &&
      this.children(node).length === 1
    )
  }

  update() {
    const { recording, weight, worked: filter, state } = this.app
    const weighed = (this.weighed = this.app.stacks)
    const { tree } = weighed
    if (this.tree !== tree) {
      this.tree = tree
      this.open.clear()
      this.unfolded.clear()
      this.begun = false
    }
    if (!this.begun) {
      this.begun = true
      this.begin((node) => weighed.totals[node], weighed.total)
    }
    replace(
      this.bar,
      h(
        "div",
        { class: "segments", role: "group", "aria-label": "Direction" },
        [
          ["", "top down"],
          ["1", "bottom up"],
        ].map(([inverted, text]) =>
          h(
            "button",
            { "aria-pressed": String(state.inverted === inverted), onclick: () => state.set({ inverted, zoom: null }) },
            text,
          ),
        ),
      ),
      this.buttons,
      this.steps.element,
    )
    const other = (wanted) =>
      wanted !== weight.name && recording.weights.some((one) => one.name === wanted)
        ? recording.weighed(wanted, filter)
        : null
    const [calls, wait] =
      recording.traced && !weighed.inverted && !recording.bySite(weight.name)
        ? [other("calls"), weight.name === "wall" ? other("wait") : null]
        : []
    const rows = this.rows((node) => ({
      method: recording.methods[tree.keys[node]],
      total: weighed.totals[node] + (wait ? wait.totals[node] : 0),
      self: weighed.selfs[node],
      calls: calls?.selfs[node],
      wait: wait?.selfs[node],
    }))
    const whole = weighed.total + (wait ? wait.total : 0)
    this.table.setColumns([
      { ...share("total", "total", whole, (row) => row.total), sort: null },
      { ...amount("total_value", weight.short, weight.unit, (row) => row.total), sort: null },
      ...(weighed.inverted ? [] : [{ ...amount("self", "self", weight.unit, (row) => row.self), sort: null }]),
      ...(weighed.inverted
        ? []
        : wait
          ? [
              { ...amount("wait", "wait", "ns", (row) => row.wait), sort: null },
              { ...amount("child", "child", "ns", (row) => row.total - row.self - row.wait), sort: null },
            ]
          : [{ ...amount("child", "below", weight.unit, (row) => row.total - row.self), sort: null, least: 760 }]),
      ...(calls ? [{ ...amount("calls", "calls", "count", (row) => row.calls), sort: null }] : []),
      {
        key: "name",
        label: "method",
        class: "grow",
        node: (row) =>
          this.cell(
            row,
            dot(row.method, this.app),
            row.run ? h("span", { class: "muted" }, this.runName(row)) : middle(row.method.name),
          ),
        tip: (row) => (row.run ? this.runName(row) : row.method.name),
      },
      { ...placeColumn(this.app), sort: null, wide: "24%", least: 720 },
    ])
    this.show(rows)
    const matches = this.app.matches()
    this.steps.show(matches ? search(weighed, matches) : [], state.search)
  }
}
