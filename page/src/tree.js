// Call trees as parallel arrays. Node 0 is the root, and every node's parent has a lower number: sums over subtrees are
// one pass from the end, what ancestors decide one pass from the start.

// children as linked lists: the first child of each node, and the next child of the same parent (0: none), in the order
// of numbers.
export function links(parents) {
  const first = new Int32Array(parents.length)
  const next = new Int32Array(parents.length)
  for (let node = parents.length - 1; node > 0; node--) {
    next[node] = first[parents[node]]
    first[parents[node]] = node
  }
  return { first, next }
}

export function subtrees(parents, selfs) {
  const sums = Float64Array.from(selfs)
  for (let node = sums.length - 1; node > 0; node--) sums[parents[node]] += sums[node]
  return sums
}

// By node: 1 where no ancestor has the same key, so that recursion can be counted once.
export function outermost(parents, keys, count) {
  const { first, next } = links(parents)
  const open = new Int32Array(count)
  const found = new Uint8Array(parents.length)
  let node = first[0]
  while (node) {
    if (open[keys[node]]++ === 0) found[node] = 1
    if (first[node]) {
      node = first[node]
      continue
    }
    open[keys[node]]--
    while (node && !next[node]) {
      node = parents[node]
      if (node) open[keys[node]]--
    }
    node = node && next[node]
  }
  return found
}

// The tree with equal keys under one parent made one. `of` says which node of it each node became.
export function merge(parents, keys) {
  const size = parents.length
  const of = new Int32Array(size)
  const mergedParents = new Int32Array(size)
  const mergedKeys = new Int32Array(size)
  const depths = new Int32Array(size)
  let bits = 4
  while (1 << bits < size * 2) bits++
  const mask = (1 << bits) - 1
  const slots = new Int32Array(1 << bits) // merged node, 0: free
  let count = 1
  for (let node = 1; node < size; node++) {
    const parent = of[parents[node]]
    const key = keys[node]
    let slot = Math.imul(Math.imul(parent, 0x9e3779b1) ^ Math.imul(key, 0x85ebca6b), 0x9e3779b1) >>> (32 - bits)
    let found
    while ((found = slots[slot]) && (mergedParents[found] !== parent || mergedKeys[found] !== key))
      slot = (slot + 1) & mask
    if (!found) {
      found = slots[slot] = count++
      mergedParents[found] = parent
      mergedKeys[found] = key
      depths[found] = depths[parent] + 1
    }
    of[node] = found
  }
  return new Tree(mergedParents.slice(0, count), mergedKeys.slice(0, count), depths.slice(0, count), of)
}

export class Tree {
  constructor(parents, keys, depths, of = null) {
    Object.assign(this, { parents, keys, depths, of })
    Object.assign(this, links(parents))
    let deepest = 0
    for (const depth of depths) if (depth > deepest) deepest = depth
    this.deepest = deepest
  }

  get size() {
    return this.parents.length
  }

  // Weights for this tree: self weights of the unmerged nodes in, both sums out.
  weigh(nodeSelfs) {
    const selfs = new Float64Array(this.size)
    for (let node = 1; node < nodeSelfs.length; node++) selfs[this.of[node]] += nodeSelfs[node]
    return new Weighted(this, selfs)
  }

  // Nodes from the root down to one.
  path(node) {
    const path = []
    for (; node; node = this.parents[node]) path.push(node)
    return path.reverse()
  }
}

// A tree with one weight. Children come heaviest first, sorted when they are first asked for.
export class Weighted {
  constructor(tree, selfs, totals = subtrees(tree.parents, selfs)) {
    Object.assign(this, { tree, selfs, totals, sorted: new Map() })
  }

  get total() {
    return this.totals[0]
  }

  children(node) {
    let list = this.sorted.get(node)
    if (list) return list
    list = this.below(node).filter((child) => this.totals[child] > 0)
    if (list.length > 1) list.sort((a, b) => this.totals[b] - this.totals[a] || a - b)
    this.sorted.set(node, list)
    return list
  }

  below(node) {
    const { first, next } = this.tree
    const list = []
    for (let child = first[node]; child; child = next[child]) list.push(child)
    return list
  }

  // Where a node begins when siblings stand heaviest first.
  start(node) {
    let at = 0
    for (; node; node = this.tree.parents[node]) {
      for (const sibling of this.children(this.tree.parents[node])) {
        if (sibling === node) break
        at += this.totals[sibling]
      }
    }
    return at
  }
}

