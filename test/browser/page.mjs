// Opens a page of Pitwall's from disk in a real browser, does to it what a scenario says, and prints what it saw as one JSON object.
//
//   node page.mjs MODULES CHROMIUM SCENARIO (FILE.html | URL) [PICTURES]
//
// MODULES is where package.json was installed to; PICTURES a folder for screenshots. Scenarios are below, one function each.

import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"

const [modules, chromium, scenario, target, pictures] = process.argv.slice(2)
const { chromium: browserType } = createRequire(path.join(modules, "package.json"))("playwright-core")
const address = /^https?:/.test(target) ? target : pathToFileURL(path.resolve(target)).href
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--disable-gpu",
]

const seen = { complaints: [] }
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pitwall-chromium-"))

// Waiting counts unless a scenario asks for how pages begin: most are held against reports of all time.
const open = async (context, asked = "", waiting = "all") => {
  const hash = waiting ? `${asked || "#"}${asked ? "&" : ""}waiting=${waiting}` : asked
  const page = await context.newPage()
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) seen.complaints.push(`console: ${message.text()}`)
  })
  page.on("pageerror", (error) => seen.complaints.push(`error: ${error.stack || error}`))
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && request.url().split("#")[0] !== address) seen.complaints.push(`request: ${request.url()}`)
  })
  page.on("dialog", (dialog) => {
    seen.complaints.push(`dialog: ${dialog.message()}`)
    dialog.dismiss()
  })
  await page.goto(address + hash)
  await page.locator("html[data-ready]").waitFor({ timeout: 120_000 })
  await settled(page)
  return page
}

