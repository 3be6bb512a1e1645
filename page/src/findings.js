// What stands out; each opens to its two commands.

import { h } from "./dom.js"
import { place, safe } from "./format.js"

export function findings(app) {
  const { about, base } = app.recording
  const at = (finding) =>
    finding.path &&
    app.hasSource(finding.path) &&
    h(
      "button",
      {
        class: "small",
        onclick: () => app.state.set({ view: "source", file: finding.path, search: "" }),
        title: place(finding.path, finding.line, base),
      },
      "source",
    )
  return h(
    "section",
    { class: "findings", "aria-label": "What stands out" },
    about.findings.map((finding) =>
      h(
        "details",
        {},
        h("summary", {}, h("span", {}, safe(finding.text)), " ", at(finding)),
        h("p", {}, "more: ", h("code", {}, safe(finding.more))),
        finding.proof && h("p", {}, "proof of a fix: ", h("code", {}, safe(finding.proof))),
      ),
    ),
  )
}
