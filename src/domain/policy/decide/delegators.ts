/** The agents that gave the authority of a request, and the evaluation of the request for each of them. */
import type { AuthorityLink, Facts } from "../policy-types.ts";
import { Evaluation } from "./evaluation.ts";
import { resolveObligations } from "./resolve-obligations.ts";

/** A delegator, with the facts about it and the evaluation of the request as if it were its own. */
export interface Delegator {
  link: AuthorityLink;
  facts: Facts;
  evaluation: Evaluation;
}

const known = new WeakMap<Evaluation, Delegator[]>();

/**
 * Returns the delegators of the request, root first. Evaluates the request after the obligations of the agent's own rules,
 * so the rules for a delegator can no longer change it. Omits delegators without facts.
 */
export function listDelegators(submitted: Evaluation): Delegator[] {
  const { authority, delegators = [] } = submitted.delegation;
  if (authority === undefined) return [];
  const cached = known.get(submitted);
  if (cached !== undefined) return cached;
  const { compiled, request, now } = resolveObligations(submitted).evaluation;
  const list = authority.links.flatMap((link, i): Delegator[] => {
    const facts = delegators[i];
    if (facts === undefined) return [];
    return [{ link, facts, evaluation: new Evaluation(compiled, { ...request, agent_id: link.agent_id }, facts, now) }];
  });
  known.set(submitted, list);
  return list;
}
