// The flame graph, root at the top, on one canvas of the size of what is seen: what it costs to draw depends on the
// pixels, not on the samples. It shows a weighted tree, heaviest first, or the stacks of one thread in time order.

import { h, fit, css, oncePerFrame } from "./dom.js"
import { COLOURS, boxColour, faded } from "./flame_colours.js"
import { listen } from "./flame_input.js"
import { value, percent, duration, count, place, shortened } from "./format.js"

const ROW = 18
const NARROWEST = 0.6 // pixels below which a box isn't drawn
const ANIMATION_MS = 180
export class Flame {
  // moved(view): the part shown has changed, {node} or {from, to} as parts of the whole, or null; chosen(method): its
  // views are wanted. folded(method): it is to be folded, or no longer; keys: what other keys do with a method;
  // asked(method, event): its menu is wanted.
  constructor(recording, { label, moved = () => {}, chosen = () => {}, folded = null, keys = {}, asked = null }) {
    Object.assign(this, { recording, moved, chosen, folded, keys, asked })
    this.canvas = h("canvas", { "aria-hidden": "true" })
    this.spacer = h("div", { class: "flame-spacer" })
    this.scroller = h(
      "div",
      {
        class: "flame-scroll",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "flame graph",
        "aria-label": label,
        "aria-keyshortcuts": "ArrowUp ArrowDown ArrowLeft ArrowRight Enter Escape + -",
      },
      h("div", { class: "flame-stick" }, this.canvas),
      this.spacer,
    )
    this.status = h("div", { class: "flame-status", role: "status", "aria-live": "polite" })
    this.tip = h("div", { class: "tip", role: "tooltip", hidden: true })
    this.element = h("div", { class: "flame" }, this.scroller, this.status, this.tip)
    this.view = [0, 1]
    this.selected = 0
    this.focus = 0
    this.matches = null
    this.boxes = []
    this.widths = new Map()
    this.draw = oncePerFrame(() => this.paint())
    this.frames = 0
    new ResizeObserver(() => this.draw()).observe(this.scroller)
    listen(this)
  }

  // Heaviest first. weighed: a Weighted tree whose keys are methods.
  showTree(weighed, unit) {
    const same = this.tree === weighed.tree && this.mode === "tree"
    Object.assign(this, { mode: "tree", weighed, tree: weighed.tree, unit, whole: weighed.total })
    if (!same) this.forget()
    else if (this.focus) this.settle()
    this.resize(this.tree.deepest)
    if (this.focus) this.view = this.viewOf(this.focus)
    this.draw()
  }

  // One thread in time order, from and to in ns; rows of one state only, or "all".
  // folds: as Recording#boxes gives them; strict: rows that end after `to` are left out, as of a request.
  showTime(thread, from, to, rows, { labelled = null, folds = null, strict = false } = {}) {
    const same = this.mode === "time" && this.thread === thread && this.from === from && this.to === to
    Object.assign(this, {
      mode: "time",
      thread,
      from,
      to,
      wanted: rows,
      labelled,
      folds,
      strict,
      tree: this.recording.tree,
      unit: "ns",
      whole: Math.max(1, to - from),
    })
    if (!same) this.forget()
    this.resize(this.deepest(thread))
    this.draw()
  }

  deepest(thread) {
    const { depths } = this.tree
    let deepest = 0
    for (let row = 0; row < thread.rows; row++)
      deepest = Math.max(deepest, depths[this.recording.placeOf(thread.node[row], this.folds)])
    return deepest
  }

  // The node at a row of the thread that is shown, 0 where it is not looked at.
  nodeOf(row) {
    const { thread, labelled, folds } = this
    if (
      row < 0 ||
      (this.wanted !== "all" && thread.state[row] !== Number(this.wanted)) ||
      (this.strict && thread.ends[row] > this.to)
    )
      return 0
    if (labelled && !labelled[thread.label?.[row] ?? 0]) return 0
    return this.recording.placeOf(thread.node[row], folds)
  }

