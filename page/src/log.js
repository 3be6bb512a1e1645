// The page of a log of system calls, which has nothing else to show.

import { h } from "./dom.js"
import { safe } from "./format.js"
import { frame, help } from "./frame.js"
import { size } from "./splitter.js"
import { State } from "./state.js"
import { theme } from "./theme.js"
import { SyscallsView } from "./views/syscalls.js"

const KEYS = [
  ["/", "search"],
  ["Esc", "clear the search"],
  ["t", "light or dark"],
  ["?", "this list"],
  ["Tables", ""],
  ["arrow keys, Page Up, Home …", "move"],
  ["Enter", "choose, open or close"],
  ["← →", "close and open in a tree"],
]

export class LogApp {
  constructor(data) {
    const { object } = data
    this.data = data
    this.base = object.base
    this.syscalls = object.syscalls
    this.state = new State(() => this.redraw())
    this.help = help(KEYS)
    this.view = new SyscallsView(this)
    this.search = h("input", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search paths",
      oninput: () => this.state.set({ search: this.search.value }),
    })
    this.element = frame(
      { title: safe(object.title), facts: object.facts, help: () => this.help.showModal() },
      h("div", { class: "toolbar alone" }, h("span", { class: "space" }), this.search),
      (this.main = h("main", { tabindex: "-1" }, h("div", { id: "view" }, this.view.element))),
      this.help,
    )
    addEventListener("keydown", (event) => this.key(event))
  }

  get theme() {
    return theme.now
  }

  begin() {
    this.redraw()
  }

  redraw() {
    if (this.search.value !== this.state.search) this.search.value = this.state.search
    size(this.element, this.state)
    this.view.update()
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return
    if (event.key === "Escape") {
      this.state.set({ search: "" })
      if (event.target === this.search) this.main.focus()
    } else if (/^(input|select|textarea)$/i.test(event.target.tagName)) return
    else if (event.key === "/") {
      event.preventDefault()
      this.search.focus()
      this.search.select()
    } else if (event.key === "?") this.help.showModal()
    else if (event.key === "t") theme.toggle()
  }
}
