// A recording, as views ask it: methods, one tree of stacks, threads with their samples in time order, and weights of
// whatever part of it is looked at.

import { keeps, leaveOut } from "./filters.js"
import { percent } from "./format.js"
import { addCalls, addRows, eachRow, firstAfter, join } from "./rows.js"
import { ShownStacks } from "./shown_stacks.js"
import { Inverted, outermost, subtrees } from "./tree.js"

// As in Analyse::WaitingTime: the share from which waiting stands apart, and what must have run for something to be
// left to show.
const GVL = "the GVL"
const WAITING_APART = 0.2
const WAITING_LEAST_NS = 20e6
// What Pitwall says of a request before it is known where it leads.
const UNKNOWN = "(unknown)"

const SITE_SUMS = ["count", "old", "freed", "total_age", "slot_bytes", "bytes", "retained", "retained_bytes", "gc_ns"]

// What can be weighed: title, unit, and what it is told by.
const WEIGHTS = {
  wall: { title: "wall time", short: "wall", unit: "ns" },
  cpu: { title: "CPU time", short: "CPU", unit: "ns" },
  captures: { title: "samples", short: "samples", unit: "count" },
  wait: { title: "wait", short: "wait", unit: "ns" },
  calls: { title: "calls", short: "calls", unit: "count" },
  objects: { title: "objects", short: "objects", unit: "count" },
  bytes: { title: "bytes", short: "bytes", unit: "bytes" },
  gc: { title: "GC charged", short: "GC", unit: "ns" },
}

export class Recording extends ShownStacks {
  constructor(data) {
    super(data)
    this.weights = this.known()
    this.labelNames = this.namesOfLabels()
    this.cache = new Map()
    this.look({})
  }

  // As eachRow, of what is in focus.
  eachRow(thread, filter, labelled, work) {
    const { inFocus } = this
    const { node } = thread
    eachRow(thread, filter, labelled, inFocus ? (row, ...sums) => inFocus[node[row]] && work(row, ...sums) : work)
  }

  // What filters of samples leave, and of how much.
  part(name, filter) {
    const whole = this.remember(keyOf("p", name, { ...filter, from: null, to: null }), () =>
      this.sums(name, { ...filter, from: null, to: null }).reduce((sum, own) => sum + own, 0),
    )
    return [this.weighed(name, filter).total, whole]
  }

  // "running 80%, blocked 20%"
  statesInWords({ states, wall }) {
    return this.states
      .map((title, state) => (states[state] > 0 ? `${title} ${percent(states[state], wall)}` : null))
      .filter(Boolean)
      .join(", ")
  }

  // Names of labels, those of the most time first.
  namesOfLabels() {
    const times = new Map()
    for (const { labels, wall } of this.byLabels({ thread: "all", state: "all", from: null, to: null }))
      for (const name of Object.keys(labels)) add(times, name, wall)
    for (const { labels } of this.works) for (const name of Object.keys(labels)) add(times, name, 0)
    return [...times].sort((a, b) => b[1] - a[1]).map(([name]) => name)
  }

  // What was spent under each set of labels, as Analyse::Labels has it: "busy" leaves out idle threads' time without
  // labels only.
  byLabels(filter) {
    if (this.labelSets.length < 2) return []
    const sums = this.labelSets.map((labels) => ({ labels, wall: 0, cpu: 0, captures: 0 }))
    const busy = filter.thread === "busy" && !filter.request ? new Set(this.selected(filter)) : null
    for (const thread of this.selected(busy ? { ...filter, thread: "all" } : filter)) {
      const without = !busy || busy.has(thread)
      this.eachRow(thread, filter, filter.request ? this.labelled(filter) : null, (row, wall, cpu, captures) => {
        if (!without && !thread.label?.[row]) return
        const sum = sums[thread.label ? thread.label[row] : 0]
        sum.wall += wall
        sum.cpu += cpu
        sum.captures += captures
      })
    }
    return sums
  }

  // By number of a set whether it has the label asked for ("name=value"), or those of the request; null where none is
  // asked for.
  labelled(filter) {
    if (filter.request) {
      const wanted = Object.entries(this.marks[filter.request - 1].labels)
      return this.labelSets.map((set) =>
        wanted.every(([name, value]) => Object.hasOwn(set, name) && [value, UNKNOWN].includes(set[name])),
      )
    }
    if (!filter.label) return null
    const cut = filter.label.indexOf("=")
    const [name, value] = [filter.label.slice(0, cut), filter.label.slice(cut + 1)]
    return this.labelSets.map((set) => Object.hasOwn(set, name) && set[name] === value)
  }

