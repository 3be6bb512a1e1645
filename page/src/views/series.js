// One series of a history: a chart of its results with the level between changes, and a table of the changes.

import uPlot from "uplot"
import { css, h, replace } from "../dom.js"
import { things, value } from "../format.js"
import { Table } from "../table.js"
import { Chart } from "./chart.js"

const DAY = 86_400
const ROWS = 3 // of labels of changes
const ROW = 14 // pixels of a row
const UNITS = ["ns", "bytes", "count"]

// Units of Pitwall's as everywhere; other tools have units of their own.
const figure = (number, unit) =>
  UNITS.includes(unit) ? value(number, unit) : `${value(number, "count")} ${unit}`.trim()
const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10)
const minute = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ")
const short = (commit) => commit.slice(0, 10)

// Sizes of a unit and their names, the largest first.
const SIZES = {
  ns: [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
    [1, "ns"],
  ],
  bytes: [
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
    [1, "B"],
  ],
}

// Steps of an axis of bytes, which are round in the unit that the marks have; others are round anyway.
function steps(unit, most) {
  if (unit !== "bytes") return undefined
  const [size] = SIZES.bytes.find(([size]) => most >= size) ?? SIZES.bytes.at(-1)
  return [-3, -2, -1, 0, 1, 2, 3].flatMap((power) => [1, 2, 5].map((factor) => size * factor * 10 ** power))
}

// Marks of an axis: all in one size, with the digits that tell one from the next.
export function marks(splits, unit) {
  const most = Math.max(...splits.map(Math.abs))
  const step = splits.length > 1 ? splits[1] - splits[0] : most || 1
  const [size, name] = SIZES[unit]?.find(([size]) => most >= size) ??
    SIZES[unit]?.at(-1) ?? [1, unit === "count" ? "" : unit]
  const part = step / size
  let digits = 0
  while (digits < 6 && Math.abs(part * 10 ** digits - Math.round(part * 10 ** digits)) > 1e-6 * part * 10 ** digits)
    digits++
  return splits.map((number) => {
    const text = (number / size).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })
    return `${text} ${name}`.trim()
  })
}

export class SeriesView {
  constructor(state) {
    this.state = state
    this.head = h("div", { class: "notes" })
    this.bar = h("div", { class: "bar-row" })
    this.place = h("div", {})
    this.said = h("p", { class: "flame-status", "aria-live": "polite" })
    this.older = h("p", { class: "muted" })
    this.changes = new Table({
      label: "Change points",
      columns: COLUMNS,
      sorted: ["since", true],
      chosen: (change) => this.point(change.at),
      empty: "No change points.",
    })
    this.element = h(
      "section",
      { class: "detail", "aria-label": "The chosen series" },
      this.head,
      this.bar,
      this.place,
      this.said,
      h("h3", {}, "Change points"),
      this.changes.element,
      this.older,
    )
  }

  // series: null where there is none.
  show(series) {
    this.element.hidden = !series
    if (!series) return
    if (series !== this.series) {
      this.series = series
      this.chart?.plot?.destroy()
      this.chart = new Chart(`${series.metric} of each result`, () => this.plot())
      this.chart.box.setAttribute("role", "application")
      this.chart.box.setAttribute("aria-label", `Chart of ${series.name}. Arrow keys go from result to result.`)
      this.chart.box.tabIndex = 0
      this.chart.box.addEventListener("keydown", (event) => this.key(event))
      this.chart.element.querySelector("figcaption").hidden = true
      replace(this.place, this.chart.element)
      replace(
        this.head,
        h("h2", {}, `${series.name}, ${series.metric}`),
        h(
          "p",
          { class: "muted" },
          [`host ${series.host}`, series.about, this.counted(), `newest ${series.newest}`].filter(Boolean).join(" · "),
        ),
      )
      this.changes.show(series.changes)
      const older = series.changes.filter((change) => change.at === null).length
      this.older.textContent = older ? `${things(older, "change point")} older than the results that are drawn` : ""
      this.older.hidden = !older
    }
    this.tools()
    this.say(null)
    this.chart.show(innerHeight < 620 ? 220 : 300)
  }

  counted() {
    const { count, values } = this.series
    return values.length < count ? `the newest ${values.length} of ${things(count, "result")}` : things(count, "result")
  }

  get byTime() {
    return this.state.axis === ""
  }

