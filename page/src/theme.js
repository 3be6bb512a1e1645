// Light or dark: as the system says, until somebody chooses; the choice is remembered where the browser lets us.

const KEY = "pitwall-theme"
const dark = matchMedia("(prefers-color-scheme: dark)")

function remembered() {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}

export const theme = {
  changed: () => {},
  get now() {
    return document.documentElement.dataset.theme
  },

  start() {
    this.apply(remembered() || (dark.matches ? "dark" : "light"))
    dark.addEventListener("change", () => remembered() || this.apply(dark.matches ? "dark" : "light"))
  },

  toggle() {
    this.apply(this.now === "dark" ? "light" : "dark")
    try {
      localStorage.setItem(KEY, this.now)
    } catch {
      /* it holds as long as the page */
    }
  },

  apply(name) {
    document.documentElement.dataset.theme = name
    this.changed()
  },
}
