/**
 * How often the pack for coding agents requires approval on an ordinary day. It allows none of sixty dangerous calls.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import type { CompiledPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import type { Decision, PolicyDocument } from "../../src/domain/policy/policy-types.ts";
import { toCanonicalAction } from "../../src/hook/action/canonical-action.ts";
import { checkPolicyFolder } from "../../src/policies/folder.ts";
import { compile, FACTS, NOW } from "../support/policy.ts";
import { ROOT } from "../support/process.ts";

const WORKSPACE = "/work/app";
const CALLS = join(ROOT, "test/policies");

/** Returns the calls of a file, without comments and empty lines, as one line each. */
const callsOf = (file: string): string[] =>
  readFileSync(join(CALLS, file), "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"));

/** Returns the tool of Claude Code and its input for one line of `coding-day.txt`. */
function toCall(line: string): { tool: string; input: Record<string, unknown> } {
  const rest = line.slice(2);
  const path = join(WORKSPACE, rest);
  switch (line[0]) {
    case "$":
      return { tool: "Bash", input: { command: rest.replaceAll(/(?<!\\)\\n/g, "\n") } };
    case "R":
      return { tool: "Read", input: { file_path: path } };
    case "E":
      return { tool: "Edit", input: { file_path: path, old_string: "a", new_string: "b" } };
    case "W":
      return { tool: "Write", input: { file_path: path, content: "text" } };
    case "G":
      return { tool: "Glob", input: { pattern: rest } };
    case "P": {
      const [pattern, folder = ".", glob] = rest.split(" ");
      return { tool: "Grep", input: { pattern, path: join(WORKSPACE, folder), glob, output_mode: "content" } };
    }
    case "F":
      return { tool: "WebFetch", input: { url: rest, prompt: "What does it say about rounding?" } };
    case "S":
      return { tool: "WebSearch", input: { query: rest } };
    case "T":
      return { tool: "TodoWrite", input: { todos: [] } };
    case "A":
      return { tool: "Task", input: { prompt: "Find who calls settle()", subagent_type: "general" } };
    default:
      throw new Error(`a line that begins with an unknown letter: ${line}`);
  }
}

let compiled: CompiledPolicySet;

before(async () => {
  const folder = await checkPolicyFolder(join(ROOT, "policies", "packs"));
  const pack = folder.documents.find(({ document }) => document.policy === "coding-agents");
  compiled = compile(pack?.document as PolicyDocument);
});

async function decisionOn(line: string): Promise<Decision> {
  const { tool, input } = toCall(line);
  const environment = { cwd: WORKSPACE, home: "/home/ada", project: WORKSPACE, codexProgram: null };
  const event = {
    host: "claude-code" as const,
    kind: "before" as const,
    session: null,
    callId: null,
    tool,
    input: JSON.parse(JSON.stringify(input)) as JsonObject,
    cwd: WORKSPACE,
    workspace: WORKSPACE,
    success: true,
    outcomeReported: false,
  };
  const { request } = await toCanonicalAction(event, "coder", environment);
  const { agent_id, operation, params } = request;
  return decide(
    compiled,
    { agent_id, tool: request.tool, operation, params: (params ?? {}) as JsonObject, context: {} },
    FACTS,
    NOW,
  );
}

describe("the pack for coding agents", () => {
  test("requires approval for at most one in six calls of an ordinary day", async (t) => {
    const lines = callsOf("coding-day.txt");
    assert.ok(lines.length >= 300);
    const by = new Map<string, string[]>();
    for (const line of lines) {
      const { effect, rule } = await decisionOn(line);
      by.set(effect, [...(by.get(effect) ?? []), `${line}  [${rule ?? "none"}]`]);
    }
    const asked = by.get("require_approval") ?? [];
    t.diagnostic(`${lines.length} calls: ${asked.length} asked, ${by.get("deny")?.length ?? 0} denied`);
    assert.ok(asked.length * 6 <= lines.length, `${asked.length} of ${lines.length} asked:\n${asked.join("\n")}`);
  });

  for (const [what, file] of [
    ["sixty dangerous calls", "dangerous-calls.txt"],
    ["the dangerous calls of someone who had not read it", "dangerous-calls-of-a-reader.txt"],
  ] as const)
    test(`allows none of ${what}`, async () => {
      const lines = callsOf(file);
      assert.ok(lines.length >= 60);
      const allowed: string[] = [];
      for (const line of lines) {
        const { effect, rule } = await decisionOn(`$ ${line}`);
        if (effect === "allow") allowed.push(`${line}  [${rule ?? "none"}]`);
      }
      assert.deepEqual(allowed, []);
    });
});
