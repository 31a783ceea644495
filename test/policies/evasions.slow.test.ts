/**
 * Evasions generated from the rules themselves (evasions/generate.ts): none is allowed unless it is explicitly meant to
 * be.
 * @needs hook
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { findNameFault } from "../../src/domain/names.ts";
import type { CompiledPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import { isGlob } from "../../src/domain/policy/compile/glob.ts";
import type { Decision, Effect, PolicyDocument } from "../../src/domain/policy/policy-types.ts";
import { checkPolicyFolder, type CheckedFolder } from "../../src/policies/folder.ts";
import { compile, FACTS, NOW } from "../support/policy.ts";
import { ROOT } from "../support/process.ts";
import { knownProgram } from "../../clients/hook/shell/program-options.ts";
import { evasionsOf, type Asked } from "./evasions/generate.ts";
import { REPORTED } from "./evasions/defaults.ts";
import { DEFAULTS, isPlain, PACKS, type Plain } from "./evasions/plain/index.ts";

const ask = (compiled: CompiledPolicySet, { agent_id, tool, operation, params }: Asked): Decision =>
  decide(compiled, { agent_id, tool, operation, params: params as JsonObject, context: {} }, FACTS, NOW);
/**
 * Replaces what an action states about a program by what the hook finds out about its name and arguments. The hook judges them, and
 * the service trusts it, so a changed name with the judgement of another program is no evasion.
 */
function withUses(action: Asked): Asked {
  const parsed = action.params["parsed"];
  if (!isObject(parsed) || !Array.isArray(parsed["commands"])) return action;
  const commands = parsed["commands"].map((command: unknown) => {
    if (!isObject(command) || !USES.has(command["use"])) return command;
    const { use: _, ...others } = command;
    const { name, args } = others;
    if (typeof name !== "string" || !Array.isArray(args) || !args.every((each) => typeof each === "string"))
      return command;
    const words = args.map((text: string) => ({ text, isLiteral: true, startsWithTilde: false }));
    const known = knownProgram(name, words);
    return known === null ? others : { ...others, use: known.use };
  });
  return { ...action, params: { ...action.params, parsed: { ...parsed, commands } } };
}
const USES: ReadonlySet<unknown> = new Set(["reads", "checks", "local"]);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const shown = (action: Asked): string => JSON.stringify(action).slice(0, 300);

/** Actions that are meant to be allowed, and every allowed case of the policies' tests. */
function seedsOf(folder: CheckedFolder, plain: readonly Plain[], policy?: string): Asked[] {
  const cases = folder.tests
    .filter(({ file }) => policy === undefined || file === `${policy}_test.yaml`)
    .flatMap(({ test: one }) => one.cases)
    .filter(({ expect }) => expect.effect === "allow")
    .map(({ action }) => ({ ...action, params: (action.params ?? {}) as Record<string, unknown> }));
  const samples = plain.flatMap(({ tools, operations, samples: all }) =>
    all.map((params) => ({
      agent_id: "a",
      tool: tools[0] as string,
      operation: operations[0] as string,
      params,
    })),
  );
  return [...samples, ...cases];
}

/** Asserts that every plain action is allowed, and that no evasion is allowed unless it is itself plain. */
function holds(compiled: CompiledPolicySet, plain: readonly Plain[], seeds: readonly Asked[]): void {
  for (const { tools, operations, samples } of plain)
    for (const tool of tools)
      for (const operation of operations)
        for (const params of samples) {
          const action = { agent_id: "a", tool, operation, params };
          assert.equal(ask(compiled, action).effect, "allow", `${shown(action)} is plain`);
        }

  const kinds = new Map<string, number>();
  const wrong: string[] = [];
  for (const seed of seeds)
    for (const { kind, action: changed } of evasionsOf(seed)) {
      const action = withUses(changed);
      if (isPlain(plain, action)) continue;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      // Names with hidden characters are rejected before the policies.
      if (findNameFault(action.tool) !== null || findNameFault(action.operation) !== null) continue;
      const { effect, policy, rule } = ask(compiled, action);
      if (effect === "allow") wrong.push(`${kind}: ${shown(action)} is allowed by ${policy}: ${rule}`);
    }
  assert.deepEqual(wrong.slice(0, 20), [], `${wrong.length} evasions are allowed`);
  const all = [...kinds.values()].reduce((sum, n) => sum + n, 0);
  assert.ok(all >= 200, `only ${all} evasions were made`);
  for (const kind of [
    "tool: look-alike",
    "operation: unknown",
    "operation: whitespace",
    "extra parameter",
    "value: list for value",
    "value: nested",
  ])
    assert.ok(kinds.has(kind), `none of the kind "${kind}"`);
}

