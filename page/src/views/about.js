// How it was recorded, and how much of it to believe.

import { h } from "../dom.js"
import { duration, count, bytes } from "../format.js"

// A setting, as it was asked for; nothing for what is empty.
function plain(setting) {
  if (typeof setting === "boolean") return setting ? "yes" : ""
  if (setting === null || typeof setting === "object")
    return setting && Object.keys(setting).length ? JSON.stringify(setting) : ""
  return String(setting)
}

export class AboutView {
  constructor(app) {
    const { about } = app.recording
    const { host } = about
    const rows = [
      ["program", about.programs.join(", ")],
      ["Ruby", about.rubies.join(", ")],
      [
        "recorded",
        about.started_at_ns
          ? new Date(about.started_at_ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC"
          : "",
      ],
      ["wall time", duration(about.elapsed_ns)],
      ["CPU time", duration(about.cpu_ns)],
      ["own cost", duration(about.own_ns)],
      [
        "host",
        [host.cpu, host.cores && `${host.cores} cores`, host.kernel, host.memory_bytes && bytes(host.memory_bytes)]
          .filter(Boolean)
          .join(", "),
      ],
      ...Object.entries(about.losses)
        .filter(([, number]) => number)
        .map(([key, number]) => [key.replaceAll("_", " "), count(number)]),
      ...Object.entries(about.settings).map(([key, setting]) =>
        typeof setting === "number" && key.endsWith("_ns")
          ? [key.slice(0, -3).replaceAll("_", " "), duration(setting)]
          : [key.replaceAll("_", " "), plain(setting)],
      ),
    ]
    this.element = h(
      "div",
      { class: "view page-scroll about" },
      about.warnings.map((text) => h("p", { class: "warning" }, text)),
      about.head.map((text) =>
        h(
          "p",
          { class: text.startsWith("! ") ? "warning" : text.startsWith("i ") ? "muted" : "" },
          text.replace(/^[i!] /, ""),
        ),
      ),
      h(
        "dl",
        {},
        rows.filter(([, text]) => text).map(([key, text]) => [h("dt", {}, key), h("dd", {}, text)]),
      ),
      h(
        "p",
        { class: "muted" },
        `Made by Pitwall ${about.version}. This file holds all it shows, loads nothing and sends nothing.`,
      ),
    )
  }

  update() {}
}
