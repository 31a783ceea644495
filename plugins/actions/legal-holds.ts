/**
 * Legal holds prevent the erasure of actions. They are stored only as ledger entries and are rebuilt from these
 * entries, so no write to the database can release a hold.
 */
import {
  type Actor,
  canonicalText,
  commitSalted,
  type JsonObject,
  type LegalHoldEntry,
  parseEntryTime,
  sameName,
} from "../../src/core.ts";
import { type Fold, PersistentMap } from "../../src/plugin.ts";

/** The hold as it was when it was placed. */
type LegalHoldTerms = LegalHoldEntry["hold"];

export interface LegalHold extends LegalHoldTerms {
  /** Sequence number of the entry that placed the hold. */
  seq: number;
  /** Time when the hold was placed. Milliseconds. */
  placed_at: number;
  placed_by: Actor;
  /** Requests to release the hold. If `released_at` is set, the last request released it. */
  releases: readonly { by: Actor; at: number; comment: string }[];
  released_at: number | null;
}

/** All holds, including released ones, keyed by id, in ledger order. */
export type LegalHolds = PersistentMap<string, LegalHold>;

/** Returns the holds after an entry. Throws RangeError if the entry contradicts earlier entries. */
function applyLegalHoldEntry(holds: LegalHolds, entry: LegalHoldEntry & { seq: number }): LegalHolds {
  const { id } = entry.hold;
  const before = holds.get(id);
  const at = parseEntryTime(entry.at);
  if (entry.change === "placed") {
    if (before !== undefined) throw new RangeError(`the legal hold ${id} is placed twice`);
    const { action, agent, subject } = entry.hold;
    if ([action, agent, subject].filter((scope) => scope !== null).length !== 1)
      throw new RangeError(`the legal hold ${id} does not have exactly one scope`);
    const placed = { seq: entry.seq, placed_at: at, placed_by: entry.by, releases: [], released_at: null };
    return holds.with(id, { ...entry.hold, ...placed });
  }
  if (before === undefined || before.released_at !== null)
    throw new RangeError(`there is no legal hold ${id} to release`);
  if (canonicalText({ ...entry.hold }) !== canonicalText(recordedHoldTerms(before)))
    throw new RangeError(`the legal hold ${id} was placed with different terms`);
  const isReleased = entry.change === "released";
  if (isReleased !== entry.approvals >= entry.needed)
    throw new RangeError(
      `${entry.approvals} of ${entry.needed} people do not make the legal hold ${id} ${entry.change}`,
    );
  const releases = [...before.releases, { by: entry.by, at, comment: entry.comment ?? "" }];
  return holds.with(id, { ...before, releases, released_at: isReleased ? at : null });
}

export const legalHoldState: Fold<LegalHolds> = {
  name: "legal_holds",
  initial: PersistentMap.of(),
  on: { legal_hold: applyLegalHoldEntry },
};

/** Returns the members of the hold that its entries record. */
export function recordedHoldTerms({ id, action, agent, subject, reason }: LegalHoldTerms): LegalHoldTerms & JsonObject {
  return { id, action, agent, subject, reason };
}

/** Returns the holds that were not released, in ledger order. */
export function listActiveHolds(holds: LegalHolds): LegalHold[] {
  return [...holds.values()].filter(({ released_at }) => released_at === null);
}

/**
 * Returns true if the hold names this action or its agent. Ignores the subject of a hold, because that depends on the
 * action's content.
 */
export function holdNamesAction(
  { action, agent }: Pick<LegalHoldTerms, "action" | "agent">,
  held: { action_id: string; agent_id: string },
): boolean {
  return action === held.action_id || (agent !== null && sameName(agent, held.agent_id));
}

/** The identifier of a person under a hold, as stored while the hold is active. */
type HeldSubject = JsonObject & { subject: string; salt: string };

/**
 * Returns the commitment that the entry records instead of the identifier, because the ledger must not contain the
 * identifier.
 */
export function commitHoldSubject(held: HeldSubject): string {
  return commitSalted(held);
}

/** Returns the identifier if the stored value matches the hold's commitment; null if it is missing or was altered. */
export function readVerifiedSubject({ subject }: Pick<LegalHoldTerms, "subject">, stored: unknown): string | null {
  const held = stored as HeldSubject | null | undefined;
  if (subject === null || typeof held?.subject !== "string" || typeof held.salt !== "string") return null;
  try {
    return commitHoldSubject(held) === subject ? held.subject : null;
  } catch {
    return null;
  }
}

/** Returns the key of the document with the identifier of a hold's person. Without an id, returns the prefix of all. */
export const heldSubjectKey = (id = ""): string => `hold/${id}`;
