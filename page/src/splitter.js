// A handle beside a panel whose size it changes: by dragging, by the arrow keys; a double click or Home gives the usual
// size back. Sizes are in percent of the width of both panels (of the window's height, where the panel is above the
// handle), so that they suit windows of other sizes.

import { h } from "./dom.js"

const LEAST = 5
const MOST = 80
const STEP = 2

const PANELS = { timeline: "vh", detail: "%", files: "%", beside: "%" }

// Gives panels below an element the sizes of the state, as the style sheet asks for them.
export function size(element, { sizes }) {
  for (const [name, unit] of Object.entries(PANELS)) {
    if (sizes[name]) element.style.setProperty(`--size-${name}`, `${sizes[name]}${unit}`)
    else element.style.removeProperty(`--size-${name}`)
  }
}

// name: in state.sizes; panel(): its element; side: where the panel is, seen from the handle: "left", "right" or
// "above".
export function splitter(state, { name, label, side, panel }) {
  const above = side === "above"
  let grabbed = null // how far beside the panel's edge it is held, while it is dragged
  // Both panels, without the margins around them.
  const around = () => {
    const { left } = handle.previousElementSibling.getBoundingClientRect()
    const { right } = handle.nextElementSibling.getBoundingClientRect()
    return { left, right, width: right - left }
  }
  const set = (percent) => {
    const { [name]: _, ...others } = state.sizes
    state.set({
      sizes:
        percent === null
          ? others
          : { ...others, [name]: Math.round(Math.min(MOST, Math.max(LEAST, percent)) * 10) / 10 },
    })
  }
  const now = () => (above ? (panel().offsetHeight / innerHeight) * 100 : (panel().offsetWidth / around().width) * 100)
  const say = () => handle.setAttribute("aria-valuenow", String(Math.round(now())))
  const at = (event) => {
    const bounds = above ? panel().getBoundingClientRect() : around()
    return above
      ? ((event.clientY - bounds.top) / innerHeight) * 100
      : ((side === "left" ? event.clientX - bounds.left : bounds.right - event.clientX) / bounds.width) * 100
  }
  const [more, less] = {
    left: ["ArrowRight", "ArrowLeft"],
    right: ["ArrowLeft", "ArrowRight"],
    above: ["ArrowDown", "ArrowUp"],
  }[side]
  const handle = h("div", {
    class: `splitter ${above ? "flat" : ""}`,
    role: "separator",
    tabindex: "0",
    title: "Drag, or use the arrow keys; a double click resets",
    "aria-label": label,
    "aria-orientation": above ? "horizontal" : "vertical",
    "aria-valuemin": String(LEAST),
    "aria-valuemax": String(MOST),
    "aria-valuenow": "0",
    onfocus: say,
    onpointerdown: (event) => {
      handle.setPointerCapture(event.pointerId)
      grabbed = at(event) - now()
    },
    onpointermove: (event) => grabbed !== null && set(at(event) - grabbed),
    onpointerup: () => (grabbed = null),
    onpointercancel: () => (grabbed = null),
    ondblclick: () => set(null),
    onkeydown: (event) => {
      if (![more, less, "Home"].includes(event.key)) return
      event.preventDefault()
      event.stopPropagation()
      set(event.key === "Home" ? null : now() + (event.key === more ? STEP : -STEP))
      requestAnimationFrame(() => requestAnimationFrame(say))
    },
  })
  return handle
}
