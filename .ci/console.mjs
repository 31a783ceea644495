/**
 * Bundles the console's application (plugins/console/app), and the page of evidence packs, for browsers. Its code, the pure modules of src/domain that it
 * shares with the service, and the packages that it uses go into a few modules; a page's code is loaded when the page is
 * opened. Type checks are the compiler's job, not this script's.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const APP = join("plugins", "console", "app");
/** Entry of each document, of the shared worker and of the service worker, which imports nothing, and the style sheet. */
const ENTRIES = ["main.tsx", "approve.tsx", "stream-worker.ts", "service-worker.ts", "console.css"];

/** Options of both bundles. */
const COMMON = [
  "--bundle",
  "--platform=browser",
  "--target=es2022",
  "--minify",
  "--legal-comments=none",
  "--log-level=warning",
];

/**
 * Writes `plugins/console/bundle`, and the script of the page in evidence packs, into a folder that is laid out as dist/.
 * @returns {string[]} files of packages that the bundles contain, as paths from the root
 */
export function bundleConsole(folder) {
  const console_ = bundle(folder, [
    ...ENTRIES.map((name) => join(APP, name)),
    `--outdir=${join(folder, "plugins", "console", "bundle")}`,
    "--splitting",
    "--format=esm",
    // All modules in one folder, because the worker's URL is relative to the module that starts it.
    "--entry-names=[name]",
    "--chunk-names=chunk-[name]-[hash]",
    "--jsx=automatic",
    "--jsx-import-source=preact",
  ]);
  const page = join("src", "cli", "evidence", "page");
  const evidence = bundle(folder, [
    join(page, "main.ts"),
    `--outfile=${join(folder, page, "bundle.js")}`,
    "--format=iife",
    // In one script inside a document, only ASCII needs no thought about its encoding.
    "--charset=ascii",
  ]);
  return [...new Set([...console_, ...evidence])];
}

/** Runs the bundler. Returns the files of packages that it read. */
function bundle(folder, options) {
  const metafile = join(folder, "plugins", "console", "bundle.json");
  const { status, error } = spawnSync(bundler(), [...options, ...COMMON, `--metafile=${metafile}`], {
    cwd: ROOT,
    stdio: ["ignore", 2, 2],
  });
  if (error !== undefined) throw new Error(`esbuild does not run: ${error.message}`);
  if (status !== 0) throw new Error(`esbuild ended with ${status}: the pages cannot be built`);
  const { inputs } = JSON.parse(readFileSync(metafile, "utf8"));
  rmSync(metafile);
  return Object.keys(inputs).filter((path) => path.startsWith("node_modules/"));
}

/** Path of the bundler. Its launcher would start Node once more, and needs more permissions on Deno. */
function bundler() {
  const name = `${process.platform}-${process.arch}`;
  const file = process.platform === "win32" ? "esbuild.exe" : join("bin", "esbuild");
  const path = join(ROOT, "node_modules", "@esbuild", name, file);
  if (statSync(path, { throwIfNoEntry: false }) === undefined)
    throw new Error(`the console has to be built, and @esbuild/${name} is not installed; run "npm ci"`);
  return path;
}
