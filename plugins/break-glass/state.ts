/**
 * Break-glass approvals: emergency approvals by one person, without a second approver. Each opens a review, which stays
 * open until another person closes it. They are stored only as ledger entries.
 */
import { type Actor, ActorSchema, closed, parseEntryTime, textSchema, timeSchema } from "../../src/core.ts";
import { defineRecord, type Fold, PersistentMap, type RecordOf, Type } from "../../src/plugin.ts";

/** An action was approved without a second approver (the entry follows the vote), or the approval was reviewed. */
export const BREAK_GLASS_ENTRY = defineRecord("break_glass", {
  at: timeSchema("Time of the entry."),
  change: Type.Union([Type.Literal("used"), Type.Literal("reviewed")], { description: "The change." }),
  agent_id: textSchema("Agent of the action."),
  use: Type.Object(
    { id: Type.String(), tool: Type.String(), operation: Type.String() },
    { description: "The break-glass approval.", ...closed },
  ),
  related_action: textSchema("The action that was approved."),
  comment: textSchema("Why the action could not wait, or the result of the review."),
  by: ActorSchema,
});
export type BreakGlassEntry = RecordOf<typeof BREAK_GLASS_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    break_glass: BreakGlassEntry;
  }
}

export interface BreakGlassUse {
  id: string;
  action_id: string;
  agent_id: string;
  tool: string;
  operation: string;
  /** The approver. */
  by: Actor;
  /** Why the action could not wait for other approvers. */
  reason: string;
  /** Milliseconds. */
  used_at: number;
  /** Sequence number of the entry. */
  seq: number;
  /** Null while the review is open. */
  review: { by: Actor; at: number; comment: string } | null;
}

interface BreakGlassUses {
  /** All uses, keyed by id, in the order of the ledger. */
  readonly all: PersistentMap<string, BreakGlassUse>;
  /** The uses without a review. */
  readonly open: ReadonlyMap<string, BreakGlassUse>;
}

/** Returns the uses after an entry. Throws RangeError if the entry contradicts earlier entries. */
function applyBreakGlassEntry(
  { all, open }: BreakGlassUses,
  { seq, change, agent_id, use, related_action, comment, by, ...entry }: BreakGlassEntry & { seq: number },
): BreakGlassUses {
  const at = parseEntryTime(entry.at);
  if (comment.trim() === "") throw new RangeError(`the break-glass approval ${use.id} has no comment`);
  const before = all.get(use.id);
  if (change === "used") {
    if (before !== undefined) throw new RangeError(`the break-glass approval ${use.id} is used twice`);
    const used = { ...use, action_id: related_action, agent_id, by, reason: comment, used_at: at, seq, review: null };
    return { all: all.with(use.id, used), open: new Map(open).set(use.id, used) };
  }
  if (before === undefined || before.review !== null)
    throw new RangeError(`there is no open break-glass approval ${use.id} to review`);
  if (before.by.principal === by.principal)
    throw new RangeError(`the break-glass approval ${use.id} is reviewed by its own approver`);
  const stillOpen = new Map(open);
  stillOpen.delete(use.id);
  return { all: all.with(use.id, { ...before, review: { by, at, comment } }), open: stillOpen };
}

export const breakGlassState: Fold<BreakGlassUses> = {
  name: "break_glass",
  initial: { all: PersistentMap.of(), open: new Map() },
  on: { break_glass: applyBreakGlassEntry },
};
