// Menus: what can be done with a thing, where it was asked for; and a button with a panel of switches.

import { h } from "./dom.js"

// Entries are [text, key that does the same, work]; what had the focus gets it back.
export function offer(entries, event) {
  event.preventDefault()
  const before = document.activeElement
  const items = entries
    .filter(Boolean)
    .map(([text, key, work]) =>
      h(
        "button",
        { role: "menuitem", tabindex: "-1", onclick: () => close(work) },
        h("span", {}, text),
        h("kbd", {}, key),
      ),
    )
  const close = (work) => {
    removeEventListener("pointerdown", beside, true)
    element.remove()
    before?.focus()
    work?.()
  }
  const beside = (other) => element.contains(other.target) || close()
  const keys = (pressed) => {
    const at = items.indexOf(document.activeElement)
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[pressed.key]
    if (to !== undefined) items.at(to % items.length).focus()
    else if (["Escape", "Tab"].includes(pressed.key)) close()
    else if (!["Enter", " "].includes(pressed.key)) return
    else items[at]?.click()
    pressed.preventDefault()
    pressed.stopPropagation()
  }
  const element = h(
    "div",
    { class: "panel offer", role: "menu", onkeydown: keys, oncontextmenu: (other) => other.preventDefault() },
    items,
  )
  document.querySelector(".page").append(element)
  // Of a key there is no place: below what has the focus.
  const bounds = before.getBoundingClientRect()
  const [x, y] = event.clientX || event.clientY ? [event.clientX, event.clientY] : [bounds.left + 20, bounds.top + 40]
  const { clientWidth, clientHeight } = document.documentElement
  element.style.left = `${Math.max(4, Math.min(x, clientWidth - element.offsetWidth - 4))}px`
  element.style.top = `${Math.max(4, Math.min(y, clientHeight - element.offsetHeight - 4))}px`
  addEventListener("pointerdown", beside, true)
  items[0].focus()
}

// A button that opens a panel of switches below it. It closes at a click beside it; Escape is the app's.
export function menu(title, ...content) {
  const panel = h("div", { class: "panel" }, content)
  const element = h("details", { class: "menu" }, h("summary", { class: "small" }, title), panel)
  // The panel stands in front of everything, and within the window however narrow that is.
  const put = () => {
    const { left, right, bottom } = element.getBoundingClientRect()
    const width = panel.offsetWidth
    panel.style.top = `${bottom + 4}px`
    panel.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - width - 8, right))}px`
  }
  element.addEventListener("toggle", () => element.open && put())
  addEventListener("resize", () => element.open && put())
  addEventListener("pointerdown", (event) => {
    if (!element.contains(event.target)) element.open = false
  })
  return element
}
