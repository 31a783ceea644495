/**
 * Detects whether a recorded decision read all inputs of other policies, so that it can be replayed with these
 * policies.
 */
import type { Facts } from "../policy-types.ts";
import type { Evaluation } from "./evaluation.ts";
import { hasUnrecordedFacts } from "./fact-reads.ts";
import { findUnrecordedHistories } from "./history-facts.ts";

/**
 * Returns true if an enforced policy reads past actions or facts that the decision did not read, or if any policy reads
 * attributes and the decision recorded none.
 */
export function hasUnrecordedInputs(evaluation: Evaluation, facts: Facts): boolean {
  if (facts.attributes === undefined && evaluation.readsAttributes()) return true;
  return findUnrecordedHistories(evaluation, facts).length > 0 || hasUnrecordedFacts(evaluation, facts);
}
