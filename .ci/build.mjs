/**
 * Makes dist/, which is laid out as the clone: dist/src, dist/plugins, dist/policies, dist/docs/errors.md.
 *
 *   node .ci/build.mjs           checks the types, writes JavaScript, declarations and source maps, and bundles what
 *                                other packages bring into dist/vendor: what is packed
 *   node .ci/build.mjs --quick   writes JavaScript and source maps, and only when a source has changed
 *
 * The tests make the second with the bundles: what they start reads 30 files instead of 700.
 *
 * Each file is put in its place whole, and what has been made is told last. Builds that run at the same time do the
 * same work twice and harm nobody; one that is cut short is made again.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleConsole } from "./console.mjs";
import { copyVendored } from "./vendor.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
const STAMP = join(DIST, ".build.json");

/** What dist/ is made of. */
const FOLDERS = ["src", "plugins", "policies", ".ci"];
const FILES = ["docs/errors.md", "package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json"];

export class BuildError extends Error {}

/**
 * Builds unless dist/ was made of the sources as they are. Takes some milliseconds when it was.
 * @param bundle puts other packages' code into the folder that it is given: for who starts it often
 */
export function ensureBuilt(bundle = null) {
  // Looked at before the compiler reads them: a change in between is seen by the next start.
  const sources = fingerprint();
  const last = stamp();
  if (last?.sources === sources && (bundle === null || last.bundled)) return;
  inFreshFolder((fresh) => {
    compileInto(fresh, ["--noCheck", "--declaration", "false"]);
    bundle?.(fresh);
    place(fresh, { sources, types: false, bundled: bundle !== null });
  });
}

/** Makes what is packed: types are checked, which takes four times as long, and other packages' code is bundled. */
async function buildWhole() {
  const sources = fingerprint();
  // Not needed for a quick build, which a start of a clone waits for.
  const { bundlePackages } = await import("./bundle.mjs");
  inFreshFolder((fresh) => {
    compileInto(fresh, ["--noEmitOnError"]);
    for (const path of filesIn(fresh, "").filter((name) => name.endsWith(".d.ts"))) {
      // Only commands run these rooms: their types are nobody's, and name packages that are bundled.
      if (/^src\/(?:cli|hook|mcp)\//.test(path)) rmSync(join(fresh, path));
      else declare(join(fresh, path));
    }
    bundlePackages(fresh);
    place(fresh, { sources, types: true, bundled: true });
  });
}

function inFreshFolder(work) {
  // Beside dist/, and not in it: source maps name the sources relative to where the compiler writes.
  const fresh = join(ROOT, `.dist-${process.pid}`);
  try {
    work(fresh);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function compileInto(fresh, options) {
  compile(["-p", join(ROOT, "tsconfig.build.json"), "--outDir", fresh, ...options]);
  for (const path of assets()) put(fresh, path, readFileSync(join(ROOT, path)));
  copyVendored(fresh);
  try {
    bundleConsole(fresh);
  } catch (error) {
    throw new BuildError(error.message);
  }
}

/** Moves all files into dist/, takes away what is not among them, and notes what dist/ is made of. */
function place(fresh, { sources, types, bundled }) {
  const made = filesIn(fresh, "");
  const isBundle = (path) => path.startsWith("vendor/");
  // Bundles before what imports them: a service may be starting.
  for (const path of [...made.filter(isBundle), ...made.filter((path) => !isBundle(path))]) {
    mkdirSync(dirname(join(DIST, path)), { recursive: true });
    renameSync(join(fresh, path), join(DIST, path));
  }
  const kept = new Set(made);
  // Declarations and bundles of a build beside this one may be on their way.
  const isKept = (path) => kept.has(path) || (!types && kept.has(path.replace(/\.d\.ts$/, ".js")));
  for (const folder of ["src", "plugins", "policies", ...(bundled ? ["vendor"] : [])])
    for (const path of filesIn(DIST, folder)) if (!isKept(path)) rmSync(join(DIST, path), { force: true });
  writeFileSync(`${STAMP}.${process.pid}`, JSON.stringify({ sources, types, bundled }));
  renameSync(`${STAMP}.${process.pid}`, STAMP);
}

/** Runs the TypeScript compiler; throws BuildError when it finds a fault. */
export function compile(args) {
  const { status, error } = spawnSync(compiler(), args, { stdio: ["ignore", 2, 2] });
  if (error !== undefined) throw new BuildError(`the TypeScript compiler does not run: ${error.message}`);
  if (status !== 0) throw new BuildError(`the TypeScript compiler ended with ${status}`);
}

/** The compiler is a program of its own; its launcher would cost another start of Node. */
function compiler() {
  const name = `typescript-${process.platform}-${process.arch}`;
  const path = join(ROOT, "node_modules/@typescript", name, "lib", process.platform === "win32" ? "tsc.exe" : "tsc");
  if (statSync(path, { throwIfNoEntry: false }) === undefined)
    throw new BuildError(`dist/ has to be built, and @typescript/${name} is not installed; run "npm ci"`);
  return path;
}

/** Files that are not compiled and that the service reads. */
function assets() {
  const beside = ["src", "plugins"]
    .flatMap((folder) => filesIn(ROOT, folder))
    .filter((path) => !/\.ts$|\/README\.md$|^plugins\/console\/app\//.test(path) && path !== "src/cli/assent.mjs");
  return [...beside, ...filesIn(ROOT, "policies"), "docs/errors.md"];
}

/** Declarations keep the names of the sources in their imports. */
function declare(path) {
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replaceAll(/((?:\bfrom|\bimport\(|\bimport) ?["']\.{1,2}\/[^"']+)\.ts(["'])/g, "$1.js$2"));
}

function put(folder, path, content) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

/** Tells one state of the sources from another by names, sizes and times. */
function fingerprint() {
  const hash = createHash("sha256");
  for (const path of [...FOLDERS.flatMap((folder) => filesIn(ROOT, folder)), ...FILES]) {
    const { size, mtimeMs } = statSync(join(ROOT, path));
    // Whole milliseconds: Deno tells no more, and must not build again what Node has built.
    hash.update(`${path}\0${size}\0${Math.floor(mtimeMs)}\n`);
  }
  return hash.digest("hex");
}

function stamp() {
  try {
    return JSON.parse(readFileSync(STAMP, "utf8"));
  } catch {
    return null;
  }
}

/** Paths from `root`, with slashes. */
function filesIn(root, folder) {
  let entries;
  try {
    entries = readdirSync(join(root, folder), { withFileTypes: true });
  } catch (error) {
    if (error.code === "ENOENT") return [];
    throw error;
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesIn(root, path) : [path];
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    if (process.argv.includes("--quick")) ensureBuilt();
    else await buildWhole();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`assent: ${error.message}\n`);
    process.exitCode = 1;
  }
}
