/**
 * Measures only the decision, without a service or a store. The set contains the rules that decide (10 rules about the
 * requested tool, two of them with conditions) and an increasing number of rules about other tools, which must not
 * increase the median. All sizes alternate in one run, so that their ratio is meaningful on a busy machine.
 *
 *   npm run bench:decide [-- ROUNDS]
 */
import { buildPolicySet, compilePolicySet, type CompiledPolicySet } from "../src/domain/policy/compile/compile.ts";
import { decide } from "../src/domain/policy/decide/decide.ts";
import type { Facts, PolicyDocument, RuleDocument } from "../src/domain/policy/policy-types.ts";

const SIZES = [10, 1_000, 10_000];
const ROUNDS = Number(process.argv[2] ?? 40);
const CALLS = 2_000;
/** Decisions per sample, because a single decision is close to the resolution of the clock. */
const SAMPLE = 10;

const RELEVANT: RuleDocument[] = [
  {
    name: "no amount",
    tool: "stripe",
    operation: "refund",
    when: "!has(params.amount) || params.amount <= 0",
    effect: "deny",
  },
  ...Array.from({ length: 8 }, (_, i): RuleDocument => ({
    name: `operation ${i}`,
    tool: "stripe",
    operation: `operation-${i}`,
    effect: "deny",
  })),
  {
    name: "small",
    tool: "stripe",
    operation: "refund",
    when: 'params.amount <= 1000 && params.currency == "USD"',
    effect: "allow",
  },
];

function setOf(rules: number): { compiled: CompiledPolicySet; ms: number } {
  const policies: PolicyDocument[] = [{ policy: "payments", rules: RELEVANT }];
  const others = Array.from({ length: rules - RELEVANT.length }, (_, i): RuleDocument => ({
    name: `rule ${i}`,
    tool: `tool-${i}`,
    when: `params.amount <= ${i}`,
    effect: "allow",
  }));
  for (let i = 0; i < others.length; i += 500) policies.push({ policy: `other-${i}`, rules: others.slice(i, i + 500) });
  const document = buildPolicySet(
    policies.map((definition) => ({ policy: definition.policy, version: 1, definition })),
  );
  const before = performance.now();
  return { compiled: compilePolicySet(document), ms: performance.now() - before };
}

const request = {
  agent_id: "support-1",
  tool: "stripe",
  operation: "refund",
  params: { amount: 99.5, currency: "USD", charge: "ch_1" },
  context: { ticket: "T-1" },
};
const facts: Facts = { principal: { key_id: "k", name: "bench", agent_id: null, owner: null } };
const now = Date.UTC(2026, 0, 15, 10);

const sets = SIZES.map((rules) => ({ rules, ...setOf(rules), samples: [] as number[] }));
for (let round = -5; round < ROUNDS; round++) {
  for (const { compiled, samples } of sets) {
    for (let call = 0; call < CALLS; call += SAMPLE) {
      const before = performance.now();
      for (let i = 0; i < SAMPLE; i++)
        if (decide(compiled, request, facts, now).rule !== "small") throw new Error("the decision is another one");
      if (round >= 0) samples.push(((performance.now() - before) * 1000) / SAMPLE);
    }
  }
}

const at = (samples: number[], share: number): number => samples[Math.floor(samples.length * share)] as number;
let flat: number | null = null;
console.log("   rules   compile ms   p50 µs   p99 µs   p50 against 10 rules");
for (const { rules, ms, samples } of sets) {
  samples.sort((a, b) => a - b);
  const p50 = at(samples, 0.5);
  flat ??= p50;
  console.log(
    [
      String(rules).padStart(8),
      ms.toFixed(0).padStart(12),
      p50.toFixed(2).padStart(8),
      at(samples, 0.99).toFixed(2).padStart(8),
      `${(p50 / flat).toFixed(2)}×`.padStart(22),
    ].join(" "),
  );
}
