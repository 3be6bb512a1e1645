// A recording as the page's data has it: methods, one tree of stacks, threads with their samples in time order,
// requests, queries and the garbage collector's runs.

import { safe } from "./format.js"
import { kindOf } from "./kinds.js"

// The two states that are no wait.
export const RUNNING = 0
export const UNTOLD = 3

export class RecordingData {
  constructor(data) {
    const object = data.object
    this.data = data
    this.about = object
    this.base = object.base
    this.strings = object.strings.map(safe)
    this.readMethods(object.methods)
    this.readNodes(object.nodes)
    // One that Pitwall does not know is named by its number. The first are at their numbers.
    this.states = object.states.map(([, title]) => title)
    this.stands = object.states.map(([, , stands]) => stands)
    this.stateAt = new Uint8Array(256)
    object.states.forEach(([number], at) => {
      this.stateAt[number] = at
    })
    this.labelSets = [{}] // of all processes: name → value
    this.works = []
    this.counters = object.counters?.columns ?? [] // of the VM's caches
    this.counted = [] // sums of counters by label set
    this.marks = []
    this.queries = this.readQueries(object.queries)
    this.asked = [] // sums of queries by label set
    this.processes = new Set(object.processes.map((process) => process.number)).size
    this.readFolds(object.processes)
    const parts = object.processes.flatMap((process, at) => this.readProcess(process, at))
    this.readLanes(parts)
    this.threads = parts.filter((thread) => !thread.unseen)
    // As pitwall report --view requests numbers them.
    this.marks.sort((a, b) => b.ns - a.ns || a.start - b.start || a.thread.id - b.thread.id)
    this.marks.forEach((mark, at) => {
      mark.number = at + 1
    })
    this.threads.sort((a, b) => b.busy - a.busy || b.wall - a.wall)
    this.span = Math.max(1, object.elapsed_ns || 0)
    for (const process of object.processes) this.span = Math.max(this.span, process.start_ns + process.elapsed_ns)
    for (const thread of this.threads) if (thread.rows) this.span = Math.max(this.span, thread.end)
    this.sampled = this.threads.some((thread) => thread.rows)
    this.traced = this.threads.some((thread) => thread.calls)
    this.hasStates = this.threads.some(
      (thread) => thread.rows && thread.states.some((ns, state) => state !== RUNNING && state !== UNTOLD && ns > 0),
    )
    this.hasIdle = this.threads.some((thread) => thread.idle) && this.threads.some((thread) => !thread.idle)
    this.readRuns(object.gc)
  }

  column(place, Kind) {
    return this.data.column(place, Kind)
  }
  texts(place) {
    return Array.from(this.column(place, Int32Array), (id) => this.strings[id])
  }

  readMethods(columns) {
    const names = this.texts(columns.name)
    const paths = this.texts(columns.path)
    const lines = this.column(columns.line)
    const kinds = this.column(columns.kind, Int32Array)
    const origins = this.column(columns.origin, Int32Array)
    const gems = this.texts(columns.gem)
    this.methods = names.map((name, at) => ({
      id: at,
      name,
      path: paths[at],
      line: lines[at],
      kind: kindOf(kinds[at], origins[at]),
      origin: origins[at],
      gem: gems[at],
    }))
  }

  // Queries to databases by line, digest and kind.
  readQueries(columns) {
    if (!columns) return []
    const [paths, names, digests] = [columns.path, columns.method, columns.digest].map((column) => this.texts(column))
    const lines = this.column(columns.line)
    return Array.from(this.column(columns.kind, Int32Array), (kind, at) => ({
      id: at,
      path: paths[at],
      line: lines[at],
      name: names[at],
      digest: digests[at],
      kind,
    }))
  }

  readNodes(columns) {
    const up = this.column(columns.up)
    const known = up.length + 1
    // Three more nodes at the root: for collection taken out of the code that it interrupted, for code that no frame
    // that is shown called, and for native code that no other frame called.
    this.size = known + 3
    this.parents = new Int32Array(this.size)
    for (let node = 1; node < known; node++) this.parents[node] = node - up[node - 1]
    this.methodOf = new Int32Array(this.size)
    this.methodOf.set(this.column(columns.method, Int32Array), 1)
    this.lineOf = new Int32Array(this.size)
    this.lineOf.set(this.column(columns.line, Int32Array), 1)
    this.apart = known
    this.other = known + 1
    this.alone = known + 2
    const made = { path: "", line: 0, origin: 4, gem: "" }
    ;[
      ["(garbage collection)", "gc"],
      ["(other code)", "other"],
      ["(native code)", "other"],
    ].forEach(([name, kind], at) => {
      this.methodOf[known + at] = this.methods.push({ ...made, id: this.methods.length, name, kind }) - 1
    })
    this.called = this.parents
    this.recorded = this.methodOf
    this.collecting = []
    for (let node = 1; node < known; node++)
      if (this.methods[this.methodOf[node]].kind === "gc") this.collecting.push(node)
  }

