// Beside the flame graph of a wide page: what was recorded, what stands out, the application's methods, all methods.

import { h, replace } from "../dom.js"
import { count, duration, percent } from "../format.js"
import { Table } from "../table.js"
import { nameColumn, share, amount } from "./columns.js"

const TOP = 10

export class Overview {
  constructor(app) {
    this.app = app
    const table = (label) =>
      new Table({ label, columns: [], ordered: true, chosen: (row) => app.showMethod(row.method.id), ...app.ofRows })
    this.summary = h("dl", {})
    this.findings = h("div", {})
    this.mine = table("The application’s heaviest methods")
    this.all = table("Heaviest methods")
    this.own = h("section", {}, h("h3", {}, "The application’s methods, with what they call"), this.mine.element)
    this.element = h(
      "aside",
      { class: "beside", "aria-label": "Overview" },
      this.summary,
      this.findings,
      this.own,
      h("section", {}, h("h3", {}, "All methods"), this.all.element),
    )
  }

  update() {
    const { recording, weight, worked } = this.app
    const { about, runs, marks } = recording
    const collecting = runs.reduce((sum, run) => sum + run.total, 0)
    replace(
      this.summary,
      [
        ["wall time", duration(about.elapsed_ns)],
        [
          "CPU time",
          about.cpu_ns > 0 && `${duration(about.cpu_ns)} (${percent(about.cpu_ns, about.elapsed_ns)} of a core)`,
        ],
        ["collection", collecting > 0 && `${duration(collecting)} in ${count(runs.length)} runs`],
        ["requests", marks.length > 0 && `${count(marks.length)} listed, the slowest ${duration(marks[0].ns)}`],
      ].map(([key, text]) => text && [h("dt", {}, key), h("dd", {}, text)]),
    )
    const whole = recording.weighed(weight.name, worked).total
    const show = (table, sums, wanted) => {
      const rows = recording.methods
        .filter((method) => method.id > 0 && wanted(method) && sums[method.id] > 0)
        .map((method) => ({ method, self: sums[method.id] }))
      table.setColumns(
        [
          share("self", "self", whole, (row) => row.self),
          amount("value", weight.short, weight.unit, (row) => row.self),
          nameColumn(this.app),
        ].map((column) => ({ ...column, sort: null })),
      )
      table.show(rows.sort((a, b) => b.self - a.self).slice(0, TOP))
      return rows.length
    }
    show(this.all, recording.byMethod(weight.name, worked).self, () => true)
    const mine = show(this.mine, recording.ownByMethod(weight.name, worked), (method) => method.kind === "app")
    this.own.hidden = mine === 0 || recording.mine
  }
}
