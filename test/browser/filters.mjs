// What filters leave of recordings, by the page's own program in Node.js.
//
//   node filters.mjs < LINES
//
// A line is a JSON object: page (the data of a page, as Base64), asked (what Recording#look takes), weight, filter (as
// the app has it), expected ({"name path line kind": [self, total]}). Prints "same", or the first difference.

import { createInterface } from "node:readline"
import { unpack } from "../../page/src/data.js"
import { Recording } from "../../page/src/recording.js"

let count = 0
for await (const line of createInterface({ input: process.stdin })) {
  const { page, asked, weight, filter, expected, whole, known, said } = JSON.parse(line)
  const recording = new Recording(await unpack(page))
  recording.look(asked)
  const { self, total } = recording.byMethod(weight, filter)
  const found = {}
  for (const method of recording.methods) {
    if (!self[method.id] && !total[method.id]) continue
    const key = [method.name, method.path, method.line].join("\t")
    const [own, all] = found[key] ?? [0, 0]
    found[key] = [own + self[method.id], all + total[method.id]]
  }
  const meant = [...asked.focus, ...asked.hide].map((name) => recording.matching(name).length)
  const sorted = (object) => JSON.stringify(Object.entries(object).sort())
  const part = recording.part(weight, filter)
  if (sorted(found) !== sorted(expected) || part[1] !== whole || String(meant) !== String(known)) {
    console.log(`${said}\nfound    ${sorted(found)}\nexpected ${sorted(expected)}\nof ${part[1]}, ${whole}; ${meant}, ${known} of ${recording.names.methods.map(({ name }) => name)}`)
    process.exit(1)
  }
  count++
}
console.log(`same ${count}`)
