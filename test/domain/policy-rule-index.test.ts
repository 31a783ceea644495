/** The index of rules finds exactly the rules that a scan finds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { matchNames } from "../../src/domain/policy/compile/name-patterns.ts";
import { RuleIndex, type IndexedRule } from "../../src/domain/policy/compile/rule-index.ts";

const PATTERNS = ["pay", "pay.refund", "p*", "pay.*", "*", "?ay", "mail", "m?il", "*.refund", "𝒜x", "𝒜*", ""];
const NAMES = ["pay", "pay.refund", "mail", "moil", "bay", "𝒜x", "𝒜y", "x", "pay\nrefund"];

type Named = { name: string; order: number; operations: string[] | null; agents: string[] | null };

function rule(
  order: number,
  tools: string[] | null,
  operations: string[] | null,
  agents: string[] | null = null,
): IndexedRule<Named> {
  return { rule: { name: `r${order}`, order, operations, agents }, tools };
}

test("for random rules with names, globs and lists, in written order", () => {
  let state = 7;
  const next = (below: number): number => (state = (state * 48_271) % 2_147_483_647) % below;
  const pick = (): string[] | null =>
    next(5) === 0 ? null : Array.from({ length: 1 + next(3) }, () => PATTERNS[next(PATTERNS.length)] as string);
  for (let round = 0; round < 300; round++) {
    const rules = Array.from({ length: next(12) }, (_, order) => rule(order, pick(), pick(), pick()));
    const index = new RuleIndex(rules);
    for (const tool of NAMES)
      for (const operation of NAMES) {
        const agent = NAMES[next(NAMES.length)] as string;
        const scanned = rules.filter(
          ({ rule: { operations, agents }, tools }) =>
            matchNames(tools, tool) && matchNames(operations, operation) && matchNames(agents, agent),
        );
        assert.deepEqual(
          index.find({ tool, operation, agent }).map(({ name }) => name),
          scanned.map(({ rule: { name } }) => name),
        );
      }
  }
});

test("rules for other tools and operations are not visited", () => {
  const rules = Array.from({ length: 1000 }, (_, i) => rule(i, [`svc-${i}-*`], null)).concat(
    Array.from({ length: 1000 }, (_, i) => rule(1000 + i, ["pay"], [`op-${i}`])),
  );
  const index = new RuleIndex(rules);
  assert.equal(index.find({ tool: "svc-7-x", operation: "any", agent: "a" }).length, 1);
  assert.deepEqual(
    index.find({ tool: "pay", operation: "op-3", agent: "a" }).map(({ name }) => name),
    ["r1003"],
  );
  assert.equal(index.exactTools, null);
});
