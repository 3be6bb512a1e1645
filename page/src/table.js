// A sortable table that draws the rows that are seen, so that a hundred thousand cost what thirty do.

import { h, middle, oncePerFrame } from "./dom.js"

const ROW = 24
const BEYOND = 8 // rows drawn above and below what is seen

// What sorts after everything, whichever way.
export const LAST = Symbol("last")

let tables = 0

export class Table {
  // columns: {key, label, title, wide (CSS width), number, sort(row), text(row) or node(row), bar(row): 0 to 1, prose:
  // text is no name, and is shortened at its end, least: pixels of width below which the column is left out}; sorted:
  // [key, falling] ordered: rows come in order, and who gives them heeds resorted(key, falling). chosen(row): clicked,
  // or Enter; same(a, b): whether two rows are one thing, so that the choice outlives new rows. keys: {f: work(row)};
  // asked(row, event): a row's menu is wanted.
  constructor({
    label,
    columns,
    sorted = null,
    chosen = null,
    resorted = () => {},
    empty = "nothing here",
    ordered = false,
    keys = {},
    asked = null,
  }) {
    Object.assign(this, {
      label,
      columns,
      sorted,
      chosen,
      resorted,
      empty,
      ordered,
      keys,
      rows: [],
      order: [],
      active: -1,
      id: `t${++tables}`,
    })
    this.head = h("tr", {})
    this.above = h("tbody", { "aria-hidden": "true" })
    this.body = h("tbody", {})
    this.below = h("tbody", { "aria-hidden": "true" })
    this.group = h("colgroup", {})
    this.table = h(
      "table",
      { role: "grid", "aria-label": label, tabindex: "0", onkeydown: (event) => this.key(event) },
      this.group,
      h("thead", {}, this.head),
      this.above,
      this.body,
      this.below,
    )
    this.note = h("p", { class: "empty", hidden: true })
    this.element = h("div", { class: "table" }, this.table, this.note)
    this.draw = oncePerFrame(() => this.paint())
    this.element.addEventListener("scroll", () => this.draw(), { passive: true })
    new ResizeObserver(() => {
      if (this.shown.length !== this.fitting().length) this.heads()
      this.draw()
    }).observe(this.element)
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr")
      if (row && !event.target.closest("button")) this.choose(Number(row.dataset.at))
    })
    if (asked)
      this.table.addEventListener("contextmenu", (event) => {
        const row = event.target.closest("tr[data-at]") ?? this.body.querySelector("[aria-selected=true]")
        if (!row) return
        this.activate(Number(row.dataset.at))
        asked(this.wanted, event)
      })
    this.heads()
  }

  setColumns(columns) {
    this.columns = columns
    if (this.sorted && !columns.some((column) => column.key === this.sorted[0])) this.sorted = null
    this.heads()
  }

  // Columns that there is room for; all of them before the table has a place.
  fitting() {
    const width = this.element.clientWidth
    return this.columns.filter((column) => !width || !column.least || width >= column.least)
  }

  heads() {
    this.shown = this.fitting()
    this.group.replaceChildren(
      ...this.shown.map((column) => h("col", { style: column.wide ? { width: column.wide } : {} })),
    )
    this.head.replaceChildren(
      ...this.shown.map((column) => {
        const own = this.sorted?.[0] === column.key
        const text = h(
          "button",
          {
            title: column.title,
            onclick: () => this.sort(column.key, own ? !this.sorted[1] : (column.number ?? false)),
          },
          own && h("span", { class: "arrow", "aria-hidden": "true" }, this.sorted[1] ? "↓ " : "↑ "),
          column.label,
        )
        return h(
          "th",
          {
            scope: "col",
            class: column.number ? "number" : "",
            "aria-sort": own ? (this.sorted[1] ? "descending" : "ascending") : "none",
          },
          column.sort ? text : column.label,
        )
      }),
    )
  }

  sort(key, falling) {
    this.sorted = [key, falling]
    this.heads()
    this.arrange()
    this.resorted(key, falling)
  }

  // active: the row that is chosen already, if any.
  show(rows, active = null) {
    this.rows = rows
    this.wanted = active
    this.table.setAttribute("aria-rowcount", String(rows.length + 1))
    this.arrange()
  }

  arrange() {
    this.order = [...this.rows]
    const column = !this.ordered && this.sorted && this.columns.find((one) => one.key === this.sorted[0])
    if (column) {
      const sign = this.sorted[1] ? -1 : 1
      const keys = new Map(this.order.map((row) => [row, column.sort(row)]))
      this.order.sort((a, b) => {
        const one = keys.get(a)
        const other = keys.get(b)
        if (one === LAST || other === LAST) return (one === LAST) - (other === LAST)
        return sign * (typeof one === "string" ? one.localeCompare(other) : (one ?? -Infinity) - (other ?? -Infinity))
      })
    }
    this.active = this.wanted === null ? -1 : this.order.indexOf(this.wanted)
    this.note.hidden = this.order.length > 0
    this.note.textContent = this.empty
    this.draw()
  }

  reveal() {
    if (this.active < 0) return
    const top = this.active * ROW
    const { scrollTop, clientHeight } = this.element
    if (top < scrollTop || top > scrollTop + clientHeight - 3 * ROW)
      this.element.scrollTop = Math.max(0, top - clientHeight / 3)
  }

  activate(at) {
    this.active = at
    this.wanted = this.order[at]
    this.draw()
  }

  choose(at) {
    this.activate(at)
    if (this.chosen) this.chosen(this.order[at])
  }

  paint() {
    const { scrollTop, clientHeight } = this.element
    const count = this.order.length
    const from = Math.max(0, Math.min(count, Math.floor(scrollTop / ROW) - BEYOND))
    const to = Math.min(count, Math.ceil((scrollTop + clientHeight) / ROW) + BEYOND)
    this.above.style.height = `${from * ROW}px`
    this.below.style.height = `${(count - to) * ROW}px`
    this.above.replaceChildren(...(from ? [spacer(from * ROW)] : []))
    this.below.replaceChildren(...(to < count ? [spacer((count - to) * ROW)] : []))
    const rows = []
    for (let at = from; at < to; at++) rows.push(this.row(at))
    this.body.replaceChildren(...rows)
    if (this.active >= from && this.active < to)
      this.table.setAttribute("aria-activedescendant", `${this.id}-${this.active}`)
    else this.table.removeAttribute("aria-activedescendant")
  }

  row(at) {
    const row = this.order[at]
    const cells = this.shown.map((column) => {
      const text = column.text ? column.text(row) : null
      const named = text && !column.number && !column.prose
      const cell = h(
        "td",
        {
          class: [column.number && "number", column.class].filter(Boolean).join(" "),
          title: column.tip ? column.tip(row) : named ? text : undefined,
        },
        column.node ? column.node(row) : named ? middle(text) : text,
      )
      if (column.bar)
        cell.append(
          h("span", {
            class: "bar",
            "aria-hidden": "true",
            style: { "--part": String(Math.min(1, Math.max(0, column.bar(row) || 0))) },
          }),
        )
      return cell
    })
    return h(
      "tr",
      {
        id: `${this.id}-${at}`,
        "data-at": String(at),
        "aria-rowindex": String(at + 2),
        "aria-selected": String(at === this.active),
        class: this.chosen ? "can" : "",
      },
      cells,
    )
  }

  key(event) {
    if (event.target !== this.table || event.ctrlKey || event.metaKey || event.altKey) return
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2)
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key]
    if (event.key === "Enter" && this.active >= 0) {
      event.preventDefault()
      return this.choose(this.active)
    }
    if (this.keys[event.key] && this.active >= 0) {
      event.preventDefault()
      event.stopPropagation()
      return this.keys[event.key](this.order[this.active])
    }
    if (by === undefined || !this.order.length) return
    event.preventDefault()
    this.activate(Math.min(this.order.length - 1, Math.max(0, this.active + by)))
    this.reveal()
    if (this.chosen && this.follows) this.chosen(this.wanted)
  }
}

const spacer = (height) => h("tr", {}, h("td", { style: { height: `${height}px`, padding: "0", border: "0" } }))
