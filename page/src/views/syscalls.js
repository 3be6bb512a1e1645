// System calls: patterns with what a fix would save, the tree of paths, the tree of Ruby stacks, and calls by name.

import { h, middle, replace } from "../dom.js"
import { count, duration, percent, place, safe, things } from "../format.js"
import { Outline } from "../outline.js"
import { splitter } from "../splitter.js"
import { pathTree, stackTree } from "../syscalls.js"
import { Table } from "../table.js"
import { amount, dot, share } from "./columns.js"

// A tree of calls, whose columns sort what is below each node.
class CallsOutline extends Outline {
  constructor(label, tree, { whole, timed, columns, name }) {
    super(label, {
      sorted: ["calls", true],
      resorted: (key, falling) => this.resort(key, falling),
      empty: "No path or frame matches.",
    })
    Object.assign(this, { tree, by: "calls", falling: true, sorted: new Map(), found: null })
    const first = {
      ...columns[0],
      class: "grow",
      sort: () => 0,
      node: (row) => this.cell(row, name(row)),
      tip: (row) => tree.tip(row.node),
    }
    this.table.setColumns([
      share("calls", "calls", whole, (row) => row.calls),
      { ...amount("count", "", "count", (row) => row.calls), sort: null },
      ...(timed ? [amount("ns", "time", "ns", (row) => row.ns)] : []),
      {
        ...amount("explained", "in patterns", "count", (row) => row.explained, "6.6rem"),
        title: "calls that a pattern with advice absorbed",
      },
      ...(tree.paths ? [amount("paths", "paths", "count", (row) => row.paths, "5.6rem")] : []),
      first,
      ...columns.slice(1),
    ])
    this.begin((node) => tree.calls[node], tree.calls[0])
  }

  resort(key, falling) {
    Object.assign(this, { by: key, falling })
    this.sorted.clear()
    this.update()
  }

  children(node) {
    const known = this.sorted.get(node)
    if (known) return known
    const { tree, by } = this
    const list = []
    for (let child = tree.first[node]; child; child = tree.next[child])
      if (tree.calls[child] > 0 && (!this.found || this.found[child])) list.push(child)
    const sign = this.falling ? -1 : 1
    list.sort(
      (a, b) =>
        tree.special(a) - tree.special(b) ||
        sign * (by === "name" ? tree.label(a).localeCompare(tree.label(b)) : tree[by][a] - tree[by][b]) ||
        tree.calls[b] - tree.calls[a] ||
        a - b,
    )
    this.sorted.set(node, list)
    return list
  }

  parent(node) {
    return this.tree.parents[node]
  }
  heaviest(node) {
    const { calls } = this.tree
    return this.children(node).reduce((most, child) => (calls[child] > (calls[most] ?? 0) ? child : most), undefined)
  }

  // Only what has the text in its name, what leads there, and what is below.
  search(text) {
    if (text === (this.text ?? "")) return
    this.text = text
    this.sorted.clear()
    this.found = null
    if (!text) return
    const { parents } = this.tree
    const own = Uint8Array.from(parents, (_, node) =>
      node && this.tree.label(node).toLowerCase().includes(text) ? 1 : 0,
    )
    this.found = Uint8Array.from(own)
    for (let node = parents.length - 1; node > 0; node--)
      if (this.found[node] && parents[node] && !this.found[parents[node]]) this.found[parents[node]] = 1
    for (let node = parents.length - 1; node > 0; node--)
      if (own[node]) for (let up = parents[node]; up && !this.open.has(up); up = parents[up]) this.open.add(up)
    for (let node = 1; node < parents.length; node++) if (own[parents[node]]) own[node] = this.found[node] = 1
  }

  update() {
    const { tree } = this
    this.show(
      this.rows((node) => ({
        calls: tree.calls[node],
        ns: tree.ns[node],
        explained: tree.explained[node],
        paths: tree.paths?.[node],
      })),
    )
  }
}

export class SyscallsView {
  // app: {syscalls, data, base, state, theme}, and where there are stacks recording
  constructor(app) {
    this.app = app
    const { syscalls } = app
    this.made = {}
    this.parts = [
      ["patterns", "Patterns", syscalls.passes.length > 0],
      ["paths", "By path", Boolean(syscalls.paths)],
      ["stacks", "By Ruby stack", Boolean(syscalls.stacks && app.recording)],
      ["calls", "By call", true],
    ].filter(([, , has]) => has)
    this.bar = h("div", { class: "bar-row" })
    this.body = h("div", { class: "syscalls-body" })
    this.notes = h("p", { class: "muted" })
    const said = [
      ...syscalls.warnings.map((text) => h("p", { class: "warning" }, safe(text))),
      ...syscalls.notes.map((text) => h("p", { class: "muted" }, safe(text))),
      syscalls.unseen && h("p", { class: "muted" }, syscalls.unseen),
    ]
    // A log's page has them at its head.
    const sums = [
      `${count(syscalls.calls)} calls`,
      syscalls.failed > 0 && `${count(syscalls.failed)} failed`,
      syscalls.ns > 0 && `${duration(syscalls.ns)} in them`,
    ]
    this.element = h(
      "div",
      { class: "view syscalls" },
      h(
        "div",
        { class: "notes" },
        h("p", { class: "claim" }, safe(syscalls.words)),
        app.recording && h("p", { class: "muted" }, sums.filter(Boolean).join(" · ")),
        said,
      ),
      this.bar,
      this.body,
      this.notes,
    )
  }

