/** Describes what the policies allow one agent to do, in a short form for a model. */
import { setImmediate } from "node:timers/promises";
import {
  type CompiledPolicy,
  type CompiledPolicySet,
  type CompiledRule,
  describeCondition,
  Evaluation,
  type Facts,
  isNeverAllowed,
  matchesAnyName,
  type PolicyDocument,
} from "../../src/core.ts";
import type { AuthorityItem, AuthorityLimit, AuthorityRule } from "./schemas.ts";

/** Maximum number of pairs of tool and operation, so that the answer stays short. */
const MAX_ITEMS = 200;
const MAX_RULES = 20;

type Effect = AuthorityRule["decision"];
const OF_EFFECT = { allow: "allowed", require_approval: "asks", deny: "denied" } as const;
const STRICTNESS: readonly Effect[] = ["allowed", "asks", "denied"];

/** The agent, the facts of its requests, and where they are read. */
export interface AuthoritySubject {
  compiled: CompiledPolicySet;
  agentId: string;
  facts: Facts;
  now: number;
  /** Whether a stop covers the agent and this tool. */
  isStopped(tool: string): boolean;
}

/**
 * Returns the agent's authority for each tool and operation that its rules name. Contains rules of the agent only, and
 * of their conditions only comparisons of parameters with numbers: other parts can mention people and secrets.
 */
export async function describeAuthority(
  subject: AuthoritySubject,
  only: { tool?: string; operation?: string },
): Promise<{ tools: AuthorityItem[]; limits: AuthorityLimit[]; truncated: boolean }> {
  const { tool, operation } = only;
  const named =
    tool !== undefined && operation !== undefined ? [{ tool, operation }] : listNamedOperations(subject, tool);
  const limits = listLimits(subject, tool);
  const tools: AuthorityItem[] = [];
  for (const names of named.slice(0, MAX_ITEMS)) {
    tools.push(describeOperation(subject, names));
    // A large policy set takes long, and other requests must not wait for the whole description.
    await setImmediate();
  }
  const truncated = named.length > MAX_ITEMS || limits.length > MAX_ITEMS;
  return { tools, limits: limits.slice(0, MAX_ITEMS), truncated };
}

interface Operation {
  tool: string;
  operation: string;
}

const policiesOf = ({
  compiled,
  agentId,
}: AuthoritySubject): { policy: CompiledPolicy; definition: PolicyDocument }[] =>
  compiled.policies.flatMap((policy) => {
    const definition = compiled.document.policies[policy.order]?.definition;
    const agents = definition?.applies_to?.agents;
    const applies = !policy.shadow && (agents === undefined || matchesAnyName(agents, agentId));
    return definition !== undefined && applies ? [{ policy, definition }] : [];
  });

/**
 * Returns the pairs of tool and operation that rules for the agent name. Names can be globs.
 * @param only the tool of the pairs; absent for all tools
 */
function listNamedOperations(subject: AuthoritySubject, only: string | undefined): Operation[] {
  const found = new Map<string, Operation>();
  const allowed = subject.facts.agent?.allowed_tools ?? undefined;
  for (const { definition } of policiesOf(subject))
    for (const { tool = "*", operation = "*", agent } of definition.rules) {
      if (agent !== undefined && !matchesAnyName([agent].flat(), subject.agentId)) continue;
      const possible = intersectNames(intersectNames([tool].flat(), definition.applies_to?.tools), allowed);
      const tools = only === undefined ? possible : matchesAnyName(possible, only) ? [only] : [];
      for (const name of tools)
        for (const each of [operation].flat())
          found.set(`${name.toLowerCase()}\n${each.toLowerCase()}`, { tool: name, operation: each });
    }
  return [...found.values()].sort((a, b) => compare(a.tool, b.tool) || compare(a.operation, b.operation));
}

/** Returns the patterns for the names that match both lists. Keeps a name if neither contains the other. */
const intersectNames = (names: readonly string[], within: readonly string[] | undefined): readonly string[] =>
  names.flatMap((name) => {
    if (within === undefined || matchesAnyName(within, name)) return [name];
    const narrower = within.filter((each) => matchesAnyName([name], each));
    return narrower.length > 0 ? narrower : [name];
  });

const compare = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);

