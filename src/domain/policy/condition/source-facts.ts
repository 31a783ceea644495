/** Binds the facts of a policy to the variables `facts.NAME` of its conditions. */
import type { CelInput } from "@bufbuild/cel";
import type { SourceFact, FactFault } from "../policy-types.ts";
import { CelFailure } from "./cel-failure.ts";
import type { Bindings } from "./cel-plan.ts";
import type { Expr } from "./cel-tree.ts";
import { toCelValue } from "./cel-values.ts";

/** First segment of the names of facts. */
export const FACTS_PREFIX = "facts";

/** Returns the variable of a fact, such as `facts.account`. */
export const factVariable = (name: string): string => `${FACTS_PREFIX}.${name}`;

/** Returns true if a variable is a fact. */
export const isFactVariable = (variable: string): boolean => variable.startsWith(`${FACTS_PREFIX}.`);

/** Returns the name of the fact that a variable is. */
export const nameOfFact = (variable: string): string => variable.slice(FACTS_PREFIX.length + 1);

/** Converts an expression such as `facts.account` to a single name. */
export function qualifyFact(expr: Expr): void {
  const { exprKind: kind } = expr;
  if (kind.case !== "selectExpr" || kind.value.testOnly) return;
  const owner = kind.value.operand?.exprKind;
  if (owner?.case !== "identExpr" || owner.value.name.replace(/^\./, "") !== FACTS_PREFIX) return;
  const name = factVariable(kind.value.field);
  expr.exprKind = { case: "identExpr", value: { $typeName: "cel.expr.Expr.Ident", name } };
}

/** Messages of faults. They contain no values of sources, because reasons are stored forever. */
const FAULT_MESSAGES: Readonly<Record<FactFault | "unknown", string>> = {
  no_answer: "the source of a fact did not answer",
  no_input: "an input of a fact could not be evaluated",
  not_found: "the source of a fact has no record for its inputs, and null does not match its schema",
  no_source: "the source of a fact is not configured, or takes other inputs",
  too_large: "the value of a fact is too large",
  unknown: "a fact is not known",
  wrong_type: "the value of a fact does not match its schema",
};

/** Returns one sentence about a fault, without values. */
export const describeFactFault = (fault: FactFault | "unknown"): string => FAULT_MESSAGES[fault];

/** Returns true for the messages of failures that `bindFacts` reports. */
export const isFactFaultMessage = (message: string): boolean => Object.values(FAULT_MESSAGES).includes(message);

/** Returns the fact that a decision read; undefined if it did not read it. */
export function findSourceFact(
  readFacts: readonly SourceFact[] = [],
  { policy, name, basis }: Pick<SourceFact, "policy" | "name" | "basis">,
): SourceFact | undefined {
  return readFacts.find(
    (candidate) => candidate.policy === policy && candidate.name === name && candidate.basis === basis,
  );
}

/**
 * Adds the variables of facts. The variable of an unknown fact is a failure, so that every condition that reads it
 * fails.
 */
export function bindFacts(
  bindings: Bindings,
  readFacts: readonly SourceFact[],
  declared: readonly Pick<SourceFact, "policy" | "name" | "basis">[],
): void {
  for (const declaration of declared) {
    const fact = findSourceFact(readFacts, declaration);
    const fault = fact === undefined ? "unknown" : fact.fault;
    const value =
      fact === undefined || fault !== null
        ? new CelFailure(FAULT_MESSAGES[fault ?? "unknown"])
        : toCelValue(fact.value);
    bindings[factVariable(declaration.name)] = value as CelInput;
  }
}
