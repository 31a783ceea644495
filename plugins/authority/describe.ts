/**
 * Describes, briefly and for a model, what the policies allow one agent to do. Every statement is true for all requests
 * that it covers, or it says `other conditions`. Describes only rules for the agent. Of their conditions, describes
 * only comparisons of parameters with numbers, because other parts can mention people and secrets.
 */
import { setImmediate } from "node:timers/promises";
import {
  celPath,
  type CompiledLimit,
  type CompiledPolicy,
  type CompiledPolicySet,
  type CompiledRule,
  describeComparisons,
  Evaluation,
  type Facts,
  findAgentBar,
  findExtendedName,
  foldName,
  isGlob,
  matchNames,
  type PolicyDocument,
} from "../../src/core.ts";
import { combineRelations, contains, intersectNames, overlaps, relate, type Relation } from "./names.ts";
import type { AuthorityItem, AuthorityLimit, AuthorityRule } from "./schemas.ts";

/** Maximum number of pairs of tool and operation, so that the answer stays short. */
const MAX_ITEMS = 200;
/** Maximum number of distinct pairs that are compared with each other, and of pairs that the rules name in total. */
const MAX_PAIRS = 2000;
const MAX_RULE_PAIRS = 20_000;
/** Maximum number of rules of one pair, and of all pairs together. */
const MAX_RULES = 20;
const MAX_ALL_RULES = 500;
/** Maximum number of comparisons of one condition. */
const MAX_COMPARISONS = 10;
/** Number of rules that are read in one turn of the event loop. */
const RULES_PER_TURN = 200;
/** Maximum number of descriptions that are cached for one policy set. */
const MAX_CACHED = 50;

type Effect = AuthorityRule["decision"];
const OF_EFFECT = { allow: "allowed", require_approval: "asks", deny: "denied" } as const;
const STRICTNESS: readonly Effect[] = ["allowed", "asks", "denied"];
const OTHER_CONDITIONS = "other conditions";

/** The agent, with the bars that cover it. */
export interface AuthoritySubject {
  compiled: CompiledPolicySet;
  agentId: string;
  facts: Pick<Facts, "agent" | "require_registered_agents">;
  /** Returns the bars, such as stops, that cover the agent and this tool. */
  barsOf(tool: string): NonNullable<Facts["bars"]>;
}

export interface AuthorityFilter {
  tool?: string;
  operation?: string;
}

export interface DescribedAuthority {
  tools: AuthorityItem[];
  limits: AuthorityLimit[];
  truncated: boolean;
}

/** Returns the agent's authority for each tool and operation that its rules name, or for those of the filter. */
export async function describeAuthority(
  subject: AuthoritySubject,
  filter: AuthorityFilter,
): Promise<DescribedAuthority> {
  const { rows, limits, truncated } = await describeRules(subject, filter);
  return { tools: rows.map((row) => applyBars(row, subject)), limits, truncated };
}

interface Pair {
  tool: string;
  operation: string;
}

/** An item, and the names of the policies that can answer. */
interface Row {
  item: AuthorityItem;
  policies: readonly string[];
}

interface DescribedRules {
  rows: Row[];
  limits: AuthorityLimit[];
  truncated: boolean;
}

/**
 * The rules do not change within a policy set, so their descriptions are cached. Requests at the same time share one
 * computation.
 */
const cached = new WeakMap<CompiledPolicySet, Map<string, Promise<DescribedRules>>>();

function describeRules(subject: AuthoritySubject, filter: AuthorityFilter): Promise<DescribedRules> {
  if (filter.operation !== undefined) return computeRules(subject, filter);
  const { compiled, agentId, facts } = subject;
  let ofSet = cached.get(compiled);
  if (ofSet === undefined) cached.set(compiled, (ofSet = new Map()));
  const key = JSON.stringify([agentId, facts.agent?.allowed_tools ?? null, filter.tool ?? null]);
  const known = ofSet.get(key);
  if (known !== undefined) return known;
  const computed = computeRules(subject, filter);
  ofSet.set(key, computed);
  for (const oldest of ofSet.keys()) if (ofSet.size > MAX_CACHED) ofSet.delete(oldest);
  computed.catch(() => ofSet.delete(key));
  return computed;
}

