// Requests as bars of the time line: their colours and texts.

import { css, fit } from "./dom.js"
import { duration, shortened } from "./format.js"
import { inWords } from "./views/requests.js"

const BAR = 15 // pixels of height

// The longest first, so that what lies within it is seen; of many in one pixel one is drawn.
export function paintRequests(timeline, lane, width) {
  const context = fit(lane.canvas, width, BAR)
  context.clearRect(0, 0, width, BAR)
  context.font = `10.5px ${css("--font")}`
  context.textBaseline = "middle"
  const scale = width / timeline.recording.span
  const taken = new Uint8Array(width + 1)
  const text = css("--text")
  lane.ranked ||= [...lane.marks].sort((a, b) => b.ns - a.ns)
  for (const mark of lane.ranked) {
    const left = Math.max(0, mark.start * scale)
    const wide = Math.max(1, Math.min(width, mark.end * scale) - left)
    if (wide < 1.5) {
      if (taken[Math.floor(left)]) continue
      taken[Math.floor(left)] = 1
    }
    context.fillStyle = requestColour(mark, timeline.labelName)
    context.fillRect(left, 1, wide > 4 ? wide - 1 : wide, BAR - 2)
    if (wide < 34) continue
    context.fillStyle = text
    context.fillText(
      fitting(context, mark.labels[timeline.labelName] ?? inWords(mark.labels), duration(mark.ns), wide - 9),
      left + 4,
      BAR / 2 + 0.5,
    )
  }
  for (const [mark, wide, colour] of [
    [timeline.request, 2, text],
    [timeline.pointed, 1.5, css("--accent")],
  ]) {
    if (mark?.thread.lane !== lane.thread) continue
    context.strokeStyle = colour
    context.lineWidth = wide
    context.strokeRect(
      Math.max(0, mark.start * scale) + wide / 2,
      wide / 2,
      Math.max(2, mark.ns * scale - wide),
      BAR - wide,
    )
  }
}

// "orders#show · 42 ms", or as much of it as there is room for.
function fitting(context, name, took, room) {
  const whole = `${name} · ${took}`
  if (context.measureText(whole).width <= room) return whole
  const wide = context.measureText(name).width
  if (wide <= room) return name
  const fits = Math.floor((name.length * room) / wide) - 1
  return fits < 2 ? "" : shortened(name, fits)
}

// By what the program calls it: one value is always the same colour.
function requestColour(mark, label) {
  const text = mark.labels[label] ?? inWords(mark.labels)
  let hash = 7
  for (let at = 0; at < text.length; at++) hash = (hash * 31 + text.charCodeAt(at)) | 0
  const hue = ((hash >>> 0) % 12) * 30
  return document.documentElement.dataset.theme === "dark" ? `hsl(${hue} 34% 36%)` : `hsl(${hue} 55% 82%)`
}
