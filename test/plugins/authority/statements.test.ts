/**
 * Compares the statements about an agent's authority, and the alternatives of denials, with decisions about generated
 * actions under generated policies. `STATEMENTS_SEED` and `STATEMENTS_ROUNDS` change the run.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contains } from "../../../plugins/authority/names.ts";
import {
  type AuthoritySubject,
  describeAuthority,
  type DescribedAuthority,
} from "../../../plugins/authority/describe.ts";
import type { AuthorityItem, AuthorityRule } from "../../../plugins/authority/schemas.ts";
import type { JsonObject } from "../../../src/domain/json.ts";
import {
  buildPolicySet,
  type CompiledPolicySet,
  compilePolicySet,
  Evaluation,
  type Facts,
  findAlternative,
  findEffects,
  findExtendedName,
  findMatchedLimits,
  foldName,
  decide,
} from "../../../src/core.ts";
import { parsePolicies } from "../../../src/plugin.ts";

const ROUNDS = Number(process.env["STATEMENTS_ROUNDS"] ?? 120);
const SEED = Number(process.env["STATEMENTS_SEED"] ?? 1);
const ACTIONS = 25;
const NOW = Date.parse("2026-03-01T12:00:00Z");

type Effect = AuthorityRule["decision"];
const OF_EFFECT = { allow: "allowed", require_approval: "asks", deny: "denied" } as const;

function createRandom(seed: number) {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T;
  return { next, pick, chance: (share: number) => next() < share };
}
type Random = ReturnType<typeof createRandom>;

const TOOLS = ["crm", "CRM", "bank", "bank2", "b*", "*k", "*a*", "?ank", "*", "crm/x", "b*k"];
const OPERATIONS = ["read", "Read", "read_all", "read*", "*all", "pay", "p?y", "*", "pay:x", "write"];
const REAL_TOOLS = ["crm", "CRM", "bank", "Bank", "bank2", "tank", "crm/x", "back", "other"];
const REAL_OPERATIONS = ["read", "Read", "read_all", "pay", "pay:x", "write", "puy", "overall"];
const CONDITIONS = [
  "params.amount <= 100",
  "params.amount < 50",
  "100 >= params.amount",
  "params.amount > 20 && params.amount <= 200",
  "(params.amount < 100) == false",
  "!(params.amount < 30)",
  "params.amount < 10 || params.amount > 500",
  'agent == "bot"',
  'agent == "other" && params.amount < 70',
  "params.order.total >= 40",
  "int(params.amount) <= 60",
  "double(params.amount) <= 60.5",
  "params.amount != 80",
  "params.amount == 90",
  "params.?amount.orValue(0) <= 70",
  'params["a.b"] <= 5',
  "has(params.amount) && params.amount <= 150",
  'params.to == "alice"',
];

function createPolicies(random: Random): string {
  const { pick, chance, next } = random;
  const names = (from: readonly string[]): string =>
    chance(0.3) ? `[${JSON.stringify(pick(from))}, ${JSON.stringify(pick(from))}]` : JSON.stringify(pick(from));
  const count = 1 + Math.floor(next() * 3);
  return Array.from({ length: count }, (_, p) => {
    const rule = (i: number): string => {
      const effect = pick(["allow", "allow", "deny", "require_approval"]);
      const parts = [
        `name: r${i}`,
        ...(chance(0.8) ? [`tool: ${names(TOOLS)}`] : []),
        ...(chance(0.8) ? [`operation: ${names(OPERATIONS)}`] : []),
        ...(chance(0.15) ? [`agent: ${pick(['"bot"', '"Bot"', '"other"', '"b*"'])}`] : []),
        ...(chance(0.5) ? [`when: ${JSON.stringify(pick(CONDITIONS))}`] : []),
        ...(effect !== "deny" && chance(0.1)
          ? [`obligations: { clamp: { params.amount: { max: ${pick([40, 120])} } } }`]
          : []),
        ...(effect !== "deny" && chance(0.1) ? [`effect_key: ${pick(["fixed", '"pay/{params.amount}"'])}`] : []),
        `effect: ${effect}`,
      ];
      return `  - { ${parts.join(", ")} }`;
    };
    const limit = (i: number): string => {
      const parts = [
        `name: l${i}`,
        ...(chance(0.6) ? [`tool: ${names(TOOLS)}`] : []),
        ...(chance(0.4) ? [`operation: ${names(OPERATIONS)}`] : []),
        ...(chance(0.3) ? [`when: ${JSON.stringify(pick(CONDITIONS))}`] : []),
        ...(chance(0.6) ? [`per: ${pick(["agent", "key", "params.amount", "tool"])}`] : []),
        ...(chance(0.5) ? ["count: 3"] : ["sum: params.amount", "at_most: 300"]),
        "window: day",
        `effect: ${pick(["deny", "require_approval"])}`,
      ];
      return `  - { ${parts.join(", ")} }`;
    };
    const lines = [
      `policy: p${p}`,
      ...(chance(0.15) ? ["case_sensitive: true"] : []),
      ...(chance(0.15) ? ["mode: shadow"] : []),
      ...(chance(0.3)
        ? [`applies_to: { ${chance(0.7) ? `tools: [${names(TOOLS).replaceAll(/[[\]]/g, "")}]` : 'agents: ["b*"]'} }`]
        : []),
      "rules:",
      ...Array.from({ length: 1 + Math.floor(next() * 5) }, (_, i) => rule(i)),
      ...(chance(0.3) ? ["limits:", limit(0)] : []),
    ];
    return lines.join("\n");
  }).join("\n---\n");
}

function compile(text: string): CompiledPolicySet | null {
  const { documents, faults } = parsePolicies(text, "policy.yaml");
  if (faults.length > 0) return null;
  return compilePolicySet(
    buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
  );
}

function createParams({ pick, chance }: Random): JsonObject {
  return {
    ...(chance(0.9)
      ? { amount: pick([0, 5, 29.5, 30, 49, 50, 60, 70, 80, 90, 99, 100, 101, 150, 201, 400, 600, "60"]) }
      : {}),
    ...(chance(0.4) ? { order: { total: pick([10, 40, 90]) } } : {}),
    ...(chance(0.3) ? { "a.b": pick([1, 5, 9]) } : {}),
    ...(chance(0.3) ? { to: pick(["alice", "bob"]) } : {}),
  };
}

type Request = { agent_id: string; tool: string; operation: string; params: JsonObject; context: JsonObject };

/** Adds the usage of limits and the actions with the same effect, which depend on the request. */
function withUse(compiled: CompiledPolicySet, request: Request, facts: Facts, salt: number): Facts {
  const evaluation = new Evaluation(compiled, request, facts, NOW);
  const spread = (text: string, size: number): number =>
    Array.from(`${salt}${text}`).reduce((sum, each) => (sum * 31 + each.charCodeAt(0)) % 9973, 7) % size;
  const limits = findMatchedLimits(evaluation).map(({ policy, limit, basis, subject, unit }) => ({
    policy,
    limit,
    basis,
    used: unit === "count" ? spread(subject, 5) : spread(subject, 4) * 90_000_000,
  }));
  const effects = findEffects(evaluation).flatMap(({ policy, rule, span }) => {
    if (typeof span === "string") return [];
    const blocked_by =
      spread(span.subject, 2) === 0
        ? null
        : { action_id: "a", at: "2026-03-01T11:00:00.000Z", own: false, status: "executing" as const };
    return [{ policy: policy.name, rule: rule.name, blocked_by }];
  });
  return { ...facts, limits, effects };
}