/** A policy that can answer requests of the agent. */
interface AgentPolicy {
  policy: CompiledPolicy;
  definition: PolicyDocument;
  rules: AgentRule[];
}

interface AgentRule {
  rule: CompiledRule;
  /** As written; null matches every tool. */
  tools: readonly string[] | null;
  /** Pairs that together match at least what the rule matches. */
  pairs: Pair[];
}

async function computeRules(subject: AuthoritySubject, filter: AuthorityFilter): Promise<DescribedRules> {
  const { tool, operation } = filter;
  const exact = tool !== undefined && operation !== undefined ? { tool, operation } : null;
  const { policies, pairs, isComplete } = await listPairs(subject, exact === null ? tool : undefined);
  // Unless all pairs are known, it is unknown which narrower names are exceptions from a glob.
  const named = exact === null ? (isComplete ? pairs : pairs.filter(isExact)) : [exact];
  const listed = named.slice(0, MAX_ITEMS);
  const rows: Row[] = [];
  // Readers ignore case, so an item must be true for all spellings of its names.
  const hasCases = policies.some(({ policy }) => policy.caseSensitive);
  let rulesLeft = MAX_ALL_RULES;
  for (const pair of listed) {
    const matched =
      exact !== null || (isExact(pair) && !hasCases)
        ? matchExact(subject, policies, pair)
        : await matchGlobs(policies, pair, isComplete ? listed : null);
    const row = describePair(subject, pair, matched, Math.min(MAX_RULES, rulesLeft));
    rulesLeft -= row.item.rules?.flat().length ?? 0;
    rows.push(row);
    // A large policy set takes long, and other requests must not wait for the whole description.
    await setImmediate();
  }
  const isCut = exact === null && (!isComplete || named.length > MAX_ITEMS);
  return { rows, limits: listLimits(subject, policies, filter), truncated: isCut };
}

const isExact = ({ tool, operation }: Pair): boolean => !isGlob(tool) && !isGlob(operation);

/**
 * Returns the policies for the agent, and the pairs of tool and operation that their rules name.
 * @param only the tool of the pairs; absent for all tools
 */
async function listPairs(
  { compiled, agentId, facts }: AuthoritySubject,
  only: string | undefined,
): Promise<{ policies: AgentPolicy[]; pairs: Pair[]; isComplete: boolean }> {
  const allowed = facts.agent?.allowed_tools ?? null;
  const found = new Map<string, Pair>();
  const policies: AgentPolicy[] = [];
  let count = 0;
  let pairsLeft = MAX_RULE_PAIRS;
  let isComplete = true;
  for (const policy of compiled.policies) {
    const definition = compiled.document.policies[policy.order]?.definition;
    // A suggested policy only replaces answers that require approval.
    if (definition === undefined || policy.shadow || policy.suggested !== null || !isFor(policy, policy, agentId))
      continue;
    const rules: AgentRule[] = [];
    policies.push({ policy, definition, rules });
    for (const rule of policy.rules.all) {
      if (++count % RULES_PER_TURN === 0) await setImmediate();
      const { tool, operation = "*" } = definition.rules[rule.order] ?? {};
      if (!isFor(policy, rule, agentId)) continue;
      const tools = tool === undefined ? null : [tool].flat();
      const indexed: AgentRule = { rule, tools, pairs: [] };
      rules.push(indexed);
      if (!isComplete) continue;
      const within = intersectNames(tools ?? ["*"], definition.applies_to?.tools ?? null);
      const possible = intersectNames(within, allowed);
      const names =
        only === undefined ? possible : possible.some((each) => contains(foldName(each), foldName(only))) ? [only] : [];
      for (const name of names)
        for (const each of [operation].flat()) {
          // Names contain no line feed.
          const key = foldName(`${name}\n${each}`);
          const pair = found.get(key) ?? { tool: name, operation: each };
          indexed.pairs.push(pair);
          found.set(key, pair);
          isComplete &&= found.size <= MAX_PAIRS && --pairsLeft >= 0;
          if (!isComplete) break;
        }
    }
  }
  const pairs = [...found.values()].sort((a, b) => compare(a.tool, b.tool) || compare(a.operation, b.operation));
  return { policies, pairs, isComplete };
}

