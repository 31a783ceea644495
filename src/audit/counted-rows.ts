/**
 * The rows of an action that later decisions count, recomputed from its entries: its uses of limits and its places in
 * histories. At startup, the service compares them with the store.
 */
import type { ActionRow, EntryRow, LimitUseRow, PastActionRef } from "../contract/storage.ts";
import {
  buildActionHistory,
  findHistoryTime,
  type ActionEntry,
  type RecordedAction,
} from "../domain/action-history.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { effectiveRequest, matchesRecordedEdit } from "../domain/edited-request.ts";
import { decodeEntry, type DecisionEntry } from "../domain/entries.ts";
import { matchesRejectionDigests } from "../domain/erased-rejection.ts";
import { toHex } from "../domain/hash.ts";
import { recomputeLimitUses } from "../domain/limit-uses.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { mayHaveMemberships, recomputeMemberships } from "../domain/policy/decide/effect-keys.ts";
import { commitDigest, encodeRequest } from "../domain/request.ts";
import { factsMatchCommitments, restoreEntry } from "../domain/salted-facts.ts";
import { parseEntryTime } from "../domain/time.ts";

export interface CountedRows {
  /** The columns that entries determine; null if the first entry is not the decision on this action. */
  recorded: RecordedAction | null;
  /** Null if the request was erased, or does not match the entries: the rows cannot be recomputed without it. */
  uses: LimitUseRow[] | null;
  places: PastActionRef[] | null;
  /** Why the rows cannot be recomputed, although nothing was erased; otherwise null. */
  fault: string | null;
  /** Whether the policies of the decision have limits, histories or effect keys. */
  mayCount: boolean;
}

/** @param compiled returns the policy set with this digest; null if it is not stored */
export async function recomputeCountedRows(
  row: ActionRow,
  rows: readonly EntryRow[],
  compiled: (digest: string | null) => Promise<CompiledPolicySet | null>,
): Promise<CountedRows> {
  // Entries of plugins about an action do not change the action.
  const stored = rows.filter(({ type }) => !type.includes(":"));
  const [first] = stored;
  const entries = stored.map(({ bytes }) => decodeEntry<ActionEntry>(bytes));
  const history = first === undefined ? null : buildActionHistory(entries, toHex(first.leaf_hash));
  const without = (recorded: RecordedAction | null, fault: string | null, mayCount = true): CountedRows => ({
    recorded,
    uses: null,
    places: null,
    fault,
    mayCount,
  });
  if (history === null || history.action.id !== row.id) return without(null, "its first entry is not its decision");
  const { action: recorded, edit } = history;
  if (recorded.erased_at !== null)
    return without(recorded, matchesRejectionDigests(history.rejected, row) ? null : "its rejection was changed");
  const decision = entries[0] as DecisionEntry & { seq: number };
  const basis = restoreEntry(edit?.entry ?? decision, row.past);
  const set = await compiled(basis.policy_set);
  if (set === null) return without(recorded, "its policy set is missing");
  const mayCount = mayHaveCountedRows(set, basis);
  const request = readRecordedRequest(row, decision);
  if (request === null || !matchesRecordedEdit(edit, row) || !factsMatchCommitments(history.past, row.past))
    return without(recorded, "its request or facts were changed", mayCount);
  const decidedAt = parseEntryTime(basis.at);
  const at = findHistoryTime(history);
  const counted = effectiveRequest(row) ?? request;
  const { id: action_id } = row;
  const uses = recomputeLimitUses(set, counted, basis, decidedAt, history);
  const places = recomputeMemberships(set, counted, basis, decidedAt, at);
  return {
    recorded,
    uses: uses.map(({ policy, limit, subject, at: usedAt, amount, until }) => {
      return { policy, limit_name: limit, subject, action_id, at: usedAt, amount, until };
    }),
    places: places.map((place) => ({ ...place, action_id, at })),
    fault: null,
    mayCount,
  };
}

/** Whether a decision can have uses of limits, or places in histories. */
export function mayHaveCountedRows(set: CompiledPolicySet, { facts }: Pick<DecisionEntry, "facts">): boolean {
  return set.hasLimits || mayHaveMemberships(set) || facts.grant !== undefined || facts.authority !== undefined;
}

/** Returns the submitted request; null if it does not match the commitment. */
function readRecordedRequest(row: ActionRow, { commitment }: DecisionEntry): ActionRequest | null {
  try {
    const request = JSON.parse(row.request) as ActionRequest;
    const isRecorded =
      encodeRequest(request).hash === row.request_hash && commitDigest(row.salt, row.request_hash) === commitment;
    return isRecorded ? request : null;
  } catch {
    return null;
  }
}
