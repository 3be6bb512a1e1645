// Opens a file in the Firefox profiler's page, in a real browser, and prints what the profiler itself then works out.
//
//   node firefox.mjs MODULES CHROMIUM PAGES PROFILE SCREENSHOT
//
// MODULES is where package.json was installed to, PAGES the profiler's built pages. Prints one JSON object: the version the
// profile was upgraded to, and for each thread its name, process, the rows of the call tree inverted ([name, self in ms]), its
// roots ([name, total in ms]), its markers ([name, start, end, fields]) and its CPU time; and whatever the page complained of.

import http from "node:http"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { createRequire } from "node:module"

const [modules, chromium, pages, profile, screenshot] = process.argv.slice(2)
const require = createRequire(path.join(modules, "package.json"))
const playwright = require("playwright-core")
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".ftl": "text/plain",
                ".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml", ".wasm": "application/wasm" }
const FLAGS = ["--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
               "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-gpu"]

// The page's own files and the profile, on the loopback device; any other path is a view of the page's.
const server = http.createServer((request, response) => {
  const name = path.normalize(decodeURIComponent(new URL(request.url, "http://x").pathname))
  const wanted = name === "/profile.json" ? profile : path.join(pages, name)
  if (name === "/ruby-custom-hooks.js") return response.writeHead(200, { "Content-Type": TYPES[".js"] }).end() // of profile-viewer's own server
  const file = fs.existsSync(wanted) && fs.statSync(wanted).isFile() ? wanted : path.join(pages, "index.html")
  response.writeHead(200, { "Content-Type": TYPES[path.extname(file)] || "text/plain" })
  fs.createReadStream(file).pipe(response)
})
await new Promise((listening) => server.listen(0, "127.0.0.1", listening))
const origin = `http://127.0.0.1:${server.address().port}`

const seen = { complaints: [] }
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pitwall-chromium-"))
try {
  const context = await playwright.chromium.launchPersistentContext(folder, {
    executablePath: chromium, args: FLAGS, viewport: { width: 1600, height: 1000 }
  })
  const page = context.pages()[0] || await context.newPage()
  page.on("console", (message) => { if (message.type() === "error") seen.complaints.push(`console: ${message.text()}`) })
  page.on("pageerror", (error) => seen.complaints.push(`error: ${error.stack || error}`))
  page.on("dialog", (dialog) => { seen.complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss() })

  await page.goto(`${origin}/from-url/${encodeURIComponent(`${origin}/profile.json`)}/calltree/`)
  await page.waitForFunction(() => { try { return window.callTree.getRoots().length > 0 } catch { return false } }, null, { timeout: 120_000 }).catch(async (error) => { await page.screenshot({ path: screenshot }); seen.complaints.push(`page: ${(await page.innerText("body")).slice(0, 600)}`); console.error(JSON.stringify(seen)); throw error })
  await page.getByText("Call Tree").first().waitFor({ timeout: 120_000 })
  await page.waitForTimeout(500)
  await page.screenshot({ path: screenshot })
  Object.assign(seen, await page.evaluate(() => {
    const units = window.profile.meta.sampleUnits
    const threads = window.profile.threads.map((thread, index) => {
      window.dispatch(window.actions.changeSelectedThreads(new Set([index])))
      const tree = window.callTree
      const selfs = {}, roots = []
      const walk = (node) => {
        const { funcName, self } = tree.getNodeData(node)
        selfs[funcName] = (selfs[funcName] || 0) + self
        tree.getChildren(node).forEach(walk)
      }
      for (const node of tree.getRoots()) {
        roots.push([tree.getNodeData(node).funcName, tree.getNodeData(node).total])
        walk(node)
      }
      return { name: thread.name, pid: thread.pid, main: thread.isMainThread, roots, selfs,
               markers: window.filteredMarkers.map(({ name, start, end, data }) => [name, start, end, data]),
               cpu: thread.samples.threadCPUDelta.reduce((sum, value) => sum + (value || 0), 0) }
    })
    return { version: window.profile.meta.preprocessedProfileVersion, units, threads }
  }))
  await context.close()
} finally {
  server.close()
  fs.rmSync(folder, { recursive: true, force: true })
}
console.log(JSON.stringify(seen))
