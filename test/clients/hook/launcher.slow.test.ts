/** The process that hosts start, as a host sees it: it reads its whole input, and every denial has a reason. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Host } from "../../../clients/hook/hosts/answers.ts";
import { folderWith } from "../../support/cli.ts";
import { environment, HOOK } from "../../support/hook.ts";
import { NODE, scriptOf } from "../../support/runtimes.ts";
import { AFTER, BEFORE, passes, stops } from "./payloads.ts";

const MIB = 1024 * 1024;
const ENV = { ...process.env, ...environment(tmpdir(), "http://127.0.0.1:1", "ask_x") };
const HOOK_LINE = [process.execPath, ...HOOK].map((word) => `'${word}'`).join(" ");

interface Seen {
  out: string;
  err: string;
  code: number | null;
  /** Why the event could not be written completely. */
  fault: string | null;
}

/**
 * Writes the event like Codex: completely, before it reads. @param deaf closes the pipe that the answer is read from
 */
function start(line: string, event: string, deaf = false): Promise<Seen> {
  return new Promise((done) => {
    const child = spawn("/bin/sh", ["-c", line], { env: ENV, stdio: "pipe" });
    const seen: Seen = { out: "", err: "", code: null, fault: null };
    child.stdout.on("data", (chunk: Buffer) => (seen.out += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (seen.err += chunk.toString()));
    child.stdin.on("error", (error) => (seen.fault = error.message));
    child.once("close", (code) => done({ ...seen, code }));
    if (deaf) child.stdout.destroy();
    child.stdin.end(event);
  });
}

const seenBy = ({ out, code }: Seen): { stdout: string; code: number | null } => ({ stdout: out, code });

const patch = (bytes: number): string =>
  JSON.stringify({ ...BEFORE.codex, tool_name: "apply_patch", tool_input: { command: "x".repeat(bytes) } });

describe("the event is read completely before the hook exits, and the denial arrives", () => {
  for (const [why, bytes, line] of [
    ["it is larger than 4 MiB", 6 * MIB, `exec ${HOOK_LINE} --host codex`],
    ["an option is not known", 6 * MIB, `exec ${HOOK_LINE} --host codex --nonsense`],
    ["the folder is gone", MIB, `mkdir "$GONE" && cd "$GONE" && rmdir "$GONE" && exec ${HOOK_LINE} --host codex`],
  ] as const)
    test(why, async (t) => {
      const gone = join(folderWith(t, {}), "gone");
      const { fault, ...given } = await start(line.replaceAll("$GONE", gone), patch(bytes));
      assert.equal(fault, null);
      assert.ok(stops("codex", { stdout: given.out, code: given.code }), JSON.stringify(given));
    });

  test("if it cannot start", async (t) => {
    const [program] = HOOK;
    if (program === undefined || !program.endsWith(".cjs")) return t.skip("only what is published is one file");
    const broken = `const loader = require("node:module"), { _load } = loader;
      loader._load = (name, ...more) => { if (name === "node:net") throw new Error("none"); return _load(name, ...more); };`;
    const first = join(folderWith(t, { "broken.cjs": broken }), "broken.cjs");
    const line = `exec '${process.execPath}' --require '${first}' '${program}' --host codex`;
    const { fault, code, err } = await start(line, patch(MIB));
    assert.deepEqual([fault, code], [null, 2]);
    assert.match(err, /^Not run: assent-hook cannot start/);
  });
});

test("an event with duplicate members is denied, whichever process would decide", async () => {
  const event = JSON.stringify(BEFORE.codex);
  // JSON.parse reads it as a call that has ended, which nothing can stop.
  const both = event.replace(/\}$/, ',"hook_event_name":"PostToolUse"}');
  for (const flags of ["--no-daemon", ""]) {
    const { out, code } = await start(`exec ${HOOK_LINE} --host codex ${flags}`, both);
    assert.ok(stops("codex", { stdout: out, code }), out);
    assert.match(out, /has a duplicate member/);
  }
});

describe("a tool's output stops nothing, however large or deep it is", () => {
  const ended = (host: Host, result: string): string =>
    JSON.stringify({ ...AFTER[host], tool_response: "R", toolResult: "R" }).replaceAll('"R"', () => result);
  const large = JSON.stringify({ inlineData: 'a"}],\\{'.repeat(MIB) });
  for (const host of ["gemini", "claude-code", "copilot"] as const) {
    test(`${host}: larger than the limit`, async () => {
      for (const event of [ended(host, large), `\ufeff${ended(host, `[${large}]`)}`]) {
        const { out, code, fault } = await start(`exec ${HOOK_LINE} --host ${host}`, event);
        assert.ok(passes(host, { stdout: out, code }), out);
        assert.equal(fault, null);
      }
      const before = JSON.stringify({ ...BEFORE[host], more: "M" }).replace('"M"', () => large);
      const { out, code } = await start(`exec ${HOOK_LINE} --host ${host}`, before);
      assert.match(out, /larger than 4 MiB/);
      assert.ok(stops(host, { stdout: out, code }));
      const both = ended(host, large).replace(/\}$/, ',"session_id":1,"session_id":2}');
      assert.ok(stops(host, await start(`exec ${HOOK_LINE} --host ${host}`, both).then(seenBy)));
    });
    // Formatting the place of each number would take hours.
    test(`${host}: a fault on each of many levels`, async () => {
      const event = ended(host, `${"[1e400,".repeat(200_000)}1${"]".repeat(200_000)}`);
      assert.ok(passes(host, await start(`exec ${HOOK_LINE} --host ${host}`, event).then(seenBy)));
    });
  }
});

test("an answer that cannot be written is exit code 2 with a reason, because hosts treat 2 without one as a failure", async () => {
  for (const event of [patch(6 * MIB), patch(10), "{"]) {
    const { code, err } = await start(`exec ${HOOK_LINE} --host codex`, event, true);
    assert.equal(code, 2);
    assert.match(err, /^Not run: /);
  }
});

test("the calling program is the nearest one that is not a shell", { skip: process.platform !== "linux" }, (t) => {
  const folder = folderWith(t, {});
  const [now, old] = ["codex", "codex-x86_64-unknown-linux-musl"].map((name) => join(folder, name)) as [string, string];
  for (const path of [now, old]) copyFileSync("/bin/sh", path);
  const code = `console.log(String((await import(${JSON.stringify(scriptOf("clients/hook/codex-process"))})).callingCodexPath()))`;
  const env = { ...process.env, ASK: code };
  const ask = `'${process.execPath}' ${NODE.map((word) => `'${word}'`).join(" ")} --input-type=module -e "$ASK"`;
  // A shell with another command after it stays the parent of the hook.
  const below = (program: string, line: string): string => `'${program}' -c '${line.replaceAll("'", `'"'"'`)}; true'`;
  const seenBelow = (line: string): string => execFileSync("/bin/sh", ["-c", line], { env, encoding: "utf8" }).trim();
  assert.equal(seenBelow(below(now, ask)), now);
  assert.equal(seenBelow(below(now, below("/bin/sh", ask))), now);
  assert.equal(seenBelow(below(now, below(old, ask))), "null");
});
