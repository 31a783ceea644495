/**
 * Runs test files as built JavaScript: `node test/run.mjs [--check] [quick|fast|rest|all] [file or folder …]`; `fast` if
 * nothing is named. A file whose name ends in `.slow.test.ts` is one of the rest. Most files share processes if many of
 * them run; a file that starts processes or needs a disk has its own. One Postgres and one browser serve the whole run.
 *
 *   --check                 runs `npm run check` at the same time
 *   ASSENT_TEST_AGAIN=1     runs a failed file once more, alone, and reports it as flaky if it passes
 *   ASSENT_TEST_KEEP=1      keeps what the tests write
 *   ASSENT_TEST_BUILT=1     uses the JavaScript of the run before
 *   ASSENT_TEST_COVERAGE=1  reports which lines ran
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative, resolve, sep } from "node:path";
import { run } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { build } from "./build.mjs";
import { reportCoverage } from "./coverage.mjs";
import { cpuOfChildren } from "./cpu.mjs";
import { folderInMemory } from "./in-memory.mjs";
import { missingNeeds } from "./needs.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const QUICK = ["test/domain/", "test/ledger/", "test/http/", "test/conformance/"];
const isSlow = (file) => file.endsWith(".slow.test.ts");
const isBrowser = (file) => file.startsWith("test/browser/") || /\/console[^/]*\.slow\.test\.ts$/.test(file);
/**
 * Imports of files that have their own process. `support/on-disk.ts` takes effect when it is imported, which a process
 * does once. `packages.ts` loads frameworks, which can change globals. Flags of V8 remain set. A file that starts
 * processes spends most of its time on them, and blocks if it waits synchronously.
 */