// The same stacks from their ends: the first level are the methods that have weight of their own, children are callers.
// Nodes are made when they are asked for, and keep their numbers whatever is weighed.
class InvertedTree {
  constructor(tree) {
    Object.assign(this, { tree, parents: [0], keys: [0], depths: [0], deepest: tree.deepest, made: [] })
    const all = Array.from({ length: tree.size - 1 }, (_, at) => at + 1)
    this.stacks = [{ leaves: all, callers: all }] // by node: where its stacks end, and the node that is next in each
  }

  get size() {
    return this.parents.length
  }

  children(node) {
    if (this.made[node]) return this.made[node]
    const { parents, keys } = this.tree
    const { leaves, callers } = this.stacks[node]
    const known = new Map()
    callers.forEach((at, stack) => {
      if (!at) return
      if (!known.has(keys[at])) {
        known.set(keys[at], this.parents.push(node) - 1)
        this.keys.push(keys[at])
        this.depths.push(this.depths[node] + 1)
        this.stacks.push({ leaves: [], callers: [] })
      }
      const { leaves: ends, callers: above } = this.stacks[known.get(keys[at])]
      ends.push(leaves[stack])
      above.push(parents[at])
    })
    return (this.made[node] = [...known.values()])
  }

  path(node) {
    return Tree.prototype.path.call(this, node)
  }
}

// A weighted tree from the ends of its stacks. A node has no weight of its own: its total is its method's own weight
// under these callers.
export class Inverted extends Weighted {
  constructor({ tree, selfs }) {
    tree.inverted ||= new InvertedTree(tree)
    super(tree.inverted, selfs, [])
    for (let node = 0; node < this.tree.size; node++) this.weigh(node)
  }

  get inverted() {
    return true
  }

  weigh(node) {
    this.totals[node] = this.tree.stacks[node].leaves.reduce((sum, leaf) => sum + this.selfs[leaf], 0)
  }

  below(node) {
    const nodes = this.tree.children(node)
    for (const child of nodes) if (this.totals[child] === undefined) this.weigh(child)
    return nodes
  }
}

// Part of the whole below which a search finds nothing, and how much it finds at most.
const FAINTEST = 1 / 2000
const MOST_FOUND = 1000

// Nodes of methods that are meant (a Uint8Array by method), as they are drawn: from the top, then from the left.
export function search(weighed, methods) {
  const found = []
  const stack = [0]
  while (stack.length && found.length < MOST_FOUND) {
    const node = stack.pop()
    if (node && methods[weighed.tree.keys[node]]) found.push(node)
    const children = weighed.children(node)
    for (let at = children.length - 1; at >= 0; at--)
      if (weighed.totals[children[at]] >= weighed.total * FAINTEST) stack.push(children[at])
  }
  return found
}

// Who leads to a method: a tree whose first level is the method itself and whose children are callers. It is built of
// the nodes that are the method's outermost, with their whole weight.
export function callersTree(parents, keys, outer, totals, method) {
  const up = [0]
  const names = [0]
  const depths = [0]
  const selfs = [0]
  const known = new Map()
  const child = (parent, key) => {
    const place = parent * 2 ** 22 + key
    let found = known.get(place)
    if (found === undefined) {
      found = up.push(parent) - 1
      names.push(key)
      depths.push(depths[parent] + 1)
      selfs.push(0)
      known.set(place, found)
    }
    return found
  }
  for (let node = 1; node < parents.length; node++) {
    if (keys[node] !== method || !outer[node] || totals[node] <= 0) continue
    let at = child(0, method)
    for (let above = parents[node]; above; above = parents[above]) at = child(at, keys[above])
    selfs[at] += totals[node]
  }
  return new Weighted(
    new Tree(Int32Array.from(up), Int32Array.from(names), Int32Array.from(depths)),
    Float64Array.from(selfs),
  )
}

// What a method does: all its outermost calls put on top of each other.
export function calleesTree(tree, outer, weights, method) {
  const up = [0, 0]
  const names = [0, method]
  const depths = [0, 1]
  const selfs = [0, 0]
  const place = new Int32Array(tree.size)
  const known = new Map()
  for (let node = 1; node < tree.size; node++) {
    if (weights.totals[node] <= 0) continue
    const above = place[tree.parents[node]]
    if (above) {
      const key = above * 2 ** 22 + tree.keys[node]
      let found = known.get(key)
      if (found === undefined) {
        found = up.push(above) - 1
        names.push(tree.keys[node])
        depths.push(depths[above] + 1)
        selfs.push(0)
        known.set(key, found)
      }
      place[node] = found
    } else if (tree.keys[node] === method && outer[node]) place[node] = 1
    if (place[node]) selfs[place[node]] += weights.selfs[node]
  }
  return new Weighted(
    new Tree(Int32Array.from(up), Int32Array.from(names), Int32Array.from(depths)),
    Float64Array.from(selfs),
  )
}
