/**
 * Effect keys: a rule names the business effect of its actions, such as `refund/{params.payment}`. An action blocks
 * others with the same key while it is open or might be running, and for a period after it succeeded. It blocks them
 * for every submitter, whatever the other parameters are.
 *
 * Actions are stored by key, like past actions of a history. The status of the stored action decides whether it still
 * blocks, so the end of an action needs no write. The blocking action is a fact of the decision.
 */
import { listDelegators } from "./delegators.ts";
import { type ActionRequest, actionStatusAt } from "../../actions.ts";
import { canonicalBytes } from "../../canonical.ts";
import { sha256Hex } from "../../hash.ts";
import { clipText } from "../../text.ts";
import { toRfc3339 } from "../../time.ts";
import type { CompiledEffectKey, CompiledPolicy, CompiledPolicySet, CompiledRule } from "../compile/compiled-policy.ts";
import type { Decision, Effect, EffectFact, Facts } from "../policy-types.ts";
import { Evaluation } from "./evaluation.ts";
import { findFirstMatch, MAX_REASON, type RuleAnswer } from "./first-match.ts";
import {
  findHistoryMemberships,
  mayBelongTo,
  type HistoryMembership,
  type HistorySpan,
  type PastActionRow,
} from "./history-facts.ts";
import type { Names } from "./name-matches.ts";
import { findMember, type PreviewPart } from "./preview.ts";
import { resolveObligations } from "./resolve-obligations.ts";

/** The history under which actions are stored by their key. No policy can have this name. */
const EFFECT_SPAN = { policy: "@effect", basis: "" };
/** Maximum number of characters of a key. */
const MAX_KEY = 512;
/** Retention of stored keys: 100 years, because an unknown outcome blocks until a person settles it. */
const RETENTION_MS = 100 * 366 * 86_400_000;
/**
 * Maximum number of actions to read, newest first. The newest one usually is the blocking one, because blocked actions
 * are not stored. Newer actions can be from a rule with the same key and a shorter period.
 */
const MAX_READ = 100;

/** Invisible characters. They are removed, so that they cannot make a second key for the same effect. */
const NOT_DISPLAYED = /[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Cf}\u2800]/gu;

/**
 * Returns the key of a request, or the reason why it has none. Values are percent-encoded, so that the slashes of a
 * value cannot be mistaken for those of the template.
 */
function renderKey(parts: readonly PreviewPart[], request: ActionRequest, names: Names): { key: string } | string {
  let key = "";
  for (const part of parts) {
    if ("text" in part) key += part.text;
    else if ("name" in part) key += encodeURIComponent(names[part.name]);
    else {
      const value = findMember(request, part.pointer);
      if (value === undefined) return `${part.source} is missing`;
      const sent = typeof value === "number" ? String(value) : value;
      if (typeof sent !== "string")
        return `${part.source} is ${value === null ? "null" : "neither a string nor a number"}`;
      if (sent.length > MAX_KEY) return `${part.source} has more than ${MAX_KEY} characters`;
      const text = sent.replaceAll(NOT_DISPLAYED, "").normalize("NFKC");
      if (text.trim() !== text || text === "") return `${part.source} is empty, or begins or ends with white space`;
      key += encodeURIComponent(text);
    }
  }
  return key.length > MAX_KEY ? `it has more than ${MAX_KEY} characters` : { key };
}

/** The key of a rule that matches an action. */
interface MatchedEffect {
  policy: CompiledPolicy;
  rule: CompiledRule;
  effectKey: CompiledEffectKey;
  /** The actions with the same key; or the reason why the key is unknown. */
  span: HistorySpan | string;
}

/** Returns the keys of the rules that decide for their policies, after the obligations are applied. */
export function findEffects(submitted: Evaluation): MatchedEffect[] {
  if (!submitted.compiled.hasEffectKeys) return [];
  const { evaluation } = resolveObligations(submitted);
  return evaluation.applicablePolicies().flatMap((policy) => {
    const answer = findFirstMatch(policy, evaluation);
    const effectKey = answer?.rule.effectKey ?? null;
    if (answer === null || effectKey === null || answer.effect === "deny") return [];
    const { rule } = answer;
    const rendered = renderKey(effectKey.parts, evaluation.request, evaluation.names(policy));
    const span = typeof rendered === "string" ? rendered : spanOf(policy, rendered.key);
    return [{ policy, rule, effectKey, span }];
  });
}

/** The keys of policies in shadow mode are separate, because they block nothing. */
const spanOf = ({ shadow }: CompiledPolicy, key: string): HistorySpan => ({
  ...EFFECT_SPAN,
  subject: sha256Hex(canonicalBytes(shadow ? ["shadow", key] : [key])),
  since: 0,
  limit: MAX_READ,
});

/**
 * Returns the fact of an effect: the action that blocks it; or null if there is none; or undefined if older actions
 * that were not read could block it.
 * @param rows the actions of its span, newest first
 * @param actionId the id of the action that is decided, which does not block itself
 */
export function toEffectFact(
  { policy, rule, effectKey }: MatchedEffect,
  rows: readonly PastActionRow[],
  now: number,
  actionId: string,
): EffectFact | undefined {
  const blocking = rows.find((row) => row.id !== actionId && blocks(row, effectKey, now));
  if (blocking === undefined && rows.length >= MAX_READ) return undefined;
  return {
    policy: policy.name,
    rule: rule.name,
    blocked_by:
      blocking === undefined
        ? null
        : { action_id: blocking.id, at: toRfc3339(blocking.at), own: false, status: actionStatusAt(blocking, now) },
  };
}

