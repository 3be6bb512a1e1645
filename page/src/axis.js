// An axis of time: its steps and their texts.

import { css, fit } from "./dom.js"

// On a canvas of so many pixels, from 0 to span (ns).
export function paintAxis(canvas, width, span) {
  const context = fit(canvas, width, 18)
  context.clearRect(0, 0, width, 18)
  context.font = `10.5px ${css("--font")}`
  context.fillStyle = css("--muted")
  context.strokeStyle = css("--line")
  const step = niceStep(span / Math.max(2, Math.floor(width / 110)))
  for (let ns = 0; ns <= span * 1.0001; ns += step) {
    const x = Math.min(width - 0.5, Math.round((ns / span) * width) + 0.5)
    context.beginPath()
    context.moveTo(x, 0)
    context.lineTo(x, 5)
    context.stroke()
    const text = axisText(ns, step)
    const wide = context.measureText(text).width
    context.fillText(text, Math.min(Math.max(0, x - wide / 2), width - wide), 15)
  }
}

export function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough))
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough)
}

// All of an axis in one unit, with no more digits than its step needs.
export function axisText(ns, step) {
  const [size, unit] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : step >= 1e2 ? [1e3, "µs"] : [1, "ns"]
  let digits = 0
  while (digits < 6 && Math.abs((step / size) * 10 ** digits - Math.round((step / size) * 10 ** digits)) > 1e-6)
    digits++
  return `${(ns / size).toFixed(digits)} ${unit}`
}
