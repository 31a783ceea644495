/**
 * Provides attributes and facts from given values instead of a service, for policy tests, explanations and dry runs.
 */
import type { ActionRequest } from "../../actions.ts";
import type { JsonValue } from "../../json.ts";
import type { CompiledPolicySet } from "../compile/compile.ts";
import { Evaluation } from "../decide/evaluation.ts";
import { findFactReads, toSourceFacts } from "../decide/fact-reads.ts";
import type { SampleAction } from "../parse/parse.ts";
import type { Facts } from "../policy-types.ts";
import { withAssumedActivation } from "../decide/limit-facts.ts";
import { givenSession, withGivenHistory } from "./given-history.ts";

/** Default principal of a test. */
const DEFAULT_PRINCIPAL = { key_id: "test", name: "policy test", agent_id: null, owner: null };

/** Returns the facts about the principal, the agent and the session. */
export function givenRequesterFacts({
  principal,
  agent,
  session,
  labels = [],
}: Optional<"principal" | "agent" | "session" | "labels">): Facts {
  const { groups = [], roles = [], ...given } = principal ?? {};
  const { groups: agent_groups = [], metadata = {} } = agent ?? {};
  return {
    principal: { ...DEFAULT_PRINCIPAL, ...given },
    attributes: { agent_groups, agent_metadata: metadata, groups, roles },
    ...givenSession(session),
    ...(labels.length === 0 ? {} : { labels: [...labels].sort() }),
  };
}

type Optional<Names extends keyof SampleAction> = { [Name in Names]?: SampleAction[Name] | undefined };

/**
 * Returns the facts with the given past actions, values of fact sources and usage of limits. Adds them in the same
 * order as the service does for a decision.
 */
export function withGivenInputs(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  requesterFacts: Facts,
  now: number,
  { history, facts, used }: Optional<"history" | "facts" | "used">,
): Facts {
  const remembered = withGivenHistory(compiled, request, requesterFacts, now, history);
  const factsSoFar = withGivenFacts(compiled, request, remembered, now, facts);
  return withAssumedActivation(compiled, request, factsSoFar, now, used);
}

/** Returns the first given fact that no policy declares, as a sentence; null if there is none. */
export function findGivenFactsFault({ policies }: CompiledPolicySet, given: object): string | null {
  const names = Object.keys(given);
  const stray = names.find((name) => !policies.some(({ facts }) => facts.some((fact) => fact.name === name)));
  return stray === undefined ? null : `facts: the policies declare no fact "${stray}"`;
}

/**
 * Returns the facts with the values of the sources that the policies read. If a value is not given, the fact has the
 * fault of a source that did not respond. Does not change values that the facts already contain.
 * @param given the values, keyed by the name of the fact
 */
export function withGivenFacts(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  facts: Facts,
  now: number,
  given: Readonly<Record<string, unknown>> = {},
): Facts {
  let evaluation = new Evaluation(compiled, request, facts, now);
  for (;;) {
    const reads = findFactReads(evaluation);
    if (reads.length === 0) break;
    const answers = reads
      .filter(({ call }) => call !== null)
      .map(({ fact: { name } }) =>
        Object.hasOwn(given, name)
          ? { value: given[name] as JsonValue, fault: null, at: now }
          : { value: null, fault: "no_answer" as const, at: now },
      );
    evaluation = evaluation.withSources(toSourceFacts(reads, answers, now));
  }
  const { sources } = evaluation;
  return sources.length === 0 ? facts : { ...facts, sources };
}
