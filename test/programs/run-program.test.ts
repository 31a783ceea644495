/** Programs with children, which hold pipes, ignore signals, print too much or do not start. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, test } from "node:test";
import { runProgram, startBackgroundProgram, startProgram } from "../../src/programs/run-program.ts";
import { NODE, scriptOf } from "../support/runtimes.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/wait.ts";

const MODULE = pathToFileURL(scriptOf("src/programs/run-program")).href;
const options = { env: { PATH: process.env["PATH"] }, maxOutput: 1_000_000 };
const sh = (script: string, more: object = {}) => runProgram("sh", ["-c", script], { ...options, ...more });

let folder: string;
beforeEach(() => {
  folder = temporaryFolder("assent-programs-");
});
/** A command that leaves the group of the program, and holds its pipes. */
const escape = (): string =>
  `setsid sh -c 'echo $$ > ${pidFile()}; exec sleep 300' & while [ ! -s ${pidFile()} ]; do sleep 0.01; done`;
/** Ids of processes that a test started outside the program's group. */
let escaped: number[] = [];
afterEach(() => {
  for (const pid of escaped) process.kill(pid, "SIGKILL");
  escaped = [];
});

const pidFile = (): string => join(folder, "pid");
const writtenPid = async (): Promise<number> => {
  const read = (): number => {
    try {
      return Number(readFileSync(pidFile(), "utf8"));
    } catch {
      return 0;
    }
  };
  await until("the id of the child is written", () => read() > 0);
  return read();
};
const exits = (pid: number): Promise<void> => until(`process ${pid} has exited`, () => !isRunning(pid));

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process that no one has waited for is dead, too.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

describe("a program", () => {
  test("resolves to its output and exit code", async () => {
    const result = await sh("cat; echo fault >&2; exit 3", { input: "given" });
    assert.deepEqual(
      [result.code, result.endedBy, result.stdout.toString(), result.stderr],
      [3, null, "given", "fault\n"],
    );
  });

  test("ends with the process that started it, even if that is killed", async () => {
    const script = `echo $$ > ${pidFile()}; sleep 300`;
    const code = `
      const { runProgram } = await import(${JSON.stringify(MODULE)});
      await runProgram("sh", ["-c", ${JSON.stringify(script)}], { env: process.env, maxOutput: 10, endsWithParent: true });`;
    const parent = spawn(process.execPath, [...NODE, "--input-type=module", "--eval", code], { stdio: "ignore" });
    const pid = await writtenPid();
    parent.kill("SIGKILL");
    await exits(pid);
  });

  test("that ends with its parent keeps its input, output and exit code, and is reported if it does not exist", async () => {
    const more = { input: "given", endsWithParent: true };
    const { code, stdout } = await sh("cat; exit 3", more);
    assert.deepEqual([code, stdout.toString()], [3, "given"]);
    const missing = runProgram("no-such-program", [], { ...options, ...more });
    await assert.rejects(missing, { reason: "not-found", message: "no-such-program is not installed" });
  });

  test("is killed with its children at its time limit, even if they hold its pipes", async () => {
    await assert.rejects(sh(`sleep 300 & echo $! > ${pidFile()}; wait`, { timeoutMs: 1_000 }), {
      reason: "timeout",
      message: "sh did not exit within 1000 ms",
    });
    await exits(await writtenPid());
  });

  test("is killed with its children when its signal aborts", async () => {
    const aborter = new AbortController();
    const run = sh(`sleep 300 & echo $! > ${pidFile()}; wait`, { signal: aborter.signal });
    const pid = await writtenPid();
    aborter.abort(new Error("no longer needed"));
    await assert.rejects(run, /no longer needed/);
    await exits(pid);
  });

  test("resolves when it exits, although a child holds its pipes; the child is killed", async () => {
    const { code, stdout } = await sh(`sleep 300 & echo $! > ${pidFile()}; echo done`);
    assert.deepEqual([code, stdout.toString()], [0, "done\n"]);
    await exits(await writtenPid());
  });

  test("resolves when it exits, although a process that left its group holds its pipes", async () => {
    const { code, stdout } = await sh(`${escape()}; echo done`);
    assert.deepEqual([code, stdout.toString()], [0, "done\n"]);
    escaped = [await writtenPid()];
  });

  test("resolves to all of its output", async () => {
    const { stdout } = await sh("head -c 900000 /dev/zero");
    assert.equal(stdout.length, 900_000);
  });

  test("is killed if it prints too much", async () => {
    await assert.rejects(sh(`echo $$ > ${pidFile()}; yes`), { reason: "output" });
    await exits(await writtenPid());
  });

  test("gets no signal twice, does not need to read its input, and fails if it does not exist", async () => {
    assert.equal((await sh("kill -TERM $$")).endedBy, "SIGTERM");
    assert.equal((await sh("exit 0", { input: "x".repeat(10_000_000) })).code, 0);
    await assert.rejects(runProgram(join(folder, "none"), [], options), { reason: "not-found" });
    await assert.rejects(runProgram(folder, [], options), { reason: "not-started" });
  });

  test("ends with its children after its input has ended", async () => {
    const program = await startProgram("sh", ["-c", `trap '' TERM; sleep 300 & echo $! > ${pidFile()}; wait`], {
      ...options,
      stderr: "inherit",
    });
    const pid = await writtenPid();
    await program.end();
    await exits(pid);
  });

  test("in the background ends with its children", async () => {
    const program = startBackgroundProgram(
      "sh",
      ["-c", `trap '' TERM; sleep 300 & echo $! > ${pidFile()}; wait`],
      options,
    );
    const pid = await writtenPid();
    await program.end();
    await exits(pid);
    assert.equal(startBackgroundProgram(join(folder, "none"), [], options).pid, undefined);
  });

  test("closes its output when it exits, although a process that left its group holds the pipe", async () => {
    const program = await startProgram("sh", ["-c", `${escape()}; exit 4`], {
      ...options,
      stderr: "inherit",
    });
    assert.equal(await program.exited, 4);
    await new Promise((resolve) => program.stdout.once("close", resolve).resume());
    escaped = [await writtenPid()];
  });
});
