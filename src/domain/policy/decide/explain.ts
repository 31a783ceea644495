/** Explains a decision: the result of each policy, rule, matcher and part of a condition. Pure, like `decide`. */
import type { ActionRequest } from "../../actions.ts";
import type { CompiledPolicySet, CompiledLimit, CompiledPolicy, CompiledRule } from "../compile/compile.ts";
import { evaluateConditionParts, type ConditionPart } from "../condition/condition-parts.ts";
import { decide } from "./decide.ts";
import { Evaluation } from "./evaluation.ts";
import { isExceeded, matchLimit, MICROS_PER_UNIT, findRecordedUsage } from "./limit-facts.ts";
import { resolveObligations } from "./resolve-obligations.ts";
import { matchNames, normalizePatterns } from "../compile/name-patterns.ts";
import type { Decision, Effect, Facts, PolicyDocument, ReasonCode, RuleDocument } from "../policy-types.ts";

export interface MatcherExplanation {
  field: "tool" | "operation" | "agent";
  patterns: string[];
  value: string;
  matches: boolean;
}

interface ConditionExplanation {
  source: string;
  /** Value of the condition; null if it could not be evaluated. */
  value: boolean | null;
  error: { code: ReasonCode; message: string } | null;
  parts: ConditionPart[];
}

export interface RuleExplanation {
  rule: string;
  effect: Effect;
  /**
   * `matched`: the rule is the policy's answer. `failed`: its condition could not be evaluated, so the policy denies.
   * `passed`: the rule does not match. `not_reached`: an earlier rule was the answer.
   */
  outcome: "matched" | "failed" | "passed" | "not_reached";
  /** The matchers that the rule has. */
  matchers: MatcherExplanation[];
  /** The condition; null if the rule has no condition or was not evaluated. */
  condition: ConditionExplanation | null;
}

export interface LimitExplanation {
  limit: string;
  effect: Effect;
  /**
   * `aside`: the limit does not count this action. `failed`: the limit could not be evaluated, so the policy denies.
   */
  outcome: "aside" | "within" | "exceeded" | "failed";
  subject: string | null;
  /** Usage before this action: number of actions, or the sum. Null if the usage is unknown or irrelevant. */
  used: number | null;
  /** Maximum usage. */
  most: number;
  error: string | null;
  /** The limit's answer; null if the limit has no answer. */
  answer: { effect: Effect; reason_code: ReasonCode } | null;
}

export interface PolicyExplanation {
  policy: string;
  mode: "enforce" | "shadow";
  /** Whether the policy's `applies_to` includes this action. */
  applies: boolean;
  /** Matchers of `applies_to`. */
  matchers: MatcherExplanation[];
  /** Answer of the rules; null if no rule matched or failed. */
  answer: { rule: string; effect: Effect; reason_code: ReasonCode } | null;
  /** Whether the `policy` of the decision is this policy. */
  decides: boolean;
  /** The rules; empty if the policy does not apply. */
  rules: RuleExplanation[];
  limits: LimitExplanation[];
}

export interface Explanation {
  decision: Decision;
  /**
   * The policies, sorted by name. Empty if the agent may not act at all or a bar covers every policy, because then no
   * policy is evaluated.
   */
  policies: PolicyExplanation[];
}

const CODES_WITHOUT_POLICIES: readonly ReasonCode[] = [
  "KEY_ENDED",
  "AGENT_NOT_REGISTERED",
  "AGENT_SUSPENDED",
  "TOOL_NOT_ALLOWED",
];

/** @param now the current time in milliseconds since the epoch */
export function explain(compiled: CompiledPolicySet, request: ActionRequest, facts: Facts, now: number): Explanation {
  const decision = decide(compiled, request, facts, now);
  // The policies were evaluated only if every bar is limited to one policy, because such a bar overrides only the
  // answer of that policy.
  const barred = facts.bars?.some(({ policy }) => policy === null) === true;
  if (barred || CODES_WITHOUT_POLICIES.includes(decision.reason_code)) return { decision, policies: [] };
  const evaluation = new Evaluation(compiled, request, facts, now);
  const policies = compiled.policies.map((policy) => {
    const definition = compiled.document.policies[policy.order]?.definition as PolicyDocument;
    return {
      ...explainPolicy(policy, definition, facts, evaluation),
      decides: decision.policy === policy.name,
    };
  });
  return { decision, policies };
}

