/** Compares a decision with the expectations of a policy test. */
import { parseDuration } from "../../time.ts";
import type { PolicyTest } from "../parse/parse.ts";
import type { Decision } from "../policy-types.ts";

export type Expectation = PolicyTest["cases"][number]["expect"];
type ExpectedApproval = NonNullable<Expectation["approval"]>;

/** Returns one phrase for each difference, such as `effect is deny, expected allow`. */
export function findDifferences(decision: Decision, expect: Expectation): string[] {
  const { approval, shadow, ...fields } = expect;
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
    ...Object.entries(shadow ?? {}).flatMap(([policy, expected]) => {
      const effect = decision.shadow.find((outcome) => outcome.policy === policy)?.effect;
      return effect === expected ? [] : [differs(`shadow.${policy}`, effect ?? "no answer", expected)];
    }),
  ];
}

function findApprovalDifferences(actual: Decision["approval"], expected: ExpectedApproval): string[] {
  if (actual === null) return ["no approval is required"];
  const { notify, quorum, mode, ...durations } = expected;
  const differences: string[] = [];
  const compare = (name: string, value: unknown, wanted: unknown): void => {
    if (wanted !== undefined && value !== wanted) differences.push(differs(`approval.${name}`, value, wanted));
  };
  compare("quorum", actual.quorum, quorum);
  compare("mode", actual.mode, mode);
  for (const name of ["expires_in", "valid_for", "rejection_holds"] as const) {
    const wanted = durations[name];
    if (wanted !== undefined && actual[`${name}_ms`] !== expectedMs(wanted))
      differences.push(differs(`approval.${name}`, showDuration(actual[`${name}_ms`]), wanted));
  }
  if (notify !== undefined) compare("notify", showList(actual.notify), showList(notify));
  return differences;
}

/** In a rule, `none` means that a rejection does not deny later requests. */
const expectedMs = (text: string): number | null => (text === "none" ? 0 : parseDuration(text));

/** Returns the values sorted, because the order of channels has no meaning. */
const showList = (values: readonly string[]): string => `[${[...values].sort().join(", ")}]`;

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