/** Returns true if a policy, or a rule of it, is for the agent. */
const isFor = ({ caseSensitive }: CompiledPolicy, { agents }: Pick<CompiledRule, "agents">, agentId: string): boolean =>
  matchNames(agents, caseSensitive ? agentId : foldName(agentId));

const compare = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);

/** The rules of one policy for a pair, in order, up to the first that always matches. */
interface MatchedPolicy {
  policy: AgentPolicy;
  rules: { rule: CompiledRule; relation: Relation }[];
  limits: { limit: CompiledLimit; relation: Relation }[];
}

function matchExact(
  { compiled, agentId }: AuthoritySubject,
  policies: readonly AgentPolicy[],
  { tool, operation }: Pair,
): MatchedPolicy[] {
  const request = { agent_id: agentId, tool, operation, params: {}, context: {} };
  const evaluation = new Evaluation(compiled, request, { principal: NO_PRINCIPAL }, 0);
  const applicable = new Set(evaluation.applicablePolicies());
  return policies
    .filter(({ policy }) => applicable.has(policy))
    .map((each) => ({
      policy: each,
      rules: rulesUntilCertain(evaluation.rules(each.policy).map((rule) => ({ rule, relation: "all" }))),
      limits: each.policy.limits
        .filter((limit) => evaluation.matches.matchesLimit(each.policy, limit))
        .map((limit) => ({ limit, relation: "all" })),
    }));
}

/** No condition is evaluated, so the principal does not matter. */
const NO_PRINCIPAL = { key_id: "", name: "", agent_id: null, owner: null };

/**
 * @param listed the pairs of the answer: a narrower one is an exception, which counts instead of this pair. Null if the
 *   pairs of the rules are not complete
 */
async function matchGlobs(
  policies: readonly AgentPolicy[],
  pair: Pair,
  listed: readonly Pair[] | null,
): Promise<MatchedPolicy[]> {
  const exceptions = new Set(listed ?? []);
  const [tool, operation] = [foldName(pair.tool), foldName(pair.operation)];
  const isException = (other: Pair): boolean => {
    const [otherTool, otherOperation] = [foldName(other.tool), foldName(other.operation)];
    if (!overlaps(otherTool, tool) || !overlaps(otherOperation, operation)) return true;
    const isWithin = contains(tool, otherTool) && contains(operation, otherOperation);
    const isEqual = contains(otherTool, tool) && contains(otherOperation, operation);
    return isWithin && !isEqual && exceptions.has(other);
  };
  const matched: MatchedPolicy[] = [];
  let work = 0;
  for (const each of policies) {
    const { policy } = each;
    const relateTo = (tools: readonly string[] | null, operations: readonly string[] | null): Relation => {
      const kinds = [policy.tools, tools, operations];
      const relation = combineRelations([
        relate(policy.tools, tool),
        relate(tools, tool),
        relate(operations, operation),
      ]);
      const isForAll = kinds.every((patterns) => patterns === null || patterns.includes("*"));
      return relation === "all" && policy.caseSensitive && !isForAll ? "some" : relation;
    };
    const rules: MatchedPolicy["rules"] = [];
    for (const { rule, tools, pairs } of each.rules) {
      const relation = relateTo(tools, rule.operations);
      if (relation === "all" || (relation === "some" && !(listed !== null && pairs.every(isException))))
        rules.push({ rule, relation });
      work += 1 + pairs.length;
      if (work < RULES_PER_TURN) continue;
      work = 0;
      await setImmediate();
    }
    const limits = policy.limits.map((limit) => ({ limit, relation: relateTo(limit.tools, limit.rule.operations) }));
    matched.push({ policy: each, rules: rulesUntilCertain(rules), limits });
  }
  return matched;
}

function rulesUntilCertain(rules: MatchedPolicy["rules"]): MatchedPolicy["rules"] {
  const last = rules.findIndex(({ rule, relation }) => rule.condition === null && relation === "all");
  return last < 0 ? rules : rules.slice(0, last + 1);
}

