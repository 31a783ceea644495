/** The agents that gave the authority of a request, with an evaluation of the request for each of them. */
import type { AuthorityLink, Facts } from "../policy-types.ts";
import { Evaluation } from "./evaluation.ts";
import { resolveObligations } from "./resolve-obligations.ts";

/** A delegator, its facts, and an evaluation of the request with the delegator as its agent. */
export interface Delegator {
  link: AuthorityLink;
  facts: Facts;
  evaluation: Evaluation;
}

const delegatorsOfEvaluation = new WeakMap<Evaluation, Delegator[]>();

/**
 * Returns the delegators of the request, root first. Evaluates the request after the obligations of the agent's own
 * rules were applied; rules for a delegator cannot change it again. Omits delegators without facts.
 */
export function listDelegators(submitted: Evaluation): Delegator[] {
  const { authority, delegators = [] } = submitted.delegation;
  if (authority === undefined) return [];
  const cached = delegatorsOfEvaluation.get(submitted);
  if (cached !== undefined) return cached;
  const { compiled, request, now } = resolveObligations(submitted).evaluation;
  const list = authority.links.flatMap((link, i): Delegator[] => {
    const facts = delegators[i];
    if (facts === undefined) return [];
    return [{ link, facts, evaluation: new Evaluation(compiled, { ...request, agent_id: link.agent_id }, facts, now) }];
  });
  delegatorsOfEvaluation.set(submitted, list);
  return list;
}
