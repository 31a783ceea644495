/**
 * Bundles the code of pages for browsers: the console (plugins/console/app), the scripts of the sign-in page and of the
 * documentation, and the page of evidence packs. The console's code, the pure modules of src/domain that it shares with
 * the service, and the packages that it uses go into a few modules; a page's code is loaded when the page is opened.
 * The compiler checks the types, not this script.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const APP = join("plugins", "console", "app");
/** Entry of each document of the console, of the shared worker and of the service worker, which imports nothing, and the style sheet. */
const ENTRIES = ["main.tsx", "approve.tsx", "stream-worker.ts", "service-worker.ts", "console.css"];

/** Pages with one script each: the bundle, and its entry. Paths from the root. */
const SCRIPTS = {
  "plugins/users/bundle/sign-in": "plugins/users/app/sign-in.ts",
  "plugins/docs/bundle/relay": "plugins/docs/app/relay.ts",
  "plugins/docs/bundle/start-swagger": "plugins/docs/app/start-swagger.ts",
  "plugins/docs/bundle/start-redoc": "plugins/docs/app/start-redoc.ts",
  "src/cli/evidence/page/bundle": "src/cli/evidence/page/main.ts",
};

/** Options of both runs of the bundler. */
const COMMON = [
  "--bundle",
  "--platform=browser",
  "--target=es2022",
  "--minify",
  "--legal-comments=none",
  "--log-level=warning",
];

/**
 * Writes `plugins/console/bundle` and the bundles of `SCRIPTS` into a folder that is laid out as dist/.
 * @returns {string[]} files of packages that the bundles contain, as paths from the root
 */
export function bundlePages(folder) {
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
  const scripts = bundle(folder, [
    ...Object.entries(SCRIPTS).map(([to, entry]) => `${to}=${entry}`),
    `--outdir=${folder}`,
    "--format=iife",
    // The script of an evidence pack is inside a document, where only ASCII needs no thought about its encoding.
    "--charset=ascii",
  ]);
  return [...new Set([...console_, ...scripts])];
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
    throw new Error(`the pages have to be built, and @esbuild/${name} is not installed; run "npm ci"`);
  return path;
}
