// Elements made of data: children are nodes or text, never markup, so nothing in a recording can become a tag.

import { cutOf } from "./format.js"

export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value)
    else if (key === "class") element.className = value
    else if (key === "style")
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text)
    else if (key in element && typeof value !== "string") element[key] = value
    else element.setAttribute(key, value === true ? "" : value)
  }
  return append(element, ...children)
}

const SVG = "http://www.w3.org/2000/svg"

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name)
  for (const [key, text] of Object.entries(attributes))
    if (text !== undefined && text !== null) element.setAttribute(key, text)
  for (const child of children.flat(2)) if (child) element.append(child)
  return element
}

export function append(element, ...children) {
  for (const child of children.flat(3))
    if (child !== undefined && child !== null && child !== false) element.append(child)
  return element
}

// A name or path that is shortened in the middle where there is no room.
export function middle(text) {
  const cut = cutOf(text)
  if (!cut) return h("bdi", { class: "middle" }, text)
  const [start, end] = [text.slice(0, cut), text.slice(cut)]
  return h(
    "bdi",
    { class: "middle", style: { "--start": `${room(start)}px`, "--end": `${room(end)}px` } },
    h("span", { class: "start" }, start),
    h("span", { class: "end" }, h("bdi", { dir: "ltr" }, end)),
  )
}

// Pixels that a text takes in tables, a little less, so that rounding cuts nothing. Inline boxes need them: those of
// flex or grid would be copied as lines of their own.
const widths = new Map()
let pen = null
function room(text) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d")
    pen.font = `13px ${css("--font")}`
  }
  if (widths.size > 20_000) widths.clear()
  if (!widths.has(text)) widths.set(text, Math.max(0, pen.measureText(text).width - 0.5))
  return widths.get(text)
}

export function replace(element, ...children) {
  element.replaceChildren()
  return append(element, ...children)
}

// A labelled <select>; options are [value, text].
export function select(label, options, value, change) {
  const box = h(
    "select",
    { "aria-label": label, onchange: () => change(box.value) },
    options.map(([key, text]) => h("option", { value: String(key) }, text)),
  )
  box.value = String(value)
  return h("label", { class: "field" }, h("span", {}, label), box)
}

// Calls it once before the next frame, however often it is asked to.
export function oncePerFrame(work) {
  let asked = false
  return () => {
    if (asked) return
    asked = true
    requestAnimationFrame(() => {
      asked = false
      work()
    })
  }
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

// Sharp on every screen: sets the canvas's pixels for a size in CSS pixels, answers its context.
export function fit(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio)
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio)
  canvas.style.width = `${width}px`
  canvas.style.height = `${height}px`
  const context = canvas.getContext("2d")
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  return context
}