/**
 * Returns true if an action blocks others with its key. Failed, denied, expired and cancelled actions do not. An
 * allowed action without a start blocks like a succeeded one, because its host might not report starts.
 */
function blocks(row: PastActionRow, { within_ms }: CompiledEffectKey, now: number): boolean {
  switch (actionStatusAt(row, now)) {
    case "pending_approval":
    case "approved":
    case "executing":
    case "unknown":
      return true;
    case "allowed":
      return Math.max(row.at + within_ms, row.approved_until ?? 0) > now;
    case "succeeded":
      return row.at + within_ms > now;
    default:
      return false;
  }
}

/** Returns a denial if the effect of a rule's answer is blocked or its key is unknown; otherwise null. */
export function findRepeat(answer: RuleAnswer, evaluation: Evaluation, facts: Facts): RuleAnswer | null {
  const { policy, rule, effect } = answer;
  if (rule.effectKey === null || effect === "deny") return null;
  const denied = (reason_code: RuleAnswer["reason_code"], reason: string): RuleAnswer => ({
    policy,
    rule,
    effect: "deny",
    reason_code,
    reason: clipText(`the effect key of rule "${rule.name}" in policy "${policy.name}": ${reason}`, MAX_REASON),
  });
  const key = renderKey(rule.effectKey.parts, evaluation.request, evaluation.names(policy));
  if (typeof key === "string") return denied("CONDITION_ERROR", key);
  const fact = findEffectFact(facts, policy.name, rule.name);
  if (fact === undefined)
    return denied("CONDITION_ERROR", "it is not known whether an earlier action has the same effect");
  return fact.blocked_by === null ? null : denied("EFFECT_REPEATED", describeBlocking(fact.blocked_by));
}

function describeBlocking({ action_id, at, own, status }: NonNullable<EffectFact["blocked_by"]>): string {
  const action = own ? `the action ${action_id}` : "another action";
  switch (status) {
    case "allowed":
    case "succeeded":
      return `${action} of ${at} already has this effect`;
    case "unknown":
      return `${action} of ${at} has this effect, and its outcome is unknown; a person must settle it first`;
    default:
      return `${action} of ${at} with this effect is ${status === "pending_approval" ? "pending" : status}; wait for its result`;
  }
}

const findEffectFact = ({ effects = [] }: Facts, policy: string, rule: string): EffectFact | undefined =>
  effects.find((fact) => fact.policy === policy && fact.rule === rule);

/** Returns the facts with effects that nothing blocks, for policies that were not active. Keeps recorded effects. */
export function withAssumedEffects(evaluation: Evaluation, facts: Facts): Facts {
  const missing = findEffects(evaluation).filter(
    ({ policy, rule }) => findEffectFact(facts, policy.name, rule.name) === undefined,
  );
  if (missing.length === 0) return facts;
  const assumed = missing.map(({ policy, rule }) => ({ policy: policy.name, rule: rule.name, blocked_by: null }));
  return { ...facts, effects: [...(facts.effects ?? []), ...assumed] };
}

/**
 * Returns the histories that an action with this decision belongs to, including those of its effect keys. An action
 * under an authority also belongs to the histories of its delegators.
 */
export function findMemberships(evaluation: Evaluation, effect: Effect): HistoryMembership[] {
  const delegators = listDelegators(evaluation);
  if (delegators.length === 0) return findOwnMemberships(evaluation, effect);
  const all = [evaluation, ...delegators.map((delegator) => delegator.evaluation)];
  const memberships = all.flatMap((each) => findOwnMemberships(each, effect));
  const keyOf = ({ policy, basis, subject }: HistoryMembership): string => JSON.stringify([policy, basis, subject]);
  return [...new Map(memberships.map((membership) => [keyOf(membership), membership])).values()];
}

function findOwnMemberships(evaluation: Evaluation, effect: Effect): HistoryMembership[] {
  const histories = findHistoryMemberships(evaluation, effect);
  if (effect === "deny") return histories;
  const effects = findEffects(evaluation).flatMap(({ span }) => (typeof span === "string" ? [] : span.subject));
  const until = evaluation.now + RETENTION_MS;
  return [...histories, ...[...new Set(effects)].map((subject) => ({ ...EFFECT_SPAN, subject, until }))];
}

/**
 * Returns the histories to which a recorded decision added its action, including those of its effect keys. The
 * decision's facts must be restored.
 * @param decidedAt the time of the decision in milliseconds
 * @param at the time to which the action was moved in its histories, in milliseconds
 */
export function recomputeMemberships(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  { facts, decision }: { facts: Facts; decision: Pick<Decision, "effect"> },
  decidedAt: number,
  at: number,
): HistoryMembership[] {
  if (!mayHaveMemberships(compiled)) return [];
  const places = findMemberships(new Evaluation(compiled, request, facts, decidedAt), decision.effect);
  return places.map((membership) => ({ ...membership, until: membership.until + at - decidedAt }));
}

/**
 * Returns true if an action with these names and this decision can be in a history, or have an effect key, for any
 * request.
 */
export function mayBePlaced(
  compiled: CompiledPolicySet,
  span: Pick<HistorySpan, "policy" | "basis">,
  action: Pick<ActionRequest, "agent_id" | "tool" | "operation">,
  effect: Effect,
): boolean {
  if (span.policy === EFFECT_SPAN.policy) return compiled.hasEffectKeys && effect !== "deny";
  return mayBelongTo(compiled, span, action, effect);
}

/** Returns true if decisions of a policy set can add their action to histories, including those of effect keys. */
export function mayHaveMemberships({ withHistory, hasEffectKeys }: CompiledPolicySet): boolean {
  return withHistory.length > 0 || hasEffectKeys;
}
