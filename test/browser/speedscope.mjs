// Opens a file in speedscope's page, in a real browser, as a user would by "Browse", and prints what it then shows.
//
//   node speedscope.mjs MODULES CHROMIUM PROFILE SCREENSHOT
//
// MODULES is where package.json was installed to. Prints one JSON object: the page's title, the rows of the list of
// profiles (number, name, weight), the first profile's rows of the sandwich view (total, self, name), and whatever the page complained of.

import http from "node:http"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { createRequire } from "node:module"

const [modules, chromium, profile, screenshot] = process.argv.slice(2)
const require = createRequire(path.join(modules, "package.json"))
const playwright = require("playwright-core")
const pages = path.join(modules, "node_modules/speedscope/dist/release")
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
                ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2", ".wasm": "application/wasm" }
const FLAGS = ["--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
               "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
               // speedscope draws with WebGL: in software, as there need be no graphics card.
               "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

// The page's own files and nothing else, on the loopback device.
const server = http.createServer((request, response) => {
  const name = path.basename(new URL(request.url, "http://x").pathname) || "index.html"
  fs.readFile(path.join(pages, name), (error, content) => {
    response.writeHead(error ? 404 : 200, { "Content-Type": TYPES[path.extname(name)] || "text/plain" })
    response.end(content)
  })
})
await new Promise((listening) => server.listen(0, "127.0.0.1", listening))
const origin = `http://127.0.0.1:${server.address().port}`

const seen = { complaints: [], title: null, profiles: [], methods: [] }
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pitwall-chromium-"))
try {
  const context = await playwright.chromium.launchPersistentContext(folder, {
    executablePath: chromium, args: FLAGS, viewport: { width: 1400, height: 1600 }
  })
  const page = context.pages()[0] || await context.newPage()
  page.on("console", (message) => { if (message.type() === "error") seen.complaints.push(`console: ${message.text()}`) })
  page.on("pageerror", (error) => seen.complaints.push(`error: ${error.stack || error}`))
  page.on("requestfailed", (request) => seen.complaints.push(`failed: ${request.url()}`))
  page.on("request", (request) => { if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(origin)) seen.complaints.push(`outside: ${request.url()}`) })
  page.on("dialog", (dialog) => { seen.complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss() })

  await page.goto(`${origin}/index.html`)
  await page.setInputFiles("input[type=file]", profile)
  await page.getByText("Sandwich").first().waitFor({ timeout: 120_000 })
  await page.screenshot({ path: screenshot })
  await page.getByText("Sandwich").first().click()
  await page.getByText("Symbol Name").first().waitFor({ timeout: 120_000 })
  // Three columns: total, self, name; the list of profiles has a number, a name and a weight.
  const table = (heading) => page.evaluate((wanted) => {
    const cells = (row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText.trim() || cell.textContent.trim())
    const rows = [...document.querySelectorAll("tr")].map(cells).filter((row) => row.length === 3)
    return rows.filter((row) => (/%/.test(row[0]) ? "methods" : "profiles") === wanted)
  }, heading)
  seen.title = await page.title()
  seen.profiles = await table("profiles")
  seen.methods = await table("methods")
  await context.close()
} finally {
  server.close()
  fs.rmSync(folder, { recursive: true, force: true })
}
console.log(JSON.stringify(seen))
