// Builds page.js and page.css into the folder given:
//
//   node build.mjs OUT
//
// One script and one style sheet, with the licences of what is in them, so that each page carries them as well.

import fs from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import * as esbuild from "esbuild"

const here = path.dirname(fileURLToPath(import.meta.url))
const out = path.resolve(process.argv[2])
const { dependencies } = JSON.parse(fs.readFileSync(path.join(here, "package.json"), "utf8"))

const licences = Object.keys(dependencies).map((name) => {
  const folder = path.join(here, "node_modules", name)
  const { version, license } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"))
  return `${name} ${version} (${license})\n\n${fs.readFileSync(path.join(folder, "LICENSE"), "utf8").trim()}`
})
const about = "Pitwall's page, built of page/ in its repository; MIT licence. It contains:"
const banner = `/*! ${about}\n\n${licences.join("\n\n")}\n*/`

await esbuild.build({
  entryPoints: { page: path.join(here, "src/main.js") },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  banner: { js: banner, css: banner },
  logLevel: "warning",
  absWorkingDir: here,
})
