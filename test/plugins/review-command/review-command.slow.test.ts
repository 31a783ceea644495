/** Reviewers that are programs: real processes, with what they may read and write. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createCommandReviewer } from "../../../plugins/review-command/index.ts";
import type { ReviewRequest, ReviewResponse } from "../../../src/plugin.ts";
import { ARGUMENTS } from "../../support/arguments.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/wait.ts";

const REQUEST = {
  format: "assent-review/1",
  id: "1.2.scan",
  action: { params: { note: "" } },
} as unknown as ReviewRequest;
const folder = temporaryFolder("assent-review-");

function ask(
  script: string,
  { request = REQUEST, signal = new AbortController().signal, mcp_tool = undefined as string | undefined } = {},
): Promise<ReviewResponse> {
  const options = {
    command: [process.execPath, "-e", script],
    environment: { MARK: "1" },
    timeout_seconds: 15,
    version: "1",
  };
  return createCommandReviewer("scan", { ...options, ...(mcp_tool === undefined ? {} : { mcp_tool }) }).review(
    request,
    signal,
  );
}

/** Answers `deny` with the note that it read as the reason. */
const ECHO = `let text = ""; process.stdin.on("data", (chunk) => (text += chunk)).on("end", () =>
  console.log(JSON.stringify({ answer: "deny", reason: JSON.parse(text).action.params.note, version: process.argv.slice(1).join() })))`;

describe("a command", () => {
  test("reads the request on standard input, whatever the agent wrote, and gets no arguments of it", async () => {
    for (const note of ARGUMENTS) {
      const request = { ...REQUEST, action: { ...REQUEST.action, params: { note } } };
      assert.deepEqual(await ask(ECHO, { request }), { answer: "deny", reason: note, version: "" });
    }
  });

  test("gets none of the service's environment but PATH, HOME and LANG", async () => {
    process.env["ASSENT_SECRET_OF_TEST"] = "secret";
    const answer = await ask(
      `console.log(JSON.stringify({ answer: "escalate", reason: Object.keys(process.env).sort().join() }))`,
    );
    delete process.env["ASSENT_SECRET_OF_TEST"];
    assert.ok(!answer.reason?.includes("ASSENT_SECRET_OF_TEST"), answer.reason);
    assert.match(answer.reason ?? "", /MARK.*PATH/);
  });

  for (const [what, script, fault] of [
    [
      "exits with another code than 0",
      `console.log('{"answer":"approve"}'); process.exitCode = 3`,
      /exited with code 3/,
    ],
    [
      "writes too much",
      `process.stdout.write("x".repeat(100_000)); setInterval(() => {}, 1000)`,
      /more than 65536 bytes/,
    ],
    ["writes something other than UTF-8", `process.stdout.write(Buffer.from([0xff, 0xfe]))`, /UTF-8/],
  ] as const)
    test(`fails if it ${what}`, async () => {
      await assert.rejects(ask(script), fault);
    });

  test("fails if it does not exist", async () => {
    const options = { command: [join(folder, "nothing")], environment: {}, timeout_seconds: 1, version: "1" };
    await assert.rejects(
      createCommandReviewer("scan", options).review(REQUEST, new AbortController().signal),
      /is not installed/,
    );
  });

  test("makes a malformed answer if it writes anything besides one JSON value", async () => {
    assert.equal(await ask(`console.log('{"answer":"approve"}\\n{"answer":"approve"}')`), null);
    assert.equal(await ask(`console.log('approve')`), null);
  });

  test("is killed with its children when its time is over", async () => {
    const [ready, pid] = [join(folder, "ready"), join(folder, "pid")];
    const child = `require("fs").writeFileSync(${JSON.stringify(pid)}, String(process.pid)); require("fs").writeFileSync(${JSON.stringify(ready)}, ""); setInterval(() => {}, 1000)`;
    const aborter = new AbortController();
    const asked = ask(
      `require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(child)}]); setInterval(() => {}, 1000)`,
      {
        signal: aborter.signal,
      },
    );
    await until("the child runs", () => Promise.resolve(existsSync(ready)));
    aborter.abort(new Error("time is over"));
    await assert.rejects(asked, /time is over/);
    const id = Number(readFileSync(pid, "utf8"));
    await until("the child is gone", () => Promise.resolve(!isRunning(id)));
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const MCP_SERVER = (result: string): string => `
  console.log("a greeting that is not JSON");
  const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
  require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === "initialize") answer(id, { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: "s", version: "1" } });
    if (method === "tools/call") answer(id, ${result});
  });`;

describe("a tool of an MCP server", () => {
  test("answers with text or with structured content", async () => {
    const text = `{ content: [{ type: "text", text: JSON.stringify({ answer: "deny", reason: params.name + params.arguments.id }) }] }`;
    assert.deepEqual(await ask(MCP_SERVER(text), { mcp_tool: "review" }), { answer: "deny", reason: "review1.2.scan" });
    const structured = `{ content: [], structuredContent: { answer: "escalate" } }`;
    assert.deepEqual(await ask(MCP_SERVER(structured), { mcp_tool: "review" }), { answer: "escalate" });
  });

  test("fails if it reports an error, and is malformed if it answers several texts", async () => {
    await assert.rejects(
      ask(MCP_SERVER(`{ isError: true, content: [] }`), { mcp_tool: "review" }),
      /reported an error/,
    );
    const approve = `{ type: "text", text: '{"answer":"approve"}' }`;
    assert.equal(await ask(MCP_SERVER(`{ content: [${approve}, ${approve}] }`), { mcp_tool: "review" }), null);
  });
});