  tools() {
    const focused = this.bar.contains(document.activeElement) && document.activeElement.textContent
    const { changes, known } = this.series
    const key = (mark, text) => h("span", { class: "key" }, h("i", { class: `mark ${mark}` }), text)
    const button = (text, axis) =>
      h(
        "button",
        { "aria-pressed": String(this.state.axis === axis), onclick: () => this.state.set({ axis }) },
        text,
      )
    replace(
      this.bar,
      h(
        "div",
        { class: "segments", role: "group", "aria-label": "Horizontal axis" },
        button("by time", ""),
        button("by commit", "result"),
      ),
      h(
        "span",
        { class: "legend" },
        key("result", known ? "result and its interval" : "result"),
        key("level", "level"),
        changes.some((change) => change.worse) && key("worse", "worse"),
        changes.some((change) => !change.worse) && key("better", "better"),
      ),
    )
    if (focused) [...this.bar.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus()
  }

  plot() {
    const { times, values, lows, highs, levels, changes, commits, unit } = this.series
    const xs = this.byTime ? times : values.map((_, at) => at)
    const flat = []
    levels.forEach(([from, level], at) => flat.push(...Array((levels[at + 1]?.[0] ?? xs.length) - from).fill(level)))
    const drawn = changes.filter((change) => change.at !== null)
    const none = { paths: () => null, points: { show: false } }
    const colour = css("--accent")
    return {
      // The bounds are hooks' work; as data they count for the vertical axis.
      data: [xs, values, flat, [...lows], [...highs]],
      options: {
        padding: [Math.min(ROWS, drawn.length) * ROW + 8, 36, 0, 0],
        scales: { x: { time: this.byTime, range: (_, low, high) => widened(low, high, xs, this.byTime ? DAY : 1) } },
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        cursor: { y: false, drag: { x: true, y: false, dist: 4 }, points: { show: () => false } },
        hooks: {
          drawAxes: [(plot) => this.intervals(plot, xs)],
          draw: [(plot) => this.lines(plot, xs, drawn)],
          setCursor: [(plot) => this.say(plot.cursor.idx ?? null)],
        },
        series: [
          {},
          {
            stroke: colour,
            paths: () => null,
            points: { show: true, size: values.length > 400 ? 4 : 5.5, width: 0, fill: colour, stroke: colour },
          },
          { stroke: css("--text"), width: 1.5, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
          none,
          none,
        ],
        axes: [
          this.byTime
            ? {
                space: (_, __, low, high) => (high - low < 7 * DAY ? 130 : 100),
                size: 30,
                values: (_, splits, __, ___, step) => splits.map(step < DAY ? minute : day),
              }
            : {
                space: 100,
                size: 30,
                incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
                values: (_, splits) => splits.map((at) => (xs[at] === at ? short(commits[at]) || day(times[at]) : "")),
              },
          {
            incrs: steps(unit, Math.max(...values)),
            values: (_, splits) => marks(splits, unit),
            size: (_, texts) => 18 + 6.6 * Math.max(4, ...(texts ?? []).map((text) => text.length)),
          },
        ],
      },
    }
  }

  // Intervals, below the points.
  intervals(plot, xs) {
    const { lows, highs } = this.series
    const { ctx } = plot
    inside(plot, () => {
      ctx.strokeStyle = css("--accent")
      ctx.globalAlpha = 0.55
      ctx.lineWidth = uPlot.pxRatio * (xs.length > 400 ? 1 : 1.5)
      ctx.beginPath()
      xs.forEach((at, number) => {
        if (lows[number] === null || highs[number] === null) return
        const x = plot.valToPos(at, "x", true)
        ctx.moveTo(x, plot.valToPos(lows[number], "y", true))
        ctx.lineTo(x, plot.valToPos(highs[number], "y", true))
      })
      ctx.stroke()
    })
  }

  // Changes as vertical lines; their size and significance above them, in as many rows as there is room for.
  lines(plot, xs, changes) {
    const { ctx, bbox } = plot
    const ratio = uPlot.pxRatio
    const ends = Array(Math.min(ROWS, changes.length)).fill(-Infinity)
    ctx.save()
    ctx.font = `${11 * ratio}px ${css("--font")}`
    ctx.textBaseline = "alphabetic"
    ctx.textAlign = "left"
    ctx.lineWidth = 2 * Math.round(ratio) // sharp beside a whole pixel
    const labels = []
    for (const change of changes) {
      const x = Math.round(plot.valToPos(xs[change.at], "x", true))
      if (x < bbox.left || x > bbox.left + bbox.width) continue
      const text = `${change.change}, p ${change.p}`
      const wide = ctx.measureText(text).width
      const left = Math.min(x + 4 * ratio, plot.width * ratio - wide - 2 * ratio)
      const row = ends.findIndex((end) => end < Math.min(left, x) - 6 * ratio)
      const top = row < 0 ? bbox.top : bbox.top - (row + 1) * ROW * ratio
      ctx.strokeStyle = css(change.worse ? "--bad" : "--good")
      ctx.setLineDash([4 * ratio, 3 * ratio])
      ctx.beginPath()
      ctx.moveTo(x, bbox.top + bbox.height)
      ctx.lineTo(x, top)
      ctx.stroke()
      if (row < 0) continue
      ends[row] = left + wide
      labels.push([text, left, top, wide, ctx.strokeStyle])
    }
    // A line that goes through a label of another is interrupted there.
    for (const [text, left, top, wide, colour] of labels) {
      ctx.fillStyle = css("--back")
      ctx.fillRect(left - ratio, top, wide + 2 * ratio, 13 * ratio)
      ctx.fillStyle = colour
      ctx.fillText(text, left, top + 10 * ratio)
    }
    ctx.restore()
  }

  // What is pointed at; how to point, where nothing is.
  say(at) {
    const { times, values, lows, highs, commits, rubies, unit } = this.series
    if (at === null || values[at] === undefined) {
      this.said.textContent = "Point at a result to read it. Drag to enlarge a part; a double click shows all."
      return
    }
    const range =
      lows[at] === null || highs[at] === null ? "" : ` (${figure(lows[at], unit)} to ${figure(highs[at], unit)})`
    const commit = commits[at] && `commit ${short(commits[at])}`
    const ruby = rubies[at].replace(/ \(.*/, "")
    this.said.textContent = [minute(times[at]), `${figure(values[at], unit)}${range}`, commit, ruby]
      .filter(Boolean)
      .join(" · ")
  }

  // Points at a result.
  point(at) {
    const { plot } = this.chart
    if (at === null || !plot) return
    plot.setCursor({ left: plot.valToPos(plot.data[0][at], "x"), top: plot.bbox.height / uPlot.pxRatio / 2 })
    this.say(at)
  }

  key(event) {
    const { plot } = this.chart
    const last = this.series.values.length - 1
    const now = plot.cursor.idx ?? null
    const to = { ArrowLeft: (now ?? last + 1) - 1, ArrowRight: (now ?? -1) + 1, Home: 0, End: last }[event.key]
    if (event.key === "Escape") plot.setScale("x", { min: plot.data[0][0], max: plot.data[0][last] })
    if (to === undefined) return
    event.preventDefault()
    this.point(Math.min(last, Math.max(0, to)))
  }
}

// A little room beside the first and the last result. Results at one place have a range of one step around them.
function widened(low, high, xs, step) {
  if (xs[0] === xs.at(-1)) return [xs[0] - step / 2, xs[0] + step / 2]
  const room = (high - low) * 0.015
  return [low - room, high + room]
}

// Draws within the axes.
function inside({ ctx, bbox }, draw) {
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  draw()
  ctx.restore()
}

const COLUMNS = [
  {
    key: "since",
    label: "since",
    wide: "7.2rem",
    sort: (change) => change.time,
    text: (change) => change.since.slice(0, 10),
    prose: true,
    tip: (change) => change.since,
  },
  {
    key: "commit",
    label: "commit",
    wide: "8rem",
    sort: (change) => change.commit,
    text: (change) => short(change.commit),
    prose: true,
    tip: (change) => change.commit,
  },
  { key: "before", label: "before", wide: "7.8rem", number: true, text: (change) => change.before },
  { key: "after", label: "after", wide: "7.8rem", number: true, text: (change) => change.after },
  {
    key: "change",
    label: "change",
    wide: "5.6rem",
    number: true,
    sort: (change) => change.ratio,
    node: (change) => h("span", { class: change.worse ? "bad" : "good" }, change.change),
  },
  {
    key: "p",
    label: "p",
    title: "probability of such a change without a cause",
    wide: "5.8rem",
    number: true,
    sort: (change) => change.p_value,
    text: (change) => change.p,
  },
  {
    key: "ruby",
    label: "with another Ruby",
    class: "path grow",
    least: 700,
    text: (change) => change.ruby,
    prose: true,
    tip: (change) => change.ruby,
  },
]
