// Kinds of code that a method belongs to.

export const KINDS = ["app", "gem", "ruby", "c", "native", "gc", "other"]
export const KIND_NAMES = {
  app: "application",
  gem: "gems",
  ruby: "Ruby’s own",
  c: "C functions",
  native: "native code",
  gc: "garbage collection",
  other: "other",
}

// kind: as Record::Frame has it · origin: whose it is, as the page's data has it
export function kindOf(kind, origin) {
  if (kind === 0) return ["app", "gem", "ruby"][origin] ?? "other"
  return { 1: "c", 2: "gc", 3: "native" }[kind] ?? "other"
}
