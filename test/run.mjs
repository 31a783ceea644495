/**
 * Runs test files on built JavaScript: `node test/run.mjs [quick|fast|rest|all] [file or folder …]`, `fast` when nothing
 * is named. Each file is a process of its own, and what is expensive is started once for all of them. What a file
 * writes is removed when it has ended, unless ASSENT_TEST_KEEP=1 says to keep it. With ASSENT_TEST_COVERAGE=1 the lines
 * that ran are counted, too.
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { reportCoverage } from "./coverage.mjs";
import { folderInMemory } from "./in-memory.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** What everybody waits for least: the pure part, the ledger, the handler and the storage contract. */
const QUICK = ["test/domain/", "test/ledger/", "test/http/", "test/conformance/"];
/** What `npm test` leaves to `npm run test:all`: browsers, proxies, hosts, faults, other runtimes, notifiers, git, fuzz. */
const REST = [
  "test/adapters/",
  "test/runtimes/",
  "test/browser/",
  "test/fuzz/",
  "test/e2e/",
  "test/deploy/",
  "test/package/",
  "test/clients/",
  "test/mcp/",
  "test/hook/",
  "test/faults/",
  "test/identity/",
  "test/delivery/",
  "test/plugins/deliveries/",
  "test/plugins/policy-git/",
  "test/plugins/notify-slack/",
  "test/plugins/notify-email/",
  "test/extension/plugin-examples.test.ts",
  "test/extension/brings.test.ts",
  "test/cli/backtest.test.ts",
  "test/cli/policy-diff.test.ts",
  "test/cli/rotate-permit.test.ts",
  "test/cli/rotate-log.test.ts",
  "test/cli/store.test.ts",
  "test/cli/first-start.test.ts",
  "test/cli/witness.test.ts",
  "test/client/govern.test.ts",
  "test/types/client-types.test.ts",
  "test/policies/evasions.test.ts",
  "test/ledger/tamper.test.ts",
  "test/plugins/policies/trial.test.ts",
  "test/plugins/provenance/record.test.ts",
  "test/conformance/storage-postgres.test.ts",
  // The browser's verifier on every proof of many trees.
  "test/plugins/console/verify.test.ts",
];
/** What must write to the disk: tests of disks, and what starts Deno, which gives no program access below /dev. */
const ON_DISK = [
  "test/runtimes/",
  "test/deploy/",
  "test/package/",
  "test/e2e/",
  "test/mcp/conformance.test.ts",
  "test/faults/disk.test.ts",
  "test/faults/storage-cut.test.ts",
];
/** What installs packages, for which the certificates of this machine may be needed. */
const FROM_REGISTRY = [
  "test/package/",
  "test/adapters/",
  "test/deploy/",
  "test/e2e/",
  "test/runtimes/",
  "test/mcp/conformance.test.ts",
  "test/mcp/official.test.ts",
];
/** The longest, which begin first so that no core waits for them at the end. */
const LONG = [
  "test/runtimes/core-bun.test.ts",
  "test/e2e/hook-matrix.test.ts",
  "test/runtimes/core-deno.test.ts",
  "test/runtimes/service.test.ts",
  "test/deploy/ci.test.ts",
  "test/cli/store.test.ts",
  "test/e2e/hook-hosts.test.ts",
  "test/browser/console-access.test.ts",
  "test/browser/console-pictures.test.ts",
  "test/faults/fleet.test.ts",
  "test/faults/sequencer.test.ts",
  "test/faults/replicas.test.ts",
  "test/cli/cli.test.ts",
  "test/plugins/events/events.test.ts",
  "test/ledger/tamper.test.ts",
];
/** No machine is so busy that a file takes longer; only one that hangs does. */
const BOUND_MS = 15 * 60_000;
const KEEP = process.env["ASSENT_TEST_KEEP"] === "1";
/** One more than there are cores: most files wait for the disk now and then. */
const AT_ONCE = availableParallelism() + 1;

