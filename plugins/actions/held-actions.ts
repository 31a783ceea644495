/** Finds the legal hold that prevents the erasure of an action. */
import type { CoreHost } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { createSubjectFilter } from "./content-filter.ts";
import {
  heldSubjectKey,
  holdNamesAction,
  type LegalHold,
  type LegalHolds,
  legalHoldState,
  listActiveHolds,
  readVerifiedSubject,
} from "./legal-holds.ts";

type DocumentReader = Pick<CoreHost["documents"], "list">;

/** Maximum number of active holds, because every erasure checks each of them. */
export const MAX_ACTIVE_HOLDS = 100;

type FindHold = (row: ActionRow) => LegalHold | null;

/**
 * Returns a function that finds the oldest active hold on an action. If a hold is on a person and the person's
 * identifier cannot be read, the hold covers every action, because any action may mention the person.
 */
export async function createHoldFinder(
  host: Pick<CoreHost, "log">,
  holds: LegalHolds,
  documents: DocumentReader,
): Promise<FindHold> {
  const active = listActiveHolds(holds);
  const stored = active.some(({ subject }) => subject !== null)
    ? await documents.list({ prefix: heldSubjectKey(), limit: MAX_ACTIVE_HOLDS })
    : [];
  const checks = active.map((hold) => {
    if (hold.subject === null)
      return { hold, covers: (row: ActionRow) => holdNamesAction(hold, { action_id: row.id, agent_id: row.agent_id }) };
    const subject = readSubject(hold, stored);
    if (subject === null)
      host.log.error(
        "the identifier of a legal hold is missing or was altered, so nothing is erased; run assent audit",
        {
          hold: hold.id,
        },
      );
    return { hold, covers: subject === null ? () => true : createSubjectFilter(subject) };
  });
  return (row) => checks.find(({ covers }) => covers(row))?.hold ?? null;
}

/** Whether the identifier of a person under an active hold cannot be read. Nothing can then be erased. */
export async function hasUnreadableHold({ state, documents }: Pick<CoreHost, "state" | "documents">): Promise<boolean> {
  const held = listActiveHolds(await state(legalHoldState)).filter(({ subject }) => subject !== null);
  if (held.length === 0) return false;
  const stored = await documents.list({ prefix: heldSubjectKey(), limit: MAX_ACTIVE_HOLDS });
  return held.some((hold) => readSubject(hold, stored) === null);
}

/** Returns the identifier of the person; null if it is missing or was altered. */
function readSubject(hold: LegalHold, stored: Awaited<ReturnType<DocumentReader["list"]>>): string | null {
  return readVerifiedSubject(hold, stored.find(({ key }) => key === heldSubjectKey(hold.id))?.value);
}

export function actionHeldError(id: string, hold: string): Refusal {
  return new Refusal(
    "ACTION_HELD",
    `the action ${id} is under the legal hold ${hold} and was not erased; it can be erased once the hold is released`,
  );
}
