/**
 * Suggests policies from past decisions. Mines the approvals of each rule. Then adds each mined rule to the current
 * policies and evaluates the requests again, because a decision depends on all policies. Runs on the thread for policy
 * trials.
 */
import {
  type ActionRequest,
  buildPolicySet,
  type CompiledPolicySet,
  compilePolicySet,
  decide,
  evaluateAllPolicies,
  type Facts,
  omitRedacted,
  PolicyCompileError,
  type PolicyDocument,
  restoreFacts,
  sameName,
  type TrialContext,
  withAssumedActivation,
} from "../../../src/core.ts";
import { collectEvidence, findNearestRejections } from "./evidence.ts";
import { groupRequests, matchesConditions, mineRules, type MinedRule } from "./mine.ts";
import { measureSupport, hasMinimumEvidence, type PastRequest } from "./past-request.ts";
import { renderPolicyYaml, renderTestsYaml, toPolicyDocument, type TestCase } from "./render-policy.ts";
import type {
  PastDecision,
  PastDecisionPage,
  PastDecisionQuery,
  SuggestedPolicy,
  SuggestionRange,
  SuggestionReport,
} from "./report.ts";

type Context = TrialContext<SuggestionRange, PastDecisionQuery, PastDecisionPage>;

const MAX_SUGGESTIONS = 20;
const MAX_TEST_CASES = 3;

/** A past decision with the inputs for a replay. */
interface Replayable {
  past: PastRequest;
  request: ActionRequest;
  facts: Facts;
  /** Whether the current policies require approval for the request. */
  asks: boolean;
}

/** Suggests policies. The thread for policy trials runs this function. */
export default async function suggestPolicies({
  sets: [compiled],
  input: range,
  read,
  yieldIfSlow,
}: Context): Promise<SuggestionReport> {
  const counts = { read: 0, skipped: 0, truncated: false };
  const decisions: PastDecision[] = [];
  for (let before: number | null = null; ;) {
    const { since, until } = range;
    const page = await read({ since, until, limit: range.limit - counts.read, before });
    counts.read += page.read;
    counts.skipped += page.skipped;
    decisions.push(...page.decisions);
    before = page.next;
    if (before === null) break;
    counts.truncated = counts.read >= range.limit;
    if (counts.truncated) break;
  }
  const times = voteTimes(decisions);
  const history: Replayable[] = [];
  for (const decision of decisions) {
    history.push(replayableOf(compiled, decision, times));
    await yieldIfSlow();
  }
  const groups = groupRequests(history.map(({ past }) => past));
  const mined: MinedRule[] = [];
  for (const group of groups) {
    mined.push(...mineRules(group, range));
    await yieldIfSlow();
  }
  const report: SuggestionReport = { ...counts, suggestions: [], groups: groups.length, disqualified: 0 };
  for (const rule of mined.sort(compareRules)) {
    if (report.suggestions.length === MAX_SUGGESTIONS) break;
    const suggestion = await tryOut(rule, compiled, history, range, yieldIfSlow);
    if (suggestion === null) report.disqualified++;
    else report.suggestions.push(suggestion);
  }
  return report;
}

/**
 * Sorts rules with fewer conditions first. Of rules with equally many conditions, sorts the rule that covers more
 * first.
 */
function compareRules(a: MinedRule, b: MinedRule): number {
  return (
    a.conditions.length - b.conditions.length ||
    b.covered.length - a.covered.length ||
    a.text.length - b.text.length ||
    (a.text < b.text ? -1 : 1)
  );
}

/**
 * Returns how long each vote took, keyed by action and approver. The time starts at the request, or at the approver's
 * previous vote if that is later.
 */
function voteTimes(decisions: readonly PastDecision[]): Map<string, number> {
  const votes = decisions
    .flatMap(({ action_id, at: asked, votes: given }) => given.map(({ by, at }) => ({ action_id, by, at, asked })))
    .sort((a, b) => a.at - b.at);
  const times = new Map<string, number>();
  const previous = new Map<string, number>();
  for (const { action_id, by, at, asked } of votes) {
    times.set(`${action_id} ${by}`, Math.max(0, at - Math.max(asked, previous.get(by) ?? 0)));
    previous.set(by, at);
  }
  return times;
}

function replayableOf(
  compiled: CompiledPolicySet,
  decision: PastDecision,
  times: ReadonlyMap<string, number>,
): Replayable {
  const { action_id, source, at, verdict, outcome, votes } = decision;
  const request = JSON.parse(decision.request) as ActionRequest;
  // Omit facts of that time, because they are irrelevant for the rule.
  const {
    bars: _,
    rejection: __,
    grant: ___,
    key_ended: ____,
    ...lasting
  } = restoreFacts(decision.facts, decision.past);
  const facts = withAssumedActivation(compiled, request, lasting, at);
  const asking = findAskingRule(compiled, request, facts, at);
  const { agent_id, tool, operation, params, context } = request;
  return {
    request,
    facts: lasting,
    asks: asking !== null,
    past: {
      action_id,
      agent_id,
      source,
      tool,
      operation,
      // Omit redacted parameters, because the conditions of a suggestion contain values of parameters.
      params: omitRedacted(compiled, request, params),
      context,
      at,
      verdict,
      votes: votes.map(({ by, exceptional }) => ({ by, exceptional, took_ms: times.get(`${action_id} ${by}`) ?? 0 })),
      outcome,
      asked: asking === "several" ? null : asking,
    },
  };
}

