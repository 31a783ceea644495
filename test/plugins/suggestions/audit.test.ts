/** The audit checks the ledger against the suggested rules in it. */
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { suggestedRuleAuditor } from "../../../plugins/suggestions/audit.ts";
import { suggestedRuleState } from "../../../plugins/suggestions/state.ts";
import type { FeatureAuditor } from "../../../src/contract/audit.ts";
import type { Bars } from "../../../src/contract/bar.ts";
import { matchesAnyName } from "../../../src/domain/policy/compile/name-patterns.ts";
import { States } from "../../../src/ledger/states.ts";
import { person } from "../../support/service.ts";

const AT = "2026-01-01T12:00:00.000Z";
const by = { key_id: "k", principal: person("ada"), agent_id: null, owner: person("ada") };
const rule = {
  policy: "suggested-1",
  in_place_of: { policy: "work", rule: "pay" },
  tool: "bank",
  operation: "pay",
  agents: ["bot"],
  max_failed: 0.1,
};
const change = (name: string, more: object = {}) => ({
  type: "suggested_rule",
  v: 1,
  at: AT,
  change: name,
  rule,
  cause: null,
  related_action: null,
  related_stop: null,
  comment: null,
  by,
  ...more,
});
const use = (action_id: string, more: object = {}) => ({
  type: "decision",
  at: AT,
  action_id,
  agent_id: "bot",
  tool: "bank",
  operation: "pay",
  facts: { suggested: ["suggested-1"] },
  decision: { effect: "allow", policy: "suggested-1" },
  ...more,
});
const result = (action_id: string, success: boolean) => ({
  type: "execution",
  at: AT,
  action_id,
  phase: "result",
  success,
});
/** Bars whose entries are those of `stop`. */
const bars: Pick<Bars, "coverageOf"> = {
  coverageOf(entry) {
    if ((entry.type as string) !== "stop") return null;
    const { agent, tool, policy } = (entry as unknown as ReturnType<typeof stop>).stop;
    return (target, policies) =>
      (agent === null || matchesAnyName([agent], target.agent_id)) &&
      (tool === null || matchesAnyName([tool], target.tool)) &&
      (policy === null || policies.includes(policy));
  },
};

const stop = ({
  agent = null,
  tool = null,
  policy = null,
}: Partial<Record<"agent" | "tool" | "policy", string | null>> = {}) => ({
  type: "stop",
  at: AT,
  change: "placed",
  stop: { id: "s", agent, tool, policy, reason: "drill", until: null },
});
const flag = change("reverted", { cause: "flag", related_action: "a" });
const other = { type: "agent", at: AT };

let audit: FeatureAuditor;
let states: States;
const reader = () => ({
  now: 0,
  state: states.state.bind(states),
  placedBar: () => null,
  origin: "log.example",
  ...bars,
});
function add(entry: object): void {
  const recorded = { ...entry, seq: 0 } as never;
  audit.check?.(recorded, reader());
  states = states.after(recorded);
}
beforeEach(() => {
  audit = suggestedRuleAuditor();
  states = States.initial([suggestedRuleState]);
  add(change("activated"));
});

async function faults(results: string | null, policies: object[]): Promise<string[]> {
  const found: string[] = [];
  const store = {
    meta: () => Promise.resolve(results),
    head: () => Promise.resolve({ policy_set: "digest" }),
    policySet: () => Promise.resolve({ document: JSON.stringify({ policies }) }),
  };
  await audit.compare?.(store as never, (message) => found.push(message), reader());
  return found;
}

describe("the audit reports", () => {
  it("an action that a rule allowed after its reversal or deactivation, or that it cannot allow", () => {
    add(use("a"));
    assert.throws(() => add(use("b", { agent_id: "stranger" })), /other agents/);
    assert.throws(() => add(use("c", { decision: { effect: "deny", policy: null } })), /did not allow it/);
    add(flag);
    assert.throws(() => add(use("d")), /not in force/);
    add(change("restored"));
    add(use("e"));
    add(change("deactivated"));
    assert.throws(() => add(use("f")), /not in force/);
    assert.throws(() => add(use("g", { facts: { suggested: ["unknown"] } })), /not in force/);
  });

  it("a reversal that is missing after a stop or after too many failures", () => {
    add(stop({ tool: "b*" }));
    assert.throws(() => add(other), /had to revert the suggested rule of suggested-1/);
    for (const id of ["a", "b", "c"]) add(use(id));
    add(result("a", false));
    add(result("b", false));
    add(other);
    add(result("c", false));
    assert.throws(() => add(other), /had to revert the suggested rule of suggested-1/);
  });

  it("a reversal that is missing as the newest entry", async () => {
    add(stop());
    assert.ok((await faults("", [])).some((fault) => fault.includes("newest entry had to revert")));
  });

  it("a reversal without its cause, and one by a flag of an action that the rule did not allow", () => {
    assert.throws(() => add(flag), /did not allow/);
    assert.throws(() => add(change("reverted", { cause: "stop", related_stop: "s" })), /without the cause/);
    add(stop({ tool: "other" }));
    assert.throws(() => add(change("reverted", { cause: "stop", related_stop: "s" })), /without the cause/);
    assert.throws(() => add(change("reverted")), /without the cause/);
  });

  it("a rule that an agent's key or a policy source restored, or that was not reverted", () => {
    assert.throws(() => add(change("restored")), /is not reverted/);
    add(use("a"));
    add(flag);
    assert.throws(() => add(change("restored", { by: null })), /no person restored/);
    assert.throws(() => add(change("restored", { by: { ...by, agent_id: "bot" } })), /no person restored/);
    assert.throws(() => add(flag), /reverted twice/);
    add(change("restored"));
  });

  it("an activation that changes a reverted rule leaves it reverted", () => {
    add(use("a"));
    add(flag);
    add(change("activated", { rule: { ...rule, agents: ["bot", "bob"] } }));
    assert.throws(() => add(use("b")), /not in force/);
  });

  it("results in the store that differ from the ledger, and rules whose activation is not recorded", async () => {
    add(use("a"));
    add(result("a", true));
    const definition = {
      policy: "suggested-1",
      suggested: { in_place_of: rule.in_place_of },
      rules: [{ name: "r", tool: "bank", operation: "pay", agent: "bot", effect: "allow" }],
    };
    assert.deepEqual(await faults("s", [{ definition }]), []);
    assert.match((await faults("", [{ definition }])).join(), /results .* differ/);
    assert.match((await faults(null, [{ definition }])).join(), /results .* differ/);
    assert.match(
      (await faults("s", [{ definition: { ...definition, policy: "suggested-2" } }, { definition }])).join(),
      /no entry activated/,
    );
    assert.match((await faults("s", [])).join(), /recorded as active/);
  });
});