function describeOperation(subject: AuthoritySubject, { tool, operation }: Operation): AuthorityItem {
  const { compiled, agentId, facts, now } = subject;
  const { agent } = facts;
  if (subject.isStopped(tool)) return { tool, operation, decision: "denied", note: "a stop is in effect" };
  if (agent?.suspended === true) return { tool, operation, decision: "denied", note: "the agent is suspended" };
  if (agent?.allowed_tools != null && !matchesAnyName(agent.allowed_tools, tool))
    return { tool, operation, decision: "denied", note: "the agent may not use this tool" };
  const evaluation = new Evaluation(
    compiled,
    { agent_id: agentId, tool, operation, params: {}, context: {} },
    facts,
    now,
  );
  if (isNeverAllowed(evaluation)) return { tool, operation, decision: "denied", ...reasonOf(evaluation) };
  const policies = evaluation.applicablePolicies().filter(({ shadow }) => !shadow);
  const [least, most] = findRange(policies.map((policy) => effectsOf(policy, evaluation)));
  const decision = least === most ? least : "depends";
  return {
    tool,
    operation,
    decision,
    ...(decision === "depends" ? { rules: describeRules(policies, evaluation) } : {}),
  };
}

/** Returns the reason of the unconditional denial, which a denied request would get, too. */
function reasonOf(evaluation: Evaluation): { note?: string } {
  for (const policy of evaluation.applicablePolicies())
    for (const { effect, reason, condition } of evaluation.rules(policy))
      if (!policy.shadow && effect === "deny" && condition === null && reason !== null) return { note: reason };
  return {};
}

/** Returns the effects that a policy can have; null stands for no rule that matches. */
function effectsOf(policy: CompiledPolicy, evaluation: Evaluation): (Effect | null)[] {
  const effects = new Set<Effect | null>();
  for (const { effect, condition } of evaluation.rules(policy)) {
    effects.add(OF_EFFECT[effect]);
    if (condition === null) return [...effects];
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

/** Returns the first rules that can match, in order. */
function describeRules(policies: readonly CompiledPolicy[], evaluation: Evaluation): AuthorityRule[] {
  const rules: AuthorityRule[] = [];
  for (const policy of policies) {
    const definition = evaluation.compiled.document.policies[policy.order]?.definition;
    for (const rule of definition === undefined ? [] : evaluation.rules(policy)) {
      if (rules.length === MAX_RULES) return rules;
      rules.push(describeRule(rule, definition as PolicyDocument));
      if (rule.condition === null) break;
    }
  }
  return rules;
}

/** Describes a rule. Of a condition with other parts it shows nothing, because the rule can be about someone else. */
function describeRule(rule: CompiledRule, definition: PolicyDocument): AuthorityRule {
  const { bounds, isComplete } = describeCondition(rule, definition);
  const parts = bounds.map(({ path, operator, value }) => `${["params", ...path].join(".")} ${operator} ${value}`);
  return {
    decision: OF_EFFECT[rule.effect],
    ...(rule.condition === null ? {} : { when: isComplete ? parts.join(" and ") : "other conditions" }),
    ...(rule.reason !== null && rule.effect === "deny" && isComplete ? { note: rule.reason } : {}),
  };
}

function listLimits(subject: AuthoritySubject, tool: string | undefined): AuthorityLimit[] {
  return policiesOf(subject).flatMap(({ definition }) =>
    (definition.limits ?? []).flatMap(({ agent, tool: given, when, count, sum, at_most, window, effect = "deny" }) => {
      const isOfAgent = agent === undefined || matchesAnyName([agent].flat(), subject.agentId);
      const tools = [given ?? definition.applies_to?.tools ?? "*"].flat();
      // A limit with a condition can be about someone else.
      if (!isOfAgent || when !== undefined || (tool !== undefined && !matchesAnyName(tools, tool))) return [];
      const bound = sum === undefined ? { count: count ?? 0 } : { at_most: at_most ?? 0 };
      return [{ tools, ...bound, window, beyond: effect === "deny" ? ("denied" as const) : ("asks" as const) }];
    }),
  );
}

/** Returns the authority as text for a model. */
export function renderAuthority(
  agentId: string,
  { tools, limits, truncated }: Awaited<ReturnType<typeof describeAuthority>>,
): string {
  const words = { allowed: "allowed", asks: "a person must approve", denied: "denied", depends: "depends" };
  const lines = tools.map(({ tool, operation, decision, note, rules = [] }) => {
    const cases = rules.map(
      ({ decision, when }) => `${when === undefined ? "otherwise" : `if ${when}`} ${words[decision]}`,
    );
    const detail = cases.length > 0 ? cases.join("; ") : `${words[decision]}${note === undefined ? "" : ` (${note})`}`;
    return `- ${tool} ${operation}: ${detail}`;
  });
  const limited = limits.map(
    ({ tools, count, at_most, window, beyond }) =>
      `- limit on ${tools.join(", ")}: ${count === undefined ? `a sum of ${at_most}` : `${count} actions`} in ${window}, then ${words[beyond]}`,
  );
  return [
    `What ${JSON.stringify(agentId)} may do. Everything that is not listed is denied, and of several lines the most specific counts. The decision about a request counts, not this list.`,
    ...lines,
    ...limited,
    ...(truncated ? ["- and more; ask for one tool"] : []),
  ].join("\n");
}
