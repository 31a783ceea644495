/** The package by its own name: each entry resolves to a module, which exports what the guides import. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../support/runtimes.ts";

/** Values that users import, by entry; exports.ts in this folder has the types. */
const PROMISED: Record<string, string[]> = {
  ".": ["createRuntime", "defaultConfig", "loadConfig", "ConfigError", "definePlugin", "Refusal", "createLogger"],
  "./client": [
    "createAssent",
    "submitAndStart",
    "Pending",
    "ProofInvalid",
    "govern",
    "AssentError",
    "ServiceUnavailable",
    "Unauthorized",
    "RequestRefused",
    "ActionRefused",
  ],
  "./adapters/ai-sdk": ["cancelDenied", "governTools"],
  "./adapters/openai-agents": ["governTool"],
  "./adapters/langchain": ["wrapToolCall"],
  "./adapters/mastra": ["governTool"],
  "./adapters/claude-agent-sdk": ["assentHooks"],
  "./adapters/google-adk": ["assentCallbacks"],
  "./plugin": ["definePlugin", "defineRoute", "Type", "NotifierError", "PolicySourceError", "Refusal"],
  "./browser": ["clipText", "encodeRequest", "markText", "outline"],
  "./command": ["parseArguments", "createClient"],
  "./core": ["canonicalText", "foldName"],
  "./actions": ["findSelfApproval", "visibleAction"],
  "./actions/command": ["printAction"],
  "./coverage": ["createEffectSources", "readJsonRecords"],
  "./policies": ["parseCandidates", "renderBacktest"],
  "./console": ["h", "LoadedPage", "request", "useLoad"],
  "./storage": ["StorageError"],
  "./storage-sql": [],
  "./testing": ["memoryStorage", "storageSuite", "withFaults", "auditStore"],
};

const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  exports: Record<string, string | { types: string; default: string }>;
};

/** Whether the entry belongs to a feature whose folder is deleted. */
function isDeleted(name: string): boolean {
  const to = exports[name];
  const [folder] = /plugins\/[^/]+/.exec(typeof to === "object" ? to.types : "") ?? [];
  return folder !== undefined && !existsSync(join(ROOT, folder));
}

test("the entries are the known ones, each with its types, and each is built from a source", () => {
  const code = Object.entries(exports).filter(([, to]) => typeof to !== "string");
  assert.deepEqual(code.map(([name]) => name).sort(), Object.keys(PROMISED).sort());
  for (const [name, to] of code) {
    const { types, default: module } = to as { types: string; default: string };
    if (isDeleted(name)) continue;
    // The kit of pages is bundled for browsers.
    const source = types.replace(/\.d\.ts$/, "");
    assert.equal(source.replace("/app/", "/bundle/"), module.replace(/\.js$/, ""), name);
    assert.ok(existsSync(join(ROOT, `${source.replace(/^\.\/dist\//, "")}.ts`)), module);
  }
});

for (const [name, promised] of Object.entries(PROMISED))
  test(`assent${name.slice(1)} exports what the guides import`, { skip: isDeleted(name) }, async () => {
    const module = (await import(`assent${name.slice(1)}`)) as Record<string, unknown>;
    for (const each of promised) assert.notEqual(module[each], undefined, each);
  });
