// Columns that several tables have, and how a method is named in them.

import { h, middle } from "../dom.js"
import { count, value, percent, place } from "../format.js"
import { LAST } from "../table.js"
import { KIND_NAMES } from "../kinds.js"
import { boxColour } from "../flame_colours.js"

export const dot = (method, app) =>
  h("i", { class: "dot", title: KIND_NAMES[method.kind], style: { background: boxColour(method, app.theme) } })
export const name = (method, app) => h("span", { class: "name" }, dot(method, app), middle(method.name))

export const nameColumn = (app, of = (row) => row.method) => ({
  key: "name",
  label: "method",
  sort: (row) => of(row).name,
  node: (row) => name(of(row), app),
  tip: (row) => of(row).name,
  class: "grow",
})
export const placeColumn = (app, of = (row) => row.method) => ({
  key: "place",
  label: "where",
  wide: "28%",
  least: 560,
  sort: (row) => `${of(row).path}:${String(of(row).line).padStart(8, "0")}`,
  node: (row) => middle(place(of(row).path, of(row).line, app.recording.base)),
  tip: (row) => place(of(row).path, of(row).line),
  class: "path",
})
export const share = (key, label, whole, get) => ({
  key,
  label,
  number: true,
  wide: "5.4rem",
  sort: get,
  text: (row) => percent(get(row), whole),
  bar: (row) => (whole ? get(row) / whole : 0),
})
export const amount = (key, label, unit, get, wide = "6rem") => ({
  key,
  label,
  number: true,
  wide,
  sort: get,
  text: (row) => value(get(row), unit),
})

// A counter's column. get(row, at): null or undefined where the counter is not known. The table leaves it out below
// `least` pixels of width.
const counter = ({ name, head, title }, at, get, text, least) => ({
  ...amount(name, head, "count", (row) => get(row, at), `${Math.max(4.6, head.length * 0.52 + 1.4)}rem`),
  title: `${title} (${name})`,
  least,
  sort: (row) => get(row, at) ?? LAST,
  text: (row) => ((get(row, at) ?? null) === null ? "" : text(row, at)),
})

// Columns of the counters of the VM's caches that increased in a row. least: width in pixels that the first one needs.
export const counterColumns = (counters, rows, least, get, text = (row, at) => count(get(row, at))) =>
  counters
    .map((one, at) => [one, at])
    .filter(([, at]) => rows.some((row) => get(row, at) > 0))
    .map(([one, at], place) => counter(one, at, get, text, least + 80 * place))

// What is said of them: for how many rows the process's counters are not known, and what no Ruby here counts.
export function counterNotes({ about, counters }, rows) {
  if (!counters.length || !rows.length) return ""
  const unknown = rows.filter((row) => counters.some((one, at) => one.process && row.counters[at] === null)).length
  const { missing } = about.counters
  const increased = rows.some((row) => row.counters.some((increase) => increase > 0))
  return [
    increased ? "" : " No counter of caches increased.",
    unknown ? ` Counters are the process’s: ${count(unknown)} of ${count(rows.length)} ran beside others.` : "",
    increased && missing.length ? ` Not counted by this Ruby: ${missing.join(", ")}.` : "",
  ].join("")
}
