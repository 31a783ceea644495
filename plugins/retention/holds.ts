/**
 * Legal holds prevent the erasure of actions. They are stored only as ledger entries and are rebuilt from these
 * entries, so no write to the database can release a hold.
 */
import {
  type Actor,
  ActorSchema,
  canonicalText,
  closed,
  commitSalted,
  type CoreHost,
  countSchema,
  type JsonObject,
  orNull,
  parseEntryTime,
  sameName,
  textSchema,
  timeSchema,
} from "../../src/core.ts";
import { defineRecord, errorKind, type Fold, PersistentMap, type RecordOf, Refusal, Type } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { digestSchema } from "../actions/api.ts";
import { createSubjectFilter } from "./content-filter.ts";

export const ERRORS = {
  open: errorKind("ACTION_OPEN", 409, "The action is not finished"),
  held: errorKind("ACTION_HELD", 409, "The action is under legal hold"),
  notFound: errorKind("HOLD_NOT_FOUND", 404, "No such legal hold"),
  released: errorKind("HOLD_RELEASED", 409, "The legal hold was released"),
  tooMany: errorKind("TOO_MANY_HOLDS", 429, "Too many legal holds are active"),
};

/** Maximum number of active holds, because every erasure checks each of them. */
export const MAX_ACTIVE_HOLDS = 100;

/** A hold was placed or released. `release_asked`: too few people have requested the release, so it remains active. */
export const LEGAL_HOLD_ENTRY = defineRecord("legal_hold", {
  at: timeSchema("Time of the entry."),
  change: Type.Union([Type.Literal("placed"), Type.Literal("release_asked"), Type.Literal("released")], {
    description: "The change.",
  }),
  hold: Type.Object(
    {
      id: Type.String(),
      action: orNull(textSchema("Id of the action that the hold covers.")),
      agent: orNull(textSchema("The agent whose actions the hold covers.")),
      subject: orNull(digestSchema("Salted commitment to the identifier of the person whose actions the hold covers.")),
      reason: Type.String(),
    },
    { description: "The hold as it was when it was placed.", ...closed },
  ),
  comment: orNull(textSchema("Why the hold can be released.")),
  approvals: countSchema("Number of people who have requested to release the hold."),
  needed: countSchema("Number of people who must request to release the hold."),
  by: ActorSchema,
});
export type LegalHoldEntry = RecordOf<typeof LEGAL_HOLD_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    legal_hold: LegalHoldEntry;
  }
}

/** The original terms of a hold. */
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

type DocumentReader = Pick<CoreHost["documents"], "list">;

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

/** Returns true if the identifier of a person under an active hold cannot be read. Then nothing can be erased. */
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
    ERRORS.held,
    `the action ${id} is under the legal hold ${hold} and was not erased; it can be erased once the hold is released`,
  );
}
