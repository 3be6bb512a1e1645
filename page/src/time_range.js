// A part of a recording's time as people type it, the same on the command line and in the page's address: "2s..5s",
// "500ms..", "..1m".

const UNITS = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, m: 60e9 }

// {from, to} in ns, null for an open end; null where the text is no such part.
export function readTime(text) {
  const ends = /^(.*?)\.\.(.*)$/.exec(text ?? "")
  if (!ends || (!ends[1] && !ends[2])) return null
  const [from, to] = [ends[1], ends[2]].map((end) => (end.trim() ? moment(end.trim()) : null))
  if (Number.isNaN(from) || Number.isNaN(to) || (to !== null && to <= (from ?? 0))) return null
  return { from: from ?? 0, to }
}

function moment(text) {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|m)$/.exec(text) ?? []
  return unit ? Math.round(Number(number) * UNITS[unit]) : NaN
}

// The other way, "" for the whole.
export function writeTime({ from, to }) {
  if (from === null && to === null) return ""
  return `${from ? inUnits(from) : to === null ? "0s" : ""}..${to === null ? "" : inUnits(to)}`
}

function inUnits(ns) {
  const whole = Math.round(ns)
  const unit = whole >= 1e9 ? "s" : whole >= 1e6 ? "ms" : "us"
  return `${whole / UNITS[unit]}${unit}`
}
