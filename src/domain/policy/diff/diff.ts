/** Compares two versions of a policy by rules and effects instead of lines. */
import { canonicalText } from "../../canonical.ts";
import type { JsonObject, JsonValue } from "../../json.ts";
import type { LimitDocument, PolicyDocument, RuleDocument } from "../policy-types.ts";

interface FieldChange {
  field: string;
  /** Value before the change; null if the field is absent. */
  before: unknown;
  after: unknown;
}

export interface PolicyDifference {
  kind:
    | "policy_changed"
    | "limit_added"
    | "limit_removed"
    | "limit_changed"
    | "rule_added"
    | "rule_removed"
    | "rule_changed"
    | "rule_moved";
  /** Name of the rule; null for a change of the policy itself. */
  rule: string | null;
  /** Position from 1; null if the rule is absent. Positions matter because the first matching rule decides. */
  before: number | null;
  after: number | null;
  fields: FieldChange[];
  /** One sentence for display. */
  summary: string;
}

const POLICY_FIELDS = [
  "description",
  "mode",
  "case_sensitive",
  "applies_to",
  "tools",
  "history",
  "attributes",
  "results",
  "metadata",
] as const satisfies readonly (keyof PolicyDocument)[];
const RULE_FIELDS = [
  "effect",
  "tool",
  "operation",
  "agent",
  "when",
  "approval",
  "obligations",
  "effect_key",
  "risk",
  "reason",
  "description",
] as const satisfies readonly (keyof RuleDocument)[];
const VERB = { allow: "allows", deny: "denies", require_approval: "requires approval for" } as const;
const VERB_PAST = { allow: "allowed", deny: "denied", require_approval: "required approval for" } as const;

/**
 * Returns the changes: first those of the policy and its limits, then those of rules by new position (removed rules by
 * old position). A renamed rule counts as removed and added.
 */
export function diffPolicies(before: PolicyDocument, after: PolicyDocument): PolicyDifference[] {
  const changes: PolicyDifference[] = [];
  const policyChanges = [
    ...changedFields(POLICY_FIELDS, before, after),
    ...changedValues("facts", factsAsJson(before.facts), factsAsJson(after.facts)),
    ...changedValues("let", before.let, after.let),
    ...changedData(before.data, after.data),
  ];
  if (policyChanges.length > 0) {
    changes.push({
      kind: "policy_changed",
      rule: null,
      before: null,
      after: null,
      fields: policyChanges,
      summary: policyChanges.map((change) => describeChange("the policy", change)).join("; "),
    });
  }
  changes.push(...diffLimits(before.limits ?? [], after.limits ?? []));
  const was = new Map(before.rules.map((rule, i) => [rule.name, i]));
  const is = new Map(after.rules.map((rule, i) => [rule.name, i]));
  const orderedIndexes = longestOrderedRun(before.rules.map(({ name }) => is.get(name)).filter((i) => i !== undefined));
  const ruleChanges: PolicyDifference[] = [];
  for (const [i, rule] of before.rules.entries()) {
    if (!is.has(rule.name))
      ruleChanges.push({
        kind: "rule_removed",
        rule: rule.name,
        before: i + 1,
        after: null,
        fields: [],
        summary: `the rule "${rule.name}" is gone: it ${VERB_PAST[rule.effect]} ${describeSubject(rule)}`,
      });
  }
  for (const [i, rule] of after.rules.entries()) {
    const old = was.get(rule.name);
    if (old === undefined) {
      ruleChanges.push({
        kind: "rule_added",
        rule: rule.name,
        before: null,
        after: i + 1,
        fields: [],
        summary: `the rule "${rule.name}" is new: it ${VERB[rule.effect]} ${describeSubject(rule)}`,
      });
      continue;
    }
    const fields = changedFields(RULE_FIELDS, before.rules[old] as RuleDocument, rule);
    const moved = !orderedIndexes.has(i);
    if (fields.length > 0) {
      const words = fields.map((change) => describeChange(`the rule "${rule.name}"`, change));
      if (moved) words.push(`it moves from position ${old + 1} to ${i + 1}`);
      ruleChanges.push({
        kind: "rule_changed",
        rule: rule.name,
        before: old + 1,
        after: i + 1,
        fields,
        summary: words.join("; "),
      });
    } else if (moved) {
      ruleChanges.push({
        kind: "rule_moved",
        rule: rule.name,
        before: old + 1,
        after: i + 1,
        fields: [],
        summary: `the rule "${rule.name}" moves from position ${old + 1} to ${i + 1}`,
      });
    }
  }
  const placeOf = (change: PolicyDifference): number => change.after ?? change.before ?? 0;
  return [...changes, ...ruleChanges.sort((a, b) => placeOf(a) - placeOf(b))];
}

