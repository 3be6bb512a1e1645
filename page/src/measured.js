// What bench or compare measured: verdicts, intervals, where each process lay, growth. Drawn as SVG, whose text can be
// selected and read aloud.

import { h, css, svg } from "./dom.js"
import { value } from "./format.js"
import { Change, ChangeView } from "./change.js"
import { Chart } from "./views/chart.js"
import { frame, help } from "./frame.js"
import { theme } from "./theme.js"

const KEYS = [
  ["t", "light or dark"],
  ["?", "this list"],
  ["Tab", "from part to part"],
]
const FLAME_KEYS = [
  ["Arrows", "from box to box of the flame graph, or from row to row"],
  ["Enter", "zoom to the box or the row"],
  ["Esc", "the whole graph"],
  ["+ − a d", "closer, further, left, right"],
]
const TONES = { green: "good", red: "bad", yellow: "unsure", dim: "muted" }

export class MeasuredApp {
  constructor(page) {
    const data = page.object
    this.data = data
    this.charts = []
    this.change = data.structure && new ChangeView(new Change({ object: data.structure, data: page }))
    this.help = help(this.change ? [...KEYS, ...FLAME_KEYS] : KEYS)
    const part = (title, ...content) =>
      content.flat(2).some(Boolean) && h("section", { "aria-label": title }, h("h2", {}, title), content)
    this.element = frame(
      { title: data.title, facts: data.facts, help: () => this.help.showModal() },
      h(
        "main",
        { class: "measured", tabindex: "-1" },
        data.verdicts.map(({ claim, figures, style }) =>
          h(
            "div",
            { class: `verdict ${TONES[style] || ""}` },
            h("p", { class: "claim" }, claim),
            figures && h("p", { class: "figures" }, figures),
          ),
        ),
        data.undecided.length > 0 &&
          h(
            "div",
            {},
            data.undecided.map((text) => h("p", { class: "unsure" }, text)),
          ),
        data.control?.map(({ text, style }) => h("p", { class: TONES[style] }, text)),
        (data.tables || []).map((table) =>
          table.title ? part(table.title, figures(table)) : h("section", {}, figures(table)),
        ),
        data.headline.length > 0 && part(`Change, ${data.metric}`, this.effects(data.headline, false)),
        data.samples.length > 0 && part(`Median of each process, ${data.metric}`, this.distributions()),
        data.growth.length > 0 &&
          part(
            "Growth",
            data.growth.map((growth) => this.growth(growth)),
          ),
        (data.beside.length > 0 || data.same) &&
          part("Beside it", this.beside(), data.same && h("p", { class: "muted" }, `The same: ${data.same}`)),
        this.change?.element,
        data.why?.length > 0 &&
          part(
            data.why_title || "Which methods changed",
            data.why.map(({ above, tables, below }) =>
              h(
                "div",
                { class: "why" },
                above.map((text) => h("p", {}, text)),
                tables.map((table) => [h("h3", {}, table.title), figures(table)]),
                below.map((text) => h("p", { class: "muted" }, text)),
              ),
            ),
          ),
        data.warnings.length > 0 &&
          part(
            "Warnings",
            data.warnings.map(({ text, hint }) =>
              h("p", { class: "warning" }, text, hint && h("span", { class: "muted" }, ` ${hint}`)),
            ),
          ),
        data.made.length > 0 &&
          part(
            "How it was made",
            h(
              "dl",
              { class: "made" },
              data.made.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]),
              data.command && [h("dt", {}, "again"), h("dd", {}, h("code", {}, data.command))],
            ),
          ),
      ),
      this.help,
    )
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === "?") this.help.showModal()
      else if (event.key === "t") theme.toggle()
    })
  }

  begin() {
    this.change?.begin()
    this.redraw()
  }

  redraw() {
    this.change?.redraw()
    for (const chart of this.charts) chart.show(240)
  }

  // A table for each case and side, with its name where there are several, as in the terminal.
  beside() {
    const { beside, headline } = this.data
    const alone = headline.length === 1
    return [...new Set(beside.map((effect) => effect.subject))].map((subject) => [
      !alone && h("h3", {}, subject),
      this.effects(
        beside.filter((effect) => effect.subject === subject),
        true,
      ),
    ])
  }

  // A row each: from, to, change, its interval drawn, the verdict.
  effects(effects, beside) {
    const sized = effects.filter((effect) => effect.range && effect.ratio?.low > 0)
    const logs = sized
      .flatMap((effect) => [effect.ratio.low, effect.ratio.high])
      .map(Math.log)
      .filter(Number.isFinite)
    const margin = Math.max(...effects.map((effect) => effect.margin || 0))
    const reach = Math.max(Math.log(1 + margin) * 2.5, ...logs.map(Math.abs), 0.002) * 1.08
    const names = (key) => [...new Set(effects.map((effect) => effect[key]))]
    const head = (key) => (names(key).length === 1 ? names(key)[0] : key)
    const rows = effects.map((effect) => [
      { content: beside ? effect.title : effect.subject },
      { class: "number", content: effect.a_text },
      { class: "number", content: effect.b_text },
      { class: "number strong", content: effect.change },
      { class: "drawn", content: effect.range && effect.ratio?.low > 0 && interval(effect, reach) },
      {
        class: "number muted",
        content: effect.range && h("span", {}, effect.range, h("span", { class: "level" }, ` ${effect.level}`)),
      },
      { class: TONES[effect.style], content: effect.words },
    ])
    const heads = [
      { content: beside ? "metric" : "case" },
      { class: "number", content: head("base") },
      { class: "number", content: head("side") },
      { class: "number", content: "change" },
      { class: "drawn", content: axis(reach) },
      { class: "number", content: "interval" },
      { content: "verdict" },
    ]
    return plain(heads, rows, "effects")
  }

  // A dot for each process, its median marked; the cases apart, the sides of one under each other on one scale.
  distributions() {
    const cases = [...new Set(this.data.samples.map((sample) => sample.name))]
    return cases.map((name) => {
      const sides = this.data.samples.filter((sample) => sample.name === name && sample.medians.length)
      if (!sides.length) return null
      const all = sides.flatMap((side) => side.medians)
      const low = Math.min(...all)
      const high = Math.max(...all)
      const room = (high - low || high || 1) * 0.04
      const unit = sides[0].unit
      return h(
        "div",
        { class: "strip-group" },
        cases.length > 1 && h("h3", {}, name),
        sides.map((side) => {
          const middle = median(side.medians)
          return h(
            "div",
            { class: "strip" },
            h("span", { class: "strip-name" }, side.side || "each process"),
            strip(
              side.medians,
              middle,
              low - room,
              high + room,
              `${side.side || name}: median ${value(middle, unit)} of ${side.medians.length} processes`,
            ),
            h("span", { class: "number" }, value(middle, unit)),
          )
        }),
        h(
          "div",
          { class: "strip" },
          h("span", { class: "strip-name" }),
          h("div", { class: "strip-axis" }, h("span", {}, value(low, unit)), h("span", {}, value(high, unit))),
          h("span", { class: "number" }),
        ),
      )
    })
  }

  growth(growth) {
    const fits = [growth, growth.base].filter(Boolean)
    const chart = new Chart(`Time by ${growth.parameter || "N"}, both axes logarithmic`, () => {
      const sizes = [...new Set(fits.flatMap((fit) => fit.points.map((point) => point.n)))].sort((a, b) => a - b)
      const colours = [css("--accent"), css("--s1")]
      const at = (fit, key) =>
        sizes.map((n) => {
          const point = fit.points.find((one) => one.n === n)
          return (key === "time" ? point?.time?.point : point?.fitted) ?? null
        })
      return {
        data: [sizes, ...fits.flatMap((fit) => [at(fit, "time"), at(fit, "fitted")])],
        options: {
          scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
          series: [
            {},
            ...fits.flatMap((fit, number) => [
              {
                stroke: colours[number],
                paths: () => null,
                points: { show: true, size: 7, fill: colours[number], stroke: colours[number] },
              },
              { stroke: colours[number], width: 1.5, dash: number ? [5, 4] : undefined, points: { show: false } },
            ]),
          ],
          axes: [
            {
              grid: { filter: decades },
              ticks: { filter: decades },
              values: (_, splits) => splits.map((n) => (n === null ? "" : powers(n) ? n.toLocaleString("en") : "")),
            },
            {
              grid: { filter: decades },
              ticks: { filter: decades },
              values: (_, splits) => splits.map((ns) => (ns !== null && powers(ns) ? value(ns, "ns") : "")),
              size: 70,
            },
          ],
        },
      }
    })
    this.charts.push(chart)
    return h(
      "div",
      { class: "growth" },
      growth.text.map((text) => h("p", {}, text)),
      h("div", { class: "growth-body" }, chart.element, figures(growth)),
      fits.length > 1 &&
        h(
          "p",
          { class: "legend" },
          fits.map((fit, number) =>
            h("span", { class: "key" }, h("i", { class: `swatch ${number ? "s1" : "accent"}` }), fit.side || "base"),
          ),
        ),
    )
  }
}

