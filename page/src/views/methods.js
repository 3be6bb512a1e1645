// All methods, and beside them the one that is chosen.

import { h } from "../dom.js"
import { Table } from "../table.js"
import { nameColumn, placeColumn, share, amount } from "./columns.js"
import { splitter } from "../splitter.js"
import { Detail } from "./detail.js"

export class MethodsView {
  constructor(app) {
    this.app = app
    this.table = new Table({
      label: "Methods",
      columns: [],
      sorted: ["self", true],
      chosen: (row) => app.state.set({ method: row.method.id }),
      empty: "No method matches.",
      ...app.ofRows,
    })
    this.table.follows = true
    this.detail = new Detail(app)
    this.element = h(
      "div",
      { class: "view split" },
      this.table.element,
      splitter(app.state, {
        name: "detail",
        label: "Width of callers and callees",
        side: "right",
        panel: () => this.detail.element,
      }),
      this.detail.element,
    )
  }

  update() {
    const { recording, weight, worked: filter, state } = this.app
    const whole = recording.weighed(weight.name, filter).total
    const main = recording.byMethod(weight.name, filter)
    const beside = this.beside(weight.name).map((one) => ({ ...one, sums: recording.byMethod(one.name, filter) }))
    const matches = this.app.matches()
    const rows = []
    for (const method of recording.methods) {
      if (method.id === 0 || (matches && !matches[method.id])) continue
      const row = { method, self: main.self[method.id], total: main.total[method.id] }
      for (const one of beside) row[one.name] = one.sums.self[method.id]
      if (row.total > 0 || row.self > 0 || row.calls > 0) rows.push(row)
    }
    const calls = weight.name === "calls"
    this.table.setColumns([
      share("self", calls ? "calls" : "self", whole, (row) => row.self),
      amount("self_value", calls ? "count" : weight.short, weight.unit, (row) => row.self),
      share("total", calls ? "with below" : "total", whole, (row) => row.total),
      { ...amount("total_value", `total ${weight.short}`, weight.unit, (row) => row.total, "6.6rem"), least: 800 },
      ...beside.map((one, at) => ({
        ...amount(
          one.name,
          one.name === "calls" ? "calls" : `self ${one.short}`,
          one.unit,
          (row) => row[one.name],
          "6.6rem",
        ),
        least: 740 + at * 160,
      })),
      nameColumn(this.app),
      placeColumn(this.app),
    ])
    this.table.show(rows, rows.find((row) => row.method.id === state.method) ?? null)
    this.element.classList.toggle("has-detail", state.method !== null && Boolean(recording.methods[state.method]))
    this.detail.update()
    if (this.shown !== state.method) {
      this.shown = state.method
      requestAnimationFrame(() => this.table.reveal())
    }
  }

  beside(weight) {
    const wanted =
      {
        wall: ["cpu", "wait", "calls"],
        cpu: ["wall", "calls"],
        captures: ["wall"],
        calls: ["wall"],
        wait: ["wall", "calls"],
        objects: ["bytes", "calls"],
        bytes: ["objects"],
        gc: ["objects", "bytes"],
      }[weight] || []
    return this.app.recording.weights.filter((one) => wanted.includes(one.name)).slice(0, 2)
  }
}
