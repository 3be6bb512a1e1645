// What every page has around it: the name and facts of what is shown, help, light and dark.

import { h } from "./dom.js"
import { theme } from "./theme.js"

export function frame({ title, facts, help }, ...parts) {
  return h(
    "div",
    { class: "page" },
    h(
      "header",
      {},
      h("h1", {}, title),
      h(
        "p",
        { class: "facts" },
        facts.filter(Boolean).map((text) => h("span", {}, text)),
      ),
      h("span", { class: "space" }),
      h(
        "button",
        { class: "icon", "aria-label": "Keyboard and mouse", title: "Keyboard and mouse (?)", onclick: help },
        "?",
      ),
      h(
        "button",
        { class: "icon", "aria-label": "Light or dark", title: "Light or dark (t)", onclick: () => theme.toggle() },
        "◐",
      ),
    ),
    ...parts,
  )
}

export function help(keys) {
  const dialog = h("dialog", { "aria-label": "Keyboard and mouse" })
  dialog.append(
    h("h2", {}, "Keyboard and mouse"),
    h(
      "dl",
      {},
      keys.map(([key, what]) => (what ? [h("dt", {}, key), h("dd", {}, what)] : h("h3", {}, key))),
    ),
    h("button", { onclick: () => dialog.close() }, "Close"),
  )
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close()
  })
  return dialog
}
