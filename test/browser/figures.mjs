// What a page shows of a recording, worked out by the page's own modules, without a browser.
//
//   node figures.mjs FILE     a page's data, in Base64, as it stands in the page
//
// Prints one JSON object: by weight and selection the total ("all" of the flame graph) and each method's figures, labels,
// requests, threads, objects.

import { readFileSync } from "node:fs"
import { unpack } from "../../page/src/data.js"
import { Recording } from "../../page/src/recording.js"
import { labelRows, labelled } from "../../page/src/views/labels.js"

const recording = new Recording(await unpack(readFileSync(process.argv[2], "utf8")))
const { about } = recording
const usual = { thread: "busy", state: "all", from: null, to: null, label: "", blackbox: [], gc: "" }

const methods = (name, filter) => {
  const { self, total } = recording.byMethod(name, filter)
  return recording.methods.flatMap((method) => (self[method.id] || total[method.id] ? [[method.name, method.path, method.line, self[method.id], total[method.id]]] : []))
}
const weighed = (filter) => Object.fromEntries(recording.weights.map(({ name }) => [name, { total: recording.weighed(name, filter).total, methods: methods(name, filter) }]))
const labels = (filter) =>
  Object.fromEntries(
    recording.labelNames.map((name) => {
      const rows = labelRows(recording, name, filter)
      return [name, { labelled: labelled(rows), rows: rows.map(({ value, wall, cpu, captures, count, total }) => [value, wall, cpu, captures, count, total]) }]
    }),
  )
const objects = () => ({
  total: about.objects.total,
  sites: recording.siteRows(["path", "line", "class"]).map((row) => [row.path, row.line, row.class, row.count, row.bytes, about.objects.retained ? row.retained : null, about.objects.retained_bytes ? row.retained_bytes : null, row.gc_ns]),
})
const request = (mark) => {
  const narrowed = { ...usual, thread: mark.thread.key, from: mark.from, to: mark.to, request: mark.number }
  return { number: mark.number, labels: mark.labels, ns: mark.ns, start: mark.start, wall: recording.sampled ? recording.weighed("wall", narrowed).total : 0 }
}

console.log(
  JSON.stringify({
    names: recording.labelNames,
    weights: weighed(usual),
    idle: weighed({ ...usual, thread: "all" }),
    labels: labels(usual),
    labelled: Object.fromEntries(
      recording.labelNames.flatMap((name) =>
        labelRows(recording, name, usual)
          .filter((row) => row.value !== null && row.wall > 0)
          .map((row) => [`${name}=${row.value}`, recording.weighed("wall", { ...usual, thread: "all", label: `${name}=${row.value}` }).total]),
      ),
    ),
    requests: recording.marks.map(request),
    count: recording.works.reduce((sum, work) => sum + work.count, 0),
    threads: recording.lanes.map((lane) => [lane.pid, lane.name, lane.wall, lane.cpu, lane.captures]),
    objects: about.objects ? objects() : null,
  }),
)