const decades = (_, splits) => splits.map((number) => (number !== null && powers(number) ? number : null))
const powers = (number) => Math.abs(Math.log10(number) - Math.round(Math.log10(number))) < 1e-9

function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

// heads and cells: {content, class}; the first of a row is its header. On a narrow page each row of a table of effects
// is a block, its cells with their heads before them.
const plain = (heads, rows, kind = "") =>
  h(
    "div",
    { class: "wide" },
    h(
      "table",
      { class: `plain ${kind}`.trim() },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head) => h("th", { scope: "col", class: head.class }, head.content)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((cell, at) =>
              h(
                at ? "td" : "th",
                {
                  class: cell.class,
                  scope: at ? null : "row",
                  "data-head": kind && at && typeof heads[at].content === "string" ? heads[at].content : null,
                },
                cell.content,
              ),
            ),
          ),
        ),
      ),
    ),
  )

// Of texts, or {text, style}: names first, then numbers, and what is of style "words".
const figures = ({ heads, rows }) => {
  const cell = (one, at) => ({
    content: one?.text ?? one,
    class: one?.style === "words" ? "muted" : [at ? "number" : "", TONES[one?.style] ?? ""].join(" ").trim(),
  })
  return plain(
    heads.map(cell),
    rows.map((row) => row.map(cell)),
  )
}

