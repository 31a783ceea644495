/**
 * Determines the values of fact sources that the conditions for an action read, and the facts that a decision records.
 * The service reads the values before it acquires the ledger's lock. This module itself does not read sources.
 */
import { canonicalBytes } from "../../canonical.ts";
import { factOfPin } from "../../pins.ts";
import type { JsonValue } from "../../json.ts";
import { toRfc3339 } from "../../time.ts";
import { selectDeclaredMembers } from "../check/select-typed.ts";
import type { CompiledFact, CompiledPolicy } from "../compile/compile.ts";
import { Meter } from "../condition/cel-meter.ts";
import { findSourceFact } from "../condition/source-facts.ts";
import type { Facts, FactFault, SourceFact } from "../policy-types.ts";
import type { Evaluation } from "./evaluation.ts";

/** Maximum size in bytes of one value, as canonical JSON. */
const MAX_FACT_BYTES = 16_384;
/** Maximum number of characters of a string that is passed to a source. */
export const MAX_FACT_INPUT = 1_024;
/**
 * Maximum number of steps for the inputs of one fact. The inputs of all facts are evaluated under the ledger's lock.
 */
const MAX_INPUT_STEPS = 10_000;

/** A read of a fact source, with its inputs. */
export interface FactCall {
  /** The policy that reads the fact. The source's result does not depend on it. */
  policy: string;
  /** Whether the policy is in shadow mode. */
  shadow: boolean;
  source: string;
  inputs: Readonly<Record<string, string | number | boolean>>;
  /** Present if the value must be read for this decision, because a rule pins the fact. */
  fresh?: true;
}

/** The value that a source returned, or the reason why there is none. */
export interface FactResult {
  /** The value; null if there is a fault. */
  value: JsonValue;
  fault: Exclude<FactFault, "no_input" | "wrong_type"> | null;
  /** Time of the read. Milliseconds. */
  at: number;
}

/** A fact that the conditions or pins for an action read, directly or through the inputs of another fact. */
interface FactRead {
  policy: CompiledPolicy;
  fact: CompiledFact;
  /** The read to make; null if an input could not be evaluated. */
  call: FactCall | null;
  /** The reason why there is no call; null if there is one. */
  fault: FactFault | null;
}

/**
 * Returns the facts to read next, in the order of the set. These are facts that conditions for an action read and that
 * the evaluation lacks, except those whose inputs need another missing fact. Call it again with the results until it
 * returns none.
 */
export function findFactReads(evaluation: Evaluation): FactRead[] {
  return listFactsRead(evaluation)
    .filter(
      (read) =>
        !isKnown(read, evaluation) && read.fact.dependencies.every((fact) => isKnown({ ...read, fact }, evaluation)),
    )
    .map((read) => ({ ...read, ...createCall(read.policy, read.fact, evaluation) }));
}

/** Returns the reads of all facts that the conditions for an action read, if the evaluation has these facts. */
export function listFactCalls(evaluation: Evaluation): (FactCall | null)[] {
  return listFactsRead(evaluation).map(({ policy, fact }) => createCall(policy, fact, evaluation).call);
}

const isKnown = (
  { policy, fact: { name, basis } }: Pick<FactRead, "policy" | "fact">,
  { sources }: Pick<Facts, "sources">,
): boolean => findSourceFact(sources, { policy: policy.name, name, basis }) !== undefined;

/** Returns the facts that the conditions and pins read. Does not evaluate their inputs. */
function listFactsRead(evaluation: Evaluation): Pick<FactRead, "policy" | "fact">[] {
  if (!evaluation.compiled.hasFacts) return [];
  return evaluation.applicablePolicies().flatMap((policy) => {
    const read = policy.facts.length === 0 ? new Set<CompiledFact>() : findFacts(policy, evaluation);
    return policy.facts.filter((fact) => read.has(fact)).map((fact) => ({ policy, fact }));
  });
}

function findFacts(policy: CompiledPolicy, evaluation: Evaluation): Set<CompiledFact> {
  const found = new Set<CompiledFact>();
  const add = (fact: CompiledFact): void => {
    if (found.has(fact)) return;
    found.add(fact);
    fact.dependencies.forEach(add);
  };
  for (const { condition, approval } of evaluation.rules(policy)) {
    const pinned = new Set(approval?.pins.map(factOfPin));
    if ((condition?.facts.size ?? 0) + pinned.size > 0)
      for (const fact of policy.facts) if (condition?.facts.has(fact.name) === true || pinned.has(fact.name)) add(fact);
  }
  return found;
}

/**
 * Returns the call that reads a fact, or a fault. Each fact has its own step budget, so that an expensive input cannot
 * prevent another policy from reading its facts. An input can read another fact; if that fact has a fault, returns its
 * fault.
 */
function createCall(
  policy: CompiledPolicy,
  { name: factName, source, inputs, dependencies }: CompiledFact,
  evaluation: Evaluation,
): Pick<FactRead, "call" | "fault"> {
  const activation = evaluation.inputActivation(new Meter(MAX_INPUT_STEPS));
  const values: [string, string | number | boolean][] = [];
  for (const [name, expression] of inputs) {
    const result = expression.evaluate(activation);
    const value = "error" in result ? null : toInput(result.value);
    if (value === null) {
      const faults = dependencies.map(
        ({ name, basis }) => findSourceFact(evaluation.sources, { policy: policy.name, name, basis })?.fault ?? null,
      );
      return { call: null, fault: faults.find((fault) => fault !== null) ?? "no_input" };
    }
    values.push([name, value]);
  }
  const call = { policy: policy.name, shadow: policy.shadow, source, inputs: Object.fromEntries(values) };
  return { call: policy.pinned.has(factName) ? { ...call, fresh: true } : call, fault: null };
}

function toInput(result: unknown): string | number | boolean | null {
  const value = typeof result === "bigint" ? Number(result) : result;
  if (typeof value === "string") return value.length <= MAX_FACT_INPUT && !/\p{Surrogate}/u.test(value) ? value : null;
  if (typeof value === "boolean") return value;
  if (typeof value !== "number" || !Number.isFinite(value)) return null;
  return typeof result === "bigint" && !Number.isSafeInteger(value) ? null : value;
}

/**
 * Returns the facts to record.
 * @param answers the results of the reads that have a call, in order
 */
export function toSourceFacts(reads: readonly FactRead[], answers: readonly FactResult[], now: number): SourceFact[] {
  const remaining = [...answers];
  return reads.map((read) => toSourceFact(read, read.call === null ? null : (remaining.shift() ?? null), now));
}

function toSourceFact(read: FactRead, answer: FactResult | null, now: number): SourceFact {
  const { policy, fact } = read;
  const common = { policy: policy.name, name: fact.name, basis: fact.basis, at: toRfc3339(answer?.at ?? now) };
  const fault = (fault: FactFault): SourceFact => ({ ...common, value: null, fault });
  if (answer === null) return fault(read.fault ?? "no_input");
  if (answer.fault !== null) return fault(answer.fault);
  const selected = selectDeclaredMembers(answer.value, fact.type);
  // A source returns null if it has no such record.
  if (selected === null) return fault(answer.value === null ? "not_found" : "wrong_type");
  return canonicalBytes(selected.value).length > MAX_FACT_BYTES
    ? fault("too_large")
    : { ...common, value: selected.value, fault: null };
}

/** Returns true if a condition of an enforced policy for the action reads a fact that the decision did not read. */
export function hasUnrecordedFacts(evaluation: Evaluation, facts: Pick<Facts, "sources">): boolean {
  return listFactsRead(evaluation).some((read) => !read.policy.shadow && !isKnown(read, facts));
}
