// Colours of the boxes of flame graphs, by kind of code and name.

export const COLOURS = {
  light: {
    app: [212, 66, 76],
    gem: [166, 34, 72],
    ruby: [256, 34, 82],
    c: [215, 14, 82],
    native: [95, 26, 76],
    gc: [40, 88, 66],
    other: [0, 0, 85],
    text: "#17202b",
    match: "hsl(328 74% 62%)",
    dim: [0.32, "#f3f4f6"],
  },
  dark: {
    app: [212, 46, 42],
    gem: [166, 28, 34],
    ruby: [256, 22, 44],
    c: [215, 11, 36],
    native: [95, 18, 34],
    gc: [38, 62, 40],
    other: [0, 0, 32],
    text: "#eef2f7",
    match: "hsl(328 62% 46%)",
    dim: [0.35, "#15181d"],
  },
}

export function boxColour(method, theme) {
  const [hue, saturation, lightness] = COLOURS[theme][method.kind]
  let hash = 0
  for (let at = 0; at < method.name.length; at++) hash = (hash * 31 + method.name.charCodeAt(at)) | 0
  return `hsl(${hue} ${saturation}% ${lightness + (((hash >>> 0) % 9) - 4) * 0.9}%)`
}

const known = new Map()
export function faded(colour, theme) {
  const key = colour + theme
  if (!known.has(key))
    known.set(
      key,
      colour.replace(
        /(\d+)% ([\d.]+)%\)/,
        (_, saturation, lightness) => `${saturation * 0.35}% ${theme === "dark" ? lightness * 0.62 : 90}%)`,
      ),
    )
  return known.get(key)
}