function describePair(
  { compiled, agentId, facts }: AuthoritySubject,
  pair: Pair,
  matched: readonly MatchedPolicy[],
  maxRules: number,
): Row {
  const { tool, operation } = pair;
  const row = (item: Omit<AuthorityItem, "tool" | "operation">): Row => ({
    item: { tool, operation, ...item },
    policies: matched
      .filter(({ rules, limits }) => rules.length + limits.length > 0)
      .map(({ policy: { policy } }) => policy.name),
  });
  for (const kind of ["tool", "operation"] as const) {
    const extended = isGlob(pair[kind]) ? null : findExtendedName(compiled.named[kind], pair[kind]);
    if (extended !== null)
      return row({ decision: "denied", note: `the ${kind} can be read as "${extended}", which a policy names` });
  }
  const hidden = listHiddenEffects(agentId, matched);
  if (relate(facts.agent?.allowed_tools ?? null, tool) === "some") hidden.push("denied");
  const ofPolicies = matched.map(({ rules }) => effectsOf(rules));
  const [least, most] = findRange([...ofPolicies, ...hidden.map((effect) => [effect, null])]);
  if (most === least) return row({ decision: most, ...(most === "denied" ? reasonOf(matched) : {}) });
  if (matched.some(({ rules }) => rules.some(({ rule }) => rule.obligations.length > 0)))
    return row({ decision: "depends", note: "rules change parameters before they decide" });
  const { lists, isCut } = describeLists(matched, maxRules);
  return row({
    decision: "depends",
    rules: [...lists, ...[...new Set(hidden)].map((decision) => [{ decision, when: OTHER_CONDITIONS }])],
    ...(isCut ? { truncated: true } : {}),
  });
}

/** Returns effects that a request can have although the answer does not list them. */
function listHiddenEffects(agentId: string, matched: readonly MatchedPolicy[]): Effect[] {
  return matched.flatMap(({ policy: { policy }, rules, limits }) => [
    ...rules.flatMap(({ rule }): Effect[] =>
      rule.effectKey !== null || rule.obligations.length > 0 ? ["denied"] : [],
    ),
    ...limits.flatMap(({ limit: { rule }, relation }): Effect[] =>
      rule.condition === null || relation === "none" || !isFor(policy, rule, agentId)
        ? []
        : [OF_EFFECT[rule.effect], "denied"],
    ),
  ]);
}

/** Returns the reason of an unconditional denial, which a denied request would get, too. */
function reasonOf(matched: readonly MatchedPolicy[]): { note?: string } {
  for (const { rules } of matched) {
    const [first] = rules;
    if (first === undefined || first.relation !== "all") continue;
    const { effect, reason, condition } = first.rule;
    if (effect === "deny" && condition === null && reason !== null) return { note: reason };
  }
  return {};
}

/** Returns the effects that a policy can have; null stands for no answer. A condition that fails denies the request. */
function effectsOf(rules: MatchedPolicy["rules"]): (Effect | null)[] {
  const effects = new Set<Effect | null>();
  for (const { rule, relation } of rules) {
    effects.add(OF_EFFECT[rule.effect]);
    if (rule.condition === null && relation === "all") return [...effects];
    if (rule.condition !== null) effects.add("denied");
  }
  return [...effects, null];
}

/**
 * Returns the most lenient and the strictest decision. The strictest effect of all policies counts, and a request for
 * which no policy has a rule is denied.
 */
function findRange(policies: readonly (readonly (Effect | null)[])[]): [Effect, Effect] {
  const ranks = policies.map((effects) =>
    effects.flatMap((effect) => (effect === null ? [] : STRICTNESS.indexOf(effect))),
  );
  const isAlwaysAnswered = policies.some((effects) => !effects.includes(null));
  // Policies that can be silent do not make the most lenient decision stricter.
  const answering = policies.flatMap((effects, i) => (effects.includes(null) ? [] : [Math.min(...(ranks[i] ?? []))]));
  const least = isAlwaysAnswered ? Math.max(...answering) : Math.min(...ranks.flat());
  const most = isAlwaysAnswered ? Math.max(...ranks.flat()) : STRICTNESS.indexOf("denied");
  return [STRICTNESS[least] ?? "denied", STRICTNESS[most] ?? "denied"];
}

