// What keys do on the page of a recording.

import { theme } from "./theme.js"

// As its list of keys has them: keys, meaning. A title has no meaning.
export const KEYS = [
  ["1 … 9", "the views, from left to right"],
  ["/", "search"],
  ["Enter, n; Shift + Enter, N", "the next match of the search; the one before"],
  ["b", "blackbox: fold everything below a method, or a path with a slash, into it"],
  ["m", "only the application’s frames, or all"],
  ["u", "unfold native frames, or fold them"],
  ["w", "count the time in which threads waited, or what they ran only"],
  ["i", "bottom up: from the methods to their callers, in tree and flame graph; or top down"],
  ["Esc", "clear the search, zoom out, look at everything again"],
  ["t", "light or dark"],
  ["?", "this list"],
  ["Flame graph", ""],
  ["click, Enter", "zoom to a frame; on the first row: zoom out"],
  ["double click, c", "callers and callees of a frame"],
  ["f", "focus on the frame’s method: only samples that have it in their stack; or no longer"],
  ["h", "hide the method’s frames: what they took counts for their callers; or no longer"],
  ["r", "root: stacks from the frame’s method on; or whole again"],
  ["b", "blackbox the frame, or no longer"],
  ["right click, menu key", "what can be done with the frame’s method"],
  ["arrow keys", "caller, heaviest callee, siblings"],
  ["Ctrl + wheel, + and −", "zoom"],
  ["drag, Shift + wheel, a and d", "move sideways"],
  ["Backspace", "zoom out by one frame"],
  ["Time line", ""],
  ["drag", "choose a range: everything follows"],
  ["Shift + drag", "move the range"],
  ["click, double click", "the whole recording again"],
  ["arrow keys on a handle", "move one end; with Shift faster"],
  ["click a request", "its thread and time, in every view"],
  ["← → ↑ ↓ on requests", "earlier, later, slower, faster; Enter chooses"],
  ["Panels", ""],
  ["drag the line between them", "other sizes; a double click resets"],
  ["arrow keys, Home on the line", "the same"],
  ["Tables", ""],
  ["arrow keys, Page Up, Home …", "move"],
  ["Enter", "choose"],
  ["f, h, r, b, c, menu key", "of methods: as in the flame graph"],
  ["← →", "close and open in a tree"],
]

export function pressed(app, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || app.help.open) return
  const typing = /^(input|select|textarea)$/i.test(event.target.tagName)
  if (event.key === "Escape" && app.narrowing.menu.open) return app.narrowing.close()
  if (event.key === "Escape" && event.target === app.search) {
    app.state.set({ search: "" })
    app.main.focus()
    return
  }
  if (event.key === "Enter" && event.target === app.search) return app.made[app.view].step?.(event.shiftKey ? -1 : 1)
  if (typing) return
  if (event.key === "/") {
    event.preventDefault()
    app.search.focus()
    app.search.select()
  } else if (event.key === "b" && app.narrowing.fold.isConnected) {
    event.preventDefault()
    app.narrowing.openFold()
  } else if (event.key === "?") app.help.showModal()
  else if (event.key === "t") theme.toggle()
  else if (event.key === "m" && app.recording.weights.length) app.toggleMine()
  else if (event.key === "u" && app.recording.folds) app.toggleNative()
  else if (/^[1-9]$/.test(event.key) && app.views[event.key - 1]) app.state.set({ view: app.views[event.key - 1].key })
  else if (event.key === "i" && app.recording.weights.length) app.toggleInverted()
  else if (event.key === "w" && app.waiting) app.toggleWaiting()
  else if (["n", "N"].includes(event.key)) app.made[app.view].step?.(event.key === "n" ? 1 : -1)
  else if (event.key === "Escape")
    app.state.set(app.state.search ? { search: "" } : app.state.zoom ? { zoom: null } : { root: null })
}