/** Returns the decisions that a statement permits. */
function readItem({ decision, rules = [], truncated }: AuthorityItem, params: JsonObject): Set<Effect> {
  if (decision !== "depends") return new Set([decision]);
  if (rules.length === 0 || truncated === true) return new Set(["allowed", "asks", "denied"]);
  let possible: (Effect | null)[] = [null];
  for (const list of rules) {
    const answers = readList(list, params);
    possible = [
      ...new Set(possible.flatMap((a) => answers.map((b) => (a === null ? b : b === null ? a : strictest(a, b))))),
    ];
  }
  return new Set(possible.map((each) => each ?? "denied"));
}

const ORDER: readonly Effect[] = ["allowed", "asks", "denied"];
const strictest = (a: Effect, b: Effect): Effect => ORDER[Math.max(ORDER.indexOf(a), ORDER.indexOf(b))] as Effect;

function readList(list: readonly AuthorityRule[], params: JsonObject): (Effect | null)[] {
  const found: (Effect | null)[] = [];
  for (const { decision, when } of list) {
    if (when === undefined) return [...found, decision];
    if (when === "other conditions") {
      // The condition of another rule can fail.
      found.push(decision, "denied");
      continue;
    }
    const results = when.split(" and ").map((part) => compareTerm(part, params));
    if (results.includes(false)) continue;
    if (!results.includes(null)) return [...found, decision];
    // A value is missing or not a number, so the comparison fails or is false.
    found.push(decision, "denied");
  }
  return [...found, null];
}