  // Objects by place, one row for each site.
  get sites() {
    if (this._sites) return this._sites
    const { sites } = this.about.objects
    const texts = ["path", "class", "type", "method"]
    const columns = Object.fromEntries(
      Object.entries(sites).map(([key, where]) => [key, texts.includes(key) ? this.texts(where) : this.column(where)]),
    )
    return (this._sites = Array.from(columns.count, (_, at) =>
      Object.fromEntries(Object.keys(columns).map((key) => [key, columns[key][at]])),
    ))
  }

  // Sites added up by some of their keys, those that a search finds.
  siteRows(keys, search = "") {
    const rows = new Map()
    for (const site of this.sites) {
      if (search && !`${site.path} ${site.class} ${site.method}`.toLowerCase().includes(search)) continue
      const key = keys.map((name) => site[name]).join("\0")
      const row = rows.get(key) || {
        ...Object.fromEntries([...keys, "special"].map((name) => [name, site[name]])),
        ...Object.fromEntries([...SITE_SUMS, "max_age"].map((name) => [name, 0])),
      }
      rows.set(key, row)
      for (const name of SITE_SUMS) row[name] += site[name]
      row.max_age = Math.max(row.max_age, site.max_age)
    }
    return [...rows.values()]
  }

  // What can be weighed here, in the order of the list.
  known() {
    const sites = this.about.objects
    const traced = this.threads.find((thread) => thread.calls)?.calls.has
    const found = []
    if (this.sampled) found.push("wall", "cpu", "captures")
    if (traced)
      found.push(
        ...["wall", "cpu", "wait", "calls", "objects", "bytes"].filter(
          (name) => !["cpu", "objects", "bytes"].includes(name) || traced.includes(name),
        ),
      )
    if (sites) found.push("objects", "bytes", "gc")
    return [...new Set(found)].map((name) => ({ name, ...WEIGHTS[name] }))
  }

  weight(name) {
    return this.weights.find((weight) => weight.name === name) || this.weights[0] || { name: "wall", ...WEIGHTS.wall }
  }

  // Whether a weight is told by thread (samples, calls), by time and state (samples), or neither (objects by place).
  timed(name) {
    return this.sampled && ["wall", "cpu", "captures"].includes(name)
  }
  threaded(name) {
    return this.timed(name) || (this.traced && !this.bySite(name))
  }
  bySite(name) {
    return Boolean(this.about.objects) && ["objects", "bytes", "gc"].includes(name)
  }

  // The lane of a key, whichever of its parts the key is of.
  lane(key) {
    return this.laneAt.get(key)
  }

  // Lanes that a filter lets through: "busy", "all", or one's key.
  selectedLanes({ thread }) {
    if (thread === "all") return this.lanes
    if (thread === "busy") return this.hasIdle ? this.lanes.filter((lane) => !lane.idle) : this.lanes
    return this.lanes.filter((lane) => lane.key === thread)
  }

  // A lane as one thread, for what goes along its time.
  joined(lane) {
    return lane.parts.length === 1 ? lane.parts[0] : (lane.joined ||= join(lane))
  }

  // Parts of threads that it lets through; of a request the one that it ran in.
  selected(filter) {
    if (filter.request) return [this.marks[filter.request - 1].thread].filter((thread) => !thread.unseen)
    if (filter.thread === "all") return this.threads
    if (filter.thread === "busy") return this.hasIdle ? this.threads.filter((thread) => !thread.idle) : this.threads
    return this.threads.filter((thread) => thread.key === filter.thread)
  }

  // Self weights by node. filter: {thread, state, from, to}; what a weight can't be told by is not heeded.
  selfs(name, filter) {
    return this.remember(keyOf("s", name, filter), () => {
      const sums = this.sums(name, filter)
      if (this.inside || this.inFocus)
        for (let node = 1; node < this.size; node++) if (this.leftOut(node)) sums[node] = 0
      if (this.homes) this.fold(sums, this.homes, name)
      if (filter.gc) this.moveCollection(sums, filter.gc)
      const boxes = this.boxes(filter.blackbox)
      if (boxes) this.fold(sums, boxes, name)
      return sums
    })
  }

