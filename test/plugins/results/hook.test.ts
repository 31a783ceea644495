/**
 * The hook replaces the output of a call in hosts that let it, and withholds what could not be inspected.
 * @needs hook
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { decideHookCall } from "../../../clients/hook/decide-tool-call.ts";
import type { HookConfig } from "../../../clients/hook/hook-config.ts";
import { HookState } from "../../../clients/hook/hook-state.ts";
import type { Host } from "../../../clients/hook/hosts/answers.ts";
import { createAssent } from "../../../clients/typescript/index.ts";
import { makeKey, startService, type Service } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const POLICY = `policy: work
rules: [{ name: all, effect: allow }]
results:
  - { name: keys, tool: mcp.crm, match: { pattern: 'AKIA[0-9A-Z]{16}' }, effect: redact, labels: [keys] }
  - { name: count, tool: mcp.crm, match: { when: 'has(result.count)' }, members: [result.count], effect: redact }
  - { name: internal, tool: mcp.crm, match: { pattern: INTERNAL }, effect: withhold, reason: internal notes }
`;
const KEY = "AKIAIOSFODNN7EXAMPLE";

let service: Service;
let config: HookConfig;
let isDown = false;
let inspections = 0;
const state = new HookState(join(temporaryFolder("assent-results-"), "state"));
before(async () => {
  service = await startService({ policy: POLICY });
  const { key } = await makeKey(service, { name: "crm bot", preset: "agent", agent_id: "bot" });
  const none = { authority: null, wait: 0, sessions: false, subAgents: new Map(), service: null };
  config = { url: "http://service.test", apiKey: key, agent: "bot", ...none };
});
after(() => service.close());

async function send(host: Host, event: object, tree = state): Promise<Record<string, any>> {
  const { stdout } = await decideHookCall(
    {
      flag: host,
      payload: Buffer.from(JSON.stringify({ session_id: "s", cwd: "/work", ...event })),
      environment: { cwd: "/work", home: null, project: null, codexProgram: null },
      deadline: 20,
      maxWait: 0,
      signal: new AbortController().signal,
    },
    {
      config: () => config,
      state: tree,
      createClient: ({ url, apiKey, authority }) =>
        createAssent({
          url,
          apiKey,
          authority,
          retries: 0,
          fetch: (input, init) => {
            const request = new Request(input, init);
            const isInspection = new URL(request.url).pathname.endsWith("/inspect");
            if (isInspection) inspections++;
            return isDown && isInspection ? Promise.reject(new TypeError("down")) : service.runtime.fetch(request);
          },
        }),
    },
  );
  return stdout === "" ? {} : JSON.parse(stdout);
}

let n = 0;
/** Runs a call whose tool returns `tool_response`. Returns the answer of the hook to the event that follows it. */
async function run(
  tool_response: unknown,
  { host = "claude-code" as Host, names = ["PreToolUse", "PostToolUse"], more = {} as object } = {},
): Promise<Record<string, any>> {
  const call = { tool_name: "mcp__crm__read", tool_use_id: `call-${++n}`, tool_input: { n } };
  const begun = await send(host, { hook_event_name: names[0], ...call });
  assert.doesNotMatch(JSON.stringify(begun), /deny/);
  return send(host, { hook_event_name: names[1], ...call, tool_response, ...more });
}
const newest = async (): Promise<Record<string, any>> =>
  (await service.call("GET", "/v1/actions?limit=1", { key: service.admin })).body.actions[0];
const text = (content: string) => [{ type: "text", text: content }];

