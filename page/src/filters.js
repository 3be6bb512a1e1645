// What filters leave of a recording, as Analyse::Filters and Analyse::NativeFrames do in Ruby: samples with certain
// frames, stacks without certain frames. Everything is said by node of the recording's tree.

// Rows that stand for no place in the code.
const NOWHERE = ["(no stack)", "(VM internal)", "(Pitwall)", "(other sites)", "(nobody)"]
const RUBY = ["app", "gem", "ruby"]

// What `only` keeps, beside a gem's frames.
export const ORIGINS = ["app", "gems", "stdlib", "native"]

// The tree with native frames, or with their weight at the nearest caller that is not native.
// homes: by node the node that has its weight · up: callers · methodOf: the page's methods by node
export function bare(recording, native) {
  const { size, called, recorded, folds, alone, methods } = recording
  if (native || !folds) return { size, homes: null, up: called, methodOf: recorded }

  const homes = new Int32Array(size)
  const up = new Int32Array(size)
  for (let node = 1; node < size; node++) {
    const above = homes[called[node]]
    const folded = folds[node] && methods[recorded[node]].kind === "native"
    homes[node] = folded ? above || alone : node
    up[node] = above === alone ? 0 : above
  }
  return { size, homes, ...withoutDummies(recording, up) }
}

// As CallTreeBuilder does it: the dummy "<main>" at the root of a main thread becomes the real one, which is its child.
function withoutDummies({ size, recorded, lineOf, methods, processOf }, up) {
  const main = (node) => methods[recorded[node]].name === "<main>" && RUBY.includes(methods[recorded[node]].kind)
  const dummies = new Map() // process and method → method of the real one
  for (let node = 1; node < size; node++) {
    const parent = up[node]
    if (parent && !up[parent] && lineOf[parent] === 0 && main(parent) && main(node))
      dummies.set(`${processOf[parent]} ${recorded[parent]}`, recorded[node])
  }
  if (!dummies.size) return { up, methodOf: recorded }

  const real = (node) => (main(node) ? dummies.get(`${processOf[node]} ${recorded[node]}`) : undefined)
  const callers = up.slice()
  for (let node = 1; node < size; node++) {
    const parent = up[node]
    if (parent && !up[parent] && lineOf[parent] === 0 && main(parent) && real(parent) === recorded[node])
      callers[node] = 0
  }
  return { up: callers, methodOf: recorded.map((method, node) => real(node) ?? method) }
}

// By node whether it or a caller of it has a method that is meant (a Uint8Array by method).
export function below({ size, homes, up, methodOf }, meant, alone) {
  const found = new Uint8Array(size)
  found[alone] = meant[methodOf[alone]]
  for (let node = 1; node < size; node++)
    found[node] = homes && homes[node] !== node ? found[homes[node]] : found[up[node]] || meant[methodOf[node]]
  return found
}

// By node the one that its weight goes to where only some frames are shown, as Analyse::FrameFilter has it: itself, or
// the nearest caller that is shown, or `other`.
export function leaveOut({ size, up, methodOf }, methods, other, shown) {
  const targets = new Int32Array(size)
  for (let node = 1; node < size; node++) {
    const method = methods[methodOf[node]]
    const place = up[node] === 0 && method.kind === "other" && NOWHERE.includes(method.name)
    targets[node] = place || node === other || shown(method) ? node : targets[up[node]] || other
  }
  return targets
}

// Whether `only` keeps a method. Garbage collection stays.
export function keeps(only, gems) {
  const of = {
    app: ({ origin }) => origin === 0,
    gems: ({ origin, gem }) => origin === 1 || gem !== "",
    stdlib: ({ origin }) => origin === 2,
    native: ({ origin }) => origin === 3,
  }[only]
  const wanted = of || ((names) => (method) => method.gem !== "" && names.includes(method.gem))(gems(only))
  return (method) => method.kind === "gc" || wanted(method)
}

// Finds methods by a name that somebody types, as Analyse::MethodMatch does.
export class Names {
  // parts: gems that consist of others, {rspec: ["rspec-core", …]}
  constructor(methods, parts) {
    Object.assign(this, { methods, parts, known: new Map() })
  }

  // The gems that a gem's name means.
  gems = (name) => [name, ...(Object.hasOwn(this.parts, name) ? this.parts[name] : [])]

  matching(name) {
    if (!this.known.has(name)) this.known.set(name, this.match(name))
    return this.known.get(name)
  }

  // By method whether one of the names means it.
  meant(names, count) {
    const meant = new Uint8Array(count)
    for (const name of names) for (const method of this.matching(name)) meant[method.id] = 1
    return meant
  }

  match(name) {
    const gems = this.gems(name)
    const inside = new RegExp(`(?:^|::| in )${name.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&")}(?:[#.]|::)`)
    const objects = this.objects(name)
    const tests = [
      (method) => method.name === name,
      (method) => method.gem !== "" && gems.includes(method.gem),
      (method) => endsWith(method.name, name),
      (method) => name.includes("/") && method.path.includes(name),
      (method) => inside.test(method.name),
      (method) => method.origin === 3 && objects.includes(method.path),
      (method) => method.name.includes(name),
    ]
    for (const test of name ? tests : []) {
      const found = this.methods.filter(test)
      if (found.length) return found
    }
    return []
  }

  // Paths of the shared objects that a name means, as Analyse::ObjectMatch finds them.
  objects(name) {
    this.paths ||= [...new Set(this.methods.filter(({ origin, path }) => origin === 3 && path).map(({ path }) => path))]
    for (const part of [(path) => path, base, stem, plain]) {
      const sought = part(name)
      const found = sought ? this.paths.filter((path) => part(path) === sought) : []
      if (found.length) return found
    }
    return []
  }

  // Up to two known names that are like one that isn't.
  near(name) {
    const gems = this.methods.map(({ gem }) => gem).filter(Boolean)
    const known = [...new Set([...gems, ...this.methods.map((method) => method.name)])]
    const most = Math.max(1, Math.floor(name.length / 4))
    return known
      .slice(0, 5000)
      .filter((one) => Math.abs(one.length - name.length) <= most)
      .map((one) => [distance(one.toLowerCase(), name.toLowerCase()), one])
      .filter(([far]) => far <= most)
      .sort((a, b) => a[0] - b[0])
      .slice(0, 2)
      .map(([, one]) => one)
  }
}

// "Cart#sum" does not match "block in Cart#sum".
function endsWith(full, name) {
  const rest = full.slice(0, full.length - name.length)
  return full.endsWith(name) && !rest.includes(" ") && (/[#.:]$/.test(rest) || /^[#.:]/.test(name))
}

const base = (path) => path.replace(/\/+$/, "").replace(/^.*\//, "")
const stem = (path) =>
  base(path)
    .replace(/[[\]]/g, "")
    .replace(/\.(?:so|dylib|bundle)(?:\..*)?$/, "")
const plain = (path) => stem(path).replace(/-?\d[\d.]*$/, "")

// How many letters are to be changed, added or taken away to make one word of another.
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let left = 1; left <= one.length; left++) {
    const next = [left]
    for (let right = 1; right <= other.length; right++)
      next[right] = Math.min(
        next[right - 1] + 1,
        row[right] + 1,
        row[right - 1] + (one[left - 1] === other[right - 1] ? 0 : 1),
      )
    row = next
  }
  return row.at(-1)
}