  forget() {
    this.settle()
    clearTimeout(this.later)
    this.later = null
    this.view = [0, 1]
    this.selected = this.focus = 0
    this.status.textContent = ""
  }

  resize(deepest) {
    this.spacer.style.height = `${(deepest + 1) * ROW}px`
  }

  // methods: a Uint8Array by method, or null; the share is of the whole, each stack once.
  search(methods) {
    this.matches = methods
    this.draw()
  }

  viewOf(node) {
    if (!node || !this.whole) return [0, 1]
    const start = this.weighed.start(node)
    return [start / this.whole, (start + this.weighed.totals[node]) / this.whole]
  }

  // What the fragment keeps.
  state() {
    // Inverted, numbers are of this visit.
    if (this.mode === "tree" && this.focus && !this.weighed.inverted) return { node: this.focus }
    const [from, to] = this.goal ?? this.view
    return from === 0 && to === 1 ? null : { from, to }
  }

  restore(state) {
    this.settle()
    this.focus = 0
    this.view = [0, 1]
    if (state?.node && this.mode === "tree" && state.node < this.tree.size && this.weighed.totals[state.node] > 0) {
      this.focus = this.selected = state.node
      this.view = this.viewOf(state.node)
      this.reveal(state.node)
    } else if (state && state.to > state.from) this.view = [Math.max(0, state.from), Math.min(1, state.to)]
    this.draw()
  }

  // Shows a node over the whole width; 0 is everything.
  zoom(node) {
    if (this.mode === "time") return
    this.focus = node
    this.select(node)
    this.go(this.viewOf(node))
    this.moved(this.state())
  }

  // Ends a move under way at its goal.
  settle() {
    cancelAnimationFrame(this.animation)
    if (this.goal) this.view = this.goal
    this.goal = null
  }

