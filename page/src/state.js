// What is looked at, kept in the address behind the #, so that a view can be sent to somebody:
// #view=flame&weight=cpu&range=1200-3400

const DEFAULTS = {
  view: "",
  weight: "",
  thread: "busy",
  state: "all",
  from: null,
  to: null,
  search: "",
  order: "heavy",
  zoom: null,
  method: null,
  file: "",
  by: "place",
  label: "",
  request: null,
  blackbox: [],
  gc: "",
  tree: "",
  mine: "",
  focus: null,
  inverted: "",
  waiting: "",
  sizes: {}, // of panels, in percent: {detail: 45}
}

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

  // Unknown or odd parts of the address are left alone: it may come from a page of another recording.
  read() {
    const parts = new URLSearchParams(location.hash.slice(1))
    Object.assign(this, DEFAULTS)
    for (const name of [
      "view",
      "weight",
      "thread",
      "state",
      "search",
      "order",
      "file",
      "by",
      "label",
      "gc",
      "tree",
      "mine",
      "inverted",
      "waiting",
    ])
      if (parts.has(name)) this[name] = parts.get(name)
    const range = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(parts.get("range") || "")
    if (range && Number(range[2]) > Number(range[1])) [this.from, this.to] = [range[1] * 1000, range[2] * 1000]
    const node = /^n(\d+)$/.exec(parts.get("zoom") || "")
    const part = /^([\d.e-]+)~([\d.e-]+)$/.exec(parts.get("zoom") || "")
    if (node) this.zoom = { node: Number(node[1]) }
    else if (part && Number(part[2]) > Number(part[1])) this.zoom = { from: Number(part[1]), to: Number(part[2]) }
    for (const name of ["method", "focus"])
      if (/^\d+$/.test(parts.get(name) || "")) this[name] = Number(parts.get(name))
    if (/^[1-9]\d*$/.test(parts.get("request") || "")) this.request = Number(parts.get("request"))
    this.blackbox = [...new Set(parts.getAll("blackbox").filter(Boolean))]
    this.sizes = Object.fromEntries(
      [...(parts.get("sizes") || "").matchAll(/([a-z]+):(\d+(?:\.\d)?)/g)].map(([, name, size]) => [
        name,
        Number(size),
      ]),
    )
    if (this.mine !== "only") this.mine = ""
    if (this.waiting !== "all") this.waiting = ""
    if (this.inverted !== "1") this.inverted = ""
    if (!/^(|apart|caller)$/.test(this.gc)) this.gc = ""
    if (!/^(all|\d+)$/.test(this.state)) this.state = "all"
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
    for (const name of [
      "view",
      "weight",
      "thread",
      "state",
      "search",
      "order",
      "file",
      "by",
      "label",
      "gc",
      "tree",
      "mine",
      "inverted",
      "waiting",
    ])
      if (this[name] !== DEFAULTS[name]) parts.set(name, this[name])
    if (this.from !== null) parts.set("range", `${round(this.from)}-${round(this.to)}`)
    if (this.zoom?.node) parts.set("zoom", `n${this.zoom.node}`)
    else if (this.zoom) parts.set("zoom", `${this.zoom.from.toPrecision(9)}~${this.zoom.to.toPrecision(9)}`)
    for (const name of ["method", "focus", "request"]) if (this[name] !== null) parts.set(name, String(this[name]))
    for (const name of this.blackbox) parts.append("blackbox", name)
    const sizes = Object.entries(this.sizes).map(([name, size]) => `${name}:${size}`)
    if (sizes.length) parts.set("sizes", sizes.join(","))
    const text = parts.toString()
    this.written = text ? `#${text}` : ""
    history.replaceState(null, "", this.written || location.pathname + location.search)
  }
}

// In µs.
const round = (ns) => Math.round(ns) / 1000
