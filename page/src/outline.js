// A tree as a table whose rows are opened step by step. Who extends it says what `children(node)` and `parent(node)`
// are, and draws in `update()`.

import { h } from "./dom.js"
import { Table } from "./table.js"

const MOST = 200_000
// Frames of a run that is shown as one row.
const LONG = 5

export class Outline {
  constructor(label, options = {}) {
    this.open = new Set()
    this.unfolded = new Set() // runs of frames that are shown one by one, by their first
    this.table = new Table({ label, columns: [], ordered: true, chosen: (row) => this.toggle(row.node), ...options })
    this.table.table.setAttribute("role", "treegrid")
    this.table.table.addEventListener("keydown", (event) => this.key(event), true)
    const button = (text, work) => h("button", { class: "small", onclick: work }, text)
    this.buttons = [
      button("Open the heaviest path", () => this.openHeaviest()),
      button("Close all", () => {
        this.open.clear()
        this.unfolded.clear()
        this.update()
      }),
    ]
  }

  // Of a node's children, which come heaviest first unless who extends it has other orders.
  heaviest(node) {
    return this.children(node)[0]
  }

  openHeaviest() {
    for (let node = 0, steps = 0; steps < 2000; steps++) {
      const child = this.heaviest(node)
      if (!child) break
      this.open.add(child)
      node = child
    }
    this.update()
  }

  // Opens what holds most of it.
  begin(weight, whole) {
    for (let node = 0; ;) {
      const child = this.heaviest(node)
      if (!child || weight(child) < whole * 0.6) return
      this.open.add((node = child))
    }
  }

  toggle(node) {
    if (this.open.has(node) && !this.unfolded.has(node) && this.run(node).length) {
      this.unfolded.add((this.active = node))
      return this.update()
    }
    this.unfolded.delete(node)
    this.open.has(node) ? this.open.delete(node) : this.openChain(node)
    this.active = node
    this.update()
  }

  // A chain of only children opens as one.
  openChain(node) {
    for (;;) {
      this.open.add(node)
      const children = this.children(node)
      if (children.length !== 1) return
      node = children[0]
    }
  }

  // Whether a node only leads to its one child. Who extends it says so.
  passing() {
    return false
  }

  // The open nodes from one on that only lead to the next; none where they are few.
  run(node) {
    const run = []
    while (node && this.passing(node) && this.open.has(node)) {
      run.push(node)
      node = this.children(node)[0]
    }
    return run.length < LONG ? [] : run
  }

  key(event) {
    const row = this.table.order[this.table.active]
    if (!row || !["ArrowRight", "ArrowLeft"].includes(event.key)) return
    event.preventDefault()
    const opened = this.open.has(row.node)
    if (event.key === "ArrowRight" ? !opened : opened) return this.toggle(row.node)
    if (event.key === "ArrowLeft" && row.depth > 0) {
      this.active = this.parent(row.node)
      this.update()
    }
  }

  // What is open, from the top: {node, depth, leaf} and what `more(node)` gives.
  rows(more) {
    const rows = []
    const stack = [...this.children(0)].reverse().map((node) => [node, 0])
    while (stack.length && rows.length < MOST) {
      const [node, depth, within] = stack.pop()
      const run = within || this.unfolded.has(node) ? [] : this.run(node)
      if (run.length) {
        rows.push({ node, depth, leaf: false, run, ...more(node) })
        stack.push([this.children(run.at(-1))[0], depth + 1])
        continue
      }
      const children = this.children(node)
      rows.push({ node, depth, leaf: !children.length, ...more(node) })
      if (this.open.has(node))
        for (let at = children.length - 1; at >= 0; at--)
          stack.push([children[at], depth + 1, (within || this.unfolded.has(node)) && this.passing(node)])
    }
    return rows
  }

  show(rows) {
    this.table.show(rows, rows.find((row) => row.node === this.active) ?? null)
  }

  // A name with the mark that opens it.
  cell(row, ...content) {
    const open = this.open.has(row.node) && !row.run
    const mark = row.leaf
      ? h("span", { class: "twist" })
      : h("span", { class: "twist", role: "img", "aria-label": open ? "open" : "closed" }, open ? "▾" : "▸")
    return h("span", { class: "name", style: { "padding-left": `${Math.min(row.depth, 60) * 0.8}rem` } }, mark, content)
  }
}
