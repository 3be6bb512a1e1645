// The flame graph, root at the top, on one canvas of the size of what is seen: what it costs to draw depends on the pixels, not on the
// samples. It shows a weighted tree, heaviest first, or the stacks of one thread in time order.

import { h, fit, css, oncePerFrame } from "./dom.js"
import { value, percent, duration, count, place, shortened } from "./format.js"

const ROW = 18
const NARROWEST = 0.6 // pixels below which a box isn't drawn
const ANIMATION_MS = 180
const COLOURS = {
  light: {
    app: [212, 66, 76],
    gem: [166, 34, 72],
    ruby: [256, 34, 82],
    c: [215, 14, 82],
    gc: [40, 88, 66],
    other: [0, 0, 85],
    text: "#17202b",
    match: "hsl(328 74% 62%)",
    dim: [0.32, "#f3f4f6"],
  },
  dark: {
    app: [212, 46, 42],
    gem: [166, 28, 34],
    ruby: [256, 22, 44],
    c: [215, 11, 36],
    gc: [38, 62, 40],
    other: [0, 0, 32],
    text: "#eef2f7",
    match: "hsl(328 62% 46%)",
    dim: [0.35, "#15181d"],
  },
}

export function boxColour(method, theme) {
  const [hue, saturation, lightness] = COLOURS[theme][method.kind]
  let hash = 0
  for (let at = 0; at < method.name.length; at++) hash = (hash * 31 + method.name.charCodeAt(at)) | 0
  return `hsl(${hue} ${saturation}% ${lightness + (((hash >>> 0) % 9) - 4) * 0.9}%)`
}

export class Flame {
  // moved(view): the part shown has changed, {node} or {from, to} as parts of the whole, or null; chosen(method): its views are wanted.
  // folded(method), focused(method): it is to be folded, or looked at alone, or no longer; asked(method, event): its menu is wanted.
  constructor(recording, { label, moved = () => {}, chosen = () => {}, folded = null, focused = null, asked = null }) {
    Object.assign(this, { recording, moved, chosen, folded, focused, asked })
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
    this.listen()
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
    Object.assign(this, { mode: "time", thread, from, to, wanted: rows, labelled, folds, strict, tree: this.recording.tree, unit: "ns", whole: Math.max(1, to - from) })
    if (!same) this.forget()
    this.resize(this.deepest(thread))
    this.draw()
  }

  deepest(thread) {
    const { of, depths } = this.tree
    let deepest = 0
    for (let row = 0; row < thread.rows; row++) deepest = Math.max(deepest, depths[of[this.folds?.[thread.node[row]] || thread.node[row]]])
    return deepest
  }

  // The node at a row of the thread that is shown, 0 where it is not looked at.
  nodeOf(row) {
    const { thread, labelled, folds } = this
    if (row < 0 || (this.wanted !== "all" && thread.state[row] !== Number(this.wanted)) || (this.strict && thread.ends[row] > this.to)) return 0
    if (labelled && !labelled[thread.label?.[row] ?? 0]) return 0
    return this.tree.of[folds?.[thread.node[row]] || thread.node[row]]
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
    if (this.mode === "tree" && this.focus && !this.weighed.inverted) return { node: this.focus } // inverted, numbers are of this visit
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
    return [`${value(totals[node], this.unit)} (${percent(totals[node], this.whole)})`, `self ${value(selfs[node], this.unit)} (${percent(selfs[node], this.whole)})`]
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
    if (row < this.scroller.scrollTop || row > this.scroller.scrollTop + this.scroller.clientHeight - 3 * ROW) this.scroller.scrollTop = top
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
    context.fillStyle = this.colour(method)
    const gap = width > 3 ? 1 : 0
    context.fillRect(left, y, Math.max(width - gap, 0.5), ROW - 1)
    if (node === this.selected && node) this.selectedBox = box
    if (width < 28) return
    const text = this.cut(method ? method.name : this.rootText(), width - 10)
    if (!text) return
    context.fillStyle = COLOURS[this.theme].text
    context.globalAlpha = this.matches && method && !this.matches[method.id] ? 0.55 : 1
    context.fillText(text, left + 5, y + ROW / 2)
    context.globalAlpha = 1
  }

