// System calls as data: a tree of paths, and one of Ruby stacks.

import { safe } from "./format.js"
import { links, merge, subtrees } from "./tree.js"

const SUMS = ["calls", "ns", "explained"]

// A tree with sums: `first` and `next` link children; calls, ns, explained (and paths): of a node and all below it.
function summed(parents, owns) {
  return {
    parents,
    ...links(parents),
    ...Object.fromEntries(Object.entries(owns).map(([key, own]) => [key, subtrees(parents, own)])),
  }
}

export function pathTree(data, { up, kind, name, ...columns }) {
  const ups = data.column(up)
  const shifted = (values) => {
    const own = new Float64Array(ups.length + 1)
    own.set(values, 1)
    return own
  }
  const parents = new Int32Array(ups.length + 1)
  for (let node = 1; node < parents.length; node++) parents[node] = node - ups[node - 1]
  const kinds = shifted(data.column(kind))
  const names = ["", ...name.map(safe)]
  const tree = summed(
    parents,
    Object.fromEntries([...SUMS, "paths"].map((key) => [key, shifted(data.column(columns[key]))])),
  )
  const whole = (node) => (node ? whole(parents[node]) + names[node] : "")
  return {
    ...tree,
    label: (node) => ["", "(others)", "(no path)"][kinds[node]] || names[node],
    special: (node) => kinds[node] > 0,
    tip: (node) => whole(node),
  }
}

// Stacks merged by method and line: the line is what made the call.
export function stackTree(data, recording, { node, ...columns }) {
  const keys = new Int32Array(recording.size)
  const known = new Map([["0:0", 0]])
  const frames = [[0, 0]]
  for (let at = 1; at < recording.size; at++) {
    const frame = [recording.methodOf[at], recording.lineOf[at]]
    const key = frame.join(":")
    if (!known.has(key)) known.set(key, frames.push(frame) - 1)
    keys[at] = known.get(key)
  }
  const tree = merge(recording.parents, keys)
  const nodes = data.column(node)
  const own = (values) => {
    const sums = new Float64Array(tree.size)
    nodes.forEach((at, row) => (sums[tree.of[at]] += values[row]))
    return sums
  }
  const owns = Object.fromEntries(SUMS.map((key) => [key, own(data.column(columns[key]))]))
  // Calls without a stack stand at the root: they get a row of their own.
  const size = tree.size
  const parents = Int32Array.from({ length: size + 1 }, (_, at) => (at < size ? tree.parents[at] : 0))
  for (const key of SUMS) {
    owns[key] = Float64Array.from([...owns[key], owns[key][0]])
    owns[key][0] = 0
  }
  const method = (at) => (at === size ? null : recording.methods[frames[tree.keys[at]][0]])
  return {
    ...summed(parents, owns),
    method,
    line: (at) => (at === size ? 0 : frames[tree.keys[at]][1]),
    label: (at) => method(at)?.name ?? "(no Ruby code)",
    special: (at) => at === size,
    tip: (at) => method(at)?.name ?? "",
  }
}