const LIMIT_FIELDS = [
  "tool",
  "operation",
  "agent",
  "when",
  "per",
  "count",
  "sum",
  "at_most",
  "reserve",
  "window",
  "time_zone",
  "effect",
  "approval",
  "risk",
  "reason",
  "description",
] as const satisfies readonly (keyof LimitDocument)[];

/** Compares limits by name, because their order does not matter. */
function diffLimits(before: readonly LimitDocument[], after: readonly LimitDocument[]): PolicyDifference[] {
  const change = (
    kind: PolicyDifference["kind"],
    rule: string,
    summary: string,
    fields: FieldChange[] = [],
  ): PolicyDifference => ({ kind, rule, before: null, after: null, fields, summary });
  const was = new Map(before.map((limit) => [limit.name, limit]));
  const is = new Set(after.map(({ name }) => name));
  const removedLimits = before
    .filter(({ name }) => !is.has(name))
    .map((limit) =>
      change("limit_removed", limit.name, `the limit "${limit.name}" is gone: it was ${describeLimit(limit)}`),
    );
  const others = after.flatMap((limit) => {
    const old = was.get(limit.name);
    if (old === undefined)
      return [change("limit_added", limit.name, `the limit "${limit.name}" is new: ${describeLimit(limit)}`)];
    const fields = changedFields(LIMIT_FIELDS, old, limit);
    return fields.length === 0
      ? []
      : [
          change(
            "limit_changed",
            limit.name,
            fields.map((field) => describeChange(`the limit "${limit.name}"`, field)).join("; "),
            fields,
          ),
        ];
  });
  return [...removedLimits, ...others];
}

function describeLimit({ count, sum, at_most, window, per }: LimitDocument): string {
  return `${sum === undefined ? `at most ${count} actions` : `at most ${at_most} as the sum of ${sum}`}${per === undefined ? "" : ` for each ${per}`} in ${window}`;
}

function changedFields<T extends object>(names: readonly (keyof T & string)[], before: T, after: T): FieldChange[] {
  return names
    .map((field) => ({ field, before: (before[field] ?? null) as unknown, after: (after[field] ?? null) as unknown }))
    .filter((change) => canonicalText(change.before as JsonValue) !== canonicalText(change.after as JsonValue));
}

/** Compares the named values individually. */
function changedValues(prefix: string, before: JsonObject = {}, after: JsonObject = {}): FieldChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return changedFields(names, before, after).map((change) => ({ ...change, field: `${prefix}.${change.field}` }));
}

const factsAsJson = (facts: PolicyDocument["facts"]): JsonObject => (facts ?? {}) as unknown as JsonObject;

function changedData(before: PolicyDocument["data"] = {}, after: PolicyDocument["data"] = {}): FieldChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.flatMap((name) => changedValues(`data.${name}`, before[name], after[name]));
}

function describeChange(subject: string, { field, before, after }: FieldChange): string {
  if (field === "effect") return `the effect of ${subject} is ${after as string}; it was ${before as string}`;
  if (field === "when") {
    if (before === null) return `${subject} matches only when ${after as string}`;
    return after === null
      ? `${subject} no longer needs ${before as string}`
      : `${subject} matches when ${after as string}; it was ${before as string}`;
  }
  if (field === "mode")
    return `${subject} is ${after === "shadow" ? "in shadow mode: it no longer decides" : "enforced"}`;
  return `${subject} has another ${field}: ${show(after)}; it was ${show(before)}`;
}

function show(value: unknown): string {
  return value === null ? "absent" : canonicalText(value as JsonValue);
}

function describeSubject(rule: RuleDocument): string {
  const words = [rule.tool, rule.operation]
    .map((names) => (names === undefined ? null : [names].flat().join(", ")))
    .filter((word) => word !== null);
  return `${words.length === 0 ? "everything" : words.join(" ")}${rule.when === undefined ? "" : ` when ${rule.when}`}`;
}

/** Returns the longest increasing subsequence of positions, so that as few rules as possible are reported as moved. */
function longestOrderedRun(positions: readonly number[]): Set<number> {
  const tails: number[] = [];
  const previous = new Map<number, number | undefined>();
  for (const position of positions) {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((tails[middle] as number) < position) low = middle + 1;
      else high = middle;
    }
    previous.set(position, tails[low - 1]);
    tails[low] = position;
  }
  const kept = new Set<number>();
  for (let at = tails.at(-1); at !== undefined; at = previous.get(at)) kept.add(at);
  return kept;
}