/**
 * Returns the rule that requires approval; null if no rule does. Returns "several" if more than one rule requires
 * approval, or if a suggested rule cannot replace the rule.
 */
function findAskingRule(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  facts: Facts,
  at: number,
): PastRequest["asked"] | "several" {
  if (decide(compiled, request, facts, at).effect !== "require_approval") return null;
  const answers = evaluateAllPolicies(compiled, request, facts, at).filter(
    ({ policy: { shadow, suggested } }) => !shadow && suggested === null,
  );
  const asking = answers.filter(({ effect }) => effect === "require_approval");
  const [only] = asking;
  // A suggested rule does not replace a rule with pins, because approvers must see the pinned facts.
  const isReplaceable =
    asking.length === 1 &&
    only?.reason_code === "POLICY_RULE" &&
    (only.rule.approval?.pins.length ?? 0) === 0 &&
    !answers.some(({ rule }) => rule.risk === "critical");
  return only !== undefined && isReplaceable ? { policy: only.policy.name, rule: only.rule.name } : "several";
}

/**
 * Adds the suggested rule to the policies, and evaluates the requests for its tool that require approval. Returns null
 * if the policies do not compile, if a rejected request would be allowed, or if too few requests would be allowed.
 */
async function tryOut(
  rule: MinedRule,
  compiled: CompiledPolicySet,
  history: readonly Replayable[],
  range: SuggestionRange,
  yieldIfSlow: Context["yieldIfSlow"],
): Promise<SuggestedPolicy | null> {
  const document = toPolicyDocument(rule, "enforce");
  const candidate = withPolicy(compiled, document);
  if (candidate === null) return null;
  const allowed: PastRequest[] = [];
  let evaluated = 0;
  for (const { past, request, facts, asks } of history) {
    evaluated++;
    if (!asks || !sameName(request.tool, rule.group.tool)) continue;
    const assumed = withAssumedActivation(candidate, request, facts, past.at);
    if (decide(candidate, request, assumed, past.at).effect === "allow") {
      if (past.verdict === "rejected") return null;
      allowed.push(past);
    }
    await yieldIfSlow();
  }
  const inRule = new Set(rule.covered);
  const support = measureSupport(
    allowed.filter((request) => inRule.has(request)),
    range,
  );
  if (!hasMinimumEvidence(support, range)) return null;
  const evidence = collectEvidence(rule, range, allowed, evaluated);
  const { policy } = document;
  const comment = `Suggested from ${evidence.approvals} approvals by ${evidence.people} people for ${evidence.agents} agents on ${evidence.days} days.`;
  const shadow: PolicyDocument = { ...document, mode: "shadow" };
  return {
    policy,
    in_place_of: rule.group.asked,
    tool: rule.group.tool,
    operation: rule.group.operation,
    agents: rule.agents,
    when: rule.text,
    conditions: rule.conditions.map(({ kind, member, text, words }) => ({ kind, member, text, words })),
    yaml: renderPolicyYaml(shadow, comment),
    tests: renderTestsYaml(policy, rule.group.asked.policy, testCases(rule, shadow, compiled, history)),
    evidence,
  };
}

/**
 * Compiles the policies together with a suggested policy. Returns null if that fails, for example because there are too
 * many policies.
 */
function withPolicy({ document }: CompiledPolicySet, definition: PolicyDocument): CompiledPolicySet | null {
  const others = document.policies.filter(({ policy }) => policy !== definition.policy);
  try {
    return compilePolicySet(buildPolicySet([...others, { policy: definition.policy, version: 1, definition }]));
  } catch (error) {
    if (error instanceof PolicyCompileError) return null;
    throw error;
  }
}

/**
 * Returns tests made from real actions: the newest approved actions, and the rejected actions that fail the fewest
 * conditions.
 */
function testCases(
  rule: MinedRule,
  shadow: PolicyDocument,
  { document }: CompiledPolicySet,
  history: readonly Replayable[],
): TestCase[] {
  const { policy: asking } = rule.group.asked;
  const member = document.policies.find(({ policy }) => policy === asking);
  if (member === undefined) return [];
  const set = compilePolicySet(buildPolicySet([member, { policy: shadow.policy, version: 1, definition: shadow }]));
  const byId = new Map(history.map((each) => [each.past.action_id, each]));
  const approved = rule.covered.slice(0, MAX_TEST_CASES).map(({ action_id }) => action_id);
  const rejected = findNearestRejections(rule).map(({ action_id }) => action_id);
  return [...approved, ...rejected].flatMap((id, i): TestCase[] => {
    const each = byId.get(id);
    if (each === undefined) return [];
    const { past, request } = each;
    // Decide as `assent policy test` does: without a registered agent, and without an owner of the key.
    const principal = { key_id: "test", name: "policy test", agent_id: null, owner: null };
    const facts = withAssumedActivation(set, request, { principal }, past.at);
    const { effect, shadow: outcomes } = decide(set, request, facts, past.at);
    const answer = outcomes.find(({ policy }) => policy === shadow.policy)?.effect ?? null;
    const isApproved = i < approved.length;
    if (isApproved ? answer !== "allow" : answer === "allow" && matchesConditions(rule.conditions, past)) return [];
    return [{ name: `${isApproved ? "approved" : "rejected"} action ${id}`, request: past, effect, shadow: answer }];
  });
}
