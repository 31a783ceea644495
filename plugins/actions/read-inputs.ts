/** Reads what conditions need besides the request: past actions, and values of fact sources. */
import {
  type CoreHost,
  Evaluation,
  type FactResult,
  type FactCall,
  type Facts,
  findFactReads,
  PreparationRequired,
  toSourceFact,
} from "../../src/core.ts";
import type { RequestContext } from "../../src/plugin.ts";
import type { StorageReader } from "../../src/storage/index.ts";
import { readHistories } from "./past-actions.ts";

type Sources = Pick<CoreHost, "factSources">;

/**
 * Returns the evaluation and the facts, extended with the past actions and the values of fact sources that the
 * conditions read. Returns both unchanged if no condition reads any. Under the ledger's lock, uses only values that
 * were prefetched: if one is missing, throws PreparationRequired, so that the service reads it and runs the transaction
 * again.
 * @param actionId id of the action that is being decided
 */
export async function readEvaluationInputs(
  host: Sources,
  reader: Pick<StorageReader, "pastActions">,
  evaluation: Evaluation,
  facts: Facts,
  actionId: string,
  lookUp: (calls: readonly FactCall[]) => FactResult[] | Promise<FactResult[]> = (calls) => takeRecent(host, calls),
): Promise<{ evaluation: Evaluation; facts: Facts }> {
  const { compiled, request, now } = evaluation;
  const reads = findFactReads(evaluation);
  const answers = reads.length === 0 ? [] : await lookUp(reads.flatMap(({ call }) => call ?? []));
  const history = await readHistories(reader, evaluation, actionId);
  if (reads.length === 0 && history.length === 0) return { evaluation, facts };
  // There is one answer per call, in order. A read whose input cannot be evaluated has no call.
  const remaining = [...answers];
  const sources = reads.map((read) =>
    toSourceFact(read, read.call === null ? null : (remaining.shift() ?? null), evaluation.now),
  );
  const extendedFacts = { ...facts, ...(history.length > 0 && { history }), ...(sources.length > 0 && { sources }) };
  return { evaluation: new Evaluation(compiled, request, extendedFacts, now), facts: extendedFacts };
}

function takeRecent({ factSources }: Sources, calls: readonly FactCall[]): FactResult[] {
  return calls.map((call) => {
    const answer = factSources.recent(call);
    if (answer !== null) return answer;
    throw new PreparationRequired("the facts of a decision", async () => void (await factSources.read(calls)));
  });
}

/** Prefetches the facts for an action before the lock is acquired, so that its transaction probably finds them. */
export async function prefetchFacts({ factSources }: Sources, evaluation: Evaluation): Promise<void> {
  const calls = findFactReads(evaluation).flatMap(({ call }) => call ?? []);
  if (calls.some((call) => factSources.recent(call) === null)) await factSources.read(calls);
}

/**
 * Returns the host with fact sources that are asked without the queue slot of the request. A slow source then holds up only
 * requests that need it, and not the queue of all decisions.
 */
export function withFactSourcesOutsideQueue(
  host: CoreHost,
  { withoutQueueSlot }: Pick<RequestContext, "withoutQueueSlot">,
): CoreHost {
  if (!host.policies.latest().compiled.hasFacts) return host;
  const { factSources } = host;
  const read: typeof factSources.read = (calls) => withoutQueueSlot(() => factSources.read(calls));
  return Object.create(host, { factSources: { value: { ...factSources, read } } }) as CoreHost;
}
