// How the call paths of two sides differ: a flame graph as wide as one side, coloured by the change, and a table beside
// it of what only one side runs or what it calls more often. What is looked at is in the address:
// #side=a&totals=equal&node=12

import { h, replace } from "./dom.js"
import { count, duration, percent } from "./format.js"
import { Flame } from "./flame.js"
import { Table } from "./table.js"
import { Tree, Weighted } from "./tree.js"

const PRESENCES = ["both", "new", "gone"]
const VERDICTS = ["exact", "beyond", "chance", "small"]
const MARKS = { new: "+", gone: "−", more: "≠" }
const WORDS = { chance: "may be chance", small: "too little to be tested", beyond: "beyond noise" }

// Orange and blue differ in lightness and hue for every kind of sight. share: −1 (gone) to 1 (new).
const COLOURS = {
  light: { more: [28, 92], less: [215, 80], from: 95, to: 64, same: "hsl(0 0% 90%)" },
  dark: { more: [26, 72], less: [215, 62], from: 25, to: 44, same: "hsl(0 0% 27%)" },
}
export function changeColour(share, theme) {
  const { more, less, from, to, same } = COLOURS[theme]
  if (Math.abs(share) < 0.01) return same
  const [hue, saturation] = share > 0 ? more : less
  return `hsl(${hue} ${saturation}% ${Math.round(from + (to - from) * Math.sqrt(Math.min(1, Math.abs(share))))}%)`
}

const signed = (ns) => (Math.round(ns) === 0 ? "0 s" : `${ns < 0 ? "−" : "+"}${duration(Math.abs(Math.round(ns)))}`)

export class Change {
  constructor({ object, data }) {
    const parents = data.column(object.parents, Int32Array)
    const keys = data.column(object.keys, Int32Array)
    const depths = new Int32Array(parents.length)
    for (let node = 1; node < parents.length; node++) depths[node] = depths[parents[node]] + 1
    this.tree = new Tree(parents, keys, depths)
    this.weighed = object.selfs.map((place) => new Weighted(this.tree, data.column(place)))
    this.calls = object.calls?.map((place) => data.column(place))
    this.presence = data.column(object.presence, Int32Array)
    this.verdicts = data.column(object.verdicts, Int32Array)
    this.moved = new Map(object.moved)
    this.methods = [null, ...object.methods.map(([name, path, kind], at) => ({ id: at + 1, name, path, kind, line: 0 }))]
    this.names = [object.base, object.side]
    Object.assign(this, { object, base: "" })
  }

  // Weights of a node on both sides. equal: A's as if A's whole took as long as B's.
  pair(node, equal) {
    const [a, b] = this.weighed.map(({ totals }) => totals[node])
    const [all, whole] = this.weighed.map(({ total }) => total)
    return [equal && all ? (a * whole) / all : a, b]
  }
}

// Coloured by the change from the other side to the side that is shown.
class ChangeFlame extends Flame {
  colour(method, node) {
    if (!node) return changeColour(0, this.theme)
    const [a, b] = this.pair(node)
    return changeColour((b - a) / Math.max(a, b, 1), this.theme)
  }

  pair(node) {
    const { recording, equal, side } = this
    const pair = recording.pair(node, equal)
    return side ? pair : pair.reverse()
  }

  title(method, node) {
    const presence = PRESENCES[this.recording.presence[node]]
    if (presence === "both") return method.name
    return `${(presence === "new") === (this.side === 1) ? "+" : "−"} ${method.name}`
  }

  figures(node) {
    const { recording, side, equal, whole } = this
    const [a, b] = this.pair(node)
    const presence = PRESENCES[recording.presence[node]]
    const calls = recording.calls && [1 - side, side].map((at) => count(recording.calls[at][node]))
    return [
      `${duration(Math.round(a))} → ${duration(Math.round(b))} (${signed(b - a)}, ${percent(Math.abs(b - a), whole)} of all)`,
      calls && `${calls[0] === calls[1] ? calls[0] : calls.join(" → ")} calls`,
      presence !== "both" && `only ${recording.names[presence === "new" ? 1 : 0]} has this path`,
      recording.moved.has(node) && `in ${recording.names[0]} called by ${recording.moved.get(node)[0] ?? "nothing"}`,
      WORDS[VERDICTS[recording.verdicts[node]]],
      equal && "totals made equal",
    ].filter(Boolean)
  }
}

