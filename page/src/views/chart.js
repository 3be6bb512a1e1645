// Charts of uPlot's in the page's colours, as wide as their place; x in ns.

import uPlot from "uplot"
import { h, css } from "../dom.js"
import { axisText } from "../axis.js"

export class Chart {
  constructor(label, make) {
    this.make = make
    this.box = h("div", { class: "chart", role: "img", "aria-label": label })
    this.element = h("figure", {}, h("figcaption", {}, label), this.box)
    new ResizeObserver(
      () =>
        this.plot && this.box.clientWidth && this.plot.setSize({ width: this.box.clientWidth, height: this.height }),
    ).observe(this.box)
  }

  show(height = 190) {
    this.height = height
    this.plot?.destroy()
    const { options, data } = this.make()
    const axis = {
      stroke: css("--muted"),
      grid: { stroke: css("--line"), width: 1 },
      ticks: { stroke: css("--line"), width: 1 },
      font: `11px ${css("--font")}`,
    }
    this.plot = new uPlot(
      {
        width: this.box.clientWidth || 600,
        height,
        legend: { show: false },
        padding: [10, 30, 0, 0], // half of the last number below the axis stands beyond it
        cursor: { drag: { x: false, y: false } },
        ...options,
        axes: options.axes.map((one) => ({
          ...axis,
          ...one,
          grid: { ...axis.grid, ...one.grid },
          ticks: { ...axis.ticks, ...one.ticks },
        })),
      },
      data,
      this.box,
    )
    for (const canvas of this.box.querySelectorAll("canvas")) canvas.setAttribute("aria-hidden", "true")
  }
}

export const timeAxis = {
  values: (_, splits) => splits.map((ns) => axisText(ns, splits.length > 1 ? splits[1] - splits[0] : ns || 1)),
  space: 80,
  size: 30,
}

export const short = (number) =>
  number >= 1e6
    ? `${+(number / 1e6).toPrecision(3)} M`
    : number >= 1e3
      ? `${+(number / 1e3).toPrecision(3)} k`
      : String(number)