function compareTerm(term: string, params: JsonObject): boolean | null {
  const [, path = "", operator = "", bound = ""] = /^(.*) (<=|>=|<|>|==|!=) (\S+)$/.exec(term) ?? assert.fail(term);
  const names = path === 'params["a.b"]' ? ["a.b"] : path.split(".").slice(1);
  let value: unknown = params;
  for (const name of names) value = (value as JsonObject | undefined)?.[name];
  if (typeof value !== "number") return null;
  const b = Number(bound);
  switch (operator) {
    case "<=":
      return value <= b;
    case ">=":
      return value >= b;
    case "<":
      return value < b;
    case ">":
      return value > b;
    case "==":
      return value === b;
    default:
      return value !== b;
  }
}

/** Returns the items of which no narrower one covers the names. */
function findItems({ tools }: DescribedAuthority, { tool, operation }: Request): AuthorityItem[] {
  const covers = (
    a: Pick<AuthorityItem, "tool" | "operation">,
    b: Pick<AuthorityItem, "tool" | "operation">,
  ): boolean => contains(foldName(a.tool), foldName(b.tool)) && contains(foldName(a.operation), foldName(b.operation));
  const found = tools.filter((item) => covers(item, { tool, operation }));
  return found.filter((item) => !found.some((other) => covers(item, other) && !covers(other, item)));
}

/** Returns the effects of the listed limits that can apply. */
const limitEffects = ({ limits }: DescribedAuthority): Effect[] =>
  limits.flatMap(({ beyond }) => [beyond, "denied" as const]);

test("generated actions are decided as the description and the alternatives say", async () => {
  const counts = { policies: 0, statements: 0, certain: 0, alternatives: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const random = createRandom(SEED * 100_003 + round);
    const text = createPolicies(random);
    const compiled = compile(text);
    if (compiled === null) continue;
    counts.policies += 1;
    const allowed_tools = random.chance(0.2) ? [random.pick(TOOLS), random.pick(TOOLS)] : null;
    const agent = { suspended: false, allowed_tools };
    const stopped = random.chance(0.15) ? [{ code: "STOPPED", id: "s", policy: "p0", reason: "stopped" }] : [];
    const subject: AuthoritySubject = { compiled, agentId: "bot", facts: { agent }, barsOf: () => stopped };
    const all = await describeAuthority(subject, {});
    for (let i = 0; i < ACTIONS; i++) {
      const [tool, operation] = [random.pick(REAL_TOOLS), random.pick(REAL_OPERATIONS)];
      const request = { agent_id: "bot", tool, operation, params: createParams(random), context: {} };
      const given: Facts = {
        agent,
        principal: { key_id: "k", name: "k", agent_id: random.chance(0.7) ? "bot" : null, owner: null },
        ...(stopped.length === 0 ? {} : { bars: stopped }),
      };
      const facts = withUse(compiled, request, given, round);
      const decision = decide(compiled, request, facts, NOW);
      const actual = OF_EFFECT[decision.effect];
      const explain = `round ${round}: ${JSON.stringify(request)} is ${actual} (${decision.reason})\n${text}\n${JSON.stringify(agent)}`;
      const check = (described: DescribedAuthority, items: readonly AuthorityItem[], what: string): void => {
        const beyond = limitEffects(described);
        for (const item of items.length === 0 ? [{ tool, operation, decision: "denied" as const }] : items) {
          const said = readItem(item, request.params);
          counts.statements += 1;
          if (said.size === 1) counts.certain += 1;
          const possible = [...said].flatMap((each) => [each, ...beyond.map((limit) => strictest(each, limit))]);
          assert.ok(possible.includes(actual), `${what} ${JSON.stringify(item)}: ${explain}`);
        }
      };
      const exact = await describeAuthority(subject, { tool, operation });
      check(exact, exact.tools, "exact");
      const isPlain = (["tool", "operation"] as const).every(
        (kind) => findExtendedName(compiled.named[kind], request[kind]) === null,
      );
      const ofTool = await describeAuthority(subject, { tool });
      for (const [what, described] of [
        ["list", all],
        ["tool", ofTool],
      ] as const) {
        const items = findItems(described, request);
        if (isPlain) check(described, items, what);
        else assert.equal(actual, "denied", explain);
      }
      if (decision.effect !== "deny") continue;
      const found = findAlternative(new Evaluation(compiled, request, facts, NOW), facts, decision.reason_code);
      if (found === null) continue;
      counts.alternatives += 1;
      const other = decide(compiled, found.request, withUse(compiled, found.request as Request, given, round), NOW);
      assert.equal(other.effect, found.decision, `${JSON.stringify(found)}: ${other.reason}\n${explain}`);
    }
  }
  if (ROUNDS > 1000) console.log(counts);
  assert.ok(counts.certain > ROUNDS && counts.alternatives > ROUNDS / 20, JSON.stringify(counts));
});
