/**
 * Compiles the sources, tests and benchmarks once into ./build with the same layout, so that tests and the processes
 * that they start run plain JavaScript. Types are not checked here; `npm run check` does that.
 */
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CLIENTS, compile, ensureBuilt } from "../.ci/build.mjs";
import { bundlePackages } from "../.ci/bundle.mjs";
import { copyVendored } from "../.ci/vendor.mjs";
import { bundleService } from "../.ci/bundle-service.mjs";
import "./tools/install.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BUILD = join(ROOT, "build");
const COMPILED = ["src", "plugins", ...CLIENTS, "test", "bench", join("docs", "examples")];

/** Builds ./build. @param dist also builds dist/, for tests that start the published package */
export async function build({ dist = true } = {}) {
  if (dist) await ensureBuilt(bundle);
  // Set by a caller that has just run tests, such as .ci/run.
  if (process.env["ASSENT_TEST_BUILT"] === "1") return;
  rmSync(BUILD, { recursive: true, force: true });
  compile(["-p", join(ROOT, "tsconfig.test.json")]);
  // Copies files that the code reads from its own folder.
  for (const folder of COMPILED)
    cpSync(join(ROOT, folder), join(BUILD, folder), { recursive: true, filter: (path) => extname(path) !== ".ts" });
  // Links the policies, which the code reads but never changes.
  symlinkSync(join("..", "policies"), join(BUILD, "policies"));
  // Makes the package's own name resolve to this build.
  const manifest = readFileSync(join(ROOT, "package.json"), "utf8");
  writeFileSync(join(BUILD, "package.json"), manifest.replaceAll('"./dist/', '"./'));
  copyVendored(BUILD);
  bundle(BUILD);
  for (const { name } of readdirSync(join(ROOT, "docs"), { withFileTypes: true }))
    if (name !== "examples") symlinkSync(join("..", "..", "docs", name), join(BUILD, "docs", name));
}

/** Creates the bundles of the published package, so that each process reads fewer files. */
function bundle(folder) {
  bundlePackages(folder, folder === BUILD ? ["test"] : []);
  // V8 reports coverage by file, so coverage needs separate files.
  if (process.env["ASSENT_TEST_COVERAGE"] !== "1") bundleService(folder, CLIENTS);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build();
