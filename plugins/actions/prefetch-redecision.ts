/**
 * Reads the facts for a vote, a permit or a start ahead of the lock, so that its job probably finds them. Without this, each
 * such job would wait for a second batch after the read.
 */
import { type ActionRequest, type CoreHost, effectiveRequest, Evaluation } from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { prefetchFacts } from "./read-inputs.ts";
import { submitterFacts } from "./submit.ts";

/**
 * Reads the facts that the latest policies need for these actions. The job evaluates everything again. If it needs other
 * facts, for example because an input reads the claims of a token, they are read then. Rejects only with OVERLOADED, and if
 * the store fails.
 * @param isReachable whether the caller may act on the action. Nothing is read for others
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

/** Returns null if the action's request or key cannot be read, which the job reports. */
async function createEvaluation(host: CoreHost, row: ActionRow): Promise<Evaluation | null> {
  const request = readRequest(row);
  if (request === null) return null;
  const [agent, users] = [await host.agents.facts(row.agent_id), await host.users.list()];
  const reader = { now: host.clock(), users, key: (id: string) => host.storage.key(id) };
  const submitter = await host.keys.rightsOf(reader, row.submitted_by);
  if (submitter === null) return null;
  const facts = submitterFacts(submitter, agent, null);
  return new Evaluation(host.policies.latest().compiled, request, facts, host.clock());
}

/** Returns null for a row that was erased or altered, which the job reports. */
function readRequest(row: ActionRow): ActionRequest | null {
  try {
    return effectiveRequest(row);
  } catch {
    return null;
  }
}
