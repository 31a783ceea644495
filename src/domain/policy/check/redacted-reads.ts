/**
 * Finds expressions that can read redacted parameters. A caller who chooses such an expression, or who reads the usage
 * of a limit that uses it, could infer the values of the parameters.
 */
import type { JsonValue } from "../../json.ts";
import { findHistoryMembers } from "../condition/cel-history.ts";
import { parseExpression } from "../condition/cel-parse.ts";
import type { Expr } from "../condition/cel-tree.ts";
import { findPathsRead } from "../condition/condition-members.ts";
import { derivedSource } from "../condition/named-values.ts";
import type { CompiledPolicySet } from "../compile/compile.ts";
import { pathsOverlap } from "../decide/redact.ts";
import type { Facts, HistoryFact, LimitFact, PolicyDocument } from "../policy-types.ts";

/**
 * Returns the first redacted path that an expression can read; null if it cannot read any.
 * @param redacted paths such as `params.card.number`
 */
export function findRedactedRead(source: string, redacted: readonly string[]): string | null {
  return redacted.length === 0 ? null : findOverlap(findPathsRead(parseExpression(source).expr), redacted);
}

/**
 * Returns the first redacted path that a policy can read; null if it cannot read any. A path is redacted if any rule of
 * an enforced policy in the active set redacts it. The policies must be valid.
 */
export function findRedactedReadOfPolicy(active: CompiledPolicySet, policy: PolicyDocument): string | null {
  const redacted = listRedacted(active);
  const expressions = listExpressions(policy).map((source) => parseExpression(source).expr);
  const read = [...expressions.flatMap(findPathsRead), ...listChanged(policy), ...listPastRead(policy, expressions)];
  return findOverlap(read, redacted);
}

/**
 * Returns the recorded limit usage and histories. Omits those that depend on redacted parameters, because the usage
 * before two consecutive actions would reveal the amount of the first.
 * @param active the set that determines which parameters are redacted, for any action
 * @param decided the policies of the decision
 */
export function omitRedactedUsage(
  active: CompiledPolicySet,
  { document }: CompiledPolicySet,
  { limits = [], history = [], grant }: Facts,
): { limits: LimitFact[]; history: HistoryFact[] } {
  const redacted = listRedacted(active);
  const readsNone = (sources: readonly string[]): boolean =>
    sources.every((source) => findRedactedRead(source, redacted) === null);
  const definitionOf = (name: string): PolicyDocument | undefined =>
    document.policies.find(({ policy }) => policy === name)?.definition;
  const sourcesOfLimit = ({ policy, limit }: LimitFact): string[] => {
    const definition = definitionOf(policy);
    if (definition === undefined) return [grant?.scope, grant?.sum?.of].filter((source) => typeof source === "string");
    const { history: _, facts: __, ...others } = definition;
    return listExpressions({ ...others, rules: [], limits: others.limits?.filter(({ name }) => name === limit) ?? [] });
  };
  return {
    limits: limits.filter((fact) => readsNone(sourcesOfLimit(fact))),
    history: history.filter(({ policy }) => readsNone([definitionOf(policy)?.history?.per ?? "agent"])),
  };
}

/** Returns the paths that enforced policies of the set redact, for any action. */
function listRedacted({ document }: CompiledPolicySet): string[] {
  return document.policies
    .filter(({ definition }) => definition.mode !== "shadow")
    .flatMap(({ definition }) => definition.rules.flatMap(({ obligations }) => obligations?.redact ?? []));
}

/** Returns the first redacted path that is read, wholly or in part; null if there is none. */
const findOverlap = (read: readonly string[][], redacted: readonly string[]): string | null =>
  redacted.find((path) => read.some((each) => pathsOverlap(each, path.split(".")))) ?? null;

/** Returns the sources of all expressions of a policy. */
function listExpressions({ rules, limits = [], history, facts = {}, let: entries = {} }: PolicyDocument): string[] {
  const sources = [
    ...rules.map(({ when }) => when),
    ...limits.flatMap(({ when, per, sum }) => [when, per, sum]),
    // The name of an owner, such as `key`, is also a valid expression, which does not read parameters.
    history?.per,
    ...Object.values(facts).flatMap(({ with: inputs = {} }) => Object.values(inputs)),
    ...Object.values<JsonValue>(entries).map(derivedSource),
  ];
  return sources.filter((source) => typeof source === "string");
}

/** Returns the paths of `set` and `clamp`, because the decision depends on whether the value can be changed. */
function listChanged({ rules }: PolicyDocument): string[][] {
  return rules
    .flatMap(({ obligations: { set, clamp } = {} }) => [...Object.keys(set ?? {}), ...Object.keys(clamp ?? {})])
    .map((path) => path.split("."));
}

/** Returns the paths of the parameters of past actions that the policy reads. */
function listPastRead({ history }: PolicyDocument, expressions: readonly Expr[]): string[][] {
  if (history === undefined) return [];
  const { params } = findHistoryMembers(expressions);
  return params === null ? [["params"]] : params.map((name) => ["params", name]);
}
