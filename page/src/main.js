// Reading order: data.js, recording_data.js, rows.js, tree.js, filters.js, shown_stacks.js, recording.js (what is shown);
// state.js, time_range.js, narrowing.js (what part of it); tabs.js, flame.js, timeline.js, table.js, views/ (how), with
// keys.js, menu.js and splitter.js; measured.js (bench and compare), change.js (call paths of two sides), log.js (a log of
// system calls), history.js (results over time). Everything is drawn of data by dom.js: no markup is made of strings.

import "uplot/dist/uPlot.min.css"
import "./style.css"
import { unpack } from "./data.js"
import { h, replace } from "./dom.js"
import { Recording } from "./recording.js"
import { RecordingApp } from "./app.js"
import { MeasuredApp } from "./measured.js"
import { LogApp } from "./log.js"
import { HistoryApp } from "./history.js"
import { theme } from "./theme.js"

async function start() {
  const place = document.getElementById("app")
  try {
    theme.start()
    const holder = document.getElementById("data")
    const data = await unpack(holder.textContent)
    holder.remove()
    const { kind } = data.object
    const app =
      kind === "recording"
        ? new RecordingApp(new Recording(data))
        : kind === "syscalls"
          ? new LogApp(data)
          : kind === "history"
            ? new HistoryApp(data)
            : new MeasuredApp(data)
    replace(place, app.element)
    app.begin()
    theme.changed = () => app.redraw()
    globalThis.pitwall = app // for tests and the curious
    // When it had been drawn, in ms since the address was opened.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        document.documentElement.dataset.ready = String(Math.round(performance.now()))
      }),
    )
  } catch (error) {
    replace(place, h("p", { class: "failed", role: "alert" }, `This report can’t be shown: ${error.message}`))
    throw error
  }
}

start()