  // By node whether its process has other frames beside native ones, which may then be folded; null where none has any.
  readFolds(processes) {
    this.processOf = new Int32Array(this.size)
    this.folds = null
    processes.forEach(({ shift, folds }, at) => {
      const last = at + 1 < processes.length ? processes[at + 1].shift : this.apart - 1
      this.processOf.fill(at, shift + 1, last + 1)
      if (folds) (this.folds ||= new Uint8Array(this.size)).fill(1, shift + 1, last + 1)
    })
  }

  // What one file tells of a process.
  readProcess(process, at) {
    const threads = new Map()
    // Rows are in whole units, and so is where they begin: as Analyse::Requests cuts a request out of them.
    const whole = (ns) => process.start_ns + Math.floor(ns / process.unit_ns) * process.unit_ns
    for (const thread of process.threads) {
      const name = this.strings[thread.name] || `thread ${thread.id}`
      threads.set(thread.id, {
        place: `${at}.${thread.id}`,
        id: thread.id,
        number: thread.lane,
        process: process.number,
        pid: process.pid,
        name,
        title: this.processes > 1 ? `${process.pid} ${name}` : name,
        own: thread.own,
        idle: thread.idle,
        unseen: thread.unseen,
        origin: process.start_ns,
        unit: process.unit_ns,
        start: whole(thread.start_ns),
        wall: 0,
        cpu: 0,
        captures: 0,
        busy: 0,
        states: this.noStates(),
      })
    }
    const labels = this.readLabels(process, threads, whole)
    if (process.rows) this.readRows(process, threads, labels)
    if (process.calls) this.readCalls(process, threads)
    return [...threads.values()]
  }

  // Threads as they are chosen, drawn and listed: files that follow each other tell of one in parts
  // (Analyse::Threads.lanes). Pitwall's own count as others do, but have no lane.
  readLanes(threads) {
    const groups = new Map()
    for (const thread of threads) groups.get(thread.number)?.push(thread) ?? groups.set(thread.number, [thread])
    this.lanes = []
    this.laneAt = new Map()
    for (const group of groups.values()) {
      group.sort((a, b) => a.start - b.start)
      const parts = group.filter((part) => !part.unseen)
      const { place: key, pid, name, title, own } = parts[0] ?? group[0]
      const sum = (what) => parts.reduce((all, part) => all + (part[what] || 0), 0)
      const lane = { key, pid, name, title, parts, idle: parts.every((part) => part.idle) }
      for (const what of ["rows", "wall", "cpu", "captures", "busy"]) lane[what] = sum(what)
      lane.states = this.states.map((_, state) => parts.reduce((all, part) => all + part.states[state], 0))
      for (const part of group) Object.assign(part, { lane, key, name, title })
      if (own || !parts.length) continue
      this.lanes.push(lane)
      for (const part of group) this.laneAt.set(part.place, lane)
    }
    this.lanes.sort((a, b) => b.busy - a.busy || b.wall - a.wall)
  }

  // Sums by state.
  noStates() {
    return this.states.map(() => 0)
  }

  // Rows of a process come as they were written, threads in turns; each thread gets its own, in the same order.
  readRows(process, threads, labels) {
    const { shift, unit_ns: unit, rows } = process
    const nodes = this.column(rows.nodes, Int32Array)
    const count = nodes.length
    const ids = this.data.runs(rows.threads, count, Int32Array)
    const states = this.data.runs(rows.states, count, Uint8Array)
    const captures = this.data.runs(rows.captures, count, Int32Array)
    const sets = labels && this.data.runs(rows.labels, count, Int32Array)
    const wall = this.column(rows.wall)
    const cpu = this.column(rows.cpu)
    let last = null
    let lastId = -1
    for (let row = 0; row < count; row++) {
      if (ids[row] !== lastId) last = threads.get((lastId = ids[row]))
      last.count = (last.count || 0) + 1
    }
    for (const thread of threads.values()) {
      const size = thread.count || 0
      thread.rows = size
      thread.node = new Int32Array(size)
      thread.ends = new Float64Array(size)
      thread.cpus = new Float64Array(size)
      thread.state = new Uint8Array(size)
      thread.capture = new Int32Array(size)
      thread.label = labels && new Int32Array(size)
      thread.count = 0
      thread.end = thread.start
    }
    lastId = -1
    for (let row = 0; row < count; row++) {
      if (ids[row] !== lastId) last = threads.get((lastId = ids[row]))
      const at = last.count++
      const state = this.stateAt[states[row]]
      const ns = wall[row] * unit
      last.node[at] = nodes[row] + shift
      last.end += ns
      last.ends[at] = last.end
      last.cpus[at] = cpu[row] * unit
      last.state[at] = state
      last.capture[at] = captures[row]
      if (labels) last.label[at] = labels[sets[row]]
      last.states[state] += ns
      last.wall += ns
      last.cpu += cpu[row] * unit
      last.captures += captures[row]
    }
    // Node 0 of a process is a stack that could not be read: node 1 of the page.
    for (const thread of threads.values()) {
      thread.busy = thread.cpu + thread.states[RUNNING] / 1000
      if (shift !== 1) for (let at = 0; at < thread.rows; at++) if (thread.node[at] === shift) thread.node[at] = 1
    }
  }

