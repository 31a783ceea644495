/**
 * The packs of policies/packs: docs/packs.md describes each correctly, alone and combined with the default set.
 * @needs hook
 */
import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import type { CompiledPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { measureCoverage } from "../../src/domain/policy/test/coverage.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import { formatYaml } from "../../src/domain/policy/parse/format.ts";
import { matchGlob } from "../../src/domain/policy/compile/glob.ts";
import type { Decision, PolicyDocument } from "../../src/domain/policy/policy-types.ts";
import { checkPolicyFolder, type CheckedFolder, loadPolicyFolder } from "../../src/policies/folder.ts";
import { compile, FACTS, NOW } from "../support/policy.ts";
import { ROOT } from "../support/process.ts";
import { EVASIONS } from "./evasions/index.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const DEFAULTS = join(ROOT, "policies");
const FOLDER = join(DEFAULTS, "packs");
const PACKS = readdirSync(FOLDER)
  .filter((name) => /^[a-z-]+\.yaml$/.test(name))
  .map((name) => name.replace(".yaml", ""))
  .sort();
const page = readFileSync(join(ROOT, "docs/packs.md"), "utf8");

interface Asked {
  agent_id: string;
  tool: string;
  operation: string;
  params?: Record<string, unknown> | undefined;
}

const ask = (compiled: CompiledPolicySet, { agent_id, tool, operation, params }: Asked): Decision =>
  decide(
    compiled,
    { agent_id, tool, operation, params: JSON.parse(JSON.stringify(params ?? {})) as JsonObject, context: {} },
    FACTS,
    NOW,
  );
const shown = (action: Asked): string => JSON.stringify(action).slice(0, 300);

let folder: CheckedFolder;
const documents = (): PolicyDocument[] => folder.documents.map(({ document }) => document);
const pack = (name: string): PolicyDocument => documents().find(({ policy }) => policy === name) as PolicyDocument;
/** The compiled packs, and the test cases of each with its decision. */
const compiledPacks = new Map<string, CompiledPolicySet>();
const packCases = new Map<string, { action: Asked; decision: Decision }[]>();
const compiledPack = (name: string): CompiledPolicySet => compiledPacks.get(name) as CompiledPolicySet;
const casesOf = (name: string): { action: Asked; decision: Decision }[] => packCases.get(name) ?? [];

before(async () => {
  folder = await checkPolicyFolder(FOLDER);
  for (const name of PACKS) {
    const compiled = compile(pack(name));
    const cases = folder.tests.filter(({ file }) => file === `${name}_test.yaml`).flatMap(({ test: one }) => one.cases);
    compiledPacks.set(name, compiled);
    packCases.set(
      name,
      cases.map(({ action }) => ({ action, decision: ask(compiled, action) })),
    );
  }
});

/** Two packs for one tool, of which a folder can have only one, as the page says. */
const isInsteadOf = (a: string, b: string): boolean => [a, b].sort().join() === "coding-agents,shell";

describe("the packs", () => {
  test("load, pass their tests, and leave no rule untested", () => {
    assert.deepEqual(folder.faults, []);
    assert.deepEqual(
      documents().map(({ policy }) => policy),
      PACKS,
    );
    const { uncovered } = measureCoverage(
      documents(),
      folder.results.map(({ result }) => result),
    );
    assert.deepEqual(
      uncovered.map(({ policy, rule }) => `${policy}: ${rule}`),
      [],
    );
    for (const name of PACKS) assert.ok(casesOf(name).length > 0, `${name} has no tests`);
  });

  test("give every rule a reason, a risk, and approvers with a deadline", () => {
    for (const { policy, rules } of documents()) {
      for (const { name, reason, risk, effect, approval } of rules) {
        assert.ok(reason !== undefined && risk !== undefined, `${policy}: ${name}`);
        if (effect === "require_approval")
          assert.ok(approval?.expires_in !== undefined && (approval.notify?.length ?? 0) > 0, `${policy}: ${name}`);
      }
      const { effect, tool, operation, agent, when } = rules.at(-1) ?? {};
      const all = [tool, operation, agent, when].every((matcher) => matcher === undefined);
      assert.ok(
        effect !== "allow" && all,
        `${policy} must end with a rule that matches all remaining actions and does not allow them`,
      );
    }
  });

  test("have the layout of `policy fmt`, like the default set", () => {
    for (const folder of [DEFAULTS, FOLDER]) {
      const names = readdirSync(folder).filter((file) => file.endsWith(".yaml"));
      assert.ok(names.length > 0);
      for (const name of names) {
        const text = readFileSync(join(folder, name), "utf8");
        const result = formatYaml(text);
        assert.equal(result.ok ? result.text : result.message, text, join(folder, name));
      }
    }
  });

  test("use the channels that the page lists", () => {
    const asked = new Set(documents().flatMap(({ rules }) => rules.flatMap(({ approval }) => approval?.notify ?? [])));
    const [, listed] = /^The numbers[^]*?The channels are\n([^;]*);/m.exec(page) ?? [];
    assert.deepEqual(
      [...(listed ?? "").matchAll(/`([a-z]+)`/g)].map(([, name]) => name),
      [...asked].sort(),
    );
  });

  test("apply to their own tools, and to no other", () => {
    const tools = documents().map(({ policy, applies_to }) => ({ policy, globs: applies_to?.tools ?? ["*"] }));
    for (const { policy, globs } of tools) {
      const compiled = compiledPack(policy);
      for (const { action } of casesOf(policy)) {
        for (const tool of ["unknown", `un-${action.tool}`, `\u0455${action.tool}`, ` ${action.tool}`]) {
          assert.equal(ask(compiled, { ...action, tool }).reason_code, "NO_MATCHING_RULE", `${policy}: ${tool}`);
        }
      }
      for (const other of tools) {
        if (other.policy === policy || isInsteadOf(policy, other.policy)) continue;
        for (const glob of globs)
          for (const theirs of other.globs)
            assert.ok(!matchGlob(glob, theirs), `${policy} and ${other.policy} both apply to ${theirs}`);
      }
    }
  });

  /** Values that a caller might send instead. */
  const SHAPES: unknown[] = [
    null,
    true,
    false,
    -1,
    0,
    1,
    1.5,
    1e300,
    "",
    "x",
    "*",
    " ",
    [],
    [null],
    ["x"],
    [["x"]],
    [{ x: 1 }],
    [1, "x"],
    {},
    { x: 1 },
    { "": null },
  ];

  for (const name of PACKS) {
    test(`${name}: no condition fails, whatever the parameters are`, () => {
      const compiled = compiledPack(name);
      for (const { action } of casesOf(name)) {
        const held = (params: Record<string, unknown>): void => {
          const { reason_code, reason } = ask(compiled, { ...action, params });
          assert.equal(reason_code, "POLICY_RULE", `${shown({ ...action, params })}: ${reason}`);
        };
        for (const key of Object.keys(action.params ?? {})) {
          const { [key]: value, ...others } = action.params ?? {};
          held(others);
          for (const shape of [...SHAPES, [value], { value }, [value, value]]) held({ ...others, [key]: shape });
        }
        held({});
      }
    });

    test(`${name}: actions are allowed only under their exact names, and acting ones accept no additional parameter`, () => {
      const compiled = compiledPack(name);
      const allowed = casesOf(name).filter(({ decision }) => decision.effect === "allow");
      assert.ok(allowed.length > 0);
      for (const { action } of allowed) {
        const { operation } = action;
        const behind = [" ", "\n", "\u200b", "\u0000", ";x", "_and_delete"].map((tail) => `${operation}${tail}`);
        for (const other of [`${operation} `, ` ${operation}`, `\u0455${operation}`, ...behind]) {
          assert.notEqual(
            ask(compiled, { ...action, operation: other }).effect,
            "allow",
            `${JSON.stringify(other)} is not ${operation}`,
          );
        }
        for (const key of ["", "x", "force", "options", "__proto__", "params", "Amount"]) {
          if (Object.hasOwn(action.params ?? {}, key)) continue;
          // Not by an initialiser: "__proto__" must become a key.
          const params = Object.fromEntries([[key, 1], ...Object.entries(action.params ?? {})]) as Record<
            string,
            unknown
          >;
          assert.notEqual(ask(compiled, { ...action, params }).effect, "allow", shown({ ...action, params }));
        }
      }
    });

    test(`${name}: known evasions are not allowed`, () => {
      const compiled = compiledPack(name);
      const evasions = EVASIONS[name] ?? [];
      assert.ok(evasions.length >= 10, `${name} has ${evasions.length} evasions`);
      const wrong = evasions.flatMap(([outcome, tool, operation, params]) => {
        const action = { agent_id: "a", tool, operation, params };
        const { effect, approval, rule, reason, reason_code } = ask(compiled, action);
        const quorum = (approval?.quorum ?? 1) > 1 ? "two" : "one";
        const seen = effect === "require_approval" && outcome === quorum ? quorum : effect;
        const isDecided = reason_code === "POLICY_RULE" || reason.includes("it can be read as");
        return seen === outcome && isDecided
          ? []
          : [`${shown(action)}: expected ${outcome}, but the rule "${rule}" gives ${effect} (${reason_code})`];
      });
      assert.deepEqual(wrong, []);
    });

    test(`${name}: docs/packs.md shows actions and their decisions`, () => {
      const [, section] = new RegExp(`^## ${name}\\n([^]*?)(?=^## |$(?![^]))`, "m").exec(page) ?? [];
      assert.ok(section !== undefined, `docs/packs.md has no section for ${name}`);
      const samples = [...section.matchAll(/^```json (allow|require_approval|deny)\n([^]*?)^```$/gm)];
      assert.ok(samples.length >= 2, `${name} needs at least two samples`);
      for (const [, effect, text] of samples)
        assert.equal(ask(compiledPack(name), JSON.parse(text as string) as Asked).effect, effect, text);
      for (const tool of pack(name).applies_to?.tools ?? [])
        assert.ok(section.includes(`\`${tool}\``), `the section of ${name} does not list its tool ${tool}`);
      for (const word of [
        "**Allowed.**",
        "**Requires approval.**",
        "**Denied.**",
        "**Why.**",
        "**Not protected.**",
        "**Adapt.**",
      ])
        assert.ok(section.includes(word), `${name}: ${word}`);
    });
  }
});

describe("packs copied over the default set", () => {
  const root = temporaryFolder("assent-packs-");
  after(() => rmSync(root, { recursive: true, force: true }));

  let standard: PolicyDocument[];
  before(async () => {
    standard = (await loadPolicyFolder(DEFAULTS)).documents.map(({ document }) => document);
  });

  const table = [...page.matchAll(/^\| `([a-z-]+)` \| ([^|]*) \| ([^|]*) \|$/gm)] as unknown as [
    string,
    string,
    string,
    string,
  ][];
  const rows = new Map(table.map(([, name, replaces, beside]) => [name, { replaces, beside }]));

  for (const name of PACKS) {
    test(`${name}: replaces and is restricted by the policies that docs/packs.md lists`, () => {
      const row = rows.get(name);
      assert.ok(row !== undefined, `the table of docs/packs.md has no row for ${name}`);
      const kept = standard.filter(({ policy }) => policy !== name);
      assert.equal(row.replaces, kept.length < standard.length ? `\`${name}\`` : "nothing");

      // The strictest effect wins, so a default policy can only restrict: the page lists these restrictions.
      const together = compile(...kept, pack(name));
      const asked = casesOf(name).map(({ action, decision }) => ({ alone: decision, both: ask(together, action) }));
      const narrowed = asked.filter(({ alone, both }) => both.effect !== alone.effect);
      const by = [...new Set(narrowed.map(({ both }) => `\`${both.policy}\`: \`${both.rule}\``))].sort();
      assert.equal(row.beside, by.length === 0 ? "nothing" : by.join("; "));
    });
  }

  test("all of them load together", async () => {
    for (const from of [DEFAULTS, FOLDER])
      for (const file of readdirSync(from)) if (file.endsWith(".yaml")) cpSync(join(from, file), join(root, file));
    const { documents: loaded, faults } = await checkPolicyFolder(root);
    assert.deepEqual(faults, []);
    assert.deepEqual(
      loaded.map(({ document }) => document.policy),
      [...new Set(["guards", "reads", ...PACKS])].sort(),
    );
  });

  test("the default set loaded with its subfolders reports clashing names", async () => {
    const { faults } = await checkPolicyFolder(DEFAULTS, { recursive: true });
    // Files are read in order of path, so the second one is at fault.
    const clash = (name: string): string =>
      `the policy "${name}" is in ${name < "packs/" ? `${name}.yaml, line 2` : `packs/${name}.yaml, line 3`}, already; give each policy its own name`;
    const both = ["customer-data", "email", "mcp", "payments"];
    assert.deepEqual(faults.map(({ message }) => message).sort(), both.map(clash).sort());
  });
});
