// Queries to databases by the application's line that asked.

import { h, middle } from "../dom.js"
import { things, duration, count, place, percent } from "../format.js"
import { Table, LAST } from "../table.js"
import { share, amount } from "./columns.js"

const ASKED = 0
const SCHEMA = 2

// What many rows come to, as Analyse::Queries.sum has it: repeats is how often one line asked for the same.
export function summed(rows) {
  const same = new Map()
  const sum = { count: 0, ns: 0, cached: 0, schema: 0, repeats: 0 }
  for (const { query, count, ns } of rows) {
    if (query.kind === SCHEMA) sum.schema += count
    else {
      const key = `${query.path}\n${query.line}\n${query.digest}`
      same.set(key, (same.get(key) ?? 0) + count)
      sum.repeats = Math.max(sum.repeats, same.get(key))
      if (query.kind === ASKED) {
        sum.count += count
        sum.ns += ns
      } else sum.cached += count
    }
  }
  return sum
}

// Rows of one query in one.
export function byQuery(rows) {
  const found = new Map()
  for (const row of rows) {
    const known = found.get(row.query.id)
    if (!known) found.set(row.query.id, { ...row })
    else {
      for (const key of ["works", "count", "ns"]) known[key] += row[key]
      known.most = Math.max(known.most, row.most)
    }
  }
  return [...found.values()]
}

const mean = (row) => row.count / row.works
const few = (number) => (Number.isInteger(number) || number >= 1000 ? count(Math.round(number)) : number.toFixed(1))

// whole: ns that shares are of; one: of one request.
export function queryColumns(app, { whole, one = false, shares = () => true }) {
  const part = share("share", "share", whole, (row) => row.ns)
  return [
    amount("count", "queries", "count", (row) => row.count),
    ...(one
      ? []
      : [
          {
            ...amount("mean", "a request", "count", mean),
            least: 560,
            sort: (row) => (row.works ? mean(row) : LAST),
            text: (row) => (row.works ? few(mean(row)) : ""),
          },
          {
            ...amount("most", "most", "count", (row) => row.most),
            title: "of one request",
            least: 700,
            text: (row) => (row.works ? count(row.most) : ""),
          },
        ]),
    amount("ns", "time", "ns", (row) => row.ns),
    {
      ...part,
      least: 400,
      text: (row) => (row.ns && shares(row) ? part.text(row) : ""),
      bar: (row) => (row.ns && shares(row) ? part.bar(row) : 0),
    },
    {
      key: "digest",
      label: "query",
      wide: "6.6rem",
      least: 620,
      sort: (row) => row.query.digest,
      text: (row) => row.query.digest.slice(0, 8),
      tip: (row) => row.query.digest,
    },
    {
      key: "line",
      label: "line",
      class: "grow path",
      sort: (row) => `${row.query.path}:${String(row.query.line).padStart(8, "0")}`,
      node: (row) => middle(place(row.query.path, row.query.line, app.recording.base) || row.query.name),
      tip: (row) => place(row.query.path, row.query.line),
    },
    {
      key: "name",
      label: "method",
      wide: one ? "30%" : "26%",
      least: 520,
      sort: (row) => row.query.name,
      text: (row) => row.query.name,
      tip: (row) => row.query.name,
    },
  ]
}

export class QueriesView {
  constructor(app) {
    this.app = app
    this.note = h("p", { class: "muted note" })
    this.table = new Table({
      label: "Queries",
      columns: [],
      sorted: ["ns", true],
      chosen: (row) => row.query.path && app.showLine(row.query.path, row.query.line),
      empty: "Nothing was asked in what is selected.",
    })
    this.element = h("div", { class: "view" }, this.note, this.table.element)
  }

  update() {
    const { recording, state, filter, request } = this.app
    const wanted = recording.labelled({ label: state.label })
    const chosen = (set) => !wanted || wanted[set]
    const search = state.search.trim().toLowerCase()
    const asked = request ? request.queries : recording.asked.filter((row) => chosen(row.set))
    const rows = byQuery(asked).filter(
      (row) => !search || `${row.query.path} ${row.query.name} ${row.query.digest}`.toLowerCase().includes(search),
    )
    const works = recording.works.filter((work) => !wanted || chosen(recording.labelSets.indexOf(work.labels)))
    const requests = request ? 1 : works.reduce((sum, work) => sum + work.count, 0)
    const whole = request ? request.ns : requests ? works.reduce((sum, work) => sum + work.total, 0) : recording.span
    const counted = summed(requests && !request ? asked.filter((row) => row.works) : asked)
    const also = [
      counted.cached && `${count(counted.cached)} answered by a cache`,
      counted.schema && `${count(counted.schema)} of the schema`,
    ].filter(Boolean)
    const noun = counted.count === 1 ? "query" : "queries"
    const each = requests ? ` in ${things(requests, "request")} (${few(counted.count / requests)} a request)` : ""
    const part = `${percent(counted.ns, whole)} of ${requests ? "the requests’ time" : "the time"}`
    const ranged = filter.from !== null && !request ? " Queries are counted over the whole recording." : ""
    this.note.textContent = [
      `${count(counted.count)} ${noun}${each}, ${duration(counted.ns)}: ${[part, ...also].join("; ")}. `,
      recording.about.queries.meaning,
      ranged,
    ].join("")
    this.table.setColumns(
      queryColumns(this.app, { whole, one: Boolean(request), shares: (row) => row.works > 0 || !requests }),
    )
    this.table.show(rows)
  }
}