  // Sets of labels get one number over all processes; answers those by the process's own.
  readLabels(process, threads, whole) {
    if (!process.labels) return null
    const numbers = process.labels.sets.map((set, at) =>
      at === 0
        ? 0
        : this.labelSets.push(
            Object.fromEntries(set.map(([name, value]) => [this.strings[name], this.strings[value]])),
          ) - 1,
    )
    for (const [set, count, total] of process.labels.works)
      this.works.push({ labels: this.labelSets[numbers[set]], count, total })
    const marks = Object.fromEntries(
      Object.entries(process.labels.marks).map(([name, place]) => [name, this.column(place)]),
    )
    marks.end_ns.forEach((end, at) =>
      this.marks.push({
        thread: threads.get(marks.thread_id[at]),
        labels: this.labelSets[numbers[marks.label_id[at]]],
        start: process.start_ns + end - marks.duration_ns[at],
        end: process.start_ns + end,
        from: whole(end - marks.duration_ns[at]),
        to: whole(end),
        ns: marks.duration_ns[at],
        queries: [],
      }),
    )
    this.readCounters(process.labels, numbers, this.marks.slice(this.marks.length - marks.end_ns.length))
    this.readAsked(process.labels, numbers, this.marks.slice(this.marks.length - marks.end_ns.length))
    return numbers
  }

  // Counters of the VM's caches by set of labels, and in each of the marks: null where one is not known.
  readCounters({ counters }, numbers, marks) {
    if (!counters) return
    const increases = counters.marks.map((place) => this.column(place))
    marks.forEach((mark, at) => {
      mark.counters = increases.map((column) => (column[at] ? column[at] - 1 : null))
    })
    const { set, column, works, increase } = Object.fromEntries(
      Object.entries(counters.sums).map(([name, place]) => [name, this.column(place)]),
    )
    set.forEach((number, at) =>
      this.counted.push({
        labels: this.labelSets[numbers[number]],
        column: column[at],
        works: works[at],
        increase: increase[at],
      }),
    )
  }

  // What was asked under each set of labels, and in each of the marks.
  readAsked({ queries }, numbers, marks) {
    if (!queries) return
    const columns = (table) =>
      Object.fromEntries(Object.entries(table).map(([name, place]) => [name, this.column(place)]))
    const sums = columns(queries.sums)
    sums.set.forEach((set, at) => {
      this.asked.push({
        set: numbers[set],
        query: this.queries[sums.query[at]],
        works: sums.works[at],
        count: sums.count[at],
        ns: sums.ns[at],
        most: sums.most[at],
      })
    })
    const parts = columns(queries.parts)
    parts.mark.forEach((mark, at) => {
      marks[mark].queries.push({
        query: this.queries[parts.query[at]],
        works: 1,
        count: parts.count[at],
        ns: parts.ns[at],
        most: parts.count[at],
      })
    })
  }

  readCalls(process, threads) {
    const { calls, shift } = process
    const ids = this.column(calls.threads, Int32Array)
    const nodes = this.column(calls.nodes, Int32Array)
    const values = Object.fromEntries(
      ["calls", "wall", "wait", "cpu", "objects", "bytes"].map((name) => [name, this.column(calls[name])]),
    )
    for (const thread of threads.values()) thread.calls = { has: calls.has, node: [], row: [], values }
    for (let row = 0; row < ids.length; row++) {
      const thread = threads.get(ids[row])
      thread.calls.node.push(nodes[row] === 0 ? 1 : nodes[row] + shift)
      thread.calls.row.push(row)
      if (!thread.rows) {
        thread.wall += values.wall[row]
        thread.cpu += values.cpu[row]
      }
    }
    for (const thread of threads.values()) thread.busy ||= thread.wall
  }

  readRuns(gc) {
    this.runs = []
    if (!gc) return
    const columns = Object.fromEntries(
      Object.entries(gc.runs).map(([name, place]) => [
        name,
        name === "reason" ? this.texts(place) : this.column(place),
      ]),
    )
    const byPlace = new Map(this.threads.map((thread) => [thread.place, thread]))
    this.runs = Array.from(columns.at_ns, (at, run) => ({
      at,
      end: at + columns.span_ns[run],
      marking: columns.marking_ns[run],
      sweeping: columns.sweeping_ns[run],
      total: columns.marking_ns[run] + columns.sweeping_ns[run],
      pauses: columns.pauses[run],
      longest: columns.longest_ns[run],
      longestAt: at + columns.longest_at_ns[run],
      runs: columns.runs[run],
      major: columns.majors[run] > 0,
      majors: columns.majors[run],
      allocated: columns.allocated[run],
      living: columns.living[run],
      reason: columns.reason[run],
      thread: byPlace.get(`${columns.process[run]}.${columns.thread[run]}`),
    }))
  }
}
