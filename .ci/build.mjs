/**
 * Builds dist/, which has the layout of the clone: dist/src, dist/plugins, dist/clients, dist/policies,
 * dist/docs/errors.md. Also writes the JSON Schemas for editors, dist/policy.schema.json and dist/policy-test.schema.json.
 *
 *   node .ci/build.mjs           checks types, writes JavaScript, declarations and source maps, and bundles dependencies
 *                                into dist/vendor and the service into dist/bundles. The package contains this build
 *   node .ci/build.mjs --quick   writes JavaScript and source maps, and only if a source file has changed
 *
 * Tests add these bundles to the quick build, so that a service reads 70 files instead of 1,100.
 *
 * Files are moved into place whole, and the stamp is written last. Concurrent builds repeat work but do no harm, and an
 * interrupted build is repeated.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundlePages } from "./pages.mjs";
import { copyVendored } from "./vendor.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
const STAMP = join(DIST, ".build.json");

/** Folders of the clients in TypeScript. */
export const CLIENTS = readdirSync(join(ROOT, "clients"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== "python")
  .map(({ name }) => `clients/${name}`);
/** Folders that the build reads. */
const FOLDERS = ["src", "plugins", ...CLIENTS, "policies", ".ci"];
/** Files that the build reads. */
export const FILES = [
  "docs/errors.md",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "tsconfig.console.json",
];

export class BuildError extends Error {}

/**
 * Builds dist/ unless it is up to date. The check takes a few milliseconds.
 * @param bundle creates bundles in the given folder. Pass it if the caller starts the service often
 */
export async function ensureBuilt(bundle = null) {
  // Before the compiler reads the sources, so that the next start detects a change made during the build.
  const sources = fingerprint();
  const last = stamp();
  if (last?.sources === sources && (bundle === null || last.bundled)) return;
  const begun = Date.now();
  report("building dist/, because it is missing or a source file has changed; this takes up to a minute");
  await inFreshFolder(async (fresh) => {
    await compileInto(fresh, ["--noCheck", "--declaration", "false"]);
    bundle?.(fresh);
    place(fresh, { sources, types: false, bundled: bundle !== null });
  });
  report(`dist/ is built, in ${Math.ceil((Date.now() - begun) / 1000)} s`);
}

/** Reports progress on standard error, because the standard output belongs to the command that runs after the build. */
function report(text) {
  process.stderr.write(`assent: ${text}\n`);
}

/** Builds the package. Checks types, which makes the build four times as long, and bundles dependencies and service. */
async function buildWhole() {
  const sources = fingerprint();
  // Imported here, because a quick build does not need it and delays the start of a clone.
  const { bundlePackages } = await import("./bundle.mjs");
  const { bundleService } = await import("./bundle-service.mjs");
  const { renderClientTypes } = await import("./client-types.mjs");
  await inFreshFolder(async (fresh) => {
    await compileInto(fresh, ["--noEmitOnError"]);
    compile(["-p", join(ROOT, "tsconfig.console.json"), "--outDir", fresh]);
    put(fresh, "clients/typescript/api.d.ts", await renderClientTypes(fresh));
    const declarations = filesIn(fresh, "").filter((name) => name.endsWith(".d.ts"));
    for (const path of declarations) declare(join(fresh, path));
    // No one can import the others. They are large, and name packages that are bundled.
    const reachable = reachableDeclarations(fresh);
    for (const path of declarations) if (!reachable.has(path)) rmSync(join(fresh, path));
    bundlePackages(fresh);
    bundleService(fresh, CLIENTS);
    place(fresh, { sources, types: true, bundled: true });
  });
}

async function inFreshFolder(work) {
  // Next to dist/ and not in it, because source maps name sources relative to the output folder.
  const fresh = join(ROOT, `.dist-${process.pid}`);
  try {
    await work(fresh);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

async function compileInto(fresh, options) {
  report("compiling the sources");
  compile(["-p", join(ROOT, "tsconfig.build.json"), "--outDir", fresh, ...options]);
  for (const path of assets()) put(fresh, path, readFileSync(join(ROOT, path)));
  // In the folder of the copy, the links would be broken. The service displays only their texts.
  const errors = readFileSync(join(ROOT, "docs/errors.md"), "utf8");
  put(fresh, "docs/errors.md", errors.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1"));
  copyVendored(fresh);
  await writeEditorSchemas(fresh);
  report("bundling the pages of the console");
  try {
    bundlePages(fresh);
  } catch (error) {
    throw new BuildError(error.message);
  }
}

/** Writes the JSON Schemas that the policies of the clone name in their first lines. */
async function writeEditorSchemas(fresh) {
  const { renderEditorSchema } = await import(pathToFileURL(join(fresh, "src/config/editor-schemas.js")).href);
  for (const name of ["policy", "policy-test"]) put(fresh, `${name}.schema.json`, renderEditorSchema(name, {}));
}

/** Moves all files into dist/, removes other files there, and writes the stamp. */
function place(fresh, { sources, types, bundled }) {
  const made = filesIn(fresh, "");
  const isBundle = (path) => /^(?:vendor|bundles)\//.test(path);
  // Bundles before the files that import them, because a service may be starting.
  for (const path of [...made.filter(isBundle), ...made.filter((path) => !isBundle(path))]) {
    mkdirSync(dirname(join(DIST, path)), { recursive: true });
    renameSync(join(fresh, path), join(DIST, path));
  }
  const kept = new Set(made);
  // A concurrent build may be writing declarations and bundles.
  const isKept = (path) => kept.has(path) || (!types && kept.has(path.replace(/\.d\.ts$/, ".js")));
  for (const folder of ["src", "plugins", "clients", "policies", ...(bundled ? ["vendor", "bundles"] : [])])
    for (const path of filesIn(DIST, folder)) if (!isKept(path)) rmSync(join(DIST, path), { force: true });
  writeFileSync(`${STAMP}.${process.pid}`, JSON.stringify({ sources, types, bundled }));
  renameSync(`${STAMP}.${process.pid}`, STAMP);
}

/** Runs the TypeScript compiler; throws BuildError if it reports an error. */
export function compile(args) {
  const { status, error } = spawnSync(compiler(), args, { stdio: ["ignore", 2, 2] });
  if (error !== undefined) throw new BuildError(`the TypeScript compiler does not run: ${error.message}`);
  if (status !== 0) throw new BuildError(`the TypeScript compiler ended with ${status}`);
}

/** Path of the compiler. Its launcher would start Node once more. */
function compiler() {
  const name = `typescript-${process.platform}-${process.arch}`;
  const path = join(ROOT, "node_modules/@typescript", name, "lib", process.platform === "win32" ? "tsc.exe" : "tsc");
  if (statSync(path, { throwIfNoEntry: false }) === undefined)
    throw new BuildError(`dist/ has to be built, and @typescript/${name} is not installed; run "npm ci"`);
  return path;
}

/** Files that the service reads and that are not compiled. */
function assets() {
  const beside = ["src", "plugins", ...CLIENTS]
    .flatMap((folder) => filesIn(ROOT, folder))
    .filter(
      (path) => !/\.ts$|\/README\.md$|^plugins\/[^/]+\/(?:app|page)\//.test(path) && path !== "src/cli/assent.mjs",
    );
  return [...beside, ...filesIn(ROOT, "policies")];
}

/** Replaces `.ts` and `.tsx` in the imports of a declaration, which the compiler leaves as they are in the source. */
function declare(path) {
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replaceAll(/((?:\bfrom|\bimport\(|\bimport) ?["']\.{1,2}\/[^"']+)\.tsx?(["'])/g, "$1.js$2"));
}

/** Returns the declarations of the package's exports, and those that they import. */
function reachableDeclarations(folder) {
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const declared = Object.values(exports).flatMap(({ types }) => types?.replace("./dist/", "") ?? []);
  // The folder of an optional feature may be deleted.
  const paths = new Set(declared.filter((path) => existsSync(join(folder, path))));
  // A set also iterates over the members that are added meanwhile.
  for (const path of paths)
    for (const [, name] of readFileSync(join(folder, path), "utf8").matchAll(/["'](\.{1,2}\/[^"']+)\.js["']/g))
      paths.add(posix.join(dirname(path), `${name}.d.ts`));
  return paths;
}

function put(folder, path, content) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

/** Returns a digest of the names, sizes and times of all inputs. */
function fingerprint() {
  const hash = createHash("sha256");
  for (const path of [...FOLDERS.flatMap((folder) => filesIn(ROOT, folder)), ...FILES]) {
    // Node and Deno must compute the same fingerprint. Use whole milliseconds, because Deno has no finer times. Use
    // bigints, because Node rounds a number up to the next millisecond if that is less than 122 ns later.
    const { size, mtimeMs } = statSync(join(ROOT, path), { bigint: true });
    hash.update(`${path}\0${size}\0${mtimeMs}\n`);
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
    if (process.argv.includes("--quick")) await ensureBuilt();
    else await buildWhole();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    report(error.message);
    process.exitCode = 1;
  }
}
