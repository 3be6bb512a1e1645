// Kinds of code that a method belongs to.

export const KINDS = ["app", "gem", "ruby", "c", "gc", "other"]
export const KIND_NAMES = {
  app: "application",
  gem: "gems",
  ruby: "Ruby’s own",
  c: "C functions",
  gc: "garbage collection",
  other: "other",
}

export function kindOf(kind, path, mine) {
  if (mine) return "app"
  if (kind === 1) return "c"
  if (kind === 2) return "gc"
  if (kind >= 3) return "other"
  if (path.startsWith("<internal:") || /\/lib\/ruby\/\d[^/]*\//.test(path) || /\/rubygems\//.test(path)) return "ruby"
  return path === "" ? "other" : /\/lib\/ruby\/(vendor|site)_ruby\//.test(path) ? "ruby" : "gem"
}
