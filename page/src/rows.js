// Rows of threads: samples in time order, and the parts of them that a filter lets through.

// The first place in a rising array whose value is above.
export function firstAfter(values, limit) {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle] > limit) high = middle
    else low = middle + 1
  }
  return low
}

// A stretch of time cuts the rows at its ends: of those the part within it counts.
export function addRows(sums, thread, name, filter, labelled) {
  if (!thread.rows) return
  const { node, ends } = thread
  const column = name === "cpu" ? thread.cpus : name === "captures" ? thread.capture : null
  const add = column
    ? (row, inside, part) => {
        sums[node[row]] += column[row] * part
      }
    : (row, inside) => {
        sums[node[row]] += inside
      }
  if (labelled || filter.state !== "all") return eachRow(thread, filter, labelled, add)

  // A million rows are added up while somebody drags: those that lie wholly within the range in a loop of their own.
  const from = filter.from ?? -Infinity
  const to = filter.to ?? Infinity
  const first = from < thread.start ? 0 : firstAfter(ends, from) + 1
  let last = to >= thread.end ? thread.rows : firstAfter(ends, to)
  while (last > first && (last === 1 ? thread.start : ends[last - 2]) >= to) last-- // of no length, at the very end
  if (first >= last) return eachRow(thread, filter, null, add)
  if (first > 0) eachRow(thread, { ...filter, to: Math.min(to, ends[first - 1]) }, null, add)
  if (column) for (let row = first; row < last; row++) sums[node[row]] += column[row]
  else {
    let start = first === 0 ? thread.start : ends[first - 1]
    for (let row = first; row < last; row++) {
      sums[node[row]] += ends[row] - start
      start = ends[row]
    }
  }
  if (last < thread.rows) eachRow(thread, { ...filter, from: Math.max(from, ends[last - 1]) }, null, add)
}

// Calls work(row, ns inside the range, that as a part of the row) for the rows that a filter lets through.
export function eachRow(thread, filter, labelled, work) {
  if (!thread.rows) return
  const { ends, state, label } = thread
  const from = filter.from ?? -Infinity
  const to = filter.to ?? Infinity
  const wanted = filter.state === "all" ? -1 : Number(filter.state)
  if (labelled && !label) return
  for (let row = from === -Infinity ? 0 : firstAfter(ends, from); row < thread.rows; row++) {
    const start = row === 0 ? thread.start : ends[row - 1]
    if (start >= to || (filter.request && ends[row] > to)) break // what a request's last row led to isn't known
    if ((wanted >= 0 && state[row] !== wanted) || (labelled && !labelled[label[row]])) continue
    const span = ends[row] - start
    const inside = Math.min(ends[row], to) - Math.max(start, from)
    work(row, inside, span === 0 ? 1 : inside / span)
  }
}

export function addCalls(sums, thread, name) {
  if (!thread.calls) return
  const { node, row, values } = thread.calls
  const column = values[name]
  for (let at = 0; at < node.length; at++) sums[node[at]] += column[row[at]]
}

// Parts one after another; a row between them says that nothing is known.
export function join({ title, parts }) {
  const seen = parts.filter((part) => part.rows)
  const rows = seen.reduce((sum, part) => sum + part.rows + 1, -1)
  const label = seen.some((part) => part.label) ? new Int32Array(rows) : null
  const joined = {
    title,
    rows,
    start: seen[0].start,
    node: new Int32Array(rows),
    ends: new Float64Array(rows),
    state: new Uint8Array(rows),
    label,
  }
  let at = 0
  let end = joined.start
  for (const part of seen) {
    if (at > 0) joined.ends[at++] = end = Math.max(end, part.start)
    joined.node.set(part.node, at)
    joined.state.set(part.state, at)
    if (part.label) label.set(part.label, at)
    // Clocks may overlap by a little.
    for (let row = 0; row < part.rows; row++) joined.ends[at++] = end = Math.max(end, part.ends[row])
  }
  joined.end = end
  return joined
}
