// Columns that several tables have, and how a method is named in them.

import { h, middle } from "../dom.js"
import { value, percent, place } from "../format.js"
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
