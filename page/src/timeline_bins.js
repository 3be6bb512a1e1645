// Time in equal bins, as lanes of the time line draw it.

export const BINS = 2400

// Adds a stretch from a to b (in bins) to one kind.
export function spread(bins, kinds, kind, a, b) {
  let bin = Math.floor(a)
  const last = Math.min(Math.floor(b), BINS - 1)
  if (bin >= BINS) return
  if (bin === last) {
    bins[bin * kinds + kind] += b - a
    return
  }
  bins[bin * kinds + kind] += bin + 1 - a
  for (bin++; bin < last; bin++) bins[bin * kinds + kind] += 1
  bins[last * kinds + kind] += Math.min(b, last + 1) - last
}

// Puts ns of two kinds, in parts, evenly between a and b (in bins).
export function put(bins, kinds, a, b, ns, part, width) {
  const first = Math.min(BINS - 1, Math.max(0, Math.floor(a)))
  const last = Math.min(BINS - 1, Math.max(first, Math.floor(b)))
  const each = ns / width / (last - first + 1)
  for (let bin = first; bin <= last; bin++) {
    bins[bin * kinds] += each * part
    bins[bin * kinds + 1] += each * (1 - part)
  }
}
