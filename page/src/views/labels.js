// What was done for whom: requests, jobs and other labelled work.

import { h, replace, select } from "../dom.js"
import { mean } from "../format.js"
import { Table, LAST } from "../table.js"
import { share, amount, counterColumns } from "./columns.js"

// Time by the values of one label; null for what has none. Requests are not counted by thread and state.
export function labelRows(recording, name, filter) {
  const rows = new Map()
  const row = (labels) => {
    const value = Object.hasOwn(labels, name) ? labels[name] : null
    if (!rows.has(value)) rows.set(value, { value, wall: 0, cpu: 0, captures: 0, count: 0, total: 0, counters: [] })
    return rows.get(value)
  }
  for (const { labels, wall, cpu, captures } of recording.byLabels(filter)) {
    const found = row(labels)
    found.wall += wall
    found.cpu += cpu
    found.captures += captures
  }
  for (const { labels, count, total } of countsRequests(filter) ? recording.works : []) {
    const found = row(labels)
    found.count += count
    found.total += total
  }
  for (const { labels, column, works, increase } of countsRequests(filter) ? recording.counted : []) {
    const sum = (row(labels).counters[column] ||= { works: 0, increase: 0 })
    sum.works += works
    sum.increase += increase
  }
  return [...rows.values()].filter((one) => one.wall > 0 || one.count > 0)
}

const countsRequests = ({ thread, state, request }) =>
  (thread === "all" || thread === "busy") && state === "all" && !request

// A counter's mean over the requests in which it is known, or null.
const meanOf = ({ counters }, at) => (counters[at]?.works ? counters[at].increase / counters[at].works : null)
const meanText = ({ counters }, at) => mean(counters[at].increase, counters[at].works)

// What shares are of.
export const labelled = (rows) => rows.reduce((sum, row) => sum + (row.value === null ? 0 : row.wall), 0)

// What requests, jobs and other labelled work took.
export class LabelsView {
  constructor(app) {
    this.app = app
    this.table = new Table({
      label: "Labels",
      columns: [],
      sorted: ["wall", true],
      chosen: (row) => row.value !== null && this.choose(row),
    })
    this.bar = h("div", { class: "bar-row" })
    this.element = h("div", { class: "view" }, this.bar, this.table.element)
  }

  get name() {
    return this.app.recording.labelNames.includes(this.app.state.by)
      ? this.app.state.by
      : this.app.recording.labelNames[0]
  }

  choose(row) {
    const label = `${this.name}=${row.value}`
    this.app.state.set({ label: this.app.state.label === label ? "" : label })
  }

  update() {
    const { recording, filter, state } = this.app
    const rows = labelRows(recording, this.name, { ...filter, label: "" })
    const whole = labelled(rows)
    const counted = rows.some((row) => row.count > 0)
    const part = share("wall", "wall", whole, (row) => row.wall)
    const ofRequests = (column) => ({ ...column, text: (row) => (row.count ? column.text(row) : "") })
    replace(
      this.bar,
      select(
        "by label",
        recording.labelNames.map((name) => [name, name]),
        this.name,
        (by) => state.set({ by }),
      ),
      counted && filter.from !== null && h("span", { class: "muted" }, "requests are counted over the whole recording"),
    )
    this.table.setColumns([
      {
        ...part,
        title: "of the time that has the label",
        sort: (row) => (row.value === null ? LAST : row.wall),
        text: (row) => (row.value === null ? "" : part.text(row)),
        bar: (row) => (row.value === null ? 0 : part.bar(row)),
      },
      amount("wall_value", "wall time", "ns", (row) => row.wall),
      amount("cpu", "CPU time", "ns", (row) => row.cpu),
      ...(counted
        ? [
            amount("count", "requests", "count", (row) => row.count),
            amount("mean", "mean", "ns", (row) => (row.count ? row.total / row.count : 0)),
          ].map(ofRequests)
        : []),
      ...(counted ? counterColumns(recording.counters, rows, 640, meanOf, meanText) : []).map((column) => ({
        ...column,
        title: `${column.title}, mean of a request; of Ruby’s counters, of a request that ran alone`,
      })),
      {
        key: "value",
        label: this.name,
        class: "grow",
        sort: (row) => (row.value === null ? LAST : row.value),
        node: (row) => (row.value === null ? h("span", { class: "muted" }, "no such label") : row.value),
      },
    ])
    this.table.show(rows, rows.find((row) => `${this.name}=${row.value}` === state.label) ?? null)
  }
}
