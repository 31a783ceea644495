/** Reads the inputs of conditions that are not part of the request: past actions, and values of fact sources. */
import {
  type CoreHost,
  type Evaluation,
  type FactResult,
  type FactCall,
  type Facts,
  findFactReads,
  PreparationRequired,
  toSourceFacts,
} from "../../src/core.ts";
import type { Credential, RequestContext } from "../../src/plugin.ts";
import type { StorageReader } from "../../src/storage/index.ts";
import { readEffects, readHistories } from "./past-actions.ts";

type Sources = Pick<CoreHost, "factSources">;
export type LookUpFacts = (calls: readonly FactCall[]) => FactResult[] | Promise<FactResult[]>;

/**
 * Returns the evaluation and the facts, extended with the past actions and the values of fact sources that the
 * conditions read. Returns both unchanged if no condition reads any.
 * @param actionId id of the action that is being decided
 * @param lookUp reads the values of fact sources. Default, for use under the ledger's lock: takes cached values, and
 * throws PreparationRequired if a value is not cached. The service then reads the value and runs the transaction again
 */
export async function readEvaluationInputs(
  host: Sources,
  reader: Pick<StorageReader, "action" | "pastActions">,
  evaluation: Evaluation,
  facts: Facts,
  actionId: string,
  lookUp: LookUpFacts = (calls) => takeRecent(host, calls),
): Promise<{ evaluation: Evaluation; facts: Facts }> {
  let read = evaluation;
  for (;;) {
    const reads = findFactReads(read);
    if (reads.length === 0) break;
    const answers = await lookUp(reads.flatMap(({ call }) => call ?? []));
    read = read.withSources(toSourceFacts(reads, answers, evaluation.now));
  }
  const history = await readHistories(reader, evaluation, actionId);
  const { sources } = read;
  const isSame = sources.length === 0 && history.length === 0;
  const storedFacts = isSame
    ? facts
    : { ...facts, ...(history.length > 0 && { history }), ...(sources.length > 0 && { sources }) };
  const complete = isSame ? evaluation : evaluation.withFacts(storedFacts);
  const effects = await readEffects(reader, complete, storedFacts, actionId);
  return { evaluation: complete, facts: effects.length === 0 ? storedFacts : { ...storedFacts, effects } };
}

function takeRecent({ factSources }: Sources, calls: readonly FactCall[]): FactResult[] {
  return calls.map((call) => {
    const answer = factSources.recent(call);
    if (answer !== null) return answer;
    throw new PreparationRequired("the facts of a decision", async () => void (await factSources.read(calls)));
  });
}

/**
 * Prefetches the facts for the actions of one transaction before the lock is acquired, so that the transaction usually
 * finds them in the cache.
 */
export async function prefetchFacts({ factSources }: Sources, evaluations: readonly Evaluation[]): Promise<void> {
  let remaining = evaluations;
  for (;;) {
    const reads = remaining.map((evaluation) => ({ evaluation, reads: findFactReads(evaluation) }));
    const calls = reads.flatMap(({ reads }) => reads.flatMap(({ call }) => call ?? []));
    if (calls.length === 0) return;
    const recent = calls.flatMap((call) => factSources.recent(call) ?? []);
    const results = recent.length === calls.length ? recent : await factSources.read(calls);
    const resultsByCall = new Map(calls.map((call, i) => [call, results[i] as FactResult]));
    remaining = reads
      .filter(({ reads }) => reads.length > 0)
      .map(({ evaluation, reads }) => {
        const answers = reads.flatMap(({ call }) => (call === null ? [] : (resultsByCall.get(call) as FactResult)));
        return evaluation.withSources(toSourceFacts(reads, answers, evaluation.now));
      });
  }
}

/**
 * Returns a host for one decision. Its facts are read on behalf of the caller's key, because fact sources serve keys in
 * turn, so that one agent cannot prevent other agents and approvers from reading facts. A read releases the queue slot
 * of its request, so that a slow source delays only the requests that need it.
 *
 * The decision uses a failure or a value that was read for it, even if the result expires while the transaction waits
 * for the store. Otherwise, it could read the same facts forever.
 * @param context null for votes and the service's own work
 */
export function createFactReadingHost(
  host: CoreHost,
  context: (Pick<RequestContext, "withoutQueueSlot"> & { credential: Credential }) | null,
): CoreHost {
  if (!host.policies.latest().compiled.hasFacts) return host;
  const { factSources } = host;
  const keyId = context?.credential.key.id ?? null;
  const since = performance.now();
  /** Last result of each call that this host read, and the number of reads. */
  const ownReads = new Map<string, { result: FactResult; reads: number }>();
  const keyOf = ({ policy, source, inputs }: FactCall): string => JSON.stringify([policy, source, inputs]);
  function recent(call: FactCall): FactResult | null {
    const cached = factSources.recent(call, keyId, since);
    if (cached !== null) return cached;
    const last = ownReads.get(keyOf(call));
    return last !== undefined && (last.result.fault !== null || last.reads > 1) ? last.result : null;
  }
  async function readMissing(calls: readonly FactCall[]): Promise<void> {
    const missing = new Map(calls.map((call) => [keyOf(call), call]));
    const results = await factSources.read([...missing.values()], keyId, since);
    for (const [i, key] of [...missing.keys()].entries())
      ownReads.set(key, { result: results[i] as FactResult, reads: (ownReads.get(key)?.reads ?? 0) + 1 });
  }
  const bound: CoreHost["factSources"] = {
    ...factSources,
    recent,
    async read(calls) {
      const recentResults = calls.map(recent);
      const missing = calls.filter((_, i) => recentResults[i] === null);
      await (context === null ? readMissing(missing) : context.withoutQueueSlot(() => readMissing(missing)));
      return calls.map((call, i) => recentResults[i] ?? (ownReads.get(keyOf(call)) as { result: FactResult }).result);
    },
  };
  return Object.create(host, { factSources: { value: bound } }) as CoreHost;
}
