/**
 * Writes the rows of actions and votes. The columns that entries determine come from the functions with which the audit
 * recomputes them (`src/domain/action-columns.ts`), so that no caller can write a row that differs from the ledger.
 */
import type { AppendedEntry } from "../../contract/host.ts";
import type { ActionRecorder, RecordedWrites } from "../../contract/ledger.ts";
import type { ActionChange, ActionGuard, ActionRow } from "../../contract/storage.ts";
import { changedColumns, decidedColumns, voidsVotes, votedColumns } from "../../domain/action-columns.ts";
import type { ChangeEntry, DecisionEntry, ErasingEntry } from "../../domain/entries.ts";
import { parseEntryTime } from "../../domain/time.ts";

/** Changes actions of which the caller has the row. */
export interface ActionChanger {
  /** Resolves to false if the guard does not match. */
  changeAction(row: ActionRow, guard: ActionGuard, change: ActionChange): Promise<boolean>;
}

interface RecorderOptions {
  now: number;
  record(entry: DecisionEntry | ChangeEntry | ErasingEntry, submittedBy: string): AppendedEntry;
  expectChange(write: Promise<boolean>, row: string): void;
  writes: RecordedWrites & ActionChanger;
}

export function createActionRecorder({ now, record, expectChange, writes }: RecorderOptions): ActionRecorder {
  const expect = (id: string, write: Promise<boolean | void>): void =>
    expectChange(
      write.then((changed) => changed !== false),
      `the action ${id}`,
    );

  return {
    recordDecision(entry, content) {
      const { seq, hash } = record(entry, entry.submitted_by.key_id);
      const unanswered = { questions: null, asked_at: null, waits: null, result: null };
      const row: ActionRow = Object.assign(decidedColumns(entry, { seq, hash }), content, unanswered);
      expect(row.id, writes.insertAction(row));
      return row;
    },
    recordChange(row, history, entry, content = {}) {
      const { seq, hash } = record(entry, row.submitted_by);
      const columns = changedColumns(row, entry);
      const vote = votedColumns({ ...entry, seq });
      if (history !== null && voidsVotes(history, entry)) expect(row.id, writes.deleteApprovals(row.id));
      if (vote !== null) expect(row.id, writes.insertApproval(vote));
      const change = { status: row.status, updated_at: row.updated_at, ...columns, ...content };
      expect(row.id, writes.changeAction(row, guardOf(row, change.status, now), change));
      return { row: { ...row, ...change }, seq, hash, vote };
    },
    async recordErasure(row, entry, digests) {
      const { id, status, updated_at } = row;
      record(entry, row.submitted_by);
      const at = parseEntryTime(entry.at);
      const isErased =
        entry.type === "erasure" ? await writes.eraseAction(id, at) : await writes.eraseActionPart(id, entry.part);
      const isKept =
        digests === null ||
        (await writes.changeAction({ ...row, erased_at: at }, { status }, { status, updated_at, ...digests }));
      if (!isErased || !isKept) throw new Error(`${id} was not erased although the ledger's lock was held`);
    },
  };
}

/**
 * Returns the condition of a change: the stored row still has its status, and its deadline has passed if the action
 * expires, and otherwise has not.
 */
function guardOf({ status }: ActionRow, next: ActionRow["status"], now: number): ActionGuard {
  const isPending = status === "pending_approval";
  if (next === "expired") return isPending ? { status, expired_by: now } : { status };
  if (isPending) return { status, expires_after: now };
  return status === "allowed" || status === "approved" ? { status, approved_after: now } : { status };
}
