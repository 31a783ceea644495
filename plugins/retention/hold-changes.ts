/**
 * Places and releases legal holds. Each change is an urgent transaction, so that a hold overtakes erasures that wait
 * for the ledger.
 */
import {
  canSee,
  confirmCredential,
  type CoreHost,
  findCreatedResource,
  type IdempotentCall,
  idempotencyConflict,
  recordCreatedResource,
  toActor,
  type UrgentJob,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { StorageReader } from "../../src/storage/index.ts";
import { countPeople, isNewPerson, newSalt, principalsBehindVote, visibleAction } from "../actions/api.ts";
import { createSubjectFilter } from "./content-filter.ts";
import {
  heldSubjectKey,
  commitHoldSubject,
  ERRORS,
  type LegalHold,
  type LegalHoldEntry,
  type LegalHolds,
  legalHoldState,
  listActiveHolds,
  MAX_ACTIVE_HOLDS,
  readVerifiedSubject,
  recordedHoldTerms,
} from "./holds.ts";
import { restartRetentionSweep } from "./sweep.ts";

type Tx = Parameters<UrgentJob<unknown>>[0];

/** A hold on one action, one agent or one person: exactly one of `action`, `agent` and `subject` is not null. */
interface RequestedHold {
  action: string | null;
  agent: string | null;
  /** The identifier of a person. */
  subject: string | null;
  reason: string;
}

export function placeHold(
  host: CoreHost,
  credential: Credential,
  requestedHold: RequestedHold,
  call: IdempotentCall | null,
): Promise<{ hold: LegalHold; replayed: boolean }> {
  const { action, agent, reason } = requestedHold;
  const subject = requestedHold.subject?.trim() ?? null;
  // Throws if the identifier is too short.
  if (subject !== null) createSubjectFilter(subject);
  const id = host.newId();
  const held = subject === null ? null : { subject, salt: newSalt() };
  return host.ledger.transactFirst(async (tx) => {
    const current = await confirmWriter(tx, credential);
    const earlier = await findCreatedResource(tx, current, call);
    if (earlier !== null) {
      const hold = findHold(tx.state(legalHoldState), earlier);
      if (!(await isSameHold(host, tx, hold, { ...requestedHold, subject })))
        throw idempotencyConflict(call as IdempotentCall, earlier);
      return { hold, replayed: true };
    }
    if (listActiveHolds(tx.state(legalHoldState)).length >= MAX_ACTIVE_HOLDS)
      throw new Refusal(
        ERRORS.tooMany,
        `${MAX_ACTIVE_HOLDS} legal holds are active, which is the limit; release some, or hold an agent instead of its actions`,
      );
    // Reject unknown actions and agents, because a hold with a mistyped name would cover nothing.
    if (action !== null && (await visibleAction(tx, action, current)).erased_at !== null)
      throw new Refusal("ACTION_ERASED", `the action ${action} was already erased, so nothing was held`);
    if (subject !== null && !("all" in current.limits))
      throw new Refusal(
        "SCOPE_ESCALATION",
        "your groups limit your rights, and a legal hold on a person covers all actions; ask someone without limits to place it",
      );
    if (agent !== null && !((await canSeeHold(tx, current, requestedHold)) && (await isKnownAgent(host, tx, agent))))
      throw new Refusal(
        "AGENT_NOT_FOUND",
        `there is neither an agent "${agent}" nor an action of it, so nothing was held`,
      );
    const hold = { id, action, agent, subject: held === null ? null : commitHoldSubject(held), reason };
    const by = toActor(current.key, current.principal);
    record(tx, { change: "placed", hold, comment: null, approvals: 0, needed: 0, by });
    if (held !== null && (await host.documents.within(tx).put(heldSubjectKey(id), held, null)) === null)
      throw new Error(`the identifier of the legal hold ${id} is already stored`);
    await recordCreatedResource(tx, current, call, id);
    return { hold: findHold(tx.state(legalHoldState), id), replayed: false };
  });
}

/** Records the caller's request to release the hold, and releases it once `needed` people have requested that. */
export function releaseHold(
  host: CoreHost,
  needed: number,
  credential: Credential,
  id: string,
  comment: string,
): Promise<LegalHold> {
  return host.ledger.transactFirst(async (tx) => {
    const current = await confirmWriter(tx, credential);
    const before = await findVisibleHold(tx, tx.state(legalHoldState), current, id);
    if (before.released_at !== null)
      throw new Refusal(ERRORS.released, `the legal hold ${id} was released at ${toRfc3339(before.released_at)}`);
    const by = toActor(current.key, current.principal);
    const people = before.releases.map((release) => principalsBehindVote(host, release.by));
    const releaser = principalsBehindVote(host, by);
    const approvals = countPeople([...people, releaser]);
    if (!isNewPerson(people, releaser) && approvals < needed)
      throw new Refusal(
        "ALREADY_VOTED",
        `you, or a person who shares your vote through a key, have already requested to release the hold; ${needed} people are needed`,
      );
    const isReleased = approvals >= needed;
    const change = isReleased ? "released" : "release_asked";
    record(tx, { change, hold: recordedHoldTerms(before), comment, approvals, needed, by });
    if (isReleased) {
      await deleteSubject(host, tx, id);
      await restartRetentionSweep(host.documents.within(tx));
    }
    return findHold(tx.state(legalHoldState), id);
  });
}

/**
 * Returns true if the credential sees a hold. A credential with limits sees it if the action, or every action that the
 * hold could cover, is within the limits. So it does not see holds on people. The right to place holds does not include
 * reading actions.
 */
async function canSeeHold(
  reader: Pick<StorageReader, "action">,
  { limits }: Pick<Credential, "limits">,
  { action, agent }: Pick<LegalHold, "action" | "agent">,
): Promise<boolean> {
  if ("all" in limits) return true;
  if (action === null) return canSee(limits, { agent_id: agent, tool: null, submitted_by: null });
  const row = await reader.action(action);
  return row !== null && canSee(limits, row);
}

/** Returns the items whose holds the credential sees. */
export async function selectVisibleHolds<Item extends Pick<LegalHold, "action" | "agent">>(
  reader: Pick<StorageReader, "action">,
  credential: Pick<Credential, "limits">,
  holds: readonly Item[],
): Promise<Item[]> {
  const seen = await Promise.all(holds.map((hold) => canSeeHold(reader, credential, hold)));
  return holds.filter((_, i) => seen[i] === true);
}

/** Returns the hold if the credential sees it. Throws HOLD_NOT_FOUND. */
export async function findVisibleHold(
  reader: Pick<StorageReader, "action">,
  holds: LegalHolds,
  credential: Pick<Credential, "limits">,
  id: string,
): Promise<LegalHold> {
  const hold = findHold(holds, id);
  if (await canSeeHold(reader, credential, hold)) return hold;
  throw holdNotFoundRefusal(id);
}

function findHold(holds: LegalHolds, id: string): LegalHold {
  const hold = holds.get(id);
  if (hold === undefined) throw holdNotFoundRefusal(id);
  return hold;
}

const holdNotFoundRefusal = (id: string): Refusal =>
  new Refusal(ERRORS.notFound, `there is no legal hold "${id}" that you may see`);

/**
 * Returns the identifier of the person under an active hold. Null for a hold of a different kind, or if it cannot be
 * read.
 */
export async function readSubject(
  documents: Pick<CoreHost["documents"], "get">,
  hold: LegalHold,
): Promise<string | null> {
  if (hold.subject === null || hold.released_at !== null) return null;
  return readVerifiedSubject(hold, (await documents.get(heldSubjectKey(hold.id)))?.value);
}

async function isSameHold(host: CoreHost, tx: Tx, hold: LegalHold, requestedHold: RequestedHold): Promise<boolean> {
  if (
    hold.action !== requestedHold.action ||
    hold.agent !== requestedHold.agent ||
    hold.reason !== requestedHold.reason
  )
    return false;
  if (hold.subject === null || requestedHold.subject === null) return hold.subject === requestedHold.subject;
  // A released hold has no stored identifier to compare with.
  return hold.released_at !== null || (await readSubject(host.documents.within(tx), hold)) === requestedHold.subject;
}

/** Returns true if the agent is registered, or has submitted an action. */
async function isKnownAgent(host: CoreHost, tx: Tx, agent: string): Promise<boolean> {
  if ((await tx.agent(agent)) !== null || host.agents.registeredIds(agent).length > 0) return true;
  return (await tx.actions({ visibility: { all: true }, agent_id: agent, limit: 1 })).length > 0;
}

async function deleteSubject(host: CoreHost, tx: Tx, id: string): Promise<void> {
  const documents = host.documents.within(tx);
  const stored = await documents.get(heldSubjectKey(id));
  if (stored !== null) await documents.delete(stored.key, stored.version);
}

function record(tx: Tx, entry: Omit<LegalHoldEntry, "type" | "v" | "at">): void {
  tx.record({ type: "legal_hold", v: 1, at: toRfc3339(tx.now), ...entry });
}

/** Confirms the key under the lock. A key that is bound to an agent must not place or release holds. */
async function confirmWriter(tx: Tx, credential: Credential): Promise<Credential> {
  const current = await confirmCredential(tx, credential, "holds:write");
  if (current.key.agent_id !== null)
    throw new Refusal(
      "AGENT_MISMATCH",
      `the key "${current.key.name}" is bound to the agent "${current.key.agent_id}"; place and release legal holds with a key that is bound to no agent`,
    );
  return current;
}
