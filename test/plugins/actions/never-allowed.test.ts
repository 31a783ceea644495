/** Detects actions that are denied whatever their parameters, and no action that some parameters would allow. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../src/domain/policy/decide/decide.ts";
import { Evaluation } from "../../../src/domain/policy/decide/evaluation.ts";
import { isNeverAllowed } from "../../../plugins/actions/never-allowed.ts";
import type { RuleDocument } from "../../../src/domain/policy/policy-types.ts";
import { createRandom } from "../../support/random.ts";
import { action, compile, FACTS, NOW, policy, rule } from "../../support/policy.ts";

const never = (operation: string, ...policies: Parameters<typeof compile>): boolean =>
  isNeverAllowed(new Evaluation(compile(...policies), action("t", operation), FACTS, NOW));

describe("an action is never allowed", () => {
  it("if no rule applies to it, or a rule without a condition denies it first", () => {
    const some = policy("a", [
      rule("no", "deny", { tool: "t", operation: "drop" }),
      rule("maybe", "allow", { tool: "t", operation: "read", when: "params.n > 1" }),
      rule("ask", "require_approval", { tool: "t", operation: "write" }),
      rule("others", "allow", { tool: "t", operation: "send", agent: "somebody-else" }),
    ]);
    assert.deepEqual(
      ["drop", "read", "write", "send", "unknown"].map((operation) => never(operation, some)),
      [true, false, false, true, true],
    );
  });

  it("if one policy denies it, whatever another allows; a policy in shadow mode denies nothing", () => {
    const open = policy("a", [rule("all", "allow", { tool: "t" })]);
    const shut = [rule("shut", "deny", { tool: "*" })];
    assert.equal(never("read", open, policy("b", shut)), true);
    assert.equal(never("read", open, policy("b", shut, { mode: "shadow" })), false);
    const before = policy("c", [rule("but", "allow", { tool: "t", when: "params.n == 1" }), ...shut]);
    assert.equal(never("read", before), false);
  });

  it("is not reported for any action with another decision, on many policies and requests", () => {
    const { random, pick } = createRandom(11);
    let said = 0;
    for (let round = 0; round < 500; round++) {
      const rules = (): RuleDocument[] =>
        Array.from({ length: 1 + random(4) }, (_, i) =>
          rule(`r${i}`, pick(["allow", "deny", "require_approval"] as const), {
            tool: pick(["t", "t*", "u", "*"]),
            ...(random(2) === 0 ? { operation: pick(["read", "w*"]) } : {}),
            ...(random(3) === 0 ? { agent: pick(["support-1", "b*"]) } : {}),
            ...(random(2) === 0 ? { when: pick(["params.n > 5", "params.n <= 5", "params.nope == 1"]) } : {}),
          }),
        );
      const set = compile(...Array.from({ length: 1 + random(3) }, (_, i) => policy(`p${i}`, rules())));
      for (const operation of ["read", "write"]) {
        const isNever = isNeverAllowed(new Evaluation(set, action("t", operation), FACTS, NOW));
        said += isNever ? 1 : 0;
        for (const params of [{}, { n: 1 }, { n: 9 }, { n: 9, nope: 1 }])
          if (isNever) assert.equal(decide(set, action("t", operation, params), FACTS, NOW).effect, "deny");
      }
    }
    assert.ok(said > 125 && said < 875, String(said));
  });
});
