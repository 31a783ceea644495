/**
 * Deletes features in a copy of the project, and checks that the rest type-checks, that its tests pass, and that the
 * service starts and decides: `node test/architecture/without.mjs FEATURE… [--tests]`. A feature is a folder of
 * `plugins`. Without `--tests`, runs the tests of the architecture and of the API only.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const features = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const tests = process.argv.includes("--tests") ? ["fast"] : ["test/architecture", "test/http/openapi.test.ts"];
let failures = 0;
for (const feature of features) {
  const fault = tryWithout(feature);
  if (fault !== null) failures += 1;
  console.log(fault === null ? `ok      without ${feature}` : `FAILED  without ${feature}: ${fault}`);
}
process.exitCode = features.length === 0 || failures > 0 ? 1 : 0;

/** Returns what fails without the feature; null if nothing does. */
function tryWithout(feature) {
  if (!existsSync(join(ROOT, "plugins", feature))) return "there is no such folder";
  const copy = mkdtempSync(join(tmpdir(), `assent-without-${feature}-`));
  try {
    const files = run(ROOT, "git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).stdout.split("\0");
    for (const file of files.filter(Boolean))
      if (existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(copy, file));
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    for (const folder of ["plugins", "test/plugins"])
      rmSync(join(copy, folder, feature), { recursive: true, force: true });
    const types = run(copy, "node", ["node_modules/typescript/bin/tsc", "--noEmit", "-p", "."]);
    if (types.status !== 0) return firstLines(types.stdout);
    const result = run(copy, "node", [
      "test/run.mjs",
      ...tests.filter((path) => path === "fast" || existsSync(join(copy, path))),
    ]);
    return result.status === 0 ? null : firstLines(result.stdout.replace(/^ok .*\n/gm, ""));
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function run(cwd, command, args) {
  return spawnSync(command, args, { cwd, encoding: "utf8", maxBuffer: 1 << 28 });
}

function firstLines(text) {
  return text.trim().split("\n").slice(0, 60).join("\n        ");
}
