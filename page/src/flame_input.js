// What pointer and keys do on a flame graph.

import { h } from "./dom.js"
import { duration, place } from "./format.js"

export function listen(flame) {
  const { scroller } = flame
  let drag = null
  scroller.addEventListener("scroll", () => flame.draw(), { passive: true })
  scroller.addEventListener(
    "wheel",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) {
        event.preventDefault()
        flame.zoomAt(
          (event.clientX - flame.canvas.getBoundingClientRect().left) / flame.canvas.clientWidth,
          Math.exp(event.deltaY * (event.deltaMode ? 0.05 : 0.004)),
        )
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault()
        flame.pan((event.deltaX || event.deltaY) / scroller.clientWidth)
      }
    },
    { passive: false },
  )
  scroller.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || (event.offsetX > scroller.clientWidth && event.target === scroller)) return
    drag = { x: event.clientX, y: event.clientY, view: flame.view, top: scroller.scrollTop, moved: false }
  })
  scroller.addEventListener("pointermove", (event) => {
    if (!drag) return hover(flame, event)
    if (!drag.moved && Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) < 5) return
    if (!drag.moved) {
      drag.moved = true
      scroller.setPointerCapture(event.pointerId)
      flame.tip.hidden = true
    }
    const width = drag.view[1] - drag.view[0]
    const begin = Math.min(
      1 - width,
      Math.max(0, drag.view[0] - ((event.clientX - drag.x) / scroller.clientWidth) * width),
    )
    if (width < 1) {
      flame.view = [begin, begin + width]
      flame.focus = 0
    }
    scroller.scrollTop = drag.top - (event.clientY - drag.y)
    flame.draw()
  })
  scroller.addEventListener("pointerup", (event) => {
    if (event.button !== 0) return
    const moved = drag?.moved
    drag = null
    if (moved) return flame.movedSoon()
    const box = flame.at(event)
    if (!box) return
    box.node && flame.mode === "tree" ? flame.zoom(box.node) : box.node ? flame.select(box.node) : flame.reset()
  })
  scroller.addEventListener("pointercancel", () => {
    drag = null
  })
  scroller.addEventListener("pointerleave", () => {
    flame.tip.hidden = true
  })
  scroller.addEventListener("dblclick", (event) => {
    const box = flame.at(event)
    if (box?.node) flame.chosen(flame.tree.keys[box.node])
  })
  scroller.addEventListener("keydown", (event) => pressed(flame, event))
  scroller.addEventListener("contextmenu", (event) => {
    drag = null
    const node = (event.button === 2 ? flame.at(event)?.node : 0) || (event.button !== 2 && flame.selected)
    if (!flame.asked || !node) return
    flame.tip.hidden = true
    flame.select(node)
    flame.asked(flame.tree.keys[node], event)
  })
}

// Time that a box in time order stands for, in ns.
function seen(flame, box) {
  return ((box.right - box.left) / flame.scroller.clientWidth) * (flame.view[1] - flame.view[0]) * flame.whole
}

function hover(flame, event) {
  const box = flame.at(event)
  flame.tip.hidden = !box
  if (!box) return
  const method = box.node ? flame.recording.methods[flame.tree.keys[box.node]] : null
  flame.tip.replaceChildren(
    ...(method
      ? [
          h("strong", {}, method.name),
          h("span", { class: "path" }, place(method.path, method.line, flame.recording.base)),
          ...flame.figures(box.node).map((text) => h("span", {}, text)),
          flame.mode === "time" && h("span", {}, `${duration(seen(flame, box))} here`),
        ].filter((part) => part && part.textContent)
      : [h("strong", {}, flame.rootText())]),
  )
  const room = flame.element.getBoundingClientRect()
  const left = Math.min(event.clientX - room.left + 14, room.width - flame.tip.offsetWidth - 8)
  const below = event.clientY - room.top + 18
  const top =
    below + flame.tip.offsetHeight > room.height ? event.clientY - room.top - flame.tip.offsetHeight - 10 : below
  flame.tip.style.left = `${Math.max(4, left)}px`
  flame.tip.style.top = `${Math.max(4, top)}px`
}

function pressed(flame, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const ofMethod = flame.selected && flame.keys[event.key]
  const step = {
    "+": () => flame.zoomAt(0.5, 0.5),
    "=": () => flame.zoomAt(0.5, 0.5),
    "-": () => flame.zoomAt(0.5, 2),
    a: () => flame.pan(-0.2),
    d: () => flame.pan(0.2),
    Escape: () => flame.reset(),
    Enter: () =>
      flame.selected &&
      (flame.mode === "tree" ? flame.zoom(flame.selected) : flame.chosen(flame.tree.keys[flame.selected])),
    c: () => flame.selected && flame.chosen(flame.tree.keys[flame.selected]),
    b: flame.folded && flame.selected ? () => flame.folded(flame.tree.keys[flame.selected]) : null,
    Backspace: () => flame.zoom(flame.tree.parents[flame.focus]),
  }[event.key] || (ofMethod && (() => ofMethod(flame.tree.keys[flame.selected])))
  const arrow = event.key.startsWith("Arrow") && neighbour(flame, event.key.slice(5))
  if (!step && arrow === false) return
  event.preventDefault()
  event.stopPropagation()
  if (step) return step()
  if (!arrow) return
  flame.select(arrow)
  flame.reveal(arrow)
}

// Up: the caller; down: the heaviest callee; left and right: siblings. In time order, what is drawn beside it.
function neighbour(flame, direction) {
  const { parents } = flame.tree
  const node = flame.selected
  if (direction === "Up") return parents[node] || node
  if (flame.mode === "time") {
    const row = flame.boxes
      .filter(
        (box) =>
          box.node &&
          (direction === "Down"
            ? box.depth === flame.tree.depths[node] + 1
            : box.depth === Math.max(1, flame.tree.depths[node])),
      )
      .sort((a, b) => a.left - b.left)
    if (direction === "Down" || !node) return (row.find((box) => parents[box.node] === node) || row[0])?.node ?? node
    const at = row.findIndex((box) => box.node === node)
    return row[at + (direction === "Right" ? 1 : -1)]?.node ?? node
  }
  if (direction === "Down") return flame.weighed.children(node)[0] ?? node
  const siblings = flame.weighed.children(parents[node])
  return siblings[siblings.indexOf(node) + (direction === "Right" ? 1 : -1)] ?? node
}