function explainPolicy(
  policy: CompiledPolicy,
  definition: PolicyDocument,
  facts: Facts,
  evaluation: Evaluation,
): Omit<PolicyExplanation, "decides"> {
  const matchers = [
    matcher("tool", definition.applies_to?.tools, policy, evaluation),
    matcher("agent", definition.applies_to?.agents, policy, evaluation),
  ].filter((match) => match !== null);
  const applies = matchers.every(({ matches }) => matches);
  const common = { policy: policy.name, mode: policy.shadow ? "shadow" : "enforce", applies, matchers } as const;
  if (!applies) return { ...common, answer: null, rules: [], limits: [] };
  const compiledRules = new Map(policy.rules.all.map((rule) => [rule.order, rule]));
  let answer: PolicyExplanation["answer"] = null;
  const rules = definition.rules.map((rule, order) => {
    const explained = explainRule(rule, policy, compiledRules.get(order) as CompiledRule, evaluation, answer !== null);
    if (explained.outcome === "matched") answer = { rule: rule.name, effect: rule.effect, reason_code: "POLICY_RULE" };
    if (explained.outcome === "failed")
      answer = { rule: rule.name, effect: "deny", reason_code: explained.condition?.error?.code as ReasonCode };
    return explained;
  });
  return {
    ...common,
    answer,
    rules,
    limits: policy.limits.map((limit) => explainLimit(policy, limit, facts, resolveObligations(evaluation).evaluation)),
  };
}

function explainRule(
  rule: RuleDocument,
  policy: CompiledPolicy,
  compiled: CompiledRule,
  evaluation: Evaluation,
  answered: boolean,
): RuleExplanation {
  const { activation } = evaluation;
  const matchers = [
    matcher("tool", rule.tool, policy, evaluation),
    matcher("operation", rule.operation, policy, evaluation),
    matcher("agent", rule.agent, policy, evaluation),
  ].filter((match) => match !== null);
  const common = { rule: rule.name, effect: rule.effect, matchers };
  if (answered) return { ...common, outcome: "not_reached", condition: null };
  if (!matchers.every(({ matches }) => matches)) return { ...common, outcome: "passed", condition: null };
  if (compiled.condition === null) return { ...common, outcome: "matched", condition: null };
  const result = compiled.condition.evaluate(activation);
  const source = rule.when as string;
  const parts = evaluateConditionParts(source, activation, policy.named);
  if ("error" in result)
    return {
      ...common,
      outcome: "failed",
      condition: { source, value: null, error: { code: result.error, message: result.message }, parts },
    };
  return {
    ...common,
    outcome: result.value ? "matched" : "passed",
    condition: { source, value: result.value, error: null, parts },
  };
}

function explainLimit(
  policy: CompiledPolicy,
  limit: CompiledLimit,
  facts: Facts,
  evaluation: Evaluation,
): LimitExplanation {
  const unit = limit.sum === null ? 1 : MICROS_PER_UNIT;
  const limitFields = {
    limit: limit.rule.name,
    effect: limit.rule.effect,
    most: (limit.sum?.atMost ?? limit.count) / unit,
  };
  const match = matchLimit(policy, limit, evaluation);
  if (match.kind === "none")
    return { ...limitFields, outcome: "aside", subject: null, used: null, error: null, answer: null };
  if (match.kind === "error")
    return {
      ...limitFields,
      outcome: "failed",
      subject: null,
      used: null,
      error: match.message,
      answer: { effect: "deny", reason_code: match.code },
    };
  const used = findRecordedUsage(facts, { policy: policy.name, limit: limit.rule.name, basis: limit.basis });
  if (used === null)
    return {
      ...limitFields,
      outcome: "failed",
      subject: match.subject,
      used: null,
      error: "its usage is not known",
      answer: { effect: "deny", reason_code: "CONDITION_ERROR" },
    };
  const exceeded = isExceeded(limit, used, match.amount);
  return {
    ...limitFields,
    outcome: exceeded ? "exceeded" : "within",
    subject: match.subject,
    used: used / unit,
    error: null,
    answer: exceeded ? { effect: limit.rule.effect, reason_code: "LIMIT_EXCEEDED" } : null,
  };
}

function matcher(
  field: MatcherExplanation["field"],
  given: string | string[] | undefined,
  policy: CompiledPolicy,
  evaluation: Evaluation,
): MatcherExplanation | null {
  if (given === undefined) return null;
  const patterns = [given].flat();
  const { agent_id: agent, tool, operation } = evaluation.request;
  const matches = matchNames(normalizePatterns(patterns, policy.caseSensitive), evaluation.names(policy)[field]);
  return { field, patterns, value: { agent, tool, operation }[field], matches };
}