  get part() {
    const { tree } = this.app.state
    return this.parts.some(([key]) => key === tree) ? tree : this.parts[0][0]
  }

  update() {
    const { part } = this
    const { state, recording } = this.app
    const made = (this.made[part] ||= this[part]())
    made.search?.(state.search.trim().toLowerCase())
    const focused = document.activeElement?.getAttribute?.("data-part")
    replace(
      this.bar,
      h(
        "div",
        { class: "segments", role: "group", "aria-label": "System calls by" },
        this.parts.map(([key, title]) =>
          h(
            "button",
            { "aria-pressed": String(key === part), "data-part": key, onclick: () => state.set({ tree: key }) },
            title,
          ),
        ),
      ),
      made.buttons,
    )
    if (focused) this.bar.querySelector(`[data-part="${CSS.escape(focused)}"]`)?.focus()
    const element = made.element ?? made.table.element
    if (this.body.firstChild !== element) replace(this.body, element)
    const cut =
      recording && (this.app.filter.from !== null || state.label)
        ? "System calls are those of the whole recording; the range and labels do not narrow them."
        : ""
    this.notes.textContent = [made.note, cut].filter(Boolean).join(" ")
    this.notes.hidden = !this.notes.textContent
    made.update()
  }

  patterns() {
    return new Patterns(this.app)
  }

  paths() {
    const { syscalls, data } = this.app
    const tree = pathTree(data, syscalls.paths)
    const outline = new CallsOutline("System calls by path", tree, {
      whole: syscalls.calls,
      timed: syscalls.ns > 0,
      columns: [{ key: "name", label: "path" }],
      name: (row) => h("span", { class: tree.special(row.node) ? "muted" : "" }, middle(tree.label(row.node))),
    })
    outline.note =
      "The calls of a pattern stand at the path that it names." +
      (syscalls.paths.merged > 0
        ? " The page holds the heaviest paths: " +
          `${count(syscalls.paths.merged)} more are merged as (others) of their folder.`
        : "")
    return outline
  }

  stacks() {
    const { syscalls, data, recording, base } = this.app
    const tree = stackTree(data, recording, syscalls.stacks)
    const where = (row) => (tree.method(row.node) ? place(tree.method(row.node).path, tree.line(row.node), base) : "")
    return new CallsOutline("System calls by Ruby stack", tree, {
      whole: syscalls.calls,
      timed: syscalls.ns > 0,
      columns: [
        { key: "name", label: "method" },
        {
          key: "place",
          label: "where",
          wide: "28%",
          least: 640,
          class: "path",
          node: (row) => middle(where(row)),
          tip: where,
        },
      ],
      name: (row) => [
        tree.method(row.node) && dot(tree.method(row.node), this.app),
        h("span", { class: tree.special(row.node) ? "muted" : "" }, tree.label(row.node)),
      ],
    })
  }

  calls() {
    const { syscalls } = this.app
    const table = new Table({ label: "System calls by name", columns: [], sorted: ["calls", true] })
    const left = syscalls.unexplained === undefined ? null : (row) => row.calls - row.explained
    table.setColumns([
      share("calls", "calls", syscalls.calls, (row) => row.calls),
      { ...amount("count", "", "count", (row) => row.calls), sort: null },
      ...(left
        ? [{ ...amount("left", "left", "count", left), title: "calls that no pattern absorbed" }]
        : [amount("failed", "failed", "count", (row) => row.failed)]),
      ...(syscalls.ns > 0 ? [amount("ns", "time", "ns", (row) => row.ns ?? 0)] : []),
      { key: "name", label: "call", class: "grow", sort: (row) => row.call, text: (row) => safe(row.call) },
    ])
    return { element: table.element, update: () => table.show(syscalls.by_call) }
  }
}

