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

const open = async (context, hash = "") => {
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
  await page.locator("html[data-ready]").waitFor({ timeout: 60_000 })
  await settled(page)
  return page
}

// Two frames: what was asked for is drawn.
const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))))
const rest = (page) => page.waitForTimeout(320).then(() => settled(page))
const hash = (page) => page.evaluate(() => location.hash)
const picture = async (page, name) => pictures && page.screenshot({ path: path.join(pictures, `${name}.png`) })
const tab = async (page, name) => {
  await page.getByRole("tab", { name, exact: true }).click()
  await settled(page)
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
    await page.keyboard.press("Escape")
    await page.keyboard.press("+")
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
    seen.search = { hash: await hash(page), found: await page.locator(".flame-view .bar-row [role=status]").innerText() }
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
    const select = page.getByRole("combobox", { name: "state" })
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
      await page.getByRole("combobox", { name: "GC" }).selectOption(how)
      await settled(page)
      seen.gc[how] = await cells(page, "Methods")
    }
    await page.getByRole("combobox", { name: "GC" }).selectOption("")
    await settled(page)
    await page.locator("tbody tr[data-at]").nth(1).click()
    await settled(page)
    seen.chosen = { hash: await hash(page), callers: await cells(page, "Callers"), callees: await cells(page, "Callees"), name: await page.locator(".detail h2").innerText() }
    await picture(page, "callers")
    await page.getByRole("button", { name: "flame graphs" }).click()
    await rest(page)
    await picture(page, "callers-flames")
    const thread = page.getByRole("combobox", { name: "thread" })
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
    const thread = page.getByRole("combobox", { name: "thread" })
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

  // Folding by the input, by a method's button and by the frame's key; BLACKBOX holds the names.
  async blackbox(context) {
    const page = await open(context, "#view=methods")
    const names = JSON.parse(process.env.BLACKBOX)
    const input = page.getByRole("textbox", { name: /^Blackbox/ })
    seen.folded = {}
    for (const name of names) {
      await page.locator("main").focus()
      await page.keyboard.press("b")
      await page.keyboard.type(name)
      await page.keyboard.press("Enter")
      await page.keyboard.press("Escape")
      await settled(page)
      seen.folded[name] = { hash: await hash(page), methods: await cells(page, "Methods"), chips: await page.locator(".chip").allInnerTexts() }
      await page.getByRole("combobox", { name: "GC" }).selectOption("caller")
      await settled(page)
      seen.folded[name].caller = await cells(page, "Methods")
      await page.getByRole("combobox", { name: "GC" }).selectOption("")
      await page.getByRole("button", { name: `No longer blackbox ${name}` }).click()
      await settled(page)
    }
    seen.away = await hash(page)
    await input.fill("nothing#such")
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
  async measured(context) {
    const page = await open(context)
    seen.text = await page.locator("main").innerText()
    seen.nameless = await nameless(page)
    seen.drawn = await page.evaluate(() => ({
      intervals: document.querySelectorAll("svg.interval").length,
      ticks: document.querySelectorAll("svg.dots .tick").length,
      charts: document.querySelectorAll(".u-wrap").length,
    }))
    await page.setViewportSize({ width: 1400, height: 1800 })
    await rest(page)
    await picture(page, "light-measured")
    await page.keyboard.press("t")
    await rest(page)
    await picture(page, "dark-measured")
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
      pitwall.addBlackbox(`${name}no`)
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
