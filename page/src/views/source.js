// Files and their lines, with their weight.

import { h, middle } from "../dom.js"
import { place } from "../format.js"
import { splitter } from "../splitter.js"
import { Table } from "../table.js"
import { share, amount } from "./columns.js"

export class SourceView {
  constructor(app) {
    this.app = app
    this.texts = new Map(
      app.recording.about.source.map(({ path, lines, text }) => [
        app.recording.strings[path],
        new Map(lines.map((line, at) => [line, text[at]])),
      ]),
    )
    this.commits = new Map(app.recording.about.source.map(({ path, commit }) => [app.recording.strings[path], commit]))
    this.files = new Table({
      label: "Files",
      columns: [],
      sorted: ["self", true],
      chosen: (row) => app.state.set({ file: row.path }),
      empty: "No file of Ruby code in what is selected.",
    })
    this.files.follows = true
    this.lines = new Table({ label: "Lines", columns: [], empty: "No line of this file in what is selected." })
    this.title = h("h2", { class: "path" })
    this.note = h("p", { class: "muted" })
    this.element = h(
      "div",
      { class: "view split source" },
      this.files.element,
      splitter(app.state, {
        name: "files",
        label: "Width of the list of files",
        side: "left",
        panel: () => this.files.element,
      }),
      h("div", { class: "code" }, this.title, this.note, this.lines.element),
    )
  }

  update() {
    const { recording, weight, worked: filter, state } = this.app
    const whole = recording.weighed(weight.name, filter).total
    const { places } = recording.lines
    const { self, total } = recording.byLine(weight.name, filter)
    const files = new Map()
    places.forEach(({ path, line }, at) => {
      if (!path || total[at] <= 0) return
      const file = files.get(path) || { path, self: 0, lines: [] }
      files.set(path, file)
      file.self += self[at]
      file.lines.push({ line, self: self[at], total: total[at] })
    })
    const search = state.search.toLowerCase()
    const rows = [...files.values()].filter((file) => !search || file.path.toLowerCase().includes(search))
    const heaviest = rows.reduce((best, file) => (best === null || file.self > best.self ? file : best), null)
    const chosen = files.get(state.file) ?? heaviest
    this.files.setColumns([
      share("self", "self", whole, (row) => row.self),
      amount("value", weight.short, weight.unit, (row) => row.self),
      {
        key: "path",
        label: "file",
        sort: (row) => row.path,
        node: (row) => middle(place(row.path, 0, recording.base)),
        tip: (row) => row.path,
        class: "path",
      },
    ])
    this.files.show(rows, chosen)
    this.show(chosen, whole, weight)
  }

  show(file, whole, weight) {
    this.title.textContent = file ? place(file.path, 0, this.app.recording.base) : ""
    if (!file) {
      this.note.textContent = ""
      return this.lines.show([])
    }
    const texts = this.texts.get(file.path)
    const commit = this.commits.get(file.path)
    if (commit)
      this.note.textContent =
        `The file has changed since the recording, or is gone. This is its text in commit ${commit.slice(0, 10)}, ` +
        "the last before the recording; what was not committed then is missing."
    else
      this.note.textContent = texts
        ? ""
        : "The source was not readable when this page was made, has changed since the recording, or was left out."
    const weights = new Map(file.lines.map((row) => [row.line, row]))
    const numbers = [...new Set([...weights.keys(), ...(texts ? texts.keys() : [])])].sort((a, b) => a - b)
    const rows = []
    numbers.forEach((line, at) => {
      if (at && line > numbers[at - 1] + 1) rows.push({ gap: true, line: line - 0.5 })
      rows.push({
        line,
        self: weights.get(line)?.self || 0,
        total: weights.get(line)?.total || 0,
        text: texts?.get(line) ?? "",
      })
    })
    const blank = (column) => ({
      ...column,
      sort: null,
      text: (row) => (row.gap || !row.total ? "" : column.text(row)),
      bar: column.bar && ((row) => (row.gap ? 0 : column.bar(row))),
    })
    this.lines.setColumns([
      blank(share("self", "self", whole, (row) => row.self)),
      blank(amount("self_value", weight.short, weight.unit, (row) => row.self)),
      blank(share("total", "total", whole, (row) => row.total)),
      {
        key: "line",
        label: "line",
        number: true,
        wide: "4.6rem",
        text: (row) => (row.gap ? "⋮" : String(row.line)),
        class: "muted",
      },
      { key: "text", label: "source", node: (row) => h("code", {}, row.gap ? "" : row.text), class: "grow" },
    ])
    this.lines.show(rows)
    if (this.shown !== file.path) {
      this.shown = file.path
      const most = rows.reduce((sum, row) => Math.max(sum, row.self || 0), 0)
      const first = rows.findIndex((row) => row.self > 0 && row.self === most)
      requestAnimationFrame(() => {
        this.lines.element.scrollTop = Math.max(0, first * 24 - this.lines.element.clientHeight / 3)
      })
    }
  }
}