  go(view) {
    this.settle()
    clearTimeout(this.later)
    this.later = null
    const from = this.view
    const began = performance.now()
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.view = view
      return this.draw()
    }
    const step = (now) => {
      const part = Math.min(1, Math.max(0, (now - began) / ANIMATION_MS))
      const eased = 1 - (1 - part) ** 3
      this.view = part === 1 ? view : [from[0] + (view[0] - from[0]) * eased, from[1] + (view[1] - from[1]) * eased]
      this.paint()
      if (part < 1) this.animation = requestAnimationFrame(step)
      else this.goal = null
    }
    this.goal = view
    this.animation = requestAnimationFrame(step)
  }

  // Around a place of the width, 0 to 1; factor below 1 shows less.
  zoomAt(at, factor) {
    this.settle()
    const [from, to] = this.view
    const width = Math.min(1, Math.max((to - from) * factor, this.mode === "time" ? 1000 / this.whole : 1e-9))
    const centre = from + (to - from) * at
    const begin = Math.min(1 - width, Math.max(0, centre - width * at))
    this.view = [begin, begin + width]
    this.focus = 0
    this.draw()
    this.movedSoon()
  }

  pan(part) {
    this.settle()
    const width = this.view[1] - this.view[0]
    const begin = Math.min(1 - width, Math.max(0, this.view[0] + width * part))
    this.view = [begin, begin + width]
    this.focus = 0
    this.draw()
    this.movedSoon()
  }

  // `later` is set as long as the page does not know of the last move.
  movedSoon() {
    clearTimeout(this.later)
    this.later = setTimeout(() => {
      this.later = null
      this.moved(this.state())
    }, 200)
  }

  // Whether it was moved and nobody has been told yet: what others know is older.
  get ahead() {
    return Boolean(this.later)
  }

  reset() {
    this.focus = 0
    this.select(0)
    this.go([0, 1])
    this.scroller.scrollTop = 0
    this.moved(null)
  }

  select(node, say = true) {
    this.selected = node
    if (say) this.status.textContent = node ? this.words(node) : ""
    this.draw()
  }

  words(node) {
    const method = this.recording.methods[this.tree.keys[node]]
    const where = place(method.path, method.line, this.recording.base)
    return [method.name, where, ...this.figures(node)].filter(Boolean).join(" · ")
  }

  figures(node) {
    if (this.mode === "time") return []
    const { totals, selfs, inverted } = this.weighed
    if (inverted) return [`own ${value(totals[node], this.unit)} (${percent(totals[node], this.whole)})`]
    return [
      `${value(totals[node], this.unit)} (${percent(totals[node], this.whole)})`,
      `self ${value(selfs[node], this.unit)} (${percent(selfs[node], this.whole)})`,
    ]
  }

  // Shows a node that is outside, or too narrow to be read, with what stands beside it.
  show(node) {
    this.select(node)
    this.reveal(node)
    if (this.mode === "time") return
    const [from, to] = this.viewOf(node)
    const [left, right] = this.goal ?? this.view
    const width = (to - from) / (right - left)
    if (from >= left && to <= right && width * this.scroller.clientWidth > 30) return
    const room = Math.min(1, Math.max((to - from) * 5, 1e-9))
    const begin = Math.min(1 - room, Math.max(0, (from + to - room) / 2))
    this.focus = 0
    this.go([begin, begin + room])
    this.movedSoon()
  }

  // Scrolls so that a node's row is seen, with some of its callers.
  reveal(node) {
    const top = Math.max(0, this.tree.depths[node] - 4) * ROW
    const row = this.tree.depths[node] * ROW
    if (row < this.scroller.scrollTop || row > this.scroller.scrollTop + this.scroller.clientHeight - 3 * ROW)
      this.scroller.scrollTop = top
  }

  paint() {
    const width = this.scroller.clientWidth
    const height = this.scroller.clientHeight
    if (!width || !height || !this.tree) return
    this.frames++
    const context = (this.context = fit(this.canvas, width, height))
    const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light"
    if (this.theme !== theme) {
      this.theme = theme
      this.colours = new Map()
    }
    context.clearRect(0, 0, width, height)
    context.font = `11.5px ${css("--font")}`
    context.textBaseline = "middle"
    this.boxes = []
    this.top = this.scroller.scrollTop
    this.rows = [Math.floor(this.top / ROW), Math.ceil((this.top + height) / ROW)]
    this.mode === "time" ? this.paintTime(width) : this.paintTree(width)
    if (this.selectedBox) this.outline(this.selectedBox)
    this.selectedBox = null
  }

  paintTree(width) {
    if (!this.whole) return
    const { totals } = this.weighed
    const scale = width / ((this.view[1] - this.view[0]) * this.whole)
    const origin = this.view[0] * this.whole
    const { depths } = this.tree
    this.box(0, width, 0, 0)
    const stack = [0, 0]
    while (stack.length) {
      const start = stack.pop()
      const node = stack.pop()
      if (depths[node] + 1 > this.rows[1]) continue
      let at = start
      for (const child of this.weighed.children(node)) {
        const total = totals[child]
        if (total * scale < NARROWEST) break
        const left = (at - origin) * scale
        const right = left + total * scale
        if (left > width) break
        if (right > 0) {
          this.box(Math.max(0, left), Math.min(width, right), depths[child], child)
          stack.push(child, at)
        }
        at += total
      }
    }
  }

  // Each column of pixels shows the stack at its middle; equal neighbours are one box.
  paintTime(width) {
    const { thread, tree, recording } = this
    const { parents, depths } = tree
    const [lowest, highest] = [Math.max(1, this.rows[0]), this.rows[1]]
    const open = [] // by depth from the lowest that is seen: [node, left]
    let leaf = 0
    let path = []
    const close = (depth, right) => {
      for (let at = open.length - 1; at >= depth; at--) this.box(open[at][1], right, at + lowest, open[at][0])
      open.length = Math.min(open.length, depth)
    }
    this.box(0, width, 0, 0)
    const step = 1 / (window.devicePixelRatio || 1)
    const perPixel = ((this.view[1] - this.view[0]) * this.whole) / width
    const first = this.from + this.view[0] * this.whole
    for (let x = 0; x < width; x += step) {
      const ns = first + (x + step / 2) * perPixel
      const node = this.nodeOf(recording.rowAt(thread, ns))
      if (node === leaf) continue
      leaf = node
      path = []
      let at = node
      while (depths[at] > highest) at = parents[at]
      for (; depths[at] >= lowest; at = parents[at]) path[depths[at] - lowest] = at
      let depth = 0
      while (depth < open.length && open[depth][0] === path[depth]) depth++
      close(depth, x)
      for (; depth < path.length; depth++) open.push([path[depth], x])
    }
    close(0, width)
  }

  box(left, right, depth, node) {
    if (depth < this.rows[0] || depth > this.rows[1]) return
    const context = this.context
    const y = depth * ROW - this.top
    const width = right - left
    const method = node ? this.recording.methods[this.tree.keys[node]] : null
    const box = { left, right, depth, node }
    this.boxes.push(box)
    context.fillStyle = this.colour(method, node)
    const gap = width > 3 ? 1 : 0
    context.fillRect(left, y, Math.max(width - gap, 0.5), ROW - 1)
    if (node === this.selected && node) this.selectedBox = box
    if (width < 28) return
    const text = this.cut(method ? this.title(method, node) : this.rootText(), width - 10)
    if (!text) return
    context.fillStyle = COLOURS[this.theme].text
    context.globalAlpha = this.matches && method && !this.matches[method.id] ? 0.55 : 1
    context.fillText(text, left + 5, y + ROW / 2)
    context.globalAlpha = 1
  }

  title(method, _node) {
    return method.name
  }

  rootText() {
    if (this.mode !== "time") return `all · ${value(this.whole, this.unit)}`
    const { thread, from, view, scroller } = this
    const span = (view[1] - view[0]) * this.whole
    const each = span / scroller.clientWidth / Math.max(1, (thread.end - thread.start) / thread.rows)
    const note = ` · each column of pixels is one of about ${count(each)} samples: zoom in to see all`
    return `${thread.title} · ${duration(span)} from ${duration(from + view[0] * this.whole)}${each > 1.5 ? note : ""}`
  }

  outline({ left, right, depth }) {
    this.context.strokeStyle = css("--text")
    this.context.lineWidth = 1.5
    this.context.strokeRect(left + 0.75, depth * ROW - this.top + 0.75, Math.max(right - left - 2.5, 1), ROW - 2.5)
  }

  colour(method) {
    if (!method) return css("--raised")
    const match = this.matches && this.matches[method.id]
    if (match) return COLOURS[this.theme].match
    let colour = this.colours.get(method.id)
    if (!colour) this.colours.set(method.id, (colour = boxColour(method, this.theme)))
    return this.matches ? faded(colour, this.theme) : colour
  }

  // What of a text fits, or "".
  cut(text, room) {
    const width = this.measure(text)
    if (width <= room) return text
    let fits = Math.floor((text.length * room) / width) - 1
    while (fits >= 2 && this.measure(shortened(text, fits)) > room) fits--
    return fits < 2 ? "" : shortened(text, fits)
  }

  measure(text) {
    let width = this.widths.get(text)
    if (width === undefined) {
      if (this.widths.size > 50_000) this.widths.clear()
      this.widths.set(text, (width = this.context.measureText(text).width))
    }
    return width
  }

  at(event) {
    const bounds = this.canvas.getBoundingClientRect()
    const x = event.clientX - bounds.left
    const depth = Math.floor((event.clientY - bounds.top + this.scroller.scrollTop) / ROW)
    return this.boxes.find((box) => box.depth === depth && box.left <= x && x < box.right)
  }
}
