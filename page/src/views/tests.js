// What each test took, and which of them every view is narrowed to.

import { h } from "../dom.js"
import { duration, things, value } from "../format.js"
import { LAST, Table } from "../table.js"
import { amount, counterColumns, counterNotes } from "./columns.js"

const label = (row) => `test=${row.name}`

export class TestsView {
  constructor(app) {
    this.app = app
    const { recording } = app
    this.rows = recording.about.tests.map(([name, runs, ns, cpu, objects, gc, request, counters]) => ({
      name: recording.strings[name],
      runs,
      ns,
      cpu,
      objects,
      gc,
      request,
      counters,
    }))
    this.table = new Table({
      label: "Tests",
      columns: [],
      sorted: ["took", true],
      chosen: (row) => app.state.set({ label: app.state.label === label(row) ? "" : label(row), request: null }),
      empty: "No test has such a name.",
    })
    const total = this.rows.reduce((sum, row) => sum + row.ns, 0)
    const beside = this.rows.some((row) => row.objects === null)
    this.note = h(
      "p",
      { class: "muted note" },
      `${things(this.rows.length, "test")} took ${duration(total)}.`,
      beside && " Tests that ran beside others have no objects and no GC of their own.",
      counterNotes(recording, this.rows),
      " A test that is chosen narrows every view to what ran in it.",
    )
    this.element = h("div", { class: "view" }, this.note, this.table.element)
  }

  update() {
    const { state } = this.app
    const search = state.search.trim().toLowerCase()
    const rows = this.rows.filter((row) => !search || row.name.toLowerCase().includes(search))
    const longest = this.rows.reduce((most, row) => Math.max(most, row.ns), 1)
    const known = (key, title, unit) => ({
      ...amount(key, title, unit, (row) => row[key]),
      sort: (row) => row[key] ?? LAST,
      text: (row) => (row[key] === null ? "" : value(row[key], unit)),
    })
    this.table.setColumns([
      { ...amount("took", "took", "ns", (row) => row.ns), bar: (row) => row.ns / longest },
      amount("cpu", "CPU time", "ns", (row) => row.cpu),
      { ...known("objects", "objects", "count"), least: 520 },
      { ...known("gc", "GC", "ns"), least: 520 },
      ...counterColumns(this.app.recording.counters, this.rows, 720, (row, at) => row.counters[at]),
      ...(this.rows.some((row) => row.runs > 1) ? [amount("runs", "runs", "count", (row) => row.runs, "4.6rem")] : []),
      { ...known("request", "request", "count"), wide: "4.8rem", least: 640 },
      {
        key: "name",
        label: "test",
        class: "grow",
        sort: (row) => row.name,
        text: (row) => row.name,
        tip: (row) => row.name,
      },
    ])
    this.table.show(rows, rows.find((row) => label(row) === state.label) ?? null)
  }
}
