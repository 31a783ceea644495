/**
 * Verifies an action of a history against its entries. Someone who can write to the database can add an action to a
 * history, or change what the history shows of it, and a rule could then allow too much.
 */
import { type CountedRows, findCountingPolicies, recomputeCountedRows } from "./counted-rows.ts";
import type { ActionRow, EntryRow, HistorySpan, PastActionRow } from "../contract/storage.ts";
import {
  type ActionHistory,
  findDifferingColumns,
  findHistoryTime,
  readActionHistory,
} from "../domain/action-history.ts";
import { effectiveRequest } from "../domain/edited-request.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { isOwnedByName } from "../domain/policy/compile/compile-history.ts";
import { findAlteredContent } from "../domain/recorded-content.ts";

/** Columns that entries determine, and that a history shows or later decisions count. */
const RECORDED = [
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

/**
 * Returns the rows of the action that decisions count; null if the action does not belong to the history at the time of
 * `past`, or if its row differs from its entries.
 * @param compiled returns the policy set with this digest; null if it is not stored
 */
export async function verifyPastAction(
  span: HistorySpan,
  past: Pick<PastActionRow, "at">,
  row: ActionRow,
  entries: readonly EntryRow[],
  compiled: (digest: string | null) => Promise<CompiledPolicySet | null>,
): Promise<CountedRows | null> {
  const history = readActionHistory(entries);
  if (history === null || history.action.id !== row.id || findHistoryTime(history) !== past.at) return null;
  const recorded = Object.fromEntries(RECORDED.map((column) => [column, history.action[column]]));
  if (findDifferingColumns(recorded, row).length > 0) return null;
  if (findAlteredContent(row, history, ["request", "request_hash", "effective", "past", "result"]).length > 0)
    return null;
  const set = await compiled(findCountingPolicies(history));
  if (set === null) return null;
  if (row.erased_at !== null) return verifyErased(span, row, history, set);
  const request = effectiveRequest(row);
  if (request === null) return null;
  const rows = recomputeCountedRows(set, request, history, row.past);
  return isPlaced(span, rows) ? rows : null;
}

const isPlaced = ({ policy, basis, subject }: HistorySpan, { places }: CountedRows): boolean =>
  places.some((place) => place.policy === policy && place.basis === basis && place.subject === subject);

/** The owner of an erased action is unknown if it was part of the request. */
function verifyErased(
  span: HistorySpan,
  row: ActionRow,
  history: ActionHistory,
  set: CompiledPolicySet,
): CountedRows | null {
  const { id: action_id } = row;
  const { policy, basis, subject } = span;
  const at = findHistoryTime(history);
  // The expiry is not known without the request.
  const found = { uses: [], places: [{ policy, basis, subject, action_id, at, until: Number.MAX_SAFE_INTEGER }] };
  if (row.request !== "" || row.effective !== null || row.result !== null) return null;
  if (!isOwnedByName(span.basis)) return found;
  const { agent_id, tool, operation } = row;
  const names = { agent_id, tool, operation, params: {}, context: {} };
  return isPlaced(span, recomputeCountedRows(set, names, history, null)) ? found : null;
}