const within = (paths) => (file) => paths.some((path) => file === path || file.startsWith(path));
const GROUPS = {
  quick: (file) => within(QUICK)(file) && !within(REST)(file),
  fast: (file) => !within(REST)(file),
  rest: within(REST),
  all: () => true,
};

/** Files of the sources, as paths from the root with forward slashes. */
function filesOf(names) {
  const every = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" })
    .map((file) => `test/${file.split(sep).join("/")}`)
    .filter((file) => file.endsWith(".test.ts"))
    .sort();
  const groups = names.filter((name) => name in GROUPS);
  const paths = names
    .filter((name) => !(name in GROUPS))
    .map((name) => relative(ROOT, resolve(name)).split(sep).join("/"));
  const chosen = every.filter(
    (file) =>
      groups.some((group) => GROUPS[group](file)) ||
      paths.some((path) => file === path || file.startsWith(`${path}/`)) ||
      (names.length === 0 && GROUPS.fast(file)),
  );
  if (chosen.length === 0) throw new Error(`no test file is meant by ${names.join(" ")}`);
  const rank = (file) => (LONG.includes(file) ? LONG.indexOf(file) : LONG.length);
  return chosen.sort((a, b) => rank(a) - rank(b));
}

/** One Postgres and one browser for all files that want them; answers what their tests are told, and how to stop. */
async function startShared(files, folder) {
  const wants = (support) =>
    files.some((file) => readFileSync(join(ROOT, file), "utf8").includes(`support/${support}`));
  const load = (name) => import(pathToFileURL(join(ROOT, "build", "test", "support", name)).href);
  const env = {};
  const stops = [];
  if (wants("postgres.ts")) {
    const { startPostgres, withoutPostgres } = await load("postgres.js");
    if (withoutPostgres === false) {
      // With fsync: the service refuses a server without.
      const server = await startPostgres({ own: true, folder });
      env.ASSENT_TEST_DATABASE = server.url;
      stops.push(() => server.stop());
    }
  }
  if (wants("browser.ts") || wants("console.ts")) {
    const { startBrowser, withoutBrowser } = await load("browser.js");
    if (withoutBrowser === false) {
      const browser = await startBrowser();
      env.ASSENT_TEST_BROWSER = browser.wsEndpoint();
      stops.push(() => browser.close());
    }
  }
  return { env, stop: () => Promise.all(stops.map((stop) => stop())) };
}

const COUNTED = ["tests", "pass", "fail", "cancelled", "skipped", "todo"];

