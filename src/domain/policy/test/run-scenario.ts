/** Runs scenarios of policy tests: several actions with votes and results, and the time between them. */
import type { ActionRequest, ActionStatus } from "../../actions.ts";
import type { JsonObject } from "../../json.ts";
import { parseDuration, parseRfc3339 } from "../../time.ts";
import { type ScenarioStep, type StepVerb, findStepVerb } from "../check/test-faults.ts";
import type { CompiledPolicySet } from "../compile/compile.ts";
import { evaluateAllPolicies } from "../decide/decide.ts";
import type { PolicyTest } from "../parse/parse.ts";
import type { Decision } from "../policy-types.ts";
import { findEvaluatedConditions } from "./evaluated-conditions.ts";
import { findDifferences } from "./expectations.ts";
import { type SimulatedAction, SimulatedActions, StepRefusedError } from "./simulated-actions.ts";
import { givenRequesterFacts } from "./given-facts.ts";
import type { TestResult } from "./test-result.ts";

/**
 * Runs the steps in order until a step does not meet its expectations. The failure's `pointer` refers to that step.
 * Yields between decisions.
 */
export function* runScenario(
  compiled: CompiledPolicySet,
  test: PolicyTest,
  i: number,
): Generator<undefined, TestResult> {
  const { name, now, steps } = test.scenarios[i] as PolicyTest["scenarios"][number];
  const run = new ScenarioRun(compiled, parseRfc3339(now ?? test.now) ?? 0);
  let failure: string | null = null;
  let pointer = `/scenarios/${i}`;
  for (const [j, step] of steps.entries()) {
    const wrong = yield* run.step(step);
    if (wrong === null) continue;
    failure = `step ${j + 1} (${findStepVerb(step) ?? "after"}): ${wrong}`;
    pointer = `/scenarios/${i}/steps/${j}`;
    break;
  }
  const { decisions } = run.actions;
  const findings: TestResult["findings"][number][] = [];
  const evaluated: TestResult["evaluated"][number][] = [];
  for (const each of decisions) {
    yield;
    const found = evaluateAllPolicies(compiled, each.request, each.facts, each.now);
    findings.push(...found);
    evaluated.push(...findEvaluatedConditions(compiled, each, found));
  }
  return {
    name,
    pointer,
    failure,
    decision: decisions.at(-1)?.decision ?? null,
    findings,
    evaluated,
  };
}

class ScenarioRun {
  readonly actions: SimulatedActions;
  private readonly named = new Map<string, SimulatedAction>();

  constructor(compiled: CompiledPolicySet, now: number) {
    this.actions = new SimulatedActions(compiled, now);
  }

  /** Runs a step. Returns the differences from its expectations; null if there are none. */
  *step(step: ScenarioStep): Generator<undefined, string | null> {
    yield;
    this.actions.pass(parseDuration(step.after ?? "0s") ?? 0);
    const verb = findStepVerb(step);
    if (verb === null) return null;
    if (verb === "submit") return yield* this.submit(step);
    const action = this.named.get(step[verb] as string) as SimulatedAction;
    const refused = this.act(step, verb, action);
    const expected = step.expect?.refused ?? null;
    if (refused !== null && refused.code !== expected)
      return `it is refused with ${refused.code} (${refused.message})${expected === null ? "" : `, expected ${expected}`}`;
    if (refused === null && expected !== null) return `it is not refused, expected ${expected}`;
    return differentStatus(action.status, step.expect?.status);
  }

  private act(step: ScenarioStep, verb: Exclude<StepVerb, "submit">, action: SimulatedAction): StepRefusedError | null {
    const { by = "", groups = [], shares_group = false, signed = false } = step;
    const voter = { owner: by, groups, sharesGroup: shares_group, signed };
    try {
      if (verb === "approve") this.actions.approve(action, voter);
      else if (verb === "reject") this.actions.reject(action, voter);
      else if (verb === "start") this.actions.start(action);
      else if (verb === "finish") this.actions.finish(action, step);
      else this.actions.cancel(action);
      return null;
    } catch (error) {
      if (error instanceof StepRefusedError) return error;
      throw error;
    }
  }

  private *submit({
    submit,
    id,
    times = 1,
    facts,
    expect = {},
    ...given
  }: ScenarioStep): Generator<undefined, string | null> {
    const { agent_id, tool, operation, params = {}, context = {} } = submit as NonNullable<ScenarioStep["submit"]>;
    const request: ActionRequest = {
      agent_id,
      tool,
      operation,
      params: params as JsonObject,
      context: context as JsonObject,
    };
    const basis = givenRequesterFacts(given);
    const { status, refused: _, ...expectation } = expect;
    for (let n = 1; n <= times; n++) {
      yield;
      const action = this.actions.submit(request, basis, facts);
      if (id !== undefined) this.named.set(id, action);
      const decision = this.actions.decisions.at(-1)?.decision as Decision;
      const differences = findDifferences(decision, expectation, request);
      const wrong =
        differences.length > 0
          ? `${differences.join("; ")} (${decision.reason})`
          : differentStatus(action.status, status);
      if (wrong !== null) return times === 1 ? wrong : `submission ${n}: ${wrong}`;
    }
    return null;
  }
}

function differentStatus(actual: ActionStatus, expected: ActionStatus | undefined): string | null {
  return expected === undefined || actual === expected ? null : `status is ${actual}, expected ${expected}`;
}
