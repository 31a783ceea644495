/** Compares a decision with the expectations of a policy test. */
import type { ActionRequest } from "../../actions.ts";
import type { ApproverPlan } from "../../approvers.ts";
import { canonicalText } from "../../canonical.ts";
import type { JsonObject, JsonValue } from "../../json.ts";
import { applyDecisionObligations } from "../../obligations.ts";
import { parseDuration } from "../../time.ts";
import type { PolicyTest } from "../parse/parse.ts";
import type { Decision, Effect, RequiredApproval } from "../policy-types.ts";

type CaseExpectation = PolicyTest["cases"][number]["expect"];
/** The expected decision. Absent members are not compared. */
type Expectation = Omit<CaseExpectation, "effect"> & { effect?: Effect };
type ExpectedApproval = NonNullable<Expectation["approval"]>;

/**
 * Returns one phrase for each difference, such as `effect is deny, expected allow`.
 * @param request the submitted request
 */
export function findDifferences(decision: Decision, expect: Expectation, request: ActionRequest): string[] {
  const { approval, params, shadow, ...fields } = expect;
  const actual: Record<keyof typeof fields, unknown> = {
    effect: decision.effect,
    policy: decision.policy,
    rule: decision.rule,
    reason_code: decision.reason_code,
    risk: decision.risk_level,
  };
  const differences = Object.entries(fields)
    .filter(([name, expected]) => expected !== undefined && actual[name as keyof typeof actual] !== expected)
    .map(([name, expected]) => differs(name, actual[name as keyof typeof actual], expected));
  return [
    ...differences,
    ...(approval === undefined ? [] : findApprovalDifferences(decision.approval, approval)),
    ...findParameterDifferences((applyDecisionObligations(request, decision) ?? request).params, params ?? {}),
    ...Object.entries(shadow ?? {}).flatMap(([policy, expected]) => findShadowDifferences(decision, policy, expected)),
  ];
}

/** Compares the parameters of the request that may run, after obligations were applied. */
function findParameterDifferences(params: JsonObject, expected: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(expected).flatMap(([name, wanted]) => {
    const [actual, text] = [params[name] ?? null, canonicalText(wanted as JsonValue)];
    return canonicalText(actual) === text ? [] : [differs(`params.${name}`, canonicalText(actual), text)];
  });
}

function findShadowDifferences(
  { shadow }: Decision,
  policy: string,
  expected: NonNullable<Expectation["shadow"]>[string],
): string[] {
  const { effect, rule } = typeof expected === "string" ? { effect: expected, rule: undefined } : expected;
  const outcome = shadow.find((candidate) => candidate.policy === policy);
  return [
    ...(outcome?.effect === effect ? [] : [differs(`shadow.${policy}`, outcome?.effect ?? "no answer", effect)]),
    ...(rule === undefined || outcome?.rule === rule
      ? []
      : [differs(`shadow.${policy}.rule`, outcome?.rule ?? "none", rule)]),
  ];
}

function findApprovalDifferences(actual: Decision["approval"], expected: ExpectedApproval): string[] {
  if (actual === null) return ["no approval is required"];
  const { quorum, mode, signature, notify, reviewers, grants, exclude_requester_groups } = expected;
  const differences: string[] = [];
  const compare = (name: string, value: unknown, expectedValue: unknown): void => {
    if (expectedValue !== undefined && value !== expectedValue)
      differences.push(differs(`approval.${name}`, value, expectedValue));
  };
  compare("quorum", actual.quorum, quorum);
  compare("mode", actual.mode, mode);
  differences.push(...findApproverDifferences(actual.approvers, expected));
  const isExcluded = actual.approvers.some((plan) => plan.exclude_requester_groups);
  compare("exclude_requester_groups", isExcluded, exclude_requester_groups);
  compare("signature", actual.approvers.find((plan) => plan.signature !== undefined)?.signature ?? "none", signature);
  for (const name of ["expires_in", "valid_for", "rejection_holds"] as const) {
    const expectedValue = expected[name];
    if (expectedValue !== undefined && actual[`${name}_ms`] !== expectedMs(expectedValue))
      differences.push(differs(`approval.${name}`, showDuration(actual[`${name}_ms`]), expectedValue));
  }
  if (grants !== undefined)
    compare(
      "grants",
      showGrants(actual.grants),
      grants === "none" ? "none" : showGrants({ count: grants.count, for_ms: expectedMs(grants.for) ?? 0 }),
    );
  if (reviewers !== undefined)
    compare("reviewers", showList((actual.reviewers ?? []).map(({ name }) => name)), showList(reviewers));
  if (notify !== undefined) compare("notify", showList(actual.notify), showList(notify));
  return differences;
}

/** Compares the required approvers. One list cannot match if several rules require different people. */
function findApproverDifferences(plans: readonly ApproverPlan[], { approvers, stages }: ExpectedApproval): string[] {
  if (approvers === undefined && stages === undefined) return [];
  const name = approvers === undefined ? "stages" : "approvers";
  const expectedStages = showStages(
    (stages ?? [{ approvers: approvers ?? [] }]).map((stage) => ({
      after_ms: "after" in stage && stage.after !== undefined ? (parseDuration(stage.after) ?? 0) : null,
      approvers: stage.approvers.map(({ group = null, count = 1 }) => ({ group, count })),
    })),
  );
  const actual = plans.map((plan) => showStages(plan.stages)).join(" and ");
  return actual === expectedStages ? [] : [differs(`approval.${name}`, actual, expectedStages)];
}

/** Renders stages such as `1 of finance, then 2 of anyone`. The order of requirements in a stage has no meaning. */
function showStages(stages: readonly Pick<ApproverPlan["stages"][number], "after_ms" | "approvers">[]): string {
  return stages
    .map(({ after_ms, approvers }, i) => {
      const people = approvers.map(({ group, count }) => `${count} of ${group ?? "anyone"}`).sort();
      const link = i === 0 ? "" : after_ms === null ? ", then " : `, or after ${showDuration(after_ms)} `;
      return `${link}${people.join(" + ")}`;
    })
    .join("");
}

/** Converts an expected duration to milliseconds. `none` becomes 0: a rejection does not deny later requests. */
const expectedMs = (text: string): number | null => (text === "none" ? 0 : parseDuration(text));

/** Renders the values in sorted order, because the order of channels has no meaning. */
const showList = (values: readonly string[]): string => `[${[...values].sort().join(", ")}]`;

function showGrants(grants: RequiredApproval["grants"]): string {
  return grants === undefined ? "none" : `${grants.count} uses in ${showDuration(grants.for_ms)}`;
}

function showDuration(ms: number): string {
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
  ] as const;
  const [unit, size] = units.find(([, length]) => ms % length === 0 && ms > 0) ?? ["s", 1_000];
  return `${ms / size}${unit}`;
}

function differs(name: string, actual: unknown, expected: unknown): string {
  return `${name} is ${String(actual)}, expected ${String(expected)}`;
}