  // The same before anything is left out.
  sums(name, filter) {
    const sums = new Float64Array(this.size)
    if (this.bySite(name)) this.addSites(sums, name)
    else if (this.timed(name))
      for (const thread of this.selected(filter)) addRows(sums, thread, name, filter, this.labelled(filter))
    else for (const thread of this.selected(filter)) addCalls(sums, thread, name)
    return sums
  }

  // Garbage collection apart, or charged to the code that was running; where none was, it stays.
  moveCollection(sums, where) {
    for (const node of this.collecting) {
      let home = where === "apart" ? this.apart : this.parents[node]
      while (home && home !== this.apart && this.methods[this.methodOf[home]].kind === "gc") home = this.parents[home]
      if (!home) continue
      sums[home] += sums[node]
      sums[node] = 0
    }
  }

  // By node the outermost one above it (or itself) whose method is folded, 0 for none; null where nothing is folded.
  boxes(names) {
    if (!names?.length) return null
    const key = names.join("\0")
    if (this.boxed?.key === key) return this.boxed.boxes
    const wanted = this.meant(names)
    const boxes = new Int32Array(this.size)
    for (let node = 1; node < this.size; node++)
      boxes[node] = boxes[this.parents[node]] || (wanted[this.methodOf[node]] ? node : 0)
    this.boxed = { key, boxes }
    return boxes
  }

  // Everything below a folded method becomes the method's own; how often others were called is not.
  fold(sums, boxes, name) {
    for (let node = 1; node < this.size; node++) {
      const home = boxes[node]
      if (!home || home === node || sums[node] === 0) continue
      if (name !== "calls" || this.methodOf[home] === this.methodOf[node]) sums[home] += sums[node]
      sums[node] = 0
    }
  }

  addSites(sums, name) {
    const places = this.about.objects.weights[name]
    const nodes = this.column(places.node, Int32Array)
    const values = this.column(places.value)
    for (let at = 0; at < nodes.length; at++) sums[nodes[at]] += values[at]
  }

  // The tree with equal methods merged, weighed.
  weighed(name, filter) {
    return this.remember(keyOf("w", name, filter), () => this.tree.weigh(this.selfs(name, filter)))
  }

  // The same from the ends of the stacks.
  inverted(name, filter) {
    return this.remember(keyOf("i", name, filter), () => new Inverted(this.weighed(name, filter)))
  }

  // How long threads waited, and in which methods, as Analyse::WaitingTime has it.
  waiting(filter) {
    return this.remember(keyOf("t", "", filter), () => {
      const nodes = new Float64Array(this.size)
      let all = 0
      let gvl = 0
      for (const thread of this.selected(filter))
        this.eachRow(thread, filter, this.labelled(filter), (row, inside) => {
          all += inside
          const stands = this.stands[thread.state[row]]
          if (stands === "gvl") gvl += inside
          else if (stands) {
            const node = thread.node[row]
            nodes[this.bareHomes ? this.bareHomes[node] : this.ofRuby(node)] += inside
          }
        })
      const sums = new Map(gvl > 0 ? [[GVL, gvl]] : [])
      nodes.forEach((ns, node) => ns > 0 && add(sums, this.methods[this.methodOf[node]].name, ns))
      const rows = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
      const total = rows.reduce((sum, [, ns]) => sum + ns, 0)
      return { total, all, rows, much: total >= all * WAITING_APART && all - total >= WAITING_LEAST_NS }
    })
  }

  // The nearest frame that is not native, or the node itself where there is none.
  ofRuby(leaf) {
    let node = leaf
    while (node && this.methods[this.recorded[node]].kind === "native") node = this.called[node]
    return node || leaf
  }

  // By method: self weight, and total with recursion counted once.
  byMethod(name, filter) {
    return this.remember(keyOf("m", name, filter), () => {
      const weighed = this.weighed(name, filter)
      return {
        self: sumBy(this.tree.keys, this.methods.length, weighed.selfs),
        total: sumBy(this.tree.keys, this.methods.length, weighed.totals, this.outer),
      }
    })
  }

  // Weight by method where other code's counts for the application's frame that called it, as --only-mine has it.
  ownByMethod(name, filter) {
    return this.remember(keyOf("o", name, filter), () => {
      const sums = this.selfs(name, filter).slice()
      if (!this.mine) this.fold(sums, this.own, name)
      return sumBy(this.methodOf, this.methods.length, sums)
    })
  }