/** Returns the first rules of each policy, in order, and whether there are more. */
function describeLists(
  matched: readonly MatchedPolicy[],
  maxRules: number,
): { lists: AuthorityRule[][]; isCut: boolean } {
  const lists: AuthorityRule[][] = [];
  let left = maxRules;
  for (const { policy, rules } of matched) {
    const list: AuthorityRule[] = [];
    for (const { rule, relation } of rules) {
      if (left-- === 0) return { lists: [...lists, ...(list.length === 0 ? [] : [list])], isCut: true };
      list.push(describeRule(rule, relation, policy.definition));
    }
    if (list.length > 0) lists.push(list);
  }
  return { lists, isCut: false };
}

/** Describes a rule. Omits a condition with other parts, because the rule can be about other people. */
function describeRule(rule: CompiledRule, relation: Relation, definition: PolicyDocument): AuthorityRule {
  const decision = OF_EFFECT[rule.effect];
  if (relation !== "all") return { decision, when: OTHER_CONDITIONS };
  const note = rule.reason !== null && rule.effect === "deny" ? { note: rule.reason } : {};
  if (rule.condition === null) return { decision, ...note };
  const { bounds, isComplete } = describeComparisons(rule.condition.comparisons, definition);
  if (!isComplete || bounds.length > MAX_COMPARISONS) return { decision, when: OTHER_CONDITIONS };
  const parts = bounds.map(({ path, operator, value }) => `${celPath("params", path)} ${operator} ${value}`);
  return { decision, when: parts.join(" and "), ...note };
}

/** Returns the limits without a condition. Omits the others, because a condition can be about other people. */
function listLimits(
  { agentId, facts }: AuthoritySubject,
  policies: readonly AgentPolicy[],
  filter: AuthorityFilter,
): AuthorityLimit[] {
  return policies.flatMap(({ policy, definition }) =>
    policy.limits.flatMap((limit): AuthorityLimit[] => {
      const { rule } = limit;
      const written = definition.limits?.find(({ name }) => name === rule.name);
      if (written === undefined || rule.condition !== null || !isFor(policy, rule, agentId)) return [];
      const within = intersectNames([written.tool ?? "*"].flat(), definition.applies_to?.tools ?? null);
      const tools = intersectNames(within, facts.agent?.allowed_tools ?? null);
      const isAbout = (patterns: readonly string[] | null, name: string | undefined): boolean =>
        name === undefined || relate(patterns, name) !== "none";
      const operations = written.operation === undefined ? null : [written.operation].flat();
      if (tools.length === 0 || !isAbout(tools, filter.tool) || !isAbout(operations, filter.operation)) return [];
      return [
        {
          tools: [...tools],
          ...(operations === null ? {} : { operations }),
          ...(limit.sum === null ? { count: limit.count } : { at_most: written.at_most ?? 0, ...sumOf(limit) }),
          per:
            written.per === undefined
              ? "all"
              : written.per === "agent" || written.per === "key"
                ? written.per
                : "other",
          window: written.window,
          beyond: rule.effect === "deny" ? "denied" : "asks",
        },
      ];
    }),
  );
}

/** Returns the parameter or the reported usage that a limit sums; empty for other expressions. */
function sumOf({ sum }: CompiledLimit): { sum?: string } {
  if (sum === null) return {};
  if ("usage" in sum.of) return { sum: `usage.${sum.of.usage}` };
  return sum.of.parameter === null ? {} : { sum: celPath("params", sum.of.parameter) };
}

/** Applies the bars that are in effect now to an item: stops, and those of the agent. */
function applyBars({ item, policies }: Row, { agentId, facts, barsOf }: AuthoritySubject): AuthorityItem {
  const { tool, operation } = item;
  const bars = barsOf(tool);
  const { agent, ...others } = facts;
  // A glob can match tools that the agent may use and tools that it may not.
  const anyToolAgent = agent !== undefined && isGlob(tool) ? { ...agent, allowed_tools: null } : agent;
  const barred =
    bars.find(({ policy }) => policy === null) ??
    findAgentBar({ agent_id: agentId, tool }, anyToolAgent === undefined ? others : { ...others, agent: anyToolAgent });
  if (barred !== null) return { tool, operation, decision: "denied", note: barred.reason };
  const some = bars.find(({ policy }) => policy !== null && policies.includes(policy));
  return some === undefined || item.decision === "denied"
    ? item
    : { tool, operation, decision: "depends", note: some.reason };
}