/** Where everything of this run is written that does not belong into memory, until this process ends. */
function folderOnDisk() {
  // Short, and open to Postgres, as the one in memory.
  const folder = mkdtempSync(join(tmpdir(), "a-"));
  chmodSync(folder, 0o711);
  process.once("exit", () => {
    if (KEEP) console.log(`kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return folder;
}

let folders = 0;

/** One for each file, so that nothing is left of one that failed. */
function folderIn(place) {
  const folder = join(place, String(++folders));
  mkdirSync(folder);
  chmodSync(folder, 0o711);
  return folder;
}

function removeFolder(folder) {
  try {
    if (!KEEP) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    // A process that a test has left behind still writes into it: the end of the run takes it.
  }
}

/** Runs one file to its end. */
function runFile(file, { place, cache, ...env }) {
  const folder = folderIn(place);
  const begun = performance.now();
  const child = spawn(
    process.execPath,
    ["--enable-source-maps", "--test-reporter=spec", "--test-reporter-destination=stdout", built(file)],
    {
      cwd: ROOT,
      env: { ...process.env, ...env, TMPDIR: folder, ASSENT_TEST_CACHE: cache, FORCE_COLOR: "0" },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk.toString()));
  const bound = setTimeout(() => {
    output += `\nnot at its end after ${BOUND_MS / 60_000} minutes\n`;
    child.kill("SIGKILL");
  }, BOUND_MS);
  return new Promise((done) =>
    child.once("close", (code) => {
      clearTimeout(bound);
      removeFolder(folder);
      const counts = Object.fromEntries(
        COUNTED.map((name) => [name, Number(new RegExp(`^ℹ ${name} (\\d+)$`, "m").exec(output)?.[1] ?? 0)]),
      );
      // A file that ended before its tests did has no closing lines.
      const ended = /^ℹ tests \d+$/m.test(output);
      if (!ended) counts.fail++;
      done({ file, output, counts, good: code === 0 && ended, seconds: (performance.now() - begun) / 1000 });
    }),
  );
}

const built = (file) => join(ROOT, "build", file.replace(/\.ts$/, ".js"));

function tell({ file, output, counts, good, seconds }) {
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
  console.log(
    `${good ? "ok    " : "FAILED"} ${seconds.toFixed(1).padStart(6)} s  ${file}: ${counts.pass} passed${skipped}`,
  );
  if (good) return;
  // Node lists the failing tests at the end; what a file printed before that is said where it has no such end.
  const from = output.indexOf("✖ failing tests:");
  console.log((from < 0 ? output : output.slice(from)).replaceAll(/^/gm, "    "));
}

async function runAll(files, env) {
  const waiting = [...files];
  const results = [];
  const worker = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const result = await runFile(file, env(file));
      results.push(result);
      tell(result);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

/**
 * With ASSENT_TEST_AGAIN=1 a file that failed runs once more, with nothing beside it: one that passes then is reported
 * as flaky, by name, and does not fail the run. Many failing files are no accident, and are left as they are.
 */
async function runAgain(results, env) {
  const failed = results.filter(({ good }) => !good);
  if (process.env["ASSENT_TEST_AGAIN"] !== "1" || failed.length > 4) return results;
  const again = new Map();
  for (const { file } of failed) {
    const result = await runFile(file, env(file));
    tell(result);
    again.set(file, { ...result, flaky: result.good });
  }
  return results.map((result) => again.get(result.file) ?? result);
}

const begun = performance.now();
const files = filesOf(process.argv.slice(2));
build();
const coverage = process.env["ASSENT_TEST_COVERAGE"] === "1" ? mkdtempSync(join(tmpdir(), "assent-coverage-")) : null;
const memory = KEEP ? null : folderInMemory();
const disk = folderOnDisk();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
const shared = await startShared(files, memory ?? disk);
let results;
try {
  const env = (file) => ({
    ...shared.env,
    // What a file installs is kept for the next one, and on the disk for the next run.
    ...(memory === null || within(ON_DISK)(file) ? { place: disk, cache: tmpdir() } : { place: memory, cache: memory }),
    ...(coverage === null ? {} : { NODE_V8_COVERAGE: coverage }),
    // Every Node that a test starts would read them: 46 ms each time.
    ...(within(FROM_REGISTRY)(file) ? {} : { NODE_EXTRA_CA_CERTS: undefined }),
  });
  results = await runAgain(await runAll(files, env), env);
} finally {
  await shared.stop();
}
if (coverage !== null) {
  reportCoverage(coverage, join(ROOT, "build"));
  rmSync(coverage, { recursive: true });
}
const sum = (name) => results.reduce((total, { counts }) => total + counts[name], 0);
const slowest = [...results].sort((a, b) => b.seconds - a.seconds).slice(0, 5);
console.log(`\nslowest: ${slowest.map(({ file, seconds }) => `${file} ${seconds.toFixed(0)} s`).join(", ")}`);
for (const { file, good, flaky } of results) {
  if (!good) console.log(`failed: ${file}`);
  if (flaky) console.log(`flaky: ${file} failed, and passed when it ran alone`);
}
for (const name of COUNTED) console.log(`# ${name} ${sum(name)}`);
console.log(`# ${files.length} files in ${((performance.now() - begun) / 1000).toFixed(0)} s`);
console.log(`${sum("pass")} passed, ${sum("fail") + sum("cancelled")} failed`);
process.exitCode = results.every(({ good }) => good) ? 0 : 1;
