/**
 * Compares an action of a history with its ledger entries. Without this comparison, someone who can write to the
 * database could add or change an action of a history, so that a rule allows too much.
 */
import {
  type CountedRows,
  DECIDED_CONTENT,
  findCountingPolicies,
  hasRecordedState,
  recomputeCountedRows,
} from "./counted-rows.ts";
import type { ActionRow, EntryRow, HistorySpan, PastActionRow } from "../contract/storage.ts";
import { type ActionHistory, findHistoryTime, readActionHistory } from "../domain/action-history.ts";
import { effectiveRequest } from "../domain/edited-request.ts";
import { equalBytes } from "../domain/hash.ts";
import { hashLeaf } from "../domain/merkle.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { isOwnedByName } from "../domain/policy/compile/compile-history.ts";
import { mayBePlaced, recomputeMemberships } from "../domain/policy/decide/effect-keys.ts";
import type { AuthorityLink, Facts } from "../domain/policy/policy-types.ts";
import { findAlteredContent } from "../domain/recorded-content.ts";
import { parseEntryTime } from "../domain/time.ts";

/**
 * Returns the rows that limits and histories count for the action. Returns null if the action's row differs from its
 * entries, or if the action was not in this history at the time `past.at` according to its entries.
 * @param compiled returns the policy set with this digest; null if it is not stored
 */
export async function verifyPastAction(
  span: HistorySpan,
  past: Pick<PastActionRow, "at">,
  row: ActionRow,
  entries: readonly EntryRow[],
  compiled: (digest: string | null) => Promise<CompiledPolicySet | null>,
): Promise<CountedRows | null> {
  const history = readOwnHistory(row.id, entries);
  if (history === null || findHistoryTime(history) !== past.at || !hasRecordedState(row, history)) return null;
  if (findAlteredContent(row, history, DECIDED_CONTENT).length > 0) return null;
  const set = await compiled(findCountingPolicies(history));
  if (set === null) return null;
  if (row.erased_at !== null) return verifyErased(span, row, history, set);
  const request = effectiveRequest(row);
  if (request === null) return null;
  const rows = recomputeCountedRows(set, request, history, row.past);
  return isPlaced(span, rows) ? rows : null;
}

/** Returns the action as its entries record it; null if someone changed an entry, or added one of another action. */
function readOwnHistory(id: string, entries: readonly EntryRow[]): ActionHistory | null {
  if (!entries.every(({ bytes, leaf_hash }) => equalBytes(hashLeaf(bytes), leaf_hash))) return null;
  try {
    const history = readActionHistory(entries);
    return history?.faults.length === 0 && history.entries.every((entry) => entry.action_id === id) ? history : null;
  } catch {
    // The service's own entries can always be parsed.
    return null;
  }
}

const isPlaced = (
  { policy, basis, subject }: HistorySpan,
  { places }: { places: readonly Pick<HistorySpan, "policy" | "basis" | "subject">[] },
): boolean =>
  places.some(
    (membership) => membership.policy === policy && membership.basis === basis && membership.subject === subject,
  );

/** The owner of an erased action is unknown if the erased request contained it. */
function verifyErased(
  span: HistorySpan,
  row: ActionRow,
  history: ActionHistory,
  set: CompiledPolicySet,
): CountedRows | null {
  const { id: action_id } = row;
  const { policy, basis, subject } = span;
  const at = findHistoryTime(history);
  // The expiry was part of the erased request.
  const found = { uses: [], places: [{ policy, basis, subject, action_id, at, until: Number.MAX_SAFE_INTEGER }] };
  if (row.request !== "" || row.effective !== null || row.result !== null) return null;
  const entry = history.edit?.entry ?? history.first;
  if (!isOwnedByName(span.basis)) return mayBePlaced(set, span, row, entry.decision.effect) ? found : null;
  const { agent_id, tool, operation } = row;
  const names = { agent_id, tool, operation, params: {}, context: {} };
  const { authority } = entry.facts;
  // The facts about the delegators were erased, but the entry still names those that can own a history.
  const delegators = authority?.fault === null ? authority.links.map(namesOfDelegator) : [];
  const decided = { ...entry, facts: { ...entry.facts, delegators } };
  return isPlaced(span, { places: recomputeMemberships(set, names, decided, parseEntryTime(entry.at), at) })
    ? found
    : null;
}

const namesOfDelegator = ({ agent_id, key_id, owner, session }: AuthorityLink): Facts => ({
  principal: { agent_id, key_id, name: "", owner },
  ...(session === null ? {} : { session }),
});
