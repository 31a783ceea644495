/**
 * Deletes a feature in a copy of the project, and checks that the rest type-checks, that its tests pass, and that the
 * service starts and decides. A feature is a folder of `plugins` or `clients`; its tests are the folder of `test/plugins` or
 * `test/clients` with its name, and files of other tests that declare that they need it (`@needs`).
 *
 *   node test/architecture/without.mjs stop console+users   tries without `stop`, then without `console` and `users`
 *                                                           (and without the features that declare that they need these)
 *   node test/architecture/without.mjs --today              tries without three features at once, which change each day;
 *                                                           if this fails, without each of them
 *   node test/architecture/without.mjs --all                tries without each feature
 *
 * Runs the tests of the architecture and of the API; with `--tests` all fast tests, with `--types` none.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BASE, FOLDERS, readNeeds } from "../needs.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PER_DAY = 3;
const DAY_MS = 86_400_000;

const flags = process.argv.slice(2).filter((argument) => argument.startsWith("--"));
const tests = flags.includes("--types")
  ? []
  : flags.includes("--tests")
    ? ["fast"]
    : ["test/architecture", "test/http/openapi.test.ts"];
const choices = choose(process.argv.slice(2).filter((argument) => !argument.startsWith("--")));
let failures = 0;
for (const choice of choices) {
  const features = choice.split("+");
  const fault = tryWithout(features);
  console.log(fault === null ? `ok      without ${choice}` : `FAILED  without ${choice}: ${fault}`);
  if (fault === null) continue;
  failures += 1;
  // Names the feature whose deletion fails. The loop continues with what is added here.
  if (flags.includes("--today") && features.length > 1) choices.push(...features);
}
process.exitCode = choices.length === 0 || failures > 0 ? 1 : 0;

/** Returns what to delete: features whose names `+` joins are deleted together. */
function choose(named) {
  const optional = FOLDERS.flatMap((folder) => readdirSync(join(ROOT, folder), { withFileTypes: true }))
    .filter((entry) => entry.isDirectory() && !BASE.includes(entry.name))
    .map(({ name }) => name)
    .sort();
  if (flags.includes("--all")) return optional;
  if (!flags.includes("--today")) return named;
  // With other companions in each round, so that a need of a companion that is deleted too does not stay hidden.
  const [day, count] = [Math.floor(Date.now() / DAY_MS), optional.length];
  const stride = 1 + (Math.floor(day / count) % Math.floor((count - 1) / (PER_DAY - 1)));
  return [Array.from({ length: PER_DAY }, (_, i) => optional[(day + i * stride) % count]).join("+")];
}

/** Returns what fails without the features; null if nothing does. */
function tryWithout(named) {
  const features = withDependants(named);
  for (const feature of features) {
    if (!FOLDERS.some((folder) => existsSync(join(ROOT, folder, feature)))) return `there is no feature ${feature}`;
    if (BASE.includes(feature)) return `every service needs ${feature}`;
  }
  const copy = mkdtempSync(join(tmpdir(), "assent-without-"));
  try {
    copyWithout(features, copy);
    // Declarations take a sixth of the compiler's time, and the package's build checks them.
    const args = ["node_modules/typescript/bin/tsc", "--noEmit", "--declaration", "false", "-p", "."];
    const types = run(copy, "node", args);
    if (types.status !== 0) return firstLines(types.stdout);
    if (tests.length === 0) return null;
    const result = run(copy, "node", [
      "test/run.mjs",
      ...tests.filter((path) => path === "fast" || existsSync(join(copy, path))),
    ]);
    return result.status === 0 ? null : firstLines(result.stdout.replace(/^ok .*\n/gm, "") + result.stderr);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/**
 * Adds the features whose definitions declare that they need one of these: `needs: ["grants"]`, or `@needs hook` for a
 * client, which no service loads.
 */
function withDependants(features) {
  const more = readdirSync(join(ROOT, "plugins")).filter((name) => {
    const path = join(ROOT, "plugins", name, "index.ts");
    if (features.includes(name) || !existsSync(path)) return false;
    const [, list = ""] = /^ {2}needs: \[([^\]]*)\]/m.exec(readFileSync(path, "utf8")) ?? [];
    return features.some((feature) => list.includes(`"${feature}"`) || readNeeds(path).includes(feature));
  });
  return more.length === 0 ? features : withDependants([...features, ...more]);
}

function copyWithout(features, copy) {
  const listed = run(ROOT, "git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
  for (const file of listed.stdout.split("\0").filter(Boolean)) {
    const path = join(ROOT, file);
    const isDeleted =
      features.some((feature) =>
        FOLDERS.some(
          (folder) => file.startsWith(`${folder}/${feature}/`) || file.startsWith(`test/${folder}/${feature}/`),
        ),
      ) ||
      !existsSync(path) ||
      // Pages are parts of the console.
      (features.includes("console") && /^(?:test\/)?plugins\/[^/]+\/page\//.test(file)) ||
      (/^(?:test|bench)\/.*\.tsx?$/.test(file) && readNeeds(path).some((name) => features.includes(name)));
    if (!isDeleted) cpSync(path, join(copy, file));
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
}

function run(cwd, command, args) {
  const env = { ...process.env, ASSENT_WITHOUT: "1" };
  return spawnSync(command, args, { cwd, env, encoding: "utf8", maxBuffer: 1 << 28 });
}

function firstLines(text) {
  return text.trim().split("\n").slice(0, 60).join("\n        ");
}
