// A table as the data has it: columns {label, number} and rows of texts or numbers. Of views that need nothing else.

import { h } from "../dom.js"
import { count, safe } from "../format.js"
import { Table } from "../table.js"

export class PlainTable {
  constructor(app, { title, columns, rows }) {
    this.app = app
    this.rows = rows
    this.table = new Table({
      label: title,
      columns: columns.map((column, at) => plainColumn(column, at, columns.length)),
      empty: "Nothing of that name.",
    })
    this.element = h("div", { class: "view" }, this.table.element)
  }

  update() {
    const search = this.app.state.search.trim().toLowerCase()
    this.table.show(this.rows.filter((row) => !search || row.some((cell) => text(cell).toLowerCase().includes(search))))
  }
}

const text = (cell) => (typeof cell === "number" ? count(cell) : safe(String(cell ?? "")))

// The last column has the room that the others leave.
function plainColumn({ label, number = false }, at, columns) {
  return {
    key: String(at),
    label: safe(label),
    number,
    sort: (row) => row[at] ?? "",
    text: (row) => text(row[at]),
    ...(at === columns - 1 ? { class: "grow" } : { wide: number ? "7rem" : "24%" }),
  }
}
