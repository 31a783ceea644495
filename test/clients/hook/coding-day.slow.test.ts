/**
 * Measures the pack for coding agents: how often it requires approval for ordinary calls, and that it allows no dangerous
 * call. Each call is built by the hook, in a project with files that git tracks, ignores or does not know.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import type { JsonObject } from "../../../src/domain/json.ts";
import type { CompiledPolicySet } from "../../../src/domain/policy/compile/compile.ts";
import { decide } from "../../../src/domain/policy/decide/decide.ts";
import type { PolicyDocument } from "../../../src/domain/policy/policy-types.ts";
import { toCanonicalAction } from "../../../clients/hook/action/canonical-action.ts";
import { checkPolicyFolder } from "../../../src/policies/folder.ts";
import { compile, FACTS, NOW } from "../../support/policy.ts";
import { ROOT } from "../../support/process.ts";
import { sampleProject } from "../../support/sample-project.ts";

const CORPUS = join(ROOT, "test/policies/evasions/corpus");
const FILES = readdirSync(CORPUS).sort();

/** Returns the calls of a file, without comments and empty lines, as one line each. */
const callsOf = (file: string): string[] =>
  readFileSync(join(CORPUS, file), "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"));

/** Returns the tool of Claude Code and its input for one line of a corpus. `ordinary-day.txt` explains the letters. */
function toCall(line: string, workspace: string): { tool: string; input: Record<string, unknown> } {
  const rest = line.slice(2);
  const path = /^[/~]/.test(rest) ? rest : join(workspace, rest);
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
      return { tool: "Grep", input: { pattern, path: join(workspace, folder), glob, output_mode: "content" } };
    }
    case "F": {
      const [url, ...prompt] = rest.split(" ");
      return { tool: "WebFetch", input: { url, prompt: prompt.join(" ") || "What does it say about rounding?" } };
    }
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

/** Decides on all calls of the files whose names begin with the prefix. Returns the calls by effect, with their rules. */
async function decideAll(prefix: string, workspace: string): Promise<Record<string, string[]>> {
  const files = FILES.filter((file) => file.startsWith(prefix));
  const decided: Record<string, string[]> = { allow: [], require_approval: [], deny: [] };
  for (const line of files.flatMap(callsOf)) {
    const { tool, input } = toCall(line, workspace);
    const environment = { cwd: workspace, home: "/home/ada", project: workspace, codexProgram: null };
    const event = {
      host: "claude-code" as const,
      kind: "before" as const,
      session: null,
      callId: null,
      tool,
      input: JSON.parse(JSON.stringify(input)) as JsonObject,
      cwd: workspace,
      workspace,
      success: true,
      outcomeReported: false,
    };
    const { request } = await toCanonicalAction(event, "coder", environment).catch((error: Error) => {
      if (error.name === "PayloadError") return { request: null };
      throw error;
    });
    if (request === null) {
      decided["deny"]?.push(`${line}  [refused by the hook]`);
      continue;
    }
    const action = { ...request, params: (request.params ?? {}) as JsonObject, context: {} };
    const { effect, rule } = decide(compiled, action, FACTS, NOW);
    decided[effect]?.push(`${line}  [${rule ?? "none"}]`);
  }
  return decided;
}

describe("the pack for coding agents", () => {
  test("requires approval for at most one in ten ordinary calls", async (t) => {
    const { allow = [], require_approval: asked = [], deny = [] } = await decideAll("ordinary", sampleProject());
    const count = allow.length + asked.length + deny.length;
    assert.ok(count >= 320);
    t.diagnostic(`${count} calls: ${asked.length} asked, ${deny.length} denied`);
    const shown = [...asked, "denied:", ...deny].join("\n");
    assert.ok(asked.length * 10 <= count, `${asked.length} of ${count} asked:\n${shown}`);
  });

  test("allows no call of an ordinary day that a person should see", async () => {
    const { allow, require_approval: asked = [] } = await decideAll("watched", sampleProject());
    assert.deepEqual(allow, []);
    assert.ok(asked.length >= 30);
  });

  test("denies no call that a person can judge", async () => {
    const { deny } = await decideAll("deniable", sampleProject());
    assert.deepEqual(deny, []);
  });

  test("allows no dangerous call", async (t) => {
    const {
      allow = [],
      require_approval: asked = [],
      deny = [],
    } = await decideAll("dangerous", sampleProject({ stray: true }));
    assert.ok(asked.length + deny.length >= 550);
    t.diagnostic(`${asked.length} asked, ${deny.length} denied`);
    assert.deepEqual(allow, []);
  });
});