const NEEDS_PROCESS =
  /["'](?:node:(?:child_process|worker_threads|v8)|(?:\.\.\/)+support\/(?:on-disk|process)\.ts|\.\/packages\.ts)["']/;
const isShared = (file) =>
  !isSlow(file) || isBrowser(file) || !NEEDS_PROCESS.test(readFileSync(join(ROOT, file), "utf8"));
/** Shared processes run their files in this order. */
const rankOf = (file) => (isSlow(file) ? (isBrowser(file) ? 1 : 2) : 0);
const GROUPS = {
  quick: (file) => !isSlow(file) && QUICK.some((folder) => file.startsWith(folder)),
  fast: (file) => !isSlow(file),
  rest: isSlow,
  all: () => true,
};
/** Timeout of a process. Far more than any file takes on a loaded machine. */
const TIMEOUT_MS = 20 * 60_000;
/** Timeout of a process that runs several files. */
const TOGETHER_TIMEOUT_MS = 2 * TIMEOUT_MS;
/** The script that runs several files in one process. */
const TOGETHER = "test/together.mjs";
/** Maximum number of files per process, because the memory that earlier files leave behind slows down later ones. */
const MOST_TOGETHER = 25;
const KEEP = process.env["ASSENT_TEST_KEEP"] === "1";
/** Long files start first: a long file that started last would run alone at the end. */
const LONG = [
  "cli/cli",
  "http/openapi",
  "conformance/storage-sqlite",
  "browser/console-pictures",
  "browser/sign-in",
  "browser/docs",
  "browser/console-access",
  "browser/console-queue",
  "conformance/storage-postgres",
  "conformance/storage-postgres-plain",
  "deploy/ci",
  "package/package",
  "cli/store",
  "e2e/hook-hosts",
  "clients/hook/coding-day",
  "deploy/deploy",
  "faults/audit-columns",
  "faults/audit-columns-postgres",
  "faults/forged-rows",
  "faults/replicas",
  "faults/storage-bundles",
  "runtimes/service",
  "e2e/hook-matrix",
  "clients/mcp/conformance",
  "clients/mcp/fail-closed",
  "clients/hook/setup",
  "clients/hook/hookd",
  "clients/hook/shell-differences",
  "cli/first-start",
  "faults/fleet",
  "faults/work-kills",
  "faults/storage-cut",
  "plugins/policy-git/git",
  "runtimes/core-bun",
  "runtimes/core-deno",
];
/** With more failed files than this, the failures are not accidents of timing, and none of them is run again. */
const MAX_FLAKY = 4;
/** How much of a failure is printed at the end of a run. */
const BRIEF_LINES = 8;
const BRIEF_LENGTH = 1_000;
const COUNTS = ["tests", "pass", "fail", "skipped", "todo"];

/** Source files, as paths from the root with forward slashes. */
function select(names) {
  const paths = names
    .filter((name) => !(name in GROUPS))
    .map((name) => relative(ROOT, resolve(name)).split(sep).join("/"));
  const groups = names.filter((name) => name in GROUPS);
  if (names.length === 0) groups.push("fast");
  const files = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" })
    .map((file) => `test/${file.split(sep).join("/")}`)
    .filter((file) => file.endsWith(".test.ts"))
    .filter(
      (file) =>
        groups.some((group) => GROUPS[group](file)) ||
        paths.some((path) => file === path || file.startsWith(`${path}/`)),
    )
    .filter((file) => missingNeeds(join(ROOT, file)).length === 0)
    .sort((a, b) => Number(isLong(b)) - Number(isLong(a)) || (a < b ? -1 : 1));
  if (files.length === 0) throw new Error(`no test file matches ${names.join(" ")}`);
  return files;
}

const isLong = (file) => LONG.includes(file.replace(/^test\/|(?:\.slow)?\.test\.ts$/g, ""));
const builtFile = (file) => join(ROOT, "build", file.replace(/\.ts$/, ".js"));
/** Newer versions of Node report the source file that the source map names. */
const sourceFile = (path) =>
  relative(ROOT, resolve(path))
    .split(sep)
    .join("/")
    .replace(/^build\//, "")
    .replace(/\.js$/, ".ts");

/** Runs files, several at once. Prints a line for each file when it ends, and the failures of its process after it. */
async function runFiles(files) {
  // Files wait for the disk now and then. With more browser files at once, pages time out.
  const processes = availableParallelism() + 1;
  const shared = files.length > processes ? files.filter(isShared).sort((a, b) => rankOf(a) - rankOf(b)) : [];
  const alone = files.filter((file) => !shared.includes(file));
  const claims = shareFiles(shared);
  const results = [];
  const runShared = async () => {
    let completed = shared;
    while (completed.length > 0 && readdirSync(claims).length < shared.length) {
      completed = await runProcess(shared, claims);
      completed.forEach(checkFile);
      results.push(...completed);
    }
  };
  const runOthers = async (waiting) => results.push(...(await runAlone(waiting)));
  // One process more for files that start processes, because these files wait for them.
  await Promise.all([
    ...Array.from({ length: processes }, () => runShared().then(() => runOthers(alone))),
    runOthers(alone),
  ]);
  // Files without a result, because their process failed, run again, alone.
  const named = new Set(results.map(({ file }) => file));
  await runOthers(shared.filter((file) => !named.has(file)));
  return results;
}

/** Takes files from the list until it is empty, and runs each in its own process. */
async function runAlone(waiting) {
  const results = [];
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    const result = await runFile(file);
    checkFile(result);
    results.push(result);
  }
  return results;
}

/** Writes the list of files for the shared processes. Returns the folder in which the processes claim them. */
function shareFiles(files) {
  const claims = mkdtempSync(join(disk, "claims-"));
  writeFileSync(`${claims}.json`, JSON.stringify({ files, claims, most: MOST_TOGETHER }));
  process.env["ASSENT_TEST_TOGETHER"] = `${claims}.json`;
  return claims;
}

/** Runs one process, and returns the results of the files that it completed. Their claims contain their CPU time. */
async function runProcess(files, claims) {
  let results = [];
  let result = emptyResult(TOGETHER);
  for await (const { type, data } of run({
    files: [builtFile(TOGETHER)],
    concurrency: 1,
    timeout: TOGETHER_TIMEOUT_MS,
  })) {
    const isProcess = data.nesting === 0 && sourceFile(data.name ?? "") === TOGETHER;
    if (type === "test:stdout" || type === "test:stderr") result.output += data.message;
    else if (type === "test:complete" && isProcess) {
      const { passed, error } = data.details;
      countedCpu = cpuOfChildren();
      // An error outside of the tests can be any file's.
      if (!passed && error?.failureType !== "subtestsFailed") results = [];
    } else if ((type === "test:pass" || type === "test:fail") && !isProcess) {
      countTest(result, type, data);
      if (data.nesting > 0 || !files.includes(data.name)) continue;
      const cpu = Number(readFileSync(join(claims, String(files.indexOf(data.name))), "utf8"));
      result = { ...result, file: data.name, running: 0, cpu };
      endFile(result, { passed: type === "test:pass", error: null, duration_ms: data.details.duration_ms });
      results.push(result);
      result = emptyResult(TOGETHER);
    }
  }
  return results;
}

/**
 * Runs one file. Each file has its own run, because Node names the file that declares a test, which for suites in
 * helpers is not the file that runs.
 */
async function runFile(file) {
  const result = emptyResult(file);
  for await (const { type, data } of run({ files: [builtFile(file)], concurrency: 1, timeout: TIMEOUT_MS })) {
    const isFile = data.nesting === 0 && sourceFile(data.name ?? "") === file;
    if (type === "test:stdout" || type === "test:stderr") result.output += data.message;
    else if (type === "test:enqueue" && !isFile) result.running++;
    else if ((type === "test:pass" || type === "test:fail") && !isFile) countTest(result, type, data);
    else if (type === "test:complete" && isFile) {
      // The time of a process counts when it has ended, so the increase is the time of this file.
      const total = cpuOfChildren();
      result.cpu = total - countedCpu;
      countedCpu = total;
      endFile(result, data.details);
    }
  }
  return result;
}

const emptyResult = (file) => ({
  file,
  counts: Object.fromEntries(COUNTS.map((name) => [name, 0])),
  running: 0,
  failures: [],
  output: "",
  error: null,
  seconds: 0,
  /** CPU seconds of the file's process and its children. Those of the shared Postgres and browser are not included. */
  cpu: 0,
});

const isSet = (flag) => flag !== undefined && flag !== false;

function countTest(result, eventType, { name, skip, todo, details: { type, error } }) {
  result.running--;
  const isPassed = eventType === "test:pass";
  const hasFailedTests = error?.failureType === "subtestsFailed";
  // A suite fails with its tests. It counts as a test only if it is skipped or one of its hooks failed.
  if (type === "suite" && !isSet(skip) && (isPassed || hasFailedTests)) return;
  const outcome = isSet(skip) ? "skipped" : isSet(todo) ? "todo" : isPassed ? "pass" : "fail";
  result.counts.tests++;
  result.counts[outcome]++;
  if (outcome === "fail" && !hasFailedTests)
    result.failures.push(`${name}\n${inspect(error?.cause ?? error, { depth: 8 })}`);
}

function endFile(result, { passed, error, duration_ms }) {
  result.seconds = duration_ms / 1000;
  if (!passed) result.error = error;
  const [wall, cpu] = [result.seconds, result.cpu].map((seconds) => `${seconds.toFixed(1).padStart(6)} s`);
  console.log(`${passed ? "ok    " : "FAILED"} ${wall}, CPU ${cpu}  ${result.file}`);
}

function checkFile({ file, counts, running, failures, output, error }) {
  if (error === null && (running > 0 || counts.tests === 0)) failures.push("the process ended before its tests did");
  // With an error outside a test the file does not load, exits with an error, or hangs.
  if (error !== null && (error?.failureType !== "subtestsFailed" || failures.length === 0))
    failures.push(error?.message ?? "the process failed");
  if (failures.length === 0) return;
  if (counts.fail === 0) counts.fail++;
  console.log(`\n${file}:`);
  for (const failure of failures) console.log(`✖ ${failure}`.replaceAll(/^/gm, "    "));
  if (output !== "") console.log(`output:\n${output.slice(-10_000)}`.replaceAll(/^/gm, "    "));
}

/** The first lines of a failure: its test, and what was wrong. */
function inBrief(failure) {
  const lines = failure.split("\n").filter((line) => line.trim() !== "");
  return lines.slice(0, BRIEF_LINES).join("\n").slice(0, BRIEF_LENGTH);
}

const isGood = ({ counts }) => counts.fail === 0;

/** Replaces the results of failed files that pass when they run alone. */
async function runAgain(results) {
  const failed = results.filter((result) => !isGood(result));
  if (process.env["ASSENT_TEST_AGAIN"] !== "1" || failed.length === 0 || failed.length > MAX_FLAKY) return results;
  const repeated = await runAlone(failed.map(({ file }) => file));
  const flaky = new Map(repeated.filter(isGood).map((result) => [result.file, { ...result, isFlaky: true }]));
  return results.map((result) => flaky.get(result.file) ?? result);
}

/** Starts one Postgres and one browser if a file needs them, and passes their addresses in the environment. */
async function startShared(files, folder) {
  const needs = (support) =>
    files.some((file) => readFileSync(join(ROOT, file), "utf8").includes(`support/${support}`));
  const load = (name) => import(pathToFileURL(join(ROOT, "build", "test", "support", name)).href);
  const stops = [];
  if (needs("postgres.ts")) {
    const { startPostgres, withoutPostgres } = await load("postgres.js");
    if (withoutPostgres === false) {
      // With fsync, because the service rejects a server without it.
      const server = await startPostgres({ isPrivate: true, folder });
      process.env["ASSENT_TEST_DATABASE"] = server.url;
      stops.push(() => server.stop());
    }
  }
  if (needs("browser.ts") || needs("console.ts")) {
    const { startBrowser, withoutBrowser } = await load("browser.js");
    if (withoutBrowser === false) {
      const browser = await startBrowser();
      process.env["ASSENT_TEST_BROWSER"] = browser.wsEndpoint();
      stops.push(() => browser.close());
    }
  }
  return { stop: () => Promise.all(stops.map((stop) => stop())) };
}

/**
 * Starts `npm run check`, which uses one core for much of its time. Returns a function that waits for its end, prints its
 * output and returns true if it passed.
 */
function startCheck() {
  const child = spawn("npm run --silent check", { cwd: ROOT, shell: true, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const closed = once(child, "close");
  child.once("close", () => (countedCpu = cpuOfChildren()));
  process.once("exit", () => child.kill());
  return async () => {
    const [code] = await closed;
    console.log(`\n${output}`);
    return code === 0;
  };
}

/** Creates the folder for everything that the run writes to disk. It is deleted when this process ends. */
function folderOnDisk() {
  // A short path that Postgres can access, like the folder in memory.
  const folder = mkdtempSync(join(tmpdir(), "a-"));
  chmodSync(folder, 0o711);
  process.once("exit", () => {
    if (KEEP) console.log(`kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return folder;
}

const begun = performance.now();
/** CPU seconds of the processes that have ended, until the last one ended. */
let countedCpu = 0;
const names = process.argv.slice(2).filter((argument) => argument !== "--check");
const files = select(names);
const check = names.length < process.argv.length - 2 ? startCheck() : null;
await build({ dist: files.some(isSlow) });
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
process.env["FORCE_COLOR"] = "0";
// Node starts each file with the flags of this process.
process.execArgv.push("--enable-source-maps");
const disk = folderOnDisk();
const memory = KEEP ? null : folderInMemory();
const coverage = process.env["ASSENT_TEST_COVERAGE"] === "1" ? mkdtempSync(join(disk, "coverage-")) : null;
if (coverage !== null) process.env["NODE_V8_COVERAGE"] = coverage;
// Packages that a file installs are reused by later files, and by the next run if they are on disk.
process.env["ASSENT_TEST_CACHE"] = memory ?? tmpdir();
process.env["ASSENT_TEST_DISK"] = disk;
process.env["ASSENT_TEST_DISK_CACHE"] = tmpdir();
process.env["TMPDIR"] = memory ?? disk;
// Every Node process that a test starts would spend 46 ms on reading the certificates. test/support/cache.ts passes
// them to code that installs packages.
const certificates = process.env["NODE_EXTRA_CA_CERTS"];
delete process.env["NODE_EXTRA_CA_CERTS"];
if (certificates !== undefined) process.env["ASSENT_TEST_CERTIFICATES"] = certificates;
const shared = await startShared(files, memory ?? disk);
countedCpu = cpuOfChildren();
let results;
try {
  results = await runAgain(await runFiles(files));
} finally {
  await shared.stop();
}
if (coverage !== null) reportCoverage(coverage, join(ROOT, "build"));
const isChecked = (await check?.()) ?? true;
const top = (measure) =>
  [...results]
    .sort((a, b) => b[measure] - a[measure])
    .slice(0, 5)
    .map((result) => `${result.file} ${result[measure].toFixed(0)} s`)
    .join(", ");
console.log(`\nslowest: ${top("seconds")}\nmost CPU: ${top("cpu")}`);
for (const result of results) {
  // Once more and in brief, because a log may show only its end.
  if (!isGood(result)) {
    console.log(`failed: ${result.file}`);
    for (const failure of result.failures) console.log(inBrief(failure).replaceAll(/^/gm, "    "));
  }
  if (result.isFlaky) console.log(`flaky: ${result.file} failed, and passed when it ran alone`);
}
if (!isChecked) console.log("failed: npm run check");
const sum = (name) => results.reduce((total, { counts }) => total + counts[name], 0);
for (const name of COUNTS) console.log(`# ${name} ${sum(name)}`);
const { user, system } = process.cpuUsage();
const cpuSeconds = cpuOfChildren() + (user + system) / 1e6;
console.log(
  `# ${files.length} files in ${((performance.now() - begun) / 1000).toFixed(0)} s, CPU ${cpuSeconds.toFixed(0)} s`,
);
console.log(`${sum("pass")} passed, ${sum("fail")} failed`);
process.exitCode = results.every(isGood) && isChecked ? 0 : 1;
