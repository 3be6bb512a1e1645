// What a search found, one after another: ‹ 2 of 7 ›. `go` shows one.

import { h, replace } from "../dom.js"
import { count } from "../format.js"

export class Steps {
  constructor(go) {
    Object.assign(this, { go, nodes: [], at: 0 })
    this.element = h("span", { class: "steps", role: "group", "aria-label": "Matches" })
  }

  // The first match of a search is shown once, unless it is quiet.
  show(nodes, text, quiet = false) {
    const fresh = text !== this.text
    const last = this.nodes[this.at]
    this.text = text
    this.nodes = nodes
    this.at = fresh ? 0 : Math.max(0, nodes.indexOf(last))
    this.draw()
    if (fresh && !quiet && nodes.length) this.go(nodes[0])
  }

  step(by) {
    if (!this.nodes.length) return
    this.at = (this.at + by + this.nodes.length) % this.nodes.length
    this.draw()
    this.go(this.nodes[this.at])
  }

  draw() {
    const button = (text, label, by) =>
      h("button", { class: "small", "aria-label": label, title: label, onclick: () => this.step(by) }, text)
    const focused = this.element.contains(document.activeElement) && document.activeElement.getAttribute("aria-label")
    replace(
      this.element,
      this.nodes.length > 0 && [
        button("‹", "The match before (Shift + Enter, N)", -1),
        h("span", { role: "status" }, `${count(this.at + 1)} of ${count(this.nodes.length)}`),
        button("›", "The next match (Enter, n)", 1),
      ],
    )
    if (focused) this.element.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus()
  }
}