// What was found, most that a fix saves first; one that is chosen has its advice and places beside it.
class Patterns {
  constructor(app) {
    this.app = app
    const { syscalls } = app
    this.rows = syscalls.passes.filter((pass) => pass.markers > 0)
    this.none = syscalls.passes.filter((pass) => pass.markers === 0).map((pass) => pass.name)
    this.note = this.none.length ? `Not found: ${this.none.join(" ")}` : ""
    const timed = syscalls.ns > 0
    this.table = new Table({
      label: "Patterns",
      columns: [],
      sorted: ["saved", true],
      chosen: (row) => this.choose(row),
      empty: "No pattern was found.",
    })
    this.table.follows = true
    this.table.setColumns([
      {
        ...amount("saved", "saves", "count", (row) => row.saved_calls),
        title: "calls that a fix would save; at most, where what it advises makes calls itself",
      },
      { ...share("saved_share", "", syscalls.calls, (row) => row.saved_calls), sort: null },
      ...(timed
        ? [
            {
              ...amount("saved_ns", "saves time", "ns", (row) => row.saved_ns ?? 0, "6.8rem"),
              title: "time that a fix would save",
            },
          ]
        : []),
      { ...amount("calls", "calls", "count", (row) => row.calls), least: 680 },
      ...(timed ? [{ ...amount("ns", "time", "ns", (row) => row.ns ?? 0), least: 760 }] : []),
      amount("markers", "found", "count", (row) => row.markers, "5rem"),
      { key: "name", label: "pattern", wide: "6rem", sort: (row) => row.name, text: (row) => safe(row.name) },
      {
        key: "advice",
        label: "what to do",
        class: "grow",
        prose: true,
        text: (row) => safe(row.advice ?? row.explanation),
        tip: (row) => safe(row.advice ?? row.explanation),
      },
    ])
    this.detail = h("section", { class: "detail", "aria-label": "The chosen pattern" })
    this.element = h(
      "div",
      { class: "split has-detail" },
      this.table.element,
      splitter(app.state, { name: "detail", label: "Width of the pattern", side: "right", panel: () => this.detail }),
      this.detail,
    )
    this.chosen = this.rows.find((row) => row.name === syscalls.findings[0]) ?? this.rows[0] ?? null
    this.detail.hidden = !this.chosen
    if (this.chosen) this.draw()
  }

  choose(row) {
    this.chosen = row
    this.draw()
  }

  draw() {
    const { app, chosen: pass } = this
    const { syscalls, base } = app
    const places = pass.lines.length ? "Ruby lines" : "where"
    const rows = pass.lines.length
      ? pass.lines.map((line) => [
          line.calls,
          line.path ? place(safe(line.path), line.line, base) : "(no Ruby code)",
          line.path,
        ])
      : pass.groups.map((group) => [group.calls, safe(group.path), group.path])
    const sizes = Object.entries(pass.sizes)
    const many =
      sizes.length > 1
        ? `, of ${sizes[0][0]} to ${count(Number(sizes.at(-1)[0]))} calls each`
        : pass.average
          ? `, of ${pass.average} calls each`
          : ""
    this.places ||= new Table({ label: "Places of the pattern", columns: [], empty: "no place is known" })
    this.places.setColumns([
      { key: "calls", label: "calls", number: true, wide: "5rem", text: (row) => count(row[0]) },
      {
        key: "share",
        label: "",
        number: true,
        wide: "5.4rem",
        text: (row) => percent(row[0], pass.calls),
        bar: (row) => row[0] / pass.calls,
      },
      {
        key: "place",
        label: places,
        class: "path grow",
        node: (row) => middle(row[1]),
        tip: (row) => safe(String(row[2] ?? "")),
      },
    ])
    replace(
      this.detail,
      h("div", { class: "detail-title" }, h("h2", {}, safe(pass.name))),
      h(
        "div",
        { class: "detail-body" },
        h("p", {}, safe(pass.explanation)),
        pass.advice && h("p", { class: "advice" }, `→ ${safe(pass.advice)}`),
        pass.saved_calls > 0 &&
          h(
            "p",
            { class: "good" },
            `A fix saves ${pass.saves_at_most ? "at most " : ""}${count(pass.saved_calls)} calls `,
            `(${percent(pass.saved_calls, syscalls.calls)})`,
            pass.saved_ns > 0 && `, ${duration(pass.saved_ns)}`,
          ),
        h(
          "p",
          { class: "muted" },
          `${things(pass.calls, "call")} in ${things(pass.markers, "marker")}${many}. It looks for: ${safe(pass.how)}`,
        ),
        this.places.element,
      ),
    )
    this.places.show(rows)
  }

  update() {
    const text = this.app.state.search.trim().toLowerCase()
    const rows = this.rows.filter(
      (row) =>
        !text ||
        [row.name, row.advice, row.explanation, ...row.groups.map((group) => group.path)]
          .join("\n")
          .toLowerCase()
          .includes(text),
    )
    this.table.show(rows, this.chosen)
  }
}
