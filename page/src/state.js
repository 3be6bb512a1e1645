// What is looked at, kept in the address behind the #, so that a view can be sent to somebody:
// #view=flame&weight=cpu&time=1.2s..3.4s&focus=Shop::Cart. Filters have the words of the command line.

import { readTime, writeTime } from "./time_range.js"

const DEFAULTS = {
  view: "",
  weight: "",
  thread: "busy",
  state: "all",
  from: null, // ns since the first process began; null: from the start
  to: null, // null: to the end
  search: "",
  order: "heavy",
  zoom: null,
  method: null,
  file: "",
  by: "place",
  label: "",
  request: null,
  blackbox: [],
  focus: [],
  hide: [],
  only: "",
  native: "",
  gc: "",
  tree: "",
  root: null,
  inverted: "",
  waiting: "",
  series: "", // of a history: its name
  axis: "",
  sizes: {}, // of panels, in percent: {detail: 45}
}
// What stands in the address as it is, as a list of names, and as a number.
const TEXTS = [
  "view",
  "weight",
  "thread",
  "state",
  "search",
  "order",
  "file",
  "by",
  "label",
  "only",
  "native",
  "gc",
  "tree",
  "inverted",
  "waiting",
  "series",
  "axis",
]
const LISTS = ["focus", "hide", "blackbox"]
const FILTERS = ["time", "only", "native", ...LISTS]
const NUMBERS = ["method", "root", "request"]
// Texts that have few values.
const VALUES = { native: /^1?$/, waiting: /^(all)?$/, inverted: /^1?$/, gc: /^(|apart|caller)$/, state: /^(all|\d+)$/, axis: /^(result)?$/ }

export class State {
  constructor(changed) {
    Object.assign(this, DEFAULTS)
    this.changed = changed
    this.read()
    addEventListener("hashchange", () => {
      if (location.hash === this.written) return
      this.read()
      changed(Object.keys(DEFAULTS))
    })
  }

  // What a page begins with: the weight and the filters that it was made with, where the address has no other.
  begin(start) {
    const parts = new URLSearchParams(location.hash.slice(1))
    this.weight ||= start.weight ?? ""
    this.filtered = FILTERS.some((name) => start[name])
    if (!this.filtered || FILTERS.some((name) => parts.has(name))) return
    Object.assign(this, readTime(start.time))
    for (const name of FILTERS) if (start[name] && name !== "time") this[name] = start[name]
    this.write()
  }

  // Unknown or odd parts of the address are left alone: it may come from a page of another recording.
  read() {
    const parts = new URLSearchParams(location.hash.slice(1))
    Object.assign(this, DEFAULTS)
    for (const name of TEXTS) {
      const text = parts.get(name)
      if (text !== null && (VALUES[name] ?? /^/).test(text)) this[name] = text
    }
    for (const name of LISTS) this[name] = [...new Set(parts.getAll(name).filter(Boolean))]
    for (const name of NUMBERS)
      if (/^\d+$/.test(parts.get(name) || "")) this[name] = Number(parts.get(name)) || DEFAULTS[name]
    Object.assign(this, readTime(parts.get("time")))
    const node = /^n(\d+)$/.exec(parts.get("zoom") || "")
    const part = /^([\d.e-]+)~([\d.e-]+)$/.exec(parts.get("zoom") || "")
    if (node) this.zoom = { node: Number(node[1]) }
    else if (part && Number(part[2]) > Number(part[1])) this.zoom = { from: Number(part[1]), to: Number(part[2]) }
    this.sizes = Object.fromEntries(
      [...(parts.get("sizes") || "").matchAll(/([a-z]+):(\d+(?:\.\d)?)/g)].map(([, name, size]) => [
        name,
        Number(size),
      ]),
    )
  }

  set(changes) {
    const names = Object.keys(changes).filter((name) => this[name] !== changes[name])
    if (!names.length) return
    Object.assign(this, changes)
    this.write()
    this.changed(names)
  }

  write() {
    const parts = new URLSearchParams()
    for (const name of TEXTS) if (this[name] !== DEFAULTS[name]) parts.set(name, this[name])
    for (const name of LISTS) for (const one of this[name]) parts.append(name, one)
    for (const name of NUMBERS) if (this[name] !== null) parts.set(name, String(this[name]))
    const time = writeTime(this)
    if (time) parts.set("time", time)
    // All filters that the page was made with were taken away: without them it begins the next time, too.
    if (this.filtered && !FILTERS.some((name) => parts.has(name))) parts.set("time", "..")
    if (this.zoom?.node) parts.set("zoom", `n${this.zoom.node}`)
    else if (this.zoom) parts.set("zoom", `${this.zoom.from.toPrecision(9)}~${this.zoom.to.toPrecision(9)}`)
    const sizes = Object.entries(this.sizes).map(([name, size]) => `${name}:${size}`)
    if (sizes.length) parts.set("sizes", sizes.join(","))
    // Colons, commas and slashes need no escape behind the #.
    const text = parts.toString().replace(/%(3A|2C|2F|40)/g, decodeURIComponent)
    this.written = text ? `#${text}` : ""
    history.replaceState(null, "", this.written || location.pathname + location.search)
  }
}
