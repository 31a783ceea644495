/** Histories of policies in the logged storage. */
import {
  MAX_PAST_REQUEST,
  type ActionRow,
  type HistorySpan,
  type PastActionRef,
  type PastActionRow,
} from "../../contract/storage.ts";
import { removeRows } from "./deliveries.ts";
import type { Tables } from "./row-types.ts";
import { copyRow, compositeKey } from "./tables.ts";

export function createPastActionReads(t: Pick<Tables, "actions" | "pastActions">) {
  return {
    pastActions: ({ policy, basis, subject, since, limit }: HistorySpan): PastActionRow[] =>
      [...t.pastActions.values()]
        .filter((row) => row.policy === policy && row.basis === basis && row.subject === subject && row.at >= since)
        .sort((a, b) => b.at - a.at || (a.action_id < b.action_id ? 1 : -1))
        .slice(0, limit)
        .flatMap(({ action_id, at }) => {
          const row = t.actions.get(action_id);
          return row === undefined ? [] : toPastAction(row, at);
        }),
  };
}

function toPastAction(row: ActionRow, at: number): PastActionRow {
  const { id, agent_id, tool, operation, status, decision, reason_code } = row;
  const { expires_at, approved_until, started_at, erased_at } = row;
  const request = row.request.length <= MAX_PAST_REQUEST ? row.request : null;
  const effective = row.effective !== null && row.effective.length > MAX_PAST_REQUEST ? "" : row.effective;
  const result = row.result !== null && row.result.length > MAX_PAST_REQUEST ? null : row.result;
  const names = { id, agent_id, tool, operation, status, decision, reason_code };
  return { ...names, at, expires_at, approved_until, started_at, erased_at, request, effective, result };
}

const keyOf = (row: PastActionRef): string => compositeKey(row.policy, row.basis, row.subject, row.at, row.action_id);

export function createPastActionWrites(t: Pick<Tables, "actions" | "pastActions">) {
  return {
    insertPastAction(row: PastActionRef) {
      if (t.pastActions.get(keyOf(row)) !== undefined) throw new Error("this past action already exists");
      t.pastActions.set(keyOf(row), copyRow(row));
    },
    movePastAction(actionId: string, at: number) {
      for (const row of t.pastActions.values())
        if (row.action_id === actionId && row.at < at) {
          t.pastActions.delete(keyOf(row));
          const moved = { ...row, at, until: row.until + at - row.at };
          t.pastActions.set(keyOf(moved), copyRow(moved));
        }
    },
    removePastAction(actionId: string) {
      removeRows(
        t.pastActions,
        keyOf,
        (row) => row.action_id === actionId,
        (row) => row.at,
        Infinity,
      );
    },
    prunePastActions: (now: number, max: number) =>
      removeRows(
        t.pastActions,
        keyOf,
        (row) => row.until <= now,
        (row) => row.until,
        max,
      ),
  };
}
