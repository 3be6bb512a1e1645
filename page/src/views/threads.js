// Threads and their states.

import { h } from "../dom.js"
import { Table } from "../table.js"
import { amount } from "./columns.js"

export class ThreadsView {
  constructor(app) {
    this.app = app
    this.table = new Table({
      label: "Threads",
      columns: [],
      sorted: ["wall", true],
      chosen: (row) =>
        app.state.set({
          thread:
            app.recording.lane(app.state.thread) === row.thread
              ? app.recording.hasIdle
                ? "busy"
                : "all"
              : row.thread.key,
        }),
    })
    this.element = h("div", { class: "view" }, this.table.element)
  }

  update() {
    const { recording, filter, state } = this.app
    const narrowed = filter.to !== null || filter.label || recording.inFocus
    const threads = filter.request ? recording.selectedLanes(filter) : recording.lanes
    const rows = threads.map((thread) => ({
      thread,
      ...(narrowed && thread.rows
        ? within(recording, thread, filter)
        : { wall: thread.wall, cpu: thread.cpu, captures: thread.captures, states: thread.states }),
    }))
    const chosen = recording.lane(state.thread)
    const longest = rows.reduce((most, row) => Math.max(most, row.wall), 1)
    this.table.setColumns([
      amount("wall", "wall time", "ns", (row) => row.wall, "6.8rem"),
      amount("cpu", "CPU time", "ns", (row) => row.cpu, "6.8rem"),
      ...(recording.sampled ? [amount("captures", "samples", "count", (row) => row.captures)] : []),
      ...(recording.sampled
        ? [
            {
              key: "states",
              label: "states",
              wide: "30%",
              node: (row) => stateBar(row, longest, recording.statesInWords(row)),
            },
          ]
        : []),
      {
        key: "pid",
        label: "process",
        number: true,
        wide: "6rem",
        least: 720,
        sort: (row) => row.thread.pid ?? 0,
        text: (row) => String(row.thread.pid ?? ""),
      },
      {
        key: "name",
        label: "thread",
        sort: (row) => row.thread.name,
        text: (row) => `${row.thread.name}${row.thread.idle ? " (waited for work)" : ""}`,
        class: "grow",
      },
    ])
    this.table.show(rows, rows.find((row) => row.thread === chosen) ?? null)
  }
}

function stateBar(row, longest, text) {
  return h(
    "span",
    {
      class: "states",
      role: "img",
      "aria-label": text,
      title: text,
      style: { width: `${(row.wall / longest) * 100}%` },
    },
    row.states.map(
      (ns, state) => ns > 0 && h("i", { class: `s${state}`, style: { "flex-grow": String(ns / row.wall) } }),
    ),
  )
}

function within(recording, { parts }, filter) {
  const sums = { wall: 0, cpu: 0, captures: 0, states: recording.noStates() }
  for (const thread of filter.request ? recording.selected(filter) : parts) {
    recording.eachRow(thread, { ...filter, state: "all" }, recording.labelled(filter), (row, wall, cpu, captures) => {
      sums.wall += wall
      sums.cpu += cpu
      sums.captures += captures
      sums.states[thread.state[row]] += wall
    })
  }
  return sums
}