test("an output is passed on, redacted or withheld, with the same members", async () => {
  assert.deepEqual(await run(text("hello")), {});
  const redacted = await run({ content: text(`key ${KEY}`), isError: false });
  assert.deepEqual(redacted, {
    hookSpecificOutput: {
      hookEventName: "PostToolUse",
      updatedToolOutput: { content: text("key [redacted]"), isError: false },
    },
  });
  const { decision, reason, hookSpecificOutput } = await run({
    stdout: "INTERNAL plan",
    stderr: "INTERNAL",
    lines: 7,
    files: ["INTERNAL"],
    structuredContent: { INTERNAL: 1 },
    nested: { type: "text", content: "INTERNAL" },
  });
  assert.equal(decision, "block");
  assert.match(reason, /its output is withheld: internal notes \(action /);
  assert.deepEqual(hookSpecificOutput.updatedToolOutput, {
    stdout: reason,
    stderr: "",
    lines: 0,
    files: [],
    structuredContent: {},
    nested: { type: "text", content: "" },
  });
  const plain = await run("INTERNAL");
  assert.equal(plain.hookSpecificOutput.updatedToolOutput, plain.reason);
  assert.equal((await newest()).status, "succeeded");
});

test("a redaction that a host could ignore because it changes a type is withheld", async () => {
  const { reason, hookSpecificOutput } = await run({ count: 5, content: "five" });
  assert.match(reason, /withheld/);
  assert.deepEqual(hookSpecificOutput.updatedToolOutput, { count: 0, content: reason });
});

test("without a verdict the output is withheld: no service, an output that is too large, one that is not exact", async () => {
  isDown = true;
  const down = await run(text("hello")).finally(() => (isDown = false));
  assert.match(down.reason, /the service gave no verdict/);
  assert.deepEqual(down.hookSpecificOutput.updatedToolOutput, text(down.reason));
  assert.match((await run(text("x".repeat(1_100_000)))).reason, /withheld/);
  // The launcher replaces large members with null.
  assert.match((await run(null)).reason, /too large to be inspected/);
  assert.match((await run(text("\ud800"))).reason, /withheld/);
});

test("in Gemini the reason of a denial replaces the output", async () => {
  const names = ["BeforeTool", "AfterTool"];
  const gemini = (llmContent: unknown) => run({ llmContent, returnDisplay: llmContent }, { host: "gemini", names });
  assert.deepEqual(await gemini("hello"), {});
  assert.deepEqual(await gemini(`key ${KEY}`), { decision: "deny", reason: "key [redacted]" });
  assert.match((await gemini("INTERNAL")).reason, /withheld: internal notes/);
});

test("in other hosts, and after a failure, nothing is sent, and the result adds the labels of all rules", async () => {
  const before = inspections;
  assert.deepEqual(await run("INTERNAL", { host: "codex", more: { turn_id: "t" } }), {});
  const names = ["PreToolUse", "PostToolUseFailure"];
  assert.deepEqual(await run(undefined, { names, more: { error: "INTERNAL" } }), {});
  assert.equal(inspections, before);
  const rows = await service.runtime.host.storage.entriesOfAction((await newest()).id);
  assert.ok(rows.some(({ bytes }) => Buffer.from(bytes).toString().includes('"not_inspected"')));
});

test("a call does not run if its output could not be assigned to it, and would not be inspected", async () => {
  const folder = temporaryFolder("assent-results-");
  writeFileSync(join(folder, "state"), "");
  const broken = new HookState(join(folder, "state"));
  const call = (tool_name: string) => ({
    hook_event_name: "PreToolUse",
    tool_name,
    tool_use_id: `call-${++n}`,
    tool_input: { n },
  });
  const refused = await send("claude-code", call("mcp__crm__read"), broken);
  assert.match(JSON.stringify(refused), /deny.*rules inspect what this call returns/);
  assert.equal((await newest()).status, "failed");
  const { tool_use_id: _, ...withoutId } = call("mcp__crm__read");
  const unnamed = await send("gemini", { ...withoutId, hook_event_name: "BeforeTool" });
  assert.match(JSON.stringify(unnamed), /deny.*rules inspect what this call returns/);
  assert.doesNotMatch(JSON.stringify(await send("claude-code", call("mcp__other__read"), broken)), /deny/);
  assert.doesNotMatch(JSON.stringify(await send("codex", { ...call("mcp__crm__read"), turn_id: "t" }, broken)), /deny/);
});

test("an output to which no rule applies is not sent", async () => {
  const before = inspections;
  const call = { tool_name: "mcp__other__read", tool_use_id: "other", tool_input: {} };
  await send("claude-code", { hook_event_name: "PreToolUse", ...call });
  assert.deepEqual(
    await send("claude-code", { hook_event_name: "PostToolUse", ...call, tool_response: "INTERNAL" }),
    {},
  );
  assert.equal(inspections, before);
});

test("the result has what the host reports: the duration, and the tokens of a sub-agent", async () => {
  const used = async (tool_name: string, response: object, more: object): Promise<boolean[]> => {
    const call = { tool_name, tool_use_id: `call-${++n}`, tool_input: { n, prompt: "go" } };
    await send("claude-code", { hook_event_name: "PreToolUse", ...call });
    await send("claude-code", { hook_event_name: "PostToolUse", ...call, tool_response: response, ...more });
    const rows = await service.runtime.host.storage.entriesOfAction((await newest()).id);
    const entries = rows.map(({ bytes }) => Buffer.from(bytes).toString()).join("\n");
    return [entries.includes('"seconds":1.5'), entries.includes('"tokens":900')];
  };
  assert.deepEqual(await used("Task", { totalTokens: 900 }, { duration_ms: 1500 }), [true, true]);
  assert.deepEqual(await used("mcp__other__read", { totalTokens: 900 }, { duration_ms: 1500 }), [true, false]);
  assert.deepEqual(await used("mcp__other__read", {}, { duration_ms: -1 }), [false, false]);
});
