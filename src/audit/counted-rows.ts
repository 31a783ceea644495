/** Recomputes the rows of an action that later decisions count: its limit uses and its places in histories. */
import type {
  ActionRow,
  CopiedRow,
  EntryRow,
  LimitUseRow,
  PastActionRef,
  StorageCopying,
} from "../contract/storage.ts";
import { type ActionHistory, findHistoryTime, readActionHistory } from "../domain/action-history.ts";
import type { RecordedAction } from "../domain/action-columns.ts";
import { findDifferingColumns } from "../domain/differing-columns.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { effectiveRequest } from "../domain/edited-request.ts";
import type { DecisionEntry } from "../domain/entries.ts";
import { recomputeLimitUses } from "../domain/limit-uses.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { mayHaveMemberships, recomputeMemberships } from "../domain/policy/decide/effect-keys.ts";
import { findAlteredContent } from "../domain/recorded-content.ts";
import { restoreEntry } from "../domain/salted-facts.ts";
import { parseEntryTime } from "../domain/time.ts";

/** Number of ids that share a prefix: they differ only in the last hexadecimal digit. */
const ROWS_PER_PREFIX = 16;

export interface CountedRows {
  uses: LimitUseRow[];
  places: PastActionRef[];
}

/** The recomputed columns and rows of an action, which startup compares with the store. */
export interface RecordedRows extends Partial<CountedRows> {
  /** The columns that entries determine; null if the first entry is not the decision on this action. */
  recorded: RecordedAction | null;
  /** Why the rows cannot be recomputed, although nothing was erased; otherwise null. */
  fault: string | null;
  /** Whether the policies of the decision have limits, histories or effect keys. */
  mayCount: boolean;
  /** Whether the entries record every fact about the action that a history contains. */
  isAsRecorded?: boolean;
}

/** Columns whose values follow from entries, and that histories contain or limits count. */
const RECORDED_COLUMNS = [
  "agent_id",
  "tool",
  "operation",
  "status",
  "decision",
  "reason_code",
  "expires_at",
  "approved_until",
  "started_at",
  "erased_at",
  "rejection_until",
] as const;

/** The content from which the counted rows of an action are recomputed. */
export const DECIDED_CONTENT = ["request", "request_hash", "effective", "past"] as const;

/** Returns true if the status, the other columns of `RECORDED` and the result of an action equal its entries. */
export function hasRecordedState(row: ActionRow, history: ActionHistory): boolean {
  const recorded = Object.fromEntries(RECORDED_COLUMNS.map((column) => [column, history.action[column]]));
  if (findDifferingColumns(recorded, row).length > 0) return false;
  // An erased result has no commitment to compare with.
  if (history.erasedParts.includes("result") && row.result !== null) return false;
  return findAlteredContent(row, history, ["result"]).length === 0;
}

/**
 * Returns the digest of the policy set whose decision determines the rows. If the request was edited, this is the
 * decision on the edited request.
 */
export function findCountingPolicies({ first, edit }: ActionHistory): string | null {
  return (edit?.entry ?? first).policy_set;
}

/**
 * Recomputes the rows from the entries of the action.
 * @param set the policy set whose digest `findCountingPolicies` returns
 * @param request the request that may run
 * @param past the data that the decisions read
 */
export function recomputeCountedRows(
  set: CompiledPolicySet,
  request: ActionRequest,
  history: ActionHistory,
  past: string | null,
): CountedRows {
  const basis = restoreEntry(history.edit?.entry ?? history.first, past);
  if (!mayHaveCountedRows(set, basis)) return { uses: [], places: [] };
  const decidedAt = parseEntryTime(basis.at);
  const at = findHistoryTime(history);
  const action_id = history.action.id;
  return {
    uses: recomputeLimitUses(set, request, basis, decidedAt, history).map(
      ({ policy, limit, subject, at: usedAt, amount, until }) => {
        return { policy, limit_name: limit, subject, action_id, at: usedAt, amount, until };
      },
    ),
    places: recomputeMemberships(set, request, basis, decidedAt, at).map((membership) => ({
      ...membership,
      action_id,
      at,
    })),
  };
}

/**
 * Recomputes the columns and rows of an action, so that startup can compare them with the store.
 * @param compiled returns the policy set with this digest; null if it is not stored
 */
export async function recomputeRows(
  row: ActionRow,
  rows: readonly EntryRow[],
  compiled: (digest: string | null) => Promise<CompiledPolicySet | null>,
): Promise<RecordedRows> {
  const history = readActionHistory(rows);
  if (history === null || history.action.id !== row.id)
    return { recorded: null, fault: "its first entry is not its decision", mayCount: true };
  const { action: recorded } = history;
  const altered = findAlteredContent(row, history, DECIDED_CONTENT);
  if (recorded.erased_at !== null)
    return { recorded, fault: altered.length === 0 ? null : "its rejection was changed", mayCount: true };
  const set = await compiled(findCountingPolicies(history));
  if (set === null) return { recorded, fault: "its policy set is missing", mayCount: true };
  const mayCount = mayHaveCountedRows(set, history.edit?.entry ?? history.first);
  const request = altered.length === 0 ? effectiveRequest(row) : null;
  if (request === null) return { recorded, fault: "its request or facts were changed", mayCount };
  const isAsRecorded = hasRecordedState(row, history);
  return { recorded, ...recomputeCountedRows(set, request, history, row.past), fault: null, mayCount, isAsRecorded };
}

/** Returns true if a decision can have uses of limits, or places in histories. */
export function mayHaveCountedRows(set: CompiledPolicySet, { facts }: Pick<DecisionEntry, "facts">): boolean {
  return set.hasLimits || mayHaveMemberships(set) || facts.grant !== undefined || facts.authority !== undefined;
}

/** Returns the stored row with the key of `row`; null if there is none. */
export async function readCountedRow(
  copying: StorageCopying,
  table: "limit_uses" | "past_actions",
  row: LimitUseRow | PastActionRef,
): Promise<CopiedRow | null> {
  const { action_id, subject } = row;
  // The primary keys end with the action's id. So the row follows the key in which the id lacks its last digit.
  const stored = await copying.read(table, { ...row, action_id: action_id.slice(0, -1) }, ROWS_PER_PREFIX);
  return stored.find((candidate) => candidate["action_id"] === action_id && candidate["subject"] === subject) ?? null;
}
