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

// The first place in a rising array whose value is not below.
function firstNotBelow(values, limit) {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle] >= limit) high = middle
    else low = middle + 1
  }
  return low
}

// Adds the weights of the rows that a filter lets through to sums by node. A million rows are added up while somebody
// drags: those that lie wholly within the range in a loop of their own.
export function addRows(sums, thread, name, filter, labelled) {
  if (!thread.rows) return
  const { node, ends } = thread
  const add = {
    wall: (row, wall) => (sums[node[row]] += wall),
    cpu: (row, wall, cpu) => (sums[node[row]] += cpu),
    captures: (row, wall, cpu, captures) => (sums[node[row]] += captures),
  }[name]
  if (labelled || filter.state !== "all" || filter.request) return eachRow(thread, filter, labelled, add)

  const { from, to } = moments(thread, filter)
  const first = from < thread.start ? 0 : Math.min(firstNotBelow(ends, from) + 1, thread.rows)
  let last = to > thread.end ? thread.rows : firstAfter(ends, to)
  while (last > first && (last === 1 ? thread.start : ends[last - 2]) >= to) last-- // of no length, at the range's end
  if (first >= last) return eachRow(thread, filter, null, add)
  eachRow(thread, filter, null, add, 0, first)
  const column = name === "cpu" ? thread.cpus : name === "captures" ? thread.capture : null
  if (column) for (let row = first; row < last; row++) sums[node[row]] += column[row]
  else {
    let start = first === 0 ? thread.start : ends[first - 1]
    for (let row = first; row < last; row++) {
      sums[node[row]] += ends[row] - start
      start = ends[row]
    }
  }
  eachRow(thread, filter, null, add, last)
}

// Calls work(row, wall, cpu, captures) for the rows that a filter lets through, with the part within the range, as
// Analyse::TimeRange cuts rows, or Analyse::Requests those of a request.
export function eachRow(thread, filter, labelled, work, first = 0, last = thread.rows) {
  if (!thread.rows || (labelled && !thread.label)) return
  const { ends, state, label, cpus, capture, unit = 1 } = thread
  const { from, to } = moments(thread, filter)
  const wanted = filter.state === "all" ? -1 : Number(filter.state)
  for (let row = Math.max(first, from === -Infinity ? 0 : firstNotBelow(ends, from)); row < last; row++) {
    const start = row === 0 ? thread.start : ends[row - 1]
    const span = ends[row] - start
    if (filter.request) {
      if (ends[row] > to) break // what a request's last row led to isn't known
      if (ends[row] <= from) continue
    } else {
      if (start >= to) break
      if (span > 0 ? ends[row] <= from : start < from) continue
    }
    if ((wanted >= 0 && state[row] !== wanted) || (labelled && !labelled[label[row]])) continue
    const begin = Math.max(start, from) - start
    const end = Math.min(ends[row], to) - start
    if (end - begin === span) work(row, span, cpus[row], capture[row])
    else if (filter.request) work(row, end - begin, part(cpus[row] / unit, end - begin, span) * unit, capture[row])
    else {
      const within = (value) => part(value, end, span) - part(value, begin, span)
      work(row, end - begin, within(cpus[row] / unit) * unit, within(capture[row]))
    }
  }
}

// A range in whole units of the thread's clock.
function moments({ origin = 0, unit = 1 }, { from, to, request }) {
  const whole = (ns) => (request ? ns : origin + Math.floor((ns - origin) / unit) * unit)
  return { from: from === null ? -Infinity : whole(from), to: to === null ? Infinity : whole(to) }
}

// What lies before a moment of a row, rounded down. Products of long rows are too large for a Float64.
function part(value, at, span) {
  const product = value * at
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / span)
  return Number((BigInt(value) * BigInt(at)) / BigInt(span))
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
