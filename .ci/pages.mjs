/**
 * Bundles the code of pages for browsers: the console (plugins/console/app) with the pages of all features
 * (plugins/<name>/page), the scripts of the sign-in page and of the documentation, and the page of evidence packs. The
 * console's code, the pure modules of src/domain that it shares with the service, and the packages that it uses go into
 * a few modules; a page's code is loaded when the page is opened. The compiler checks the types, not this script.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const APP = join("plugins", "console", "app");
/**
 * Entries of the console: the shared worker, the service worker, which imports nothing, the kit, which pages of
 * third-party plugins import, and the inbox, so that the document can name its module. `writeEntries` writes the others: the scripts of both documents and the style sheet.
 */
const ENTRIES = ["stream-worker.ts", "service-worker.ts", "kit.ts", join("inbox", "approvals.tsx")];

/**
 * Scripts and style sheets of pages outside the console, each with its bundle without the extension: `plugins/X/app/scripts/Y.ts` becomes
 * `plugins/X/bundle/Y.js`. Paths from the root.
 */
function listScripts() {
  return readdirSync(join(ROOT, "plugins")).flatMap((plugin) => {
    const folder = join("plugins", plugin, "app", "scripts");
    if (!existsSync(join(ROOT, folder))) return [];
    return readdirSync(join(ROOT, folder)).map((file) => [
      join("plugins", plugin, "bundle", file.replace(/\.(ts|css)$/, "")),
      join(folder, file),
    ]);
  });
}

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
 * Writes `plugins/console/bundle` and the bundles of `listScripts` into a folder that is laid out as dist/.
 * @returns {string[]} files of packages that the bundles contain, as paths from the root
 */
export function bundlePages(folder) {
  const scripts = bundleScripts(folder);
  if (!existsSync(join(ROOT, APP))) return scripts;
  const entries = join(folder, "plugins", "console", "entries");
  writeEntries(entries);
  const console_ = bundle(folder, [
    ...ENTRIES.map((name) => join(APP, name)),
    join(entries, "main.ts"),
    join(entries, "approve.ts"),
    join(entries, "console.css"),
    `--outdir=${join(folder, "plugins", "console", "bundle")}`,
    "--splitting",
    "--format=esm",
    // All modules in one folder, because the worker's URL is relative to the module that starts it.
    "--entry-names=[name]",
    "--chunk-names=chunk-[name]-[hash]",
    "--jsx=automatic",
    "--jsx-import-source=preact",
  ]);
  rmSync(entries, { recursive: true });
  return [...new Set([...console_, ...scripts])];
}

function bundleScripts(folder) {
  const scripts = listScripts();
  if (scripts.length === 0) return [];
  return bundle(folder, [
    ...scripts.map(([to, entry]) => `${to}=${entry}`),
    `--outdir=${folder}`,
    "--format=iife",
    // The script of an evidence pack is inside a document, where only ASCII needs no thought about its encoding.
    "--charset=ascii",
  ]);
}

/**
 * Writes the scripts of the console and of the approval page, which start with what the folders `plugins/<name>/page`
 * add, and their style sheet. A folder is found by its name, so that a deleted feature leaves nothing in the bundle.
 */
function writeEntries(folder) {
  const plugins = readdirSync(join(ROOT, "plugins")).sort();
  const pagesOf = (name) => join(ROOT, "plugins", name, "page");
  const parts = plugins.filter((name) => existsSync(join(pagesOf(name), "index.ts")));
  const styles = parts.flatMap((name) =>
    readdirSync(pagesOf(name))
      .filter((file) => file.endsWith(".css"))
      .sort()
      .map((file) => join(pagesOf(name), file)),
  );
  mkdirSync(folder, { recursive: true });
  for (const [file, module, start] of [
    ["main.ts", "main.tsx", "startConsole"],
    ["approve.ts", "approve.tsx", "startApprove"],
  ])
    writeFileSync(
      join(folder, file),
      [
        `import { ${start} } from ${JSON.stringify(join(ROOT, APP, module))};`,
        ...parts.map((name, i) => `import part${i} from ${JSON.stringify(join(pagesOf(name), "index.ts"))};`),
        `${start}({ ${parts.map((name, i) => `${JSON.stringify(name)}: part${i}`).join(", ")} });`,
      ].join("\n"),
    );
  writeFileSync(
    join(folder, "console.css"),
    [join(ROOT, APP, "console.css"), ...styles].map((path) => `@import ${JSON.stringify(path)};`).join("\n"),
  );
}

/** Runs the bundler. Returns the files of packages that it read. */
function bundle(folder, options) {
  const metafile = join(folder, "bundle.json");
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