  rootText() {
    const span = (this.view[1] - this.view[0]) * this.whole
    const each = this.mode === "time" ? span / this.scroller.clientWidth / Math.max(1, (this.thread.end - this.thread.start) / this.thread.rows) : 0
    return this.mode === "time"
      ? `${this.thread.title} · ${duration(span)} from ${duration(this.from + this.view[0] * this.whole)}${each > 1.5 ? ` · each column of pixels is one of about ${count(each)} samples: zoom in to see all` : ""}`
      : `all · ${value(this.whole, this.unit)}`
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

  listen() {
    const { scroller } = this
    let drag = null
    scroller.addEventListener("scroll", () => this.draw(), { passive: true })
    scroller.addEventListener(
      "wheel",
      (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) {
          event.preventDefault()
          this.zoomAt((event.clientX - this.canvas.getBoundingClientRect().left) / this.canvas.clientWidth, Math.exp(event.deltaY * (event.deltaMode ? 0.05 : 0.004)))
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          event.preventDefault()
          this.pan((event.deltaX || event.deltaY) / scroller.clientWidth)
        }
      },
      { passive: false },
    )
    scroller.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || (event.offsetX > scroller.clientWidth && event.target === scroller)) return
      drag = { x: event.clientX, y: event.clientY, view: this.view, top: scroller.scrollTop, moved: false }
    })
    scroller.addEventListener("pointermove", (event) => {
      if (!drag) return this.hover(event)
      if (!drag.moved && Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) < 5) return
      if (!drag.moved) {
        drag.moved = true
        scroller.setPointerCapture(event.pointerId)
        this.tip.hidden = true
      }
      const width = drag.view[1] - drag.view[0]
      const begin = Math.min(1 - width, Math.max(0, drag.view[0] - ((event.clientX - drag.x) / scroller.clientWidth) * width))
      if (width < 1) {
        this.view = [begin, begin + width]
        this.focus = 0
      }
      scroller.scrollTop = drag.top - (event.clientY - drag.y)
      this.draw()
    })
    scroller.addEventListener("pointerup", (event) => {
      if (event.button !== 0) return
      const moved = drag?.moved
      drag = null
      if (moved) return this.movedSoon()
      const box = this.at(event)
      if (!box) return
      box.node && this.mode === "tree" ? this.zoom(box.node) : box.node ? this.select(box.node) : this.reset()
    })
    scroller.addEventListener("pointercancel", () => {
      drag = null
    })
    scroller.addEventListener("pointerleave", () => {
      this.tip.hidden = true
    })
    scroller.addEventListener("dblclick", (event) => {
      const box = this.at(event)
      if (box?.node) this.chosen(this.tree.keys[box.node])
    })
    scroller.addEventListener("keydown", (event) => this.key(event))
    scroller.addEventListener("contextmenu", (event) => {
      drag = null
      const node = (event.button === 2 ? this.at(event)?.node : 0) || (event.button !== 2 && this.selected)
      if (!this.asked || !node) return
      this.tip.hidden = true
      this.select(node)
      this.asked(this.tree.keys[node], event)
    })
  }

  hover(event) {
    const box = this.at(event)
    this.tip.hidden = !box
    if (!box) return
    const method = box.node ? this.recording.methods[this.tree.keys[box.node]] : null
    this.tip.replaceChildren(
      ...(method
        ? [
            h("strong", {}, method.name),
            h("span", { class: "path" }, place(method.path, method.line, this.recording.base)),
            ...this.figures(box.node).map((text) => h("span", {}, text)),
            this.mode === "time" && h("span", {}, `${duration(((box.right - box.left) / this.scroller.clientWidth) * (this.view[1] - this.view[0]) * this.whole)} here`),
          ].filter((part) => part && part.textContent)
        : [h("strong", {}, this.rootText())]),
    )
    const room = this.element.getBoundingClientRect()
    const left = Math.min(event.clientX - room.left + 14, room.width - this.tip.offsetWidth - 8)
    const below = event.clientY - room.top + 18
    const top = below + this.tip.offsetHeight > room.height ? event.clientY - room.top - this.tip.offsetHeight - 10 : below
    this.tip.style.left = `${Math.max(4, left)}px`
    this.tip.style.top = `${Math.max(4, top)}px`
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const step = {
      "+": () => this.zoomAt(0.5, 0.5),
      "=": () => this.zoomAt(0.5, 0.5),
      "-": () => this.zoomAt(0.5, 2),
      a: () => this.pan(-0.2),
      d: () => this.pan(0.2),
      Escape: () => this.reset(),
      Enter: () => this.selected && (this.mode === "tree" ? this.zoom(this.selected) : this.chosen(this.tree.keys[this.selected])),
      c: () => this.selected && this.chosen(this.tree.keys[this.selected]),
      b: this.folded && this.selected ? () => this.folded(this.tree.keys[this.selected]) : null,
      f: this.focused && this.selected ? () => this.focused(this.tree.keys[this.selected]) : null,
      Backspace: () => this.zoom(this.tree.parents[this.focus]),
    }[event.key]
    const arrow = event.key.startsWith("Arrow") && this.neighbour(event.key.slice(5))
    if (!step && arrow === false) return
    event.preventDefault()
    event.stopPropagation()
    if (step) return step()
    if (!arrow) return
    this.select(arrow)
    this.reveal(arrow)
  }

  // Up: the caller; down: the heaviest callee; left and right: siblings. In time order, what is drawn beside it.
  neighbour(direction) {
    const { parents } = this.tree
    const node = this.selected
    if (direction === "Up") return parents[node] || node
    if (this.mode === "time") {
      const row = this.boxes
        .filter((box) => box.node && (direction === "Down" ? box.depth === this.tree.depths[node] + 1 : box.depth === Math.max(1, this.tree.depths[node])))
        .sort((a, b) => a.left - b.left)
      if (direction === "Down" || !node) return (row.find((box) => parents[box.node] === node) || row[0])?.node ?? node
      const at = row.findIndex((box) => box.node === node)
      return row[at + (direction === "Right" ? 1 : -1)]?.node ?? node
    }
    if (direction === "Down") return this.weighed.children(node)[0] ?? node
    const siblings = this.weighed.children(parents[node])
    return siblings[siblings.indexOf(node) + (direction === "Right" ? 1 : -1)] ?? node
  }
}

const known = new Map()
function faded(colour, theme) {
  const key = colour + theme
  if (!known.has(key))
    known.set(
      key,
      colour.replace(/(\d+)% ([\d.]+)%\)/, (_, saturation, lightness) => `${saturation * 0.35}% ${theme === "dark" ? lightness * 0.62 : 90}%)`),
    )
  return known.get(key)
}