const WIDE = 240
const HIGH = 22
const place = (log, reach) => WIDE / 2 + ((log / reach) * WIDE) / 2

function interval(effect, reach) {
  const { low, high, point } = effect.ratio
  const [a, b, middle] = [low, high, point].map((ratio) => place(Math.log(ratio), reach))
  const band = place(Math.log(1 + (effect.margin || 0)), reach) - WIDE / 2
  const y = HIGH / 2
  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDE} ${HIGH}`,
      width: WIDE,
      height: HIGH,
      role: "img",
      "aria-label": `${effect.change}, interval ${effect.range}`,
      class: `interval ${TONES[effect.style] || ""}`,
    },
    svg("rect", { x: WIDE / 2 - band, y: 0, width: band * 2, height: HIGH, class: "margin" }),
    svg("line", { x1: WIDE / 2, x2: WIDE / 2, y1: 0, y2: HIGH, class: "one" }),
    svg("line", { x1: a, x2: b, y1: y, y2: y, class: "span" }),
    svg("line", { x1: a, x2: a, y1: y - 4, y2: y + 4, class: "end" }),
    svg("line", { x1: b, x2: b, y1: y - 4, y2: y + 4, class: "end" }),
    svg("circle", { cx: middle, cy: y, r: 3.6, class: "point" }),
  )
}

// What the drawn intervals are read against: less to the left, more to the right, on a logarithmic scale.
function axis(reach) {
  const edge = Math.exp(reach)
  const text = (ratio) =>
    ratio >= 2 || ratio <= 0.5
      ? `×${ratio.toPrecision(2)}`
      : `${ratio < 1 ? "−" : "+"}${(Math.abs(ratio - 1) * 100).toPrecision(2)}%`
  return h("span", { class: "edges" }, h("span", {}, text(1 / edge)), h("span", {}, "same"), h("span", {}, text(edge)))
}

function strip(values, middle, low, high, label) {
  const wide = 1000
  const x = (number) => ((number - low) / (high - low || 1)) * wide
  return svg(
    "svg",
    { viewBox: `0 0 ${wide} 24`, preserveAspectRatio: "none", class: "dots", role: "img", "aria-label": label },
    values.map((number) => svg("line", { x1: x(number), x2: x(number), y1: 5, y2: 19, class: "tick" })),
    svg("line", { x1: x(middle), x2: x(middle), y1: 0, y2: 24, class: "middle" }),
  )
}