/** A new tool or operation must be added explicitly; no pattern covers it. */
function namesExactly({ policy, applies_to, rules }: PolicyDocument, effects: readonly Effect[]): void {
  const list = (names: string | string[] | undefined): string[] => [names ?? []].flat();
  for (const { name, effect, tool, operation } of rules) {
    if (!effects.includes(effect)) continue;
    const tools = tool === undefined ? list(applies_to?.tools) : list(tool);
    assert.ok(tools.length > 0 && operation !== undefined, `${policy}: ${name} names tools and operations`);
    assert.ok(![...tools, ...list(operation)].some(isGlob), `${policy}: ${name} names them exactly`);
  }
}

describe("evasions of the default set", () => {
  let folder: CheckedFolder;
  let compiled: CompiledPolicySet;
  before(async () => {
    folder = await checkPolicyFolder(join(ROOT, "policies"));
    compiled = compile(...folder.documents.map(({ document }) => document));
  });
  const plain = Object.values(DEFAULTS).flat();

  test("evasions that are generated from a pack's rules and tests are not allowed", () => {
    assert.deepEqual(
      folder.documents.map(({ document }) => document.policy),
      Object.keys(DEFAULTS).sort(),
    );
    holds(compiled, plain, seedsOf(folder, plain));
  });

  test("that were reported are not allowed", () => {
    for (const [tool, operation, params = {}] of REPORTED) {
      const action = { agent_id: "a", tool, operation, params };
      assert.notEqual(ask(compiled, action).effect, "allow", shown(action));
    }
  });

  test("each policy names what it allows or requires approval for, without patterns, and denies everything else", () => {
    for (const { document } of folder.documents) {
      namesExactly(document, ["allow", "require_approval"]);
      if (document.policy === "guards") continue;
      const { effect, tool, operation, agent, when } = document.rules.at(-1) ?? {};
      const all = [tool, operation, agent, when].every((matcher) => matcher === undefined);
      assert.ok(effect === "deny" && all, `${document.policy} denies the rest`);
    }
  });
});

describe("evasions of the packs", () => {
  let folder: CheckedFolder;
  before(async () => {
    folder = await checkPolicyFolder(join(ROOT, "policies", "packs"));
  });

  for (const [name, plain] of Object.entries(PACKS)) {
    test(`${name}: generated from its own rules and tests are not allowed`, () => {
      const pack = folder.documents.find(({ document }) => document.policy === name)?.document;
      assert.ok(pack !== undefined);
      holds(compile(pack), plain, seedsOf(folder, plain, name));
    });
  }

  test("each pack names what it allows, without patterns", () => {
    for (const { document } of folder.documents) namesExactly(document, ["allow"]);
  });

  test("each pack has one", () => {
    assert.deepEqual(
      folder.documents.map(({ document }) => document.policy),
      Object.keys(PACKS).sort(),
    );
  });

  test("each rule that allows is reached by a plain action", () => {
    for (const { document } of folder.documents) {
      const compiled = compile(document);
      const reached = new Set(
        (PACKS[document.policy] ?? []).flatMap(({ tools, operations, samples }) =>
          operations.flatMap((operation) =>
            samples.map((params) => ask(compiled, { agent_id: "a", tool: tools[0] as string, operation, params }).rule),
          ),
        ),
      );
      for (const { name, effect } of document.rules)
        if (effect === "allow") assert.ok(reached.has(name), `${document.policy}: ${name}`);
    }
  });
});