// Two frames: what was asked for is drawn.
const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))))
const rest = (page) => page.waitForTimeout(320).then(() => settled(page))
const hash = (page) => page.evaluate(() => location.hash.replace(/(?<=#|&)waiting=all&?/, "").replace(/[#&]$/, ""))
const picture = async (page, name) => pictures && page.screenshot({ path: path.join(pictures, `${name}.png`) })
const tab = async (page, name) => {
  await page.getByRole("tab", { name, exact: true }).click()
  await settled(page)
}
// A part of the menu of filters, which is opened.
const inMenu = async (page, role, name) => {
  if (!(await page.locator(".menu").evaluate((one) => one.open))) await page.locator(".menu summary").click()
  return page.getByRole(role, { name })
}
const cells = (page, label) =>
  page.evaluate(
    (wanted) =>
      [...document.querySelectorAll("table")]
        .filter((table) => table.getAttribute("aria-label") === wanted && table.offsetParent)
        .flatMap((table) => [...table.querySelectorAll("tbody tr[data-at]")].map((row) => [...row.children].map((cell) => cell.textContent))),
    label,
  )

// Everything that can be reached must say what it is.
const drawn = (page) =>
  page.evaluate(() => {
    const { boxes, tree } = pitwall.made.flame.flame
    return [...new Set(boxes.filter((box) => box.node).map((box) => pitwall.recording.methods[tree.keys[box.node]].name))]
  })
const nameless = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("button, input, select, [tabindex='0'], [role=img], [role=slider], a, canvas")]
      .filter((one) => one.offsetParent && one.getAttribute("aria-hidden") !== "true")
      .filter(
        (one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.getAttribute("title") || [...(one.labels || [])].some((label) => label.textContent.trim())),
      )
      .map((one) => one.outerHTML.slice(0, 120)),
  )

const scenarios = {
  async recording(context) {
    const page = await open(context)
    seen.ready = await page.evaluate(() => Number(document.documentElement.dataset.ready))
    seen.title = await page.title()
    seen.tabs = await page.getByRole("tab").allTextContents()
    seen.nameless = []
    seen.views = {}
    for (const name of seen.tabs) {
      await tab(page, name)
      if (pictures) await rest(page)
      seen.views[name] = { hash: await hash(page), text: await page.locator("#view").innerText() }
      seen.nameless.push(...(await nameless(page)))
      await picture(page, `light-${name.replaceAll(" ", "-").toLowerCase()}`)
    }
    await page.keyboard.press("t")
    seen.theme = await page.evaluate(() => document.documentElement.dataset.theme)
    for (const name of seen.tabs) {
      if (!pictures) break
      await tab(page, name)
      await rest(page)
      await picture(page, `dark-${name.replaceAll(" ", "-").toLowerCase()}`)
    }
    await page.keyboard.press("t")
    await page.close()
  },

  // A time line of changes that empty caches: a click on a mark, keys, a click on a row.
  async caches(context) {
    const page = await open(context)
    seen.tabs = await page.getByRole("tab").allTextContents()
    await tab(page, "Caches")
    seen.text = await page.locator("#view").innerText()
    seen.nameless = await nameless(page)
    seen.lanes = await page.locator(".caches-names span").allTextContents()
    const line = page.getByRole("application", { name: /Changes over time/ })
    const stack = async () => ({
      title: await page.locator(".caches-stack h3").innerText(),
      frames: await page.locator(".caches-stack li").allTextContents(),
    })
    const { width } = await line.boundingBox()
    // The second lane after GC, at half of the time.
    await line.click({ position: { x: width / 2, y: 18 * 2 + 9 } })
    await settled(page)
    seen.clicked = await stack()
    await line.press("Home")
    await settled(page)
    seen.first = await stack()
    await picture(page, "caches")
    await page.locator("[role=grid]").getByText("constant set: Shop::B").click()
    await settled(page)
    seen.row = await stack()
    await page.close()
  },

  // Zoom, search, keys, fragment.
  async flame(context) {
    const page = await open(context)
    const flame = page.getByRole("application", { name: "Flame graph" })
    const box = await flame.boundingBox()
    await page.mouse.click(box.x + 40, box.y + 3 * 18 + 9)
    await rest(page)
    seen.clicked = { hash: await hash(page), status: await page.locator(".flame-status").first().innerText() }
    await page.reload()
    await page.locator("html[data-ready]").waitFor()
    await rest(page)
    seen.reloaded = await page.evaluate(() => ({ view: pitwall.made.flame.flame.view, focus: pitwall.made.flame.flame.focus }))
    await flame.focus()
    await page.keyboard.press("Escape")
    await rest(page)
    seen.escaped = { hash: await hash(page), view: await page.evaluate(() => pitwall.made.flame.flame.view) }
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    seen.arrows = await page.locator(".flame-status").first().innerText()
    await page.keyboard.press("Enter")
    await rest(page)
    seen.entered = await hash(page)
    // Both before the next frame is drawn, as on a busy machine.
    await page.evaluate(() => {
      for (const key of ["Escape", "+"]) document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))
    })
    await rest(page)
    seen.plus = await page.evaluate(() => pitwall.made.flame.flame.view)
    await page.keyboard.press("Escape")
    await page.mouse.move(box.x + box.width / 2, box.y + 60)
    await page.keyboard.down("Control")
    await page.mouse.wheel(0, -300)
    await page.keyboard.up("Control")
    await rest(page)
    seen.wheel = await page.evaluate(() => pitwall.made.flame.flame.view)
    await flame.focus()
    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await page.keyboard.type(process.env.SEARCH)
    await settled(page)
    seen.search = { hash: await hash(page), found: await page.locator(".flame-view .bar-row > [role=status]").innerText() }
    await picture(page, "search")
    await page.keyboard.press("Escape")
    seen.cleared = await hash(page)
    await page.getByRole("button", { name: "time order" }).click()
    await rest(page)
    seen.time = {
      hash: await hash(page),
      boxes: await page.evaluate(() =>
        pitwall.made.flame.flame.boxes
          .filter((box) => box.node)
          .map((box) => [pitwall.recording.methods[pitwall.recording.tree.keys[box.node]].name, box.depth, box.left, box.right]),
      ),
      width: await page.evaluate(() => pitwall.made.flame.flame.canvas.clientWidth),
    }
    await picture(page, "time-order")
    await page.keyboard.press("?")
    seen.help = await page.getByRole("dialog").innerText()
    await page.keyboard.press("Escape")
    seen.helpClosed = (await page.getByRole("dialog").count()) === 0
    await page.close()
  },

  // What threads did, in words and colours; one state alone, and one that isn't there.
  async states(context) {
    const page = await open(context, "#view=threads&state=99")
    seen.odd = await page.evaluate(() => pitwall.filter.state)
    seen.legend = await page.locator(".timeline > .legend .key").allTextContents()
    seen.lanes = await page.locator(".lane canvas").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")))
    seen.bars = await page.locator("#view .states").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")))
    seen.colours = await page.locator("#view .states").evaluateAll((all) => all.map((one) => [...one.children].map((part) => getComputedStyle(part).backgroundColor)))
    seen.painted = await page.locator(".lane canvas").evaluateAll((all) =>
      all.map((one) => {
        const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height)
        const counts = new Map()
        for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) counts.set(`rgb(${data.slice(at, at + 3).join(", ")})`, (counts.get(`rgb(${data.slice(at, at + 3).join(", ")})`) || 0) + 1)
        return [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour)
      }),
    )
    const select = await inMenu(page, "combobox", "state")
    seen.offered = await select.locator("option").allTextContents()
    await select.selectOption({ label: process.env.STATE })
    await tab(page, "Methods")
    seen.chosen = { hash: await hash(page), methods: await cells(page, "Methods") }
    await picture(page, "states")
    await page.close()
  },

  // Figures of tables, and what a range does to them.
  async figures(context) {
    const page = await open(context, "#view=methods")
    await page.setViewportSize({ width: 1500, height: 1400 })
    await settled(page)
    seen.methods = await cells(page, "Methods")
    const brush = await page.locator(".brush").boundingBox()
    await page.mouse.move(brush.x + brush.width * 0.25, brush.y + brush.height / 2)
    await page.mouse.down()
    await page.mouse.move(brush.x + brush.width * 0.4, brush.y + brush.height / 2)
    await page.mouse.move(brush.x + brush.width * 0.5, brush.y + brush.height / 2)
    await page.mouse.up()
    await settled(page)
    seen.brushed = {
      hash: await hash(page),
      methods: await cells(page, "Methods"),
      total: await page.evaluate(() => pitwall.recording.weighed("wall", pitwall.filter).total),
      filter: await page.evaluate(() => pitwall.filter),
    }
    await picture(page, "brushed")
    for (const name of ["Threads", "Source", "Call tree"]) {
      await tab(page, name)
      seen.brushed[name] = await page.locator("#view").innerText()
    }
    await page.getByRole("slider", { name: "end of the range" }).focus()
    await page.keyboard.press("ArrowRight")
    await settled(page)
    seen.moved = await page.evaluate(() => pitwall.filter)
    await page.keyboard.press("Escape")
    await settled(page)
    seen.whole = await page.evaluate(() => pitwall.filter)
    await tab(page, "Methods")
    await page.getByRole("combobox", { name: "weight" }).selectOption("cpu")
    await settled(page)
    seen.cpu = { hash: await hash(page), methods: await cells(page, "Methods") }
    await page.getByRole("combobox", { name: "weight" }).selectOption("wall")
    seen.gc = {}
    for (const how of ["apart", "caller"]) {
      await (await inMenu(page, "combobox", "GC")).selectOption(how)
      await settled(page)
      seen.gc[how] = await cells(page, "Methods")
    }
    await (await inMenu(page, "combobox", "GC")).selectOption("")
    await settled(page)
    await page.locator("tbody tr[data-at]").nth(1).click()
    await settled(page)
    seen.chosen = { hash: await hash(page), callers: await cells(page, "Callers"), callees: await cells(page, "Callees"), name: await page.locator(".detail h2").innerText() }
    await picture(page, "callers")
    await page.getByRole("button", { name: "chains of callers" }).click()
    await settled(page)
    seen.chosen.chains = await cells(page, "Chains of callers")
    await picture(page, "callers-chains")
    await page.getByRole("button", { name: "flame graphs" }).click()
    await rest(page)
    await picture(page, "callers-flames")
    const thread = await inMenu(page, "combobox", "thread")
    if (await thread.count()) {
      const options = await thread.locator("option").allTextContents()
      await thread.selectOption({ label: options.at(-1) })
      await settled(page)
      seen.thread = { label: options.at(-1), methods: await cells(page, "Methods") }
    }
    await page.close()
  },

  // Files of one process that follow each other: a thread is one wherever it is named. THREAD is chosen; OLD are keys of other pages' addresses.
  async files(context) {
    const page = await open(context, "#view=threads")
    seen.facts = await page.locator("header").innerText()
    seen.lanes = await page.locator(".lane canvas").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") || one.parentElement.getAttribute("aria-label")))
    const thread = await inMenu(page, "combobox", "thread")
    seen.offered = await thread.locator("option").allTextContents()
    seen.threads = await cells(page, "Threads")
    seen.nameless = await nameless(page)
    await thread.selectOption({ label: process.env.THREAD })
    await settled(page)
    seen.hash = await hash(page)
    await tab(page, "Methods")
    seen.methods = await cells(page, "Methods")
    await tab(page, "Requests")
    seen.requests = await cells(page, "Slowest requests")
    await page.locator("table[aria-label='Slowest requests'] tbody tr[data-at]").last().click()
    await rest(page)
    await tab(page, "Threads")
    seen.request = await cells(page, "Threads")
    await page.getByRole("button", { name: /No longer request/ }).click()
    await tab(page, "Flame graph")
    await page.getByRole("button", { name: "time order" }).click()
    await rest(page)
    seen.time = await page.evaluate(() => {
      const { boxes, canvas } = pitwall.made.flame.flame
      return boxes.filter((box) => box.node).map((box) => [pitwall.recording.methods[pitwall.recording.tree.keys[box.node]].name, box.left / canvas.clientWidth, box.right / canvas.clientWidth])
    })
    await picture(page, "files-time-order")
    await page.close()
    seen.old = {}
    for (const key of JSON.parse(process.env.OLD)) {
      const old = await open(context, `#view=methods&thread=${key}`)
      seen.old[key] = await old.evaluate(() => pitwall.filter.thread)
      await old.close()
    }
  },

  // The table of tests, and what one of them narrows.
  async tests(context) {
    const page = await open(context, "#view=tests")
    seen.note = await page.locator(".note").first().innerText()
    seen.heads = await page.locator("table[aria-label='Tests'] th").allInnerTexts()
    seen.rows = await cells(page, "Tests")
    seen.nameless = await nameless(page)
    await picture(page, "tests")
    await page.locator("table[aria-label='Tests'] tbody tr[data-at]").first().click()
    await settled(page)
    seen.hash = await hash(page)
    await tab(page, "Methods")
    seen.methods = await cells(page, "Methods")
    await page.close()
  },

  // Requests that asked databases, what one of them asked, and all lines that asked.
  async queries(context) {
    const page = await open(context, "#view=requests")
    seen.requests = await cells(page, "Slowest requests")
    await page.locator("table[aria-label='Slowest requests'] tbody tr[data-at]").first().click()
    await page.getByRole("group", { name: "Show" }).getByRole("button", { name: "queries" }).click()
    await settled(page)
    seen.detail = await page.locator(".detail-head").innerText()
    seen.asked = await cells(page, "Queries of the request")
    seen.nameless = await nameless(page)
    await picture(page, "request")
    await page.getByRole("button", { name: /^Close: the whole/ }).click()
    await tab(page, "Queries")
    seen.note = await page.locator(".view .note").last().innerText()
    seen.queries = await cells(page, "Queries")
    await picture(page, "queries")
    await page.evaluate(() => pitwall.state.set({ label: "route=fine" }))
    await settled(page)
    seen.fine = await cells(page, "Queries")
    await page.close()
  },

  // Places that grow: all, and one that is chosen.
  async growth(context) {
    const page = await open(context, "#view=growth")
    seen.notes = await page.locator(".notes").first().innerText()
    seen.rows = await cells(page, "Places that grow")
    seen.charts = await page.locator("figure:visible figcaption").allInnerTexts()
    seen.holders = await page.locator(".notes").nth(1).innerText()
    seen.nameless = await nameless(page)
    await picture(page, "growth")
    await page.locator("table[aria-label='Places that grow'] tbody tr[data-at]").nth(1).click()
    await settled(page)
    seen.chosen = await page.locator(".notes").nth(1).innerText()
    await page.close()
  },

  async labels(context) {
    const page = await open(context, "#view=labels")
    seen.tabs = await page.getByRole("tab").allTextContents()
    await page.getByRole("combobox", { name: "by label" }).selectOption("route")
    await settled(page)
    seen.rows = await cells(page, "Labels")
    seen.nameless = await nameless(page)
    await picture(page, "labels")
    await page.getByText("orders#show", { exact: true }).first().click()
    await settled(page)
    seen.hash = await hash(page)
    await tab(page, "Methods")
    seen.methods = await cells(page, "Methods")
    await page.close()
  },

  // The table of requests, their bars on the time line, and what one of them narrows; by pointer and by keys.
  async requests(context) {
    const page = await open(context, "#view=requests")
    const chips = () => page.locator(".chip").allInnerTexts()
    seen.rows = await cells(page, "Slowest requests")
    seen.nameless = await nameless(page)
    await page.locator("table[aria-label='Slowest requests'] tbody tr[data-at]").first().click()
    await rest(page)
    seen.chosen = { hash: await hash(page), chips: await chips(), text: await page.getByRole("complementary").innerText(), filter: await page.evaluate(() => pitwall.filter) }
    await picture(page, "light-request")
    await page.evaluate(() => pitwall.made.requests.flame.paint())
    seen.boxes = await page.evaluate(() => pitwall.made.requests.flame.boxes.filter((box) => box.node).map((box) => pitwall.recording.methods[pitwall.recording.tree.keys[box.node]].name))
    seen.nameless.push(...(await nameless(page)))
    await page.getByRole("button", { name: "call tree" }).click()
    await settled(page)
    seen.tree = await cells(page, "Call tree")
    await page.reload()
    await page.locator("html[data-ready]").waitFor()
    await settled(page)
    await tab(page, "Methods")
    seen.methods = await cells(page, "Methods")
    await tab(page, "Threads")
    seen.threads = await cells(page, "Threads")
    await page.getByRole("button", { name: /No longer request 1/ }).click()
    await settled(page)
    seen.away = { hash: await hash(page), chips: await chips() }

    const lane = page.getByRole("application", { name: /^Requests of puma 1/ })
    seen.lane = await lane.getAttribute("aria-label")
    await lane.focus()
    const said = () => page.locator(".said").innerText()
    await page.keyboard.press("ArrowRight")
    const first = await said()
    await page.keyboard.press("ArrowRight")
    const second = await said()
    await page.keyboard.press("ArrowUp")
    const slower = await said()
    await picture(page, "light-request-pointed")
    await page.keyboard.press("Enter")
    await settled(page)
    seen.keys = { first, second, slower, hash: await hash(page) }
    await page.keyboard.press("Escape")
    await settled(page)
    seen.keys.escaped = await hash(page)

    const bar = await page.evaluate(() => {
      const { marks, canvas } = pitwall.timeline.lanes.find((one) => one.marks?.length > 1)
      const bounds = canvas.getBoundingClientRect()
      const mark = marks.reduce((a, b) => (a.ns > b.ns ? a : b))
      return { x: bounds.left + ((mark.start + mark.ns / 2) / pitwall.recording.span) * bounds.width, y: bounds.top + bounds.height / 2, left: bounds.left, lanes: pitwall.timeline.lanes.map((one) => Boolean(one.marks)) }
    })
    seen.lanes = bar.lanes
    await page.mouse.move(bar.x, bar.y)
    await settled(page)
    seen.hovered = await page.locator(".timeline .tip").innerText()
    await page.mouse.click(bar.x, bar.y)
    await settled(page)
    seen.clicked = await hash(page)
    await page.mouse.click(bar.left + 3, bar.y - 17)
    await settled(page)
    seen.clickedBeside = await hash(page)
    await tab(page, "Requests")
    await page.keyboard.press("t")
    await page.locator("table[aria-label='Slowest requests'] tbody tr[data-at]").first().click()
    await rest(page)
    await picture(page, "dark-request")
    await page.keyboard.press("t")
    await page.close()
  },

  // How high the toolbar is where it has one row, and the menu of filters: by pointer, by keys, and what its choices leave.
  async toolbar(context) {
    const page = await open(context)
    seen.rows = {}
    for (const width of [1400, 1280, 1024, 400]) {
      await page.setViewportSize({ width, height: 900 })
      await rest(page)
      seen.rows[width] = await page.evaluate(() => ({
        one: ((boxes) => Math.max(...boxes.map((box) => box.top)) < Math.min(...boxes.map((box) => box.bottom)))([...document.querySelectorAll(".tabs, .tools > *")].map((one) => one.getBoundingClientRect())),
        hidden: [...document.querySelectorAll(".tabs button")].filter((one) => one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right + 1).length,
        beyond: document.documentElement.scrollWidth > innerWidth,
      }))
      await page.locator(".menu summary").click()
      await settled(page)
      seen.rows[width].panel = await page.evaluate(() => {
        const { left, right, top } = document.querySelector(".panel").getBoundingClientRect()
        return left >= 0 && right <= innerWidth && top > 0
      })
      await picture(page, `light-menu-${width}`)
      await page.keyboard.press("Escape")
    }
    await page.setViewportSize({ width: 1280, height: 900 })
    seen.escaped = await page.evaluate(() => [document.querySelector(".menu").open, document.activeElement.tagName])
    await (await inMenu(page, "combobox", "state")).selectOption({ label: "blocked" })
    await (await inMenu(page, "combobox", "GC")).selectOption("apart")
    await (await inMenu(page, "combobox", "thread")).selectOption({ label: "worker" })
    await settled(page)
    seen.chips = await page.locator(".chip").allInnerTexts()
    await page.mouse.click(600, 700)
    seen.open = await page.locator(".menu").evaluate((one) => one.open)
    for (const name of [/No longer thread/, /No longer blocked/, "Collection in place again"]) await page.getByRole("button", { name }).click()
    await settled(page)
    seen.away = { chips: await page.locator(".chip").count(), filter: await page.evaluate(() => pitwall.filter) }
    await page.close()
  },

  // One method alone: by key in the flame graph, by the menu of a row, by the address; and everything again.
  async root(context) {
    const page = await open(context)
    const flame = page.getByRole("application", { name: "Flame graph" })
    await flame.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("r")
    await rest(page)
    seen.key = { hash: await hash(page), chips: await page.locator(".chip").allInnerTexts(), drawn: await drawn(page), total: await page.evaluate(() => pitwall.stacks.total) }
    await picture(page, "light-root")
    await page.getByRole("button", { name: "time order" }).click()
    await rest(page)
    seen.time = await drawn(page)
    await tab(page, "Methods")
    seen.methods = await cells(page, "Methods")
    await page.reload()
    await page.locator("html[data-ready]").waitFor()
    await settled(page)
    seen.reloaded = await cells(page, "Methods")
    await page.getByRole("button", { name: "Whole stacks again" }).click()
    await settled(page)
    seen.away = { hash: await hash(page), methods: await cells(page, "Methods") }
    const row = page.locator("table[aria-label=Methods] tbody tr[data-at]").filter({ has: page.getByText(process.env.METHOD, { exact: true }) })
    await row.click({ button: "right" })
    seen.menu = await page.getByRole("menuitem").allInnerTexts()
    seen.nameless = await nameless(page)
    await picture(page, "light-row-menu")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await settled(page)
    seen.row = { hash: await hash(page), methods: await cells(page, "Methods"), menus: await page.getByRole("menu").count() }
    await page.getByRole("button", { name: "Only my code" }).click()
    await settled(page)
    seen.mine = await cells(page, "Methods")
    await page.keyboard.press("Escape")
    await settled(page)
    seen.escaped = await page.evaluate(() => pitwall.recording.root)
    await page.close()
  },

  // Filters in the address.
  async filters(context) {
    seen.of = []
    const page = await open(context)
    for (const address of JSON.parse(process.env.ADDRESSES)) {
      if (address !== null) await page.evaluate((hash) => (location.hash = hash), `#waiting=all&${address}`)
      await settled(page)
      await tab(page, "Methods")
      const at = { methods: await cells(page, "Methods"), chips: await page.locator(".chip").allInnerTexts() }
      at.exact = await page.evaluate(() => {
        const { recording, weight, worked } = pitwall
        const { self, total } = recording.byMethod(weight.name, worked)
        return recording.methods.flatMap(({ id, name }) => (total[id] ? [[name, self[id], total[id]]] : []))
      })
      at.left = await page.locator(".left").allInnerTexts()
      await tab(page, "Flame graph")
      await rest(page)
      at.drawn = await drawn(page)
      await tab(page, "Threads")
      at.threads = await cells(page, "Threads")
      seen.of.push(at)
    }
    await page.close()
  },

  // Filters by the fields of the menu, by keys at a frame, and what is said where nothing is left.
  async filterFields(context) {
    const page = await open(context, "#view=methods")
    seen.whole = await cells(page, "Methods")
    await page.locator("main").focus()
    await page.keyboard.press("b") // opens the menu
    for (const [label, text] of JSON.parse(process.env.TYPED)) {
      await page.getByRole("textbox", { name: label }).fill(text)
      await page.getByRole("textbox", { name: label }).press("Enter")
      await settled(page)
    }
    await page.getByRole("combobox", { name: "only" }).selectOption("app")
    await settled(page)
    await picture(page, "light-filters-menu")
    seen.nameless = await nameless(page)
    seen.typed = { hash: await hash(page), methods: await cells(page, "Methods") }
    await page.getByRole("textbox", { name: /^Focus/i }).fill("Shop::Cart#totol")
    await page.getByRole("textbox", { name: /^Focus/i }).press("Enter")
    await settled(page)
    seen.said = await page.locator(".refused").innerText()
    await page.getByRole("textbox", { name: /^time/i }).fill("5s..2s")
    await page.getByRole("textbox", { name: /^time/i }).press("Enter")
    await settled(page)
    seen.saidOfTime = await page.locator(".refused").innerText()
    await page.keyboard.press("Escape")
    for (let chip; (chip = page.locator(".chip").first()) && (await chip.count()); ) {
      await chip.click()
      await settled(page)
    }
    seen.cleared = { hash: await hash(page), methods: await cells(page, "Methods") }
    await tab(page, "Flame graph")
    const flame = page.getByRole("application", { name: "Flame graph" })
    seen.keys = {}
    for (const key of ["f", "h"]) {
      await flame.focus()
      for (let down = 0; down < 3; down++) await page.keyboard.press("ArrowDown")
      await page.keyboard.press(key)
      await rest(page)
      seen.keys[key] = await hash(page)
      await picture(page, `light-key-${key}`)
      await page.locator(".chip").first().click()
      await settled(page)
    }
    await tab(page, "GC")
    await page.evaluate(() => pitwall.state.set({ focus: ["Shop::Cart#total"] }))
    await settled(page)
    seen.gc = await page.locator(".left").innerText()
    await page.close()
  },

  // Native frames by the switch, by the key, and by the chip that folds them again.
  async native(context) {
    const page = await open(context, "#view=methods")
    seen.steps = []
    const note = async (step) => {
      await settled(page)
      const checked = await (await inMenu(page, "checkbox", "Show native frames")).isChecked()
      const chips = await page.locator(".chip").allInnerTexts()
      seen.steps.push({ step, checked, chips, hash: await hash(page), methods: await cells(page, "Methods") })
    }
    const button = async () => (await inMenu(page, "checkbox", "Show native frames")).click()
    const key = async () => {
      await page.locator("main").focus()
      await page.keyboard.press("u")
    }
    await note("begin")
    await button()
    await note("switch")
    await picture(page, "light-native")
    await button()
    await note("switch again")
    await key()
    await note("key")
    await page.getByRole("button", { name: "Fold native frames" }).click()
    await note("chip")
    await (await inMenu(page, "combobox", "only")).selectOption("native")
    await note("only native")
    await key()
    await note("key where native code alone is shown")
    seen.nameless = await nameless(page)
    await page.close()
  },

  // The tree from the ends of the stacks, as a table and as a flame graph.
  async inverted(context) {
    const page = await open(context, "#view=tree")
    await page.locator("main").focus()
    await page.keyboard.press("i")
    await settled(page)
    seen.hash = await hash(page)
    seen.rows = await page.evaluate(() => {
      const { tree } = pitwall.made
      for (let node = 0; node < tree.weighed.tree.size; node++) tree.weighed.children(node).forEach((child) => tree.open.add(child))
      tree.update()
      return tree.table.order.map((row) => [row.depth, row.method.name, row.total])
    })
    await settled(page)
    seen.heads = await page.locator("table[aria-label='Call tree'] th").allInnerTexts()
    await picture(page, "light-inverted-tree")
    await tab(page, "Flame graph")
    await rest(page)
    seen.pressed = await page.getByRole("button", { name: "bottom up" }).getAttribute("aria-pressed")
    const flame = page.getByRole("application", { name: "Flame graph" })
    await flame.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await rest(page)
    seen.zoomed = { hash: await hash(page), status: await page.locator(".flame-status").first().innerText() }
    await picture(page, "light-inverted-flame")
    await page.reload()
    await page.locator("html[data-ready]").waitFor()
    await rest(page)
    seen.reloaded = await page.evaluate(() => pitwall.made.flame.flame.view)
    await page.getByRole("button", { name: "heaviest first" }).click()
    await settled(page)
    seen.again = await hash(page)
    await page.close()
  },

  // A search goes to its first match, Enter and n to the next; in the flame graph and in the tree.
  async steps(context) {
    const page = await open(context)
    const at = () => page.evaluate(() => [document.querySelector(".steps").innerText.replace(/\s+/g, " "), pitwall.made[pitwall.view].flame?.words?.(pitwall.made[pitwall.view].flame.selected) ?? null])
    await page.keyboard.press("/")
    await page.keyboard.type(process.env.SEARCH)
    await rest(page)
    seen.first = await at()
    await page.keyboard.press("Enter")
    await rest(page)
    seen.second = await at()
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.press("Shift+Enter")
    await rest(page)
    seen.last = await at()
    await picture(page, "light-steps")
    await tab(page, "Call tree")
    const chosen = () => page.locator("table[aria-label='Call tree'] tr[aria-selected=true]").innerText()
    seen.tree = [await chosen()]
    await page.locator("main").focus()
    await page.keyboard.press("n")
    await settled(page)
    seen.tree.push(await chosen())
    await page.getByRole("button", { name: /^The match before/ }).click()
    await settled(page)
    seen.tree.push(await chosen())
    seen.nameless = await nameless(page)
    await page.close()
  },

  // What of a long name and a long path is seen where there is little room: its beginning and its end.
  async names(context) {
    const page = await open(context, `#view=methods&search=${process.env.SEARCH}`)
    await page.setViewportSize({ width: 1200, height: 900 })
    await rest(page)
    seen.cells = await page.locator("#view td").filter({ has: page.locator(".middle") }).evaluateAll((all) =>
      all.map((cell) => {
        const [head, tail] = [...cell.querySelectorAll(".middle > span")].map((one) => ({ text: one.textContent, room: one.clientWidth, wide: one.scrollWidth }))
        const copied = cell.innerText.trim()
        return { copied, text: cell.textContent, title: cell.title, head, tail, within: cell.scrollWidth <= cell.clientWidth + 1 }
      }),
    )
    await picture(page, "light-names")
    await tab(page, "Flame graph")
    seen.drawn = await page.evaluate(() => {
      const { flame } = pitwall.made.flame
      return [300, 120, 70, 30].map((room) => flame.cut(pitwall.recording.methods.find(({ name }) => name.includes(pitwall.state.search)).name, room))
    })
    await page.close()
  },

  // Waiting stands in one line, and is counted where it is asked for.
  async waiting(context) {
    const page = await open(context, "#view=methods", "")
    const line = () => page.locator(".apart").innerText()
    seen.line = await line()
    seen.methods = await cells(page, "Methods")
    seen.nameless = await nameless(page)
    await picture(page, "light-waiting")
    await page.getByRole("button", { name: "Count waiting, too" }).click()
    await settled(page)
    seen.all = { line: await line(), hash: await page.evaluate(() => location.hash), methods: await cells(page, "Methods") }
    await page.locator("main").focus()
    await page.keyboard.press("w")
    await settled(page)
    seen.again = await cells(page, "Methods")
    await page.getByRole("combobox", { name: "weight" }).selectOption("cpu")
    await settled(page)
    seen.cpu = { hidden: await page.locator(".apart").isHidden(), methods: await cells(page, "Methods") }
    await page.getByRole("combobox", { name: "weight" }).selectOption("wall")
    await tab(page, "Flame graph")
    seen.total = await page.evaluate(() => pitwall.made.flame.flame.whole)
    await page.getByRole("button", { name: "time order" }).click()
    await rest(page)
    seen.time = await page.locator(".apart").isHidden()
    await tab(page, "Threads")
    seen.threads = await page.locator("#view").innerText()
    await page.setViewportSize({ width: 400, height: 900 })
    await tab(page, "Call tree")
    seen.beyond = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
    await page.close()
  },

  // What stands beside the flame graph where there is room, and above it where there is none.
  async overview(context) {
    const page = await open(context, "", "")
    seen.look = {}
    const look = async (width) => {
      await page.setViewportSize({ width, height: 900 })
      await rest(page)
      seen.look[width] = {
        overview: await page.getByRole("complementary", { name: "Overview" }).isVisible(),
        beside: await page.locator(".beside .findings details").count(),
        above: await page.locator(".findings details").count(),
        beyond: await page.evaluate(() => document.documentElement.scrollWidth > innerWidth),
      }
    }
    await look(1400)
    seen.text = await page.getByRole("complementary", { name: "Overview" }).innerText()
    seen.mine = await cells(page, "The application’s heaviest methods")
    seen.all = await cells(page, "Heaviest methods")
    seen.nameless = await nameless(page)
    await picture(page, "light-overview")
    const all = () => cells(page, "Heaviest methods")
    await page.evaluate(() => pitwall.state.set({ from: 0, to: 250e6 }))
    await rest(page)
    seen.brushed = (await all()).map((row) => row.at(-1))
    await page.evaluate(() => pitwall.state.set({ from: null, to: null }))
    await rest(page)
    await look(1399)
    await look(1900)
    await tab(page, "Methods")
    seen.methods = { above: await page.locator(".findings details").count(), beside: await page.locator(".beside .findings").count() }
    await tab(page, "Flame graph")
    await page.locator("table[aria-label='Heaviest methods'] tbody tr[data-at]").first().click()
    await settled(page)
    seen.hash = await hash(page)
    await page.close()
  },

  // Lines of a file, and what is said of where they are from.
  async source(context) {
    const page = await open(context, "#view=source")
    seen.note = await page.locator(".code .muted").first().innerText()
    seen.lines = await cells(page, "Lines")
    await picture(page, "light-source")
    await page.close()
  },

  // Panels' sizes by dragging, by keys, from the address, and the usual ones again.
  async sizes(context) {
    const page = await open(context, "#view=methods&method=1")
    const widths = () => page.evaluate(() => [document.querySelector("#view .table").offsetWidth, document.querySelector("#view .detail").offsetWidth])
    const handle = page.getByRole("separator", { name: "Width of callers and callees" })
    const drag = async (one, x, y) => {
      const box = await one.boundingBox()
      const [fromX, fromY] = [box.x + box.width / 2, box.y + box.height / 2]
      await page.mouse.move(fromX, fromY)
      await page.mouse.down()
      await page.mouse.move(fromX + x / 2, fromY + y / 2)
      await page.mouse.move(fromX + x, fromY + y)
      await page.mouse.up()
      await settled(page)
    }
    seen.usual = await widths()
    await drag(handle, -200, 0)
    seen.dragged = { widths: await widths(), hash: await hash(page) }
    await picture(page, "light-dragged")
    await handle.focus()
    await page.keyboard.press("ArrowRight")
    await rest(page)
    seen.key = { widths: await widths(), now: Number(await handle.getAttribute("aria-valuenow")), all: await page.evaluate(() => document.querySelector("#view .split").offsetWidth - 32) }
    await page.reload()
    await page.locator("html[data-ready]").waitFor()
    await settled(page)
    seen.reloaded = await widths()
    await handle.dblclick()
    await settled(page)
    seen.reset = { widths: await widths(), hash: await hash(page) }
    await tab(page, "Source")
    const files = () => page.evaluate(() => document.querySelector("#view .table").offsetWidth)
    seen.files = [await files()]
    await drag(page.getByRole("separator", { name: "Width of the list of files" }), 150, 0)
    seen.files.push(await files())
    const lanes = () => page.evaluate(() => document.querySelector(".lanes-wrap").offsetHeight)
    seen.lanes = [await lanes()]
    await drag(page.getByRole("separator", { name: "Height of the time line" }), 0, -600)
    seen.lanes.push(await lanes())
    await page.getByRole("separator", { name: "Height of the time line" }).focus()
    await page.keyboard.press("Home")
    await settled(page)
    seen.lanes.push(await lanes())
    seen.nameless = await nameless(page)
    await page.setViewportSize({ width: 400, height: 900 })
    await rest(page)
    seen.narrow = await page.getByRole("separator", { name: /^Width/ }).count()
    await page.close()
  },

  // Folding by the input, by a method's button and by the frame's key; BLACKBOX holds the names.
  async blackbox(context) {
    const page = await open(context, "#view=methods")
    const names = JSON.parse(process.env.BLACKBOX)
    seen.folded = {}
    for (const name of names) {
      await page.locator("main").focus()
      await page.keyboard.press("b")
      await page.keyboard.type(name)
      await page.keyboard.press("Enter")
      await page.keyboard.press("Escape")
      await settled(page)
      seen.folded[name] = { hash: await hash(page), methods: await cells(page, "Methods"), chips: await page.locator(".chip").allInnerTexts() }
      await (await inMenu(page, "combobox", "GC")).selectOption("caller")
      await settled(page)
      seen.folded[name].caller = await cells(page, "Methods")
      await (await inMenu(page, "combobox", "GC")).selectOption("")
      await page.getByRole("button", { name: `No longer blackbox ${name}` }).click()
      await settled(page)
    }
    seen.away = await hash(page)
    await (await inMenu(page, "textbox", /^Blackbox/)).fill("nothing#such")
    await page.keyboard.press("Enter")
    await settled(page)
    seen.unknown = { said: await page.locator(".refused").innerText(), hash: await hash(page) }
    await page.keyboard.press("Escape")
    seen.cleared = await page.locator(".refused").textContent()

    await page.locator("tbody tr[data-at]").filter({ has: page.getByText(names[0], { exact: true }) }).click()
    await settled(page)
    await page.getByRole("button", { name: "Blackbox", exact: true }).click()
    await settled(page)
    seen.button = { hash: await hash(page), pressed: await page.getByRole("button", { name: "Blackbox", exact: true }).getAttribute("aria-pressed") }
    await picture(page, "light-blackbox")
    await page.reload()
    await page.locator("html[data-ready]").waitFor()
    await settled(page)
    seen.reloaded = await cells(page, "Methods")
    seen.nameless = await nameless(page)
    await tab(page, "Flame graph")
    await page.getByRole("button", { name: "time order" }).click()
    await rest(page)
    const drawn = () => page.evaluate(() => [...new Set(pitwall.made.flame.flame.boxes.filter((box) => box.node).map((box) => pitwall.recording.methods[pitwall.recording.tree.keys[box.node]].name))])
    seen.time = await drawn()
    await page.getByRole("button", { name: "heaviest first" }).click()
    await rest(page)
    seen.heavy = await drawn()
    const flame = page.getByRole("application", { name: "Flame graph" })
    await flame.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("b")
    await rest(page)
    seen.frame = { hash: await hash(page), drawn: await drawn() }
    await page.close()
  },

  // The application's frames only, by the button and by the key; what stands out.
  async mine(context) {
    const page = await open(context, "#view=methods")
    const button = page.getByRole("button", { name: "Only my code" })
    seen.all = await cells(page, "Methods")
    await button.click()
    await settled(page)
    seen.mine = { hash: await hash(page), pressed: await button.getAttribute("aria-pressed"), methods: await cells(page, "Methods") }
    await (await inMenu(page, "combobox", "GC")).selectOption("caller")
    await settled(page)
    seen.caller = await cells(page, "Methods")
    await (await inMenu(page, "combobox", "GC")).selectOption("")
    await picture(page, "light-mine")
    seen.nameless = await nameless(page)
    await tab(page, "Flame graph")
    const drawn = () => page.evaluate(() => [...new Set(pitwall.made.flame.flame.boxes.filter((box) => box.node).map((box) => pitwall.recording.methods[pitwall.recording.tree.keys[box.node]].name))])
    seen.heavy = await drawn()
    await page.getByRole("button", { name: "time order" }).click()
    await rest(page)
    seen.time = await drawn()
    await tab(page, "Methods")
    await page.keyboard.press("m")
    await settled(page)
    seen.again = { hash: await hash(page), methods: await cells(page, "Methods") }
    await page.locator(".findings summary").first().click()
    seen.findings = await page.locator(".findings details").allInnerTexts()
    await page.close()
  },

  // Patterns, the trees of paths and of stacks, calls by name; of a log's page or a recording's.
  async syscalls(context) {
    const page = await open(context)
    const part = async (name) => {
      await page.getByRole("button", { name, exact: true }).click()
      await settled(page)
      seen.nameless.push(...(await nameless(page)))
      await picture(page, `light-syscalls-${name.replaceAll(" ", "-").toLowerCase()}`)
    }
    // Every row of a tree, opened; each as its cells with its depth first.
    const whole = (label) =>
      page.evaluate((wanted) => {
        const view = globalThis.pitwall.view?.made ? globalThis.pitwall.view : globalThis.pitwall.made.syscalls
        const tree = Object.values(view.made).find((one) => one.table?.label === wanted)
        for (let node = 1; node < tree.tree.parents.length; node++) tree.open.add(node)
        tree.update()
        return tree.table.order.map((row) => ({ depth: row.depth, label: tree.tree.label(row.node), calls: row.calls, ns: row.ns, explained: row.explained, paths: row.paths }))
      }, label)
    seen.nameless = await nameless(page)
    seen.tabs = await page.getByRole("tab").allTextContents()
    seen.parts = await page.getByRole("group", { name: "System calls by" }).getByRole("button").allTextContents()
    seen.text = await page.locator("#view").innerText()
    seen.patterns = await cells(page, "Patterns")
    await picture(page, "light-syscalls-patterns")
    for (const [name, label] of [
      ["By path", "System calls by path"],
      ["By Ruby stack", "System calls by Ruby stack"],
    ]) {
      if (!seen.parts.includes(name)) continue
      await part(name)
      const table = page.getByRole("treegrid", { name: label })
      await page.getByRole("button", { name: "Close all" }).click()
      await settled(page)
      const closed = await cells(page, label)
      await table.focus()
      await page.keyboard.press("ArrowDown")
      await page.keyboard.press("ArrowRight")
      await settled(page)
      const opened = await cells(page, label)
      await page.keyboard.press("ArrowLeft")
      await settled(page)
      seen[name] = { closed, opened, shut: await cells(page, label), hash: await hash(page), rows: await whole(label) }
      await page.getByRole("button", { name: "Open the heaviest path" }).click()
      await page.locator("th button", { hasText: /path|method/ }).last().click()
      await settled(page)
      seen[name].sorted = await table.locator("th[aria-sort=ascending], th[aria-sort=descending]").allTextContents()
      await picture(page, `light-syscalls-${name.replaceAll(" ", "-").toLowerCase()}-opened`)
    }
    if (process.env.SEARCH) {
      await page.getByRole("button", { name: "By path", exact: true }).click()
      await page.keyboard.press("/")
      await page.keyboard.type(process.env.SEARCH)
      await settled(page)
      seen.found = await cells(page, "System calls by path")
      await page.keyboard.press("Escape")
      await settled(page)
    }
    await part("By call")
    seen.calls = await cells(page, "System calls by name")
    await page.keyboard.press("t")
    for (const name of pictures ? seen.parts : []) {
      await page.getByRole("button", { name, exact: true }).click()
      await rest(page)
      await picture(page, `dark-syscalls-${name.replaceAll(" ", "-").toLowerCase()}`)
    }
    await page.keyboard.press("t")
    seen.ran = await page.evaluate(() => globalThis.ran ?? null)
    seen.elements = await page.evaluate(() => document.querySelectorAll("img, iframe, object, embed, a, form, svg").length)
    await page.close()
  },

  // What a page of bench or compare says.
  // The call paths of two sides.
  async change(context) {
    const page = await open(context)
    const section = page.locator('section[aria-label="Call paths"]')
    const colours = () =>
      page.evaluate(() => {
        const { flame, change } = globalThis.pitwall.change
        const of = {}
        for (const box of flame.boxes.filter((one) => one.node)) {
          const method = change.methods[change.tree.keys[box.node]]
          of[flame.title(method, box.node)] = { colour: flame.colour(method, box.node), width: Math.round(box.right - box.left) }
        }
        return of
      })
    seen.nameless = await nameless(page)
    seen.boxes = await colours()
    seen.rows = await section.locator("tbody tr[data-at]").allInnerTexts()
    await picture(page, "light-change")
    await section.getByRole("button", { name: "as wide as A" }).click()
    await rest(page)
    seen.swapped = await colours()
    seen.swapped_hash = await hash(page)
    await section.getByRole("button", { name: "equal totals" }).focus()
    await page.keyboard.press("Enter")
    await rest(page)
    seen.equal = await colours()
    seen.focused = await page.evaluate(() => document.activeElement.textContent)
    await section.getByRole("button", { name: "as wide as B" }).click()
    await rest(page)
    // By keys alone: the first row of the table, then the graph's first box and its callee.
    await section.getByRole("grid").focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await rest(page)
    seen.zoomed_hash = await hash(page)
    seen.status = await section.getByRole("status").innerText()
    const again = await open(context, `#${seen.zoomed_hash.replace(/^#/, "")}`)
    await rest(again)
    seen.restored = await again.evaluate(() => globalThis.pitwall.change.flame.view)
    await again.close()
    await section.getByRole("application").focus()
    await page.keyboard.press("Escape")
    await rest(page)
    seen.reset_hash = await hash(page)
    await page.keyboard.press("t")
    await rest(page)
    await picture(page, "dark-change")
    await page.setViewportSize({ width: 400, height: 1400 })
    await rest(page)
    await picture(page, "narrow-change")
    seen.wider = await page.evaluate(() => document.querySelector("main").scrollWidth > document.querySelector("main").clientWidth + 1)
    await page.close()
  },

  async measured(context) {
    const page = await open(context)
    seen.text = await page.locator("main").innerText()
    seen.nameless = await nameless(page)
    seen.drawn = await page.evaluate(() => ({
      intervals: document.querySelectorAll("svg.interval").length,
      ticks: document.querySelectorAll("svg.dots .tick").length,
      charts: document.querySelectorAll(".u-wrap").length,
    }))
    seen.beside = await page.locator('section[aria-label="Beside it"] h3').allTextContents()
    // What does not fit: heads that are cut, tables of effects and a page that scroll sideways.
    seen.clipped = {}
    for (const width of [1024, 400, 1400]) {
      await page.setViewportSize({ width, height: 1800 })
      await rest(page)
      seen.clipped[width] = await page.evaluate(() => [
        ...[...document.querySelectorAll(".measured th")].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent),
        ...[...document.querySelectorAll(".wide:has(.effects)")].filter((one) => one.scrollWidth > one.clientWidth + 1).map(() => "table"),
        ...(document.querySelector("main").scrollWidth > document.querySelector("main").clientWidth + 1 ? ["page"] : []),
      ])
    }
    await picture(page, "light-measured")
    await page.keyboard.press("t")
    await rest(page)
    await picture(page, "dark-measured")
    await page.close()
  },

  // The series of a history: the list, the chart of the chosen one, its changes, the search.
  async history(context) {
    const page = await open(context, "", "")
    const state = async () => ({
      series: await cells(page, "Series"),
      title: await page.locator(".detail h2").innerText(),
      changes: await cells(page, "Change points"),
      hash: await hash(page),
    })
    // Pixels of the chart that have the colours of points, of levels and of lines for the worse and the better.
    const inked = () =>
      page.evaluate(() => {
        const canvas = document.querySelector(".history .chart canvas")
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
        const style = getComputedStyle(document.documentElement)
        return Object.fromEntries(
          ["accent", "text", "bad", "good"].map((name) => {
            const [r, g, b] = style.getPropertyValue(`--${name}`).match(/[\da-f]{2}/gi).map((part) => parseInt(part, 16))
            let count = 0
            for (let at = 0; at < data.length; at += 4) if (data[at] === r && data[at + 1] === g && data[at + 2] === b && data[at + 3] === 255) count++
            return [name, count]
          }),
        )
      })
    const status = () => page.locator(".detail .flame-status").innerText()
    seen.nameless = await nameless(page)
    seen.facts = await page.locator(".facts span").allTextContents()
    seen.first = await state()
    seen.inked = await inked()
    await page.locator('[aria-label="Change points"] tbody tr[data-at]').first().click()
    seen.pointed = await status()
    await page.locator(".chart").press("ArrowLeft")
    seen.before = await status()
    await page.getByRole("button", { name: "by commit" }).click()
    await settled(page)
    seen.commits = { hash: await hash(page), inked: await inked() }
    await page.keyboard.press("/")
    await page.keyboard.type(process.env.SEARCH)
    await settled(page)
    seen.found = await state()
    await page.keyboard.press("Escape")
    await page.locator('[aria-label="Series"]').focus()
    await page.keyboard.press("End")
    await settled(page)
    seen.last = await state()
    // What does not fit: heads and cells but names, and a page that scrolls sideways.
    seen.clipped = {}
    for (const width of [600, 1000, 1600]) {
      await page.setViewportSize({ width, height: 900 })
      await rest(page)
      seen.clipped[width] = await page.evaluate(() => [
        ...[...document.querySelectorAll(".history th, .history td:not(.grow)")].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent),
        ...(document.documentElement.scrollWidth > innerWidth ? ["page"] : []),
      ])
      await picture(page, `light-history-${width}`)
      await page.keyboard.press("t")
      await rest(page)
      await picture(page, `dark-history-${width}`)
      seen.dark ||= await inked()
      await page.keyboard.press("t")
    }
    seen.ran = await page.evaluate(() => globalThis.ran ?? null)
    await page.close()
  },

  // Every view of a page whose names are markup; anything that ran would say so.
  async hostile(context) {
    const page = await open(context)
    for (const name of await page.getByRole("tab").allTextContents()) {
      await tab(page, name)
      await rest(page)
    }
    await tab(
      page,
      (await page.getByRole("tab").allTextContents()).find((name) => ["Methods", "Objects"].includes(name)),
    )
    seen.text = await page.locator("#view").innerText()
    await page.locator("tbody tr[data-at]").first().click()
    await rest(page)
    await page.evaluate((name) => {
      pitwall.chooseRequest(1)
      pitwall.narrowing.addName("blackbox", `${name}no`)
      pitwall.state.set({ blackbox: [name, `${name}no`], view: "requests" })
    }, process.env.NAME ?? "")
    await rest(page)
    seen.request = await page.locator("#view").innerText()
    seen.chips = await page.locator(".chip").allInnerTexts()
    await page.locator(".requests-lane").first().focus()
    await page.keyboard.press("ArrowRight")
    await rest(page)
    seen.ran = await page.evaluate(() => globalThis.ran ?? null)
    seen.elements = await page.evaluate(() => document.querySelectorAll("img, iframe, object, embed, a, form").length)
    seen.scripts = await page.evaluate(() => document.scripts.length)
    // The policy holds where escaping would not.
    seen.injected = await page.evaluate(() => {
      document.body.append(Object.assign(document.createElement("script"), { textContent: "globalThis.injected = true" }))
      return globalThis.injected ?? null
    })
    seen.complaints = seen.complaints.filter((text) => !/Content Security Policy/.test(text))
    await page.close()
  },

  // How long opening takes, and how many frames a second zooming has.
  async speed(context) {
    const began = Date.now()
    const page = await open(context)
    seen.open_ms = Date.now() - began
    seen.ready_ms = await page.evaluate(() => Number(document.documentElement.dataset.ready))
    const zooming = () =>
      page.evaluate(
        () =>
          new Promise((done) => {
            const { flame } = pitwall.made.flame
            const spans = []
            const paints = []
            let last = performance.now()
            let step = 0
            const paint = flame.paint
            flame.paint = function () {
              const from = performance.now()
              paint.call(this)
              paints.push(performance.now() - from)
            }
            const next = (now) => {
              if (step) spans.push(now - last)
              last = now
              if (step++ === 120) {
                flame.paint = paint
                flame.reset()
                return done({ spans, paints })
              }
              flame.zoomAt(0.37 + 0.2 * Math.sin(step / 9), step % 60 < 30 ? 0.86 : 1 / 0.86)
              requestAnimationFrame(next)
            }
            requestAnimationFrame(next)
          }),
      )
    seen.heavy = await zooming()
    await picture(page, "million-heavy")
    await page.getByRole("button", { name: "time order" }).click()
    await rest(page)
    seen.time = await zooming()
    await rest(page)
    await picture(page, "million-time")
    await page.getByRole("button", { name: "heaviest first" }).click()
    seen.brush = await page.evaluate(
      () =>
        new Promise((done) => {
          const spans = []
          let last = performance.now()
          let step = 0
          const next = (now) => {
            if (step) spans.push(now - last)
            last = now
            if (step++ === 40) return done(spans)
            const { span } = pitwall.recording
            pitwall.timeline.set((span * step) / 100, (span * (step + 30)) / 100, true)
            requestAnimationFrame(next)
          }
          requestAnimationFrame(next)
        }),
    )
    await tab(page, "Methods")
    await picture(page, "million-methods")
    seen.memory = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? null)
    await page.close()
  },
}

try {
  const context = await browserType.launchPersistentContext(folder, { executablePath: chromium, args: FLAGS, viewport: { width: 1440, height: 900 } })
  await scenarios[scenario](context)
  await context.close()
} finally {
  fs.rmSync(folder, { recursive: true, force: true })
}
console.log(JSON.stringify(seen))
