// The stacks of a recording with the frames that are looked at.

import { bare, below, keeps, leaveOut, Names } from "./filters.js"
import { RecordingData } from "./recording_data.js"
import { merge } from "./tree.js"

export class ShownStacks extends RecordingData {
  // Chooses what is shown of stacks. native: are native frames shown? · focus, hide: names; samples without the one and
  // frames with the other are left out · only: whose frames, "" for all · root: a method; what it and those below it
  // took, as if threads began with it (0: everything)
  look({ native = false, focus = [], hide = [], only = "", root = 0 }) {
    const key = JSON.stringify([native || only === "native", focus, hide, only, root])
    if (this.looked === key) return
    const shownNative = native || only === "native"
    Object.assign(this, { looked: key, native: shownNative, only, root })
    const tree = bare(this, shownNative)
    this.methodOf = tree.methodOf
    this.bareHomes = tree.homes
    this.names = this.namesOf(tree)
    this.inFocus = focus.length ? below(tree, this.meant(focus), this.alone) : null
    const inside = (this.inside = root ? below(tree, this.alike(root), this.alone) : null)
    this.keeping = true
    const targets = hide.length || only ? this.targets(tree, hide, only) : null
    this.parents = this.callers(tree.up, targets, inside)
    this.homes = null
    if (tree.homes || targets)
      this.homes = this.called.map((_, node) => this.home(node, tree.homes, targets, inside))
    this.tree = merge(this.parents, this.methodOf)
    if (this.homes) this.tree.of = this.homes.map((home) => this.tree.of[home])
    this.cache.clear()
    this._outer = this._lines = this._own = this.boxed = null
  }

  targets(tree, hide, only) {
    const hidden = this.meant(hide)
    const kept = only ? keeps(only, this.names.gems) : () => true
    const named = (method) => method.kind !== "gc" && kept(method)
    this.keeping = !only || only === "app" || this.names.methods.some(named)
    return leaveOut(tree, this.methods, this.other, (method) => !hidden[method.id] && kept(method))
  }

  // By node its nearest caller that is shown, 0 for none.
  callers(up, targets, inside) {
    const other = (node) => (targets && targets[node] === this.other ? 0 : targets ? targets[node] : node)
    const callers = targets ? up.map(other) : up
    return inside ? callers.map((parent, node) => (inside[node] && !inside[parent] ? 0 : parent)) : callers
  }

  home(node, homes, targets, inside) {
    const bare = homes ? homes[node] : node
    const home = targets && bare ? targets[bare] : bare
    return inside && inside[node] && !inside[home] ? this.other : home
  }

  // Is it none of what is looked at?
  leftOut(node) {
    return Boolean((this.inside && !this.inside[node]) || (this.inFocus && !this.inFocus[node]))
  }

  // The node of the shown tree that stands for a node of a thread's rows, 0 where it is not looked at.
  // boxes: as Recording#boxes gives them
  placeOf(node, boxes) {
    return this.leftOut(node) ? 0 : this.tree.of[boxes?.[node] || node]
  }

  // Names mean methods that stand in the tree.
  namesOf({ homes, methodOf }) {
    const present = new Uint8Array(this.methods.length)
    for (let node = 2; node < this.apart; node++) if (!homes || homes[node] === node) present[methodOf[node]] = 1
    if (homes?.subarray(0, this.apart).includes(this.alone)) present[methodOf[this.alone]] = 1
    return new Names(
      this.methods.filter(({ id }) => present[id]),
      this.about.parts || {},
    )
  }

  // By method whether one of the names means it.
  meant(names) {
    return this.names.meant(names, this.methods.length)
  }

  alike(method) {
    return Uint8Array.from(this.methods, ({ id }) => (id === method ? 1 : 0))
  }

  // The methods that a name means.
  matching(name) {
    return this.names.matching(name)
  }

  // Whether only the application's frames are shown.
  get mine() {
    return this.only === "app"
  }
}
