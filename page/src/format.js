// Numbers for people; the same as lib/pitwall/show/terminal/units.rb, so that page and terminal agree.

const three = (number) => number.toFixed(number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2)

export function duration(ns) {
  if (ns === 0) return "0 s"
  if (ns < 0) return `−${duration(-ns)}`
  if (ns >= 360 * 60e9) return `${three(ns / 3600e9)} h`
  if (ns >= 600e9) return `${three(ns / 60e9)} min`
  for (const [size, unit] of [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
  ])
    if (ns >= size * 0.9995) return `${three(ns / size)} ${unit}`
  return ns >= 1 ? `${Number.isInteger(ns) ? ns : three(ns)} ns` : `${ns.toPrecision(2)} ns`
}

export const count = (number) =>
  Math.round(number)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",")

export function bytes(number) {
  for (const [size, unit] of [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ])
    if (number >= size) return `${three(number / size)} ${unit}`
  return `${Math.round(number)} B`
}

export function percent(part, whole) {
  if (part === 0 || whole === 0) return "0.0%"
  if (part === whole) return "100%"
  const share = (part / whole) * 100
  return share < 0.05 ? "<0.1%" : `${share.toFixed(1)}%`
}

// A value in "ns", "bytes" or "count".
export function value(number, unit) {
  if (number === null || number === undefined) return "–"
  return unit === "ns"
    ? duration(number)
    : unit === "bytes"
      ? bytes(number)
      : Math.abs(number) < 100 && !Number.isInteger(number)
        ? number.toPrecision(3)
        : count(number)
}

// A mean of counts, as Units.mean has it.
export const mean = (sum, pieces) =>
  sum % pieces === 0
    ? count(sum / pieces)
    : sum / pieces < 0.005
      ? "<0.01"
      : sum / pieces < 99.95
        ? three(sum / pieces)
        : count(sum / pieces)

export const things = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`

// Control characters, and those that turn the direction of text around, are shown as what they are.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
export const safe = (text) => text.replace(UNSAFE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)

// Of a text of which so many characters fit, the beginning and more of the end, which says which method or file it is:
// Shop::R…ller#index.
export const shortened = (text, fits) =>
  fits < 8
    ? `${text.slice(0, fits)}…`
    : `${text.slice(0, Math.ceil(fits / 3))}…${text.slice(Math.ceil(fits / 3) - fits)}`

// Where a name or path is cut in two: before its last part, so that the rest is shortened first. "Shop::Orders"
// "Controller#index"
export function cutOf(text) {
  const name = text.replace(/ \([^()]*\)$/, "") // "block in <main> (server.rb:13)"
  const last = text.includes("/")
    ? text.lastIndexOf("/")
    : Math.max(name.lastIndexOf("#"), name.lastIndexOf("::"), name.lastIndexOf("."))
  const half = Math.ceil(text.length / 2)
  return text.length < 12
    ? 0
    : text.length - Math.min(28, Math.max(Math.min(12, half), last > 0 ? text.length - last : half))
}

// …/gems/rack-3.1.8/lib/rack.rb → rack-3.1.8/lib/rack.rb, and paths below the working directory relative.
export function place(path, line, base) {
  if (!path) return ""
  const short =
    base && path.startsWith(`${base}/`)
      ? path.slice(base.length + 1)
      : path.replace(/^.*\/gems\/([^/]+-\d[^/]*\/)/s, "$1")
  return line > 0 ? `${short}:${line}` : short
}
