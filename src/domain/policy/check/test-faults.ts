/** Finds faults in policy tests that the schema cannot detect. */
import type { Static } from "@sinclair/typebox";
import { parseDuration } from "../../time.ts";
import type { PolicyTestSchema } from "../parse/policy-schema.ts";

type TestDocument = Static<typeof PolicyTestSchema>;
type Scenario = NonNullable<TestDocument["scenarios"]>[number];
export type ScenarioStep = Scenario["steps"][number];
type Expectation = NonNullable<ScenarioStep["expect"]>;

/** The verbs of a step, each with the keys that belong to it. */
const STEP_KEYS = {
  submit: ["id", "times", "principal", "agent", "session", "labels", "facts"],
  approve: ["by", "groups", "shares_group", "signed"],
  reject: ["by", "groups", "shares_group", "signed"],
  start: [],
  finish: ["success", "result", "usage"],
  cancel: [],
} as const satisfies Partial<Record<keyof ScenarioStep, readonly (keyof ScenarioStep)[]>>;

export type StepVerb = keyof typeof STEP_KEYS;
const VERBS = Object.keys(STEP_KEYS) as StepVerb[];
/** Expectations that steps other than `submit` can have. */
const OUTCOMES: readonly string[] = ["status", "refused"];
/** Maximum number of actions that one scenario submits, because each action reads the earlier actions. */
const MAX_SUBMITTED = 1_000;

/** A fault in a test. `pointer` is an RFC 6901 pointer. */
interface TestFault {
  pointer: string;
  detail: string;
  /** Whether the key is at fault instead of its value. */
  key?: boolean;
}

/** Returns the verb of the step; null if the step only lets time pass. */
export function findStepVerb(step: ScenarioStep): StepVerb | null {
  return VERBS.find((verb) => step[verb] !== undefined) ?? null;
}

/** Finds expectations that no decision can satisfy, and steps that a scenario cannot contain. */
export function findTestFaults({ cases, scenarios }: TestDocument): TestFault[] {
  if (cases === undefined && scenarios === undefined)
    return [{ pointer: "", detail: "a test needs `cases`, `scenarios` or both" }];
  return [
    ...(cases ?? []).flatMap(({ expect }, i) => findExpectationFaults(expect, `/cases/${i}/expect`)),
    ...(scenarios ?? []).flatMap((scenario, i) => findScenarioFaults(scenario, `/scenarios/${i}/steps`)),
  ];
}

function findExpectationFaults({ effect, approval }: Expectation, at: string): TestFault[] {
  if (approval === undefined) return [];
  const inside = `${at}/approval`;
  if (effect !== undefined && effect !== "require_approval")
    return [{ pointer: inside, key: true, detail: `the effect "${effect}" has no approval; remove it` }];
  if (approval.approvers !== undefined && approval.stages !== undefined)
    return [{ pointer: `${inside}/stages`, key: true, detail: "expect either approvers or stages" }];
  const durations: [pointer: string, text: string | undefined][] = [
    ["expires_in", approval.expires_in],
    ["valid_for", approval.valid_for],
    ["rejection_holds", approval.rejection_holds === "none" ? undefined : approval.rejection_holds],
    ["grants/for", typeof approval.grants === "object" ? approval.grants.for : undefined],
    ...(approval.stages ?? []).map(({ after }, i): [string, string | undefined] => [`stages/${i}/after`, after]),
  ];
  return durations.flatMap(([pointer, text]) => findDurationFault(text, `${inside}/${pointer}`));
}

function findDurationFault(text: string | undefined, pointer: string): TestFault[] {
  if (text === undefined || parseDuration(text) !== null) return [];
  return [{ pointer, detail: `"${text}" is not a duration such as 30m, 1h or 7d` }];
}

function findScenarioFaults({ steps }: Scenario, at: string): TestFault[] {
  const faults: TestFault[] = [];
  const knownNames = new Set<string>();
  let submitted = 0;
  for (const [i, step] of steps.entries()) {
    const pointer = `${at}/${i}`;
    const fault = (key: string, detail: string): number =>
      faults.push({ pointer: `${pointer}/${key}`, key: true, detail });
    const verb = findStepVerb(step);
    faults.push(...findDurationFault(step.after, `${pointer}/after`));
    if (verb === null && step.after === undefined) {
      faults.push({ pointer, detail: `a step needs one of ${VERBS.join(", ")} or after` });
      continue;
    }
    for (const key of findStrayKeys(step, verb))
      fault(
        key,
        verb === null
          ? `a step without ${VERBS.join(", ")} only has after`
          : `${key.replace("expect/", "")} has no meaning with ${verb}`,
      );
    if ((verb === "approve" || verb === "reject") && step.by === undefined)
      faults.push({ pointer, detail: `${verb} needs \`by\`: who votes` });
    if (verb !== null && verb !== "submit" && !knownNames.has(step[verb] as string))
      faults.push({
        pointer: `${pointer}/${verb}`,
        detail: `no earlier step submits an action with the id "${String(step[verb])}"`,
      });
    if (step.id !== undefined && knownNames.has(step.id)) fault("id", `an earlier step uses the id "${step.id}"`);
    if (step.id !== undefined && (step.times ?? 1) > 1)
      fault("id", "an action that is submitted several times has no id");
    if (verb === "submit" && step.id !== undefined) knownNames.add(step.id);
    if (verb === "submit") submitted += step.times ?? 1;
    if (step.expect !== undefined) faults.push(...findExpectationFaults(step.expect, `${pointer}/expect`));
  }
  if (submitted > MAX_SUBMITTED)
    faults.push({
      pointer: at,
      detail: `a scenario submits at most ${MAX_SUBMITTED} actions; this one submits ${submitted}`,
    });
  return faults;
}

/** Returns the keys that do not belong to the verb, and the pointers of expectations that the verb does not support. */
function findStrayKeys(step: ScenarioStep, verb: StepVerb | null): string[] {
  const fitting: readonly string[] = verb === null ? ["after"] : ["after", "expect", verb, ...STEP_KEYS[verb]];
  const stray = Object.keys(step).filter((key) => !fitting.includes(key));
  const expected = verb === null ? [] : Object.keys(step.expect ?? {});
  const wrong = expected.filter((key) => (verb === "submit" ? key === "refused" : !OUTCOMES.includes(key)));
  return [...stray, ...wrong.map((key) => `expect/${key}`)];
}
