// What a range, a request or a blackbox leaves of a thread's rows, and parts of a thread as one, against the slow and obvious way, on
// random threads, some of whose rows take no time.
//
//   node rows.mjs ROUNDS
//
// Prints "same", or the first difference.

import { Names } from "../../page/src/filters.js"
import { Recording } from "../../page/src/recording.js"

const NODES = 5
const below = (limit) => Math.floor(Math.random() * limit)

function randomThread() {
  const rows = 1 + below(12)
  const unit = 1 + below(3)
  const thread = { key: "0.1", rows, unit, start: below(20) * unit, node: [], ends: [], cpus: [], capture: [], state: [] }
  thread.end = thread.start
  for (let row = 0; row < rows; row++) {
    thread.end += below(4) * 5 * unit
    thread.ends.push(thread.end)
    thread.node.push(1 + below(NODES - 1))
    thread.cpus.push(below(9) * unit)
    thread.capture.push(below(3))
    thread.state.push(below(2))
  }
  return thread
}

// A row of no time counts where its moment is the range's start or lies before its end. Rows are cut in whole units: of
// n units the first i have what lies before i/n, rounded down.
function slow(thread, name, { from, to, state }) {
  const sums = new Array(NODES).fill(0)
  for (let row = 0; row < thread.rows; row++) {
    const [start, end] = [row ? thread.ends[row - 1] : thread.start, thread.ends[row]]
    if (state !== "all" && thread.state[row] !== Number(state)) continue
    const { unit } = thread
    const [first, last] = [from ?? -Infinity, to ?? Infinity].map((moment) => Math.floor(moment / unit) * unit)
    if (end === start) {
      if (start < first || start >= last) continue
    } else if (Math.min(end, last) <= Math.max(start, first)) continue
    const column = { cpu: thread.cpus, captures: thread.capture }[name]
    const size = name === "cpu" ? unit : 1
    const before = (moment) => Math.floor(((column[row] / size) * (moment - start)) / (end - start)) * size
    const inside = [Math.max(start, first), Math.min(end, last)]
    if (!column) sums[thread.node[row]] += inside[1] - inside[0]
    else sums[thread.node[row]] += end === start ? column[row] : before(inside[1]) - before(inside[0])
  }
  return sums
}

for (let round = 0; round < Number(process.argv[2]); round++) {
  const thread = randomThread()
  const from = below(160)
  const range = below(5) ? { from, to: from + 1 + below(120) } : { from: null, to: null }
  const filter = { thread: "all", state: ["all", "all", "0", "1"][below(4)], ...range }
  const recording = Object.assign(Object.create(Recording.prototype), { size: NODES, threads: [thread], sampled: true, about: {}, cache: new Map(), labelSets: [{}], collecting: [] })
  for (const name of ["wall", "cpu", "captures"]) {
    const [found, expected] = [Array.from(recording.selfs(name, filter)), slow(thread, name, filter)]
    if (found.some((value, node) => Math.abs(value - expected[node]) > 1e-9)) {
      console.log(JSON.stringify({ name, filter, thread, found, expected }))
      process.exit(1)
    }
  }
}
// Of a request: rows under its labels, or not known yet, cut at its beginning and left out where they end after it.
function ofRequest(thread, mark, sets) {
  const sums = new Array(NODES).fill(0)
  for (let row = 0; row < thread.rows; row++) {
    const [start, end] = [row ? thread.ends[row - 1] : thread.start, thread.ends[row]]
    if (end > mark.end || end <= mark.start || ![mark.labels.r, "(unknown)"].includes(sets[thread.label[row]].r)) continue
    sums[thread.node[row]] += end - Math.max(start, mark.start)
  }
  return sums
}

// Of a blackbox: weight goes to the outermost node on the way up whose method is folded.
function ofBlackbox(selfs, parents, folded) {
  const sums = new Array(NODES).fill(0)
  selfs.forEach((weight, node) => {
    let home = node
    for (let at = node; at; at = parents[at]) if (folded(at)) home = at
    sums[home] += weight
  })
  return sums
}

for (let round = 0; round < Number(process.argv[2]); round++) {
  const thread = randomThread()
  const sets = [{}, { r: "a" }, { r: "b" }, { r: "(unknown)" }]
  thread.label = Array.from({ length: thread.rows }, () => below(4))
  const start = below(60)
  const mark = { thread, labels: sets[1 + below(2)], start, end: start + 1 + below(60) }
  const parents = [0, ...Array.from({ length: NODES - 1 }, (_, at) => below(at + 1))]
  const methods = ["", "A#x", "B#y", "b.rb"].map((name, id) => ({ id, name, gem: "", path: id === 3 ? "lib/b.rb" : "", kind: "app" }))
  const methodOf = parents.map((_, node) => (node ? 1 + below(3) : 0))
  const known = { size: NODES, parents, methods, methodOf, threads: [thread], sampled: true, about: {}, cache: new Map(), labelSets: sets, collecting: [], marks: [mark], names: new Names(methods.slice(1), {}) }
  const recording = Object.assign(Object.create(Recording.prototype), known)
  const request = { thread: thread.key, state: "all", from: mark.start, to: mark.end, request: 1 }
  const whole = { thread: "all", state: "all", from: null, to: null }
  const name = ["A#x", "y", "lib/b"][below(3)]
  const number = { "A#x": 1, y: 2, "lib/b": 3 }[name]
  const folded = methodOf.includes(number) ? (node) => methodOf[node] === number : () => false
  const plain = Array.from(recording.selfs("wall", whole))
  for (const [found, expected] of [
    [recording.selfs("wall", request), ofRequest(thread, mark, sets)],
    [recording.selfs("wall", { ...whole, blackbox: [name] }), ofBlackbox(plain, parents, folded)],
  ])
    if (Array.from(found).some((value, node) => Math.abs(value - expected[node]) > 1e-9)) {
      console.log(JSON.stringify({ mark, name, thread, parents, methodOf, found: Array.from(found), expected }))
      process.exit(1)
    }
}

// Of a lane's parts as one thread: at every moment the row of the part that it lies in; between them none.
for (let round = 0; round < Number(process.argv[2]); round++) {
  const parts = []
  for (let count = 2 + below(3); count > 0; count--) {
    const part = randomThread()
    const by = (parts.at(-1)?.end ?? 0) + below(3) * 5 - part.start
    parts.push(Object.assign(part, { start: part.start + by, end: part.end + by, ends: part.ends.map((end) => end + by) }))
  }
  const recording = Object.create(Recording.prototype)
  const joined = recording.joined({ title: "", parts })
  const nodeAt = (thread, ns) => thread?.node[recording.rowAt(thread, ns)] ?? 0
  for (let ns = 0; ns < joined.end; ns++) {
    const [found, expected] = [nodeAt(joined, ns), nodeAt(parts.find((part) => ns >= part.start && ns < part.end), ns)]
    if (found === expected) continue
    console.log(JSON.stringify({ ns, parts, found, expected }))
    process.exit(1)
  }
}
console.log("same")