export class ChangeView {
  constructor(change) {
    this.change = change
    this.bar = h("div", { class: "bar-row" })
    this.flame = new ChangeFlame(change, {
      label: "Differential flame graph",
      moved: (zoom) => this.set({ node: zoom?.node ?? 0 }),
    })
    const exact = change.object.exact
    this.table = new Table({
      label: "What differs",
      sorted: null,
      chosen: (row) => this.show(row),
      empty: "no path differs",
      columns: [
        {
          key: "kind",
          label: "±",
          title: "+ only in B, − only in A, ≠ on both sides",
          wide: "40px",
          sort: (row) => row.kind,
          text: (row) => MARKS[row.kind],
          prose: true,
        },
        { key: "name", label: "what differs", sort: (row) => row.name, text: (row) => row.name },
        {
          key: "cost",
          label: "cost",
          wide: "84px",
          number: true,
          sort: (row) => row.cost,
          text: (row) => signed(row.cost),
        },
        exact
          ? {
              key: "calls",
              label: "calls",
              wide: "104px",
              number: true,
              sort: (row) => row.calls.at(-1),
              text: (row) => row.calls.map(count).join(" → "),
            }
          : {
              key: "doubt",
              label: "doubt",
              wide: "104px",
              sort: (row) => row.doubt,
              text: (row) => (row.doubt === "beyond" ? "beyond noise" : "may be chance"),
              prose: true,
            },
      ],
    })
    this.table.show(change.object.rows)
    this.element = h(
      "section",
      { "aria-label": "Call paths", class: "change" },
      h("h2", {}, "Call paths"),
      this.bar,
      h("div", { class: "change-body" }, this.flame.element, this.table.element),
      change.object.notes.map((text) => h("p", { class: "muted" }, text)),
      change.object.left_out > 0 &&
        h("p", { class: "muted" }, `${count(change.object.left_out)} small paths count for their callers`),
    )
    addEventListener("hashchange", () => location.hash !== this.written && this.read())
  }

  begin() {
    this.read()
  }

  read() {
    const parts = new URLSearchParams(location.hash.slice(1))
    const node = Number(parts.get("node"))
    this.state = {
      side: parts.get("side") === "a" ? 0 : 1,
      equal: parts.get("totals") === "equal",
      node: Number.isInteger(node) && node > 0 && node < this.change.tree.size ? node : 0,
    }
    this.update()
    if (this.state.node) this.flame.restore({ node: this.state.node })
  }

  set(changes) {
    Object.assign(this.state, changes)
    const parts = new URLSearchParams()
    if (!this.state.side) parts.set("side", "a")
    if (this.state.equal) parts.set("totals", "equal")
    if (this.state.node) parts.set("node", String(this.state.node))
    const text = parts.toString()
    this.written = text ? `#${text}` : ""
    history.replaceState(null, "", this.written || location.pathname + location.search)
    this.update()
  }

  // Zooms to a path. One that the shown side lacks is shown on the other side.
  show(row) {
    const { weighed } = this.change
    if (!weighed[this.state.side].totals[row.node]) this.set({ side: 1 - this.state.side, node: 0 })
    if (weighed[this.state.side].totals[row.node]) this.flame.zoom(row.node)
  }

  update() {
    const { side, equal } = this.state
    const { names, weighed } = this.change
    const [a, b] = weighed.map(({ total }) => total)
    const button = (text, pressed, change, title) =>
      h("button", { "aria-pressed": String(pressed), title, onclick: () => this.set(change) }, text)
    const focused = this.bar.contains(document.activeElement) && document.activeElement.textContent
    replace(
      this.bar,
      h(
        "div",
        { class: "segments", role: "group", "aria-label": "Width" },
        button("as wide as B", side === 1, { side: 1, node: 0 }, names[1]),
        button("as wide as A", side === 0, { side: 0, node: 0 }, names[0]),
      ),
      h(
        "div",
        { class: "segments", role: "group", "aria-label": "Totals" },
        button("as measured", !equal, { equal: false }),
        button("equal totals", equal, { equal: true }, "A's times as if A's whole took as long as B's"),
      ),
      h("span", { class: "muted" }, `${duration(a)} → ${duration(b)} (${signed(b - a)})`),
      h("span", { class: "space" }),
      this.legend(),
      h("button", { class: "small", onclick: () => this.flame.reset(), disabled: !this.state.node }, "Reset zoom"),
    )
    if (focused) [...this.bar.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus()
    Object.assign(this.flame, { side, equal })
    this.flame.showTree(weighed[side], "ns")
    // Both sides are one tree, so the graph keeps its zoom; another width is another view.
    if (this.side !== undefined && this.side !== side) this.flame.restore(this.state.node ? { node: this.state.node } : null)
    this.side = side
  }

  legend() {
    const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light"
    const key = (share, text) =>
      h(
        "span",
        { class: "key" },
        h("i", { class: "swatch", style: { background: changeColour(share, theme) } }),
        text,
      )
    const shown = this.state.side ? "B" : "A"
    return h(
      "span",
      { class: "legend" },
      key(1, `more in ${shown}`),
      key(0, "the same"),
      key(-1, `less in ${shown}`),
      h("span", {}, "+ no such path on the other side"),
    )
  }

  redraw() {
    if (this.state) this.update()
    this.flame.draw()
  }
}
