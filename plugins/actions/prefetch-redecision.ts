/**
 * Prefetches the facts for a vote, a permit or a start before the lock is acquired. Without the prefetch, the
 * transaction usually would have to run again after the facts were read.
 */
import { type ActionRequest, type CoreHost, effectiveRequest, Evaluation, rightsReader } from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { prefetchFacts } from "./read-inputs.ts";
import { submitterFacts } from "./submit.ts";

/**
 * Prefetches the facts that the latest policies need for these actions. The transaction evaluates the actions again. If
 * it needs other facts, for example because an input depends on the claims of a token, the service reads them when the
 * transaction requests them. Rejects with OVERLOADED if too many reads wait, or with the error of the store.
 * @param isReachable whether the caller may act on the action; facts of other actions are not read
 */
export async function prefetchRedecision(
  host: CoreHost,
  ids: readonly string[],
  isReachable: (row: ActionRow) => boolean,
): Promise<void> {
  if (!host.policies.latest().compiled.hasFacts) return;
  const evaluations = await Promise.all(
    ids.map(async (id) => {
      const row = await host.storage.action(id);
      return row !== null && isOpen(row) && isReachable(row) ? createEvaluation(host, row) : null;
    }),
  );
  await prefetchFacts(
    host,
    evaluations.filter((evaluation) => evaluation !== null),
  );
}

const isOpen = ({ status }: ActionRow): boolean => ["pending_approval", "allowed", "approved"].includes(status);

/** Returns null if the action's request or key cannot be read. The transaction reports that. */
export async function createEvaluation(host: CoreHost, row: ActionRow): Promise<Evaluation | null> {
  const request = readRequest(row);
  if (request === null) return null;
  const agent = await host.agents.facts(row.agent_id);
  const reader = rightsReader(host, await host.snapshot());
  const submitter = await host.keys.rightsOf(reader, row.submitted_by);
  if (submitter === null) return null;
  const facts = submitterFacts(submitter, agent, null);
  return new Evaluation(host.policies.latest().compiled, request, facts, host.clock());
}

/** Returns the request of an action; null if it was erased, or if someone altered it in the store. */
export function readRequest(row: ActionRow): ActionRequest | null {
  try {
    return effectiveRequest(row);
  } catch {
    return null;
  }
}