  // By node the nearest caller that is the application's, itself included.
  get own() {
    const tree = { size: this.size, up: this.parents, methodOf: this.methodOf }
    return (this._own ||= leaveOut(tree, this.methods, this.other, keeps("app", this.names.gems)))
  }

  get outer() {
    return (this._outer ||= outermost(this.tree.parents, this.tree.keys, this.methods.length))
  }

  // By node the number of its line of source: C functions and garbage collection count for the Ruby that called them.
  get lines() {
    if (this._lines) return this._lines
    const known = new Map()
    const places = [{ path: "", line: 0 }]
    const keys = new Int32Array(this.size)
    const ruby = this.methods.map((method) => ["app", "gem", "ruby"].includes(method.kind) && method.path !== "")
    const paths = new Map()
    const pathOf = this.methods.map(
      (method) => paths.get(method.path) ?? (paths.set(method.path, paths.size), paths.size - 1),
    )
    for (let node = 1; node < this.size; node++) {
      const method = this.methodOf[node]
      if (!ruby[method] || this.lineOf[node] === 0) {
        keys[node] = keys[this.parents[node]]
        continue
      }
      const place = pathOf[method] * 2 ** 28 + this.lineOf[node]
      let found = known.get(place)
      if (found === undefined) {
        known.set(place, (found = places.length))
        places.push({ path: this.methods[method].path, line: this.lineOf[node] })
      }
      keys[node] = found
    }
    return (this._lines = { keys, places, outer: outermost(this.parents, keys, places.length) })
  }

  // Self and total by line, as `lines` numbers them.
  byLine(name, filter) {
    return this.remember(keyOf("l", name, filter), () => {
      const selfs = this.selfs(name, filter)
      const { keys, places, outer } = this.lines
      return {
        self: sumBy(keys, places.length, selfs),
        total: sumBy(keys, places.length, subtrees(this.parents, selfs), outer),
      }
    })
  }

  // The same as Analyse::Neighbours: a caller has the outermost calls, a callee what is below the innermost.
  neighbours(method, name, filter) {
    const { parents, keys } = this.tree
    const { selfs, totals } = this.weighed(name, filter)
    const callers = new Map()
    const callees = new Map()
    const below = new Int32Array(parents.length) // 0: not below it; -1: it; else the method it called, + 1
    const inside = new Uint8Array(parents.length)
    for (let node = 1; node < parents.length; node++) {
      const parent = parents[node]
      if (keys[node] === method) {
        below[node] = -1
        if (!inside[parent]) add(callers, parent === 0 ? 0 : keys[parent], totals[node])
        inside[node] = 1
      } else {
        below[node] = below[parent] === -1 ? keys[node] + 1 : below[parent]
        inside[node] = inside[parent]
        if (below[node] > 0 && selfs[node] > 0) add(callees, below[node] - 1, selfs[node])
      }
    }
    return { callers, callees }
  }

  // The row of a thread at a moment, or -1.
  rowAt(thread, ns) {
    if (!thread?.rows || ns < thread.start || ns > thread.end) return -1
    return Math.min(firstAfter(thread.ends, ns), thread.rows - 1)
  }

  // The innermost code written in Ruby (and not Ruby's own) above a node: {method, line} or null.
  code(node) {
    for (; node; node = this.parents[node]) {
      const method = this.methods[this.methodOf[node]]
      if (
        ["app", "gem", "ruby"].includes(method.kind) &&
        this.lineOf[node] > 0 &&
        method.path &&
        !method.path.startsWith("<internal:")
      )
        return { method, line: this.lineOf[node] }
    }
    return null
  }

  // A few of the latest results: a brush asks for many.
  remember(key, work) {
    if (this.cache.has(key)) return this.cache.get(key)
    if (this.cache.size > 24) this.cache.delete(this.cache.keys().next().value)
    const result = work()
    this.cache.set(key, result)
    return result
  }
}

export function sumBy(keys, count, weights, only = null) {
  const sums = new Float64Array(count)
  for (let node = 1; node < keys.length; node++) if (!only || only[node]) sums[keys[node]] += weights[node]
  return sums
}

const add = (map, key, value) => map.set(key, (map.get(key) || 0) + value)

const keyOf = (what, name, filter) =>
  [
    what,
    name,
    filter.thread,
    filter.state,
    filter.label,
    filter.request,
    filter.gc,
    filter.blackbox?.join("\0"),
    filter.from,
    filter.to,
  ].join("|")
