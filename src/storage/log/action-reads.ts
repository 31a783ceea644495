/** Reads of actions and their votes in the logged storage. */
import {
  type ActionFilter,
  type ActionOwner,
  type ActionRow,
  type AnalyticsQuery,
  type ApprovalRow,
  type ApprovedCursor,
  type ContainedText,
  type DecisionFilter,
  hasEarlierComments,
  type PendingCursor,
  searchedText,
  type StoredVisibility,
} from "../../contract/storage.ts";
import type { ActionStatus } from "../../domain/actions.ts";
import { authorityPrefix } from "../../domain/action-authority.ts";
import { sameName } from "../../domain/names.ts";
import { canSee } from "../../domain/visibility.ts";
import { countActions } from "./count-actions.ts";
import { readLedgerSize, type Tables } from "./row-types.ts";
import { compositeKey, selectRows } from "./tables.ts";

export function createActionReads(t: Tables) {
  return {
    action: (id: string) => t.actions.get(id),
    actionsById: (ids: readonly string[]) =>
      [...new Set(ids)].map((id) => t.actions.get(id)).filter((row) => row !== undefined),
    openAction(submittedBy: string, requestHash: string, now: number) {
      const sameRequest = [...t.actions.values()].filter(
        (row) => row.submitted_by === submittedBy && row.request_hash === requestHash,
      );
      const startable = sameRequest.filter(({ status }) => status === "allowed" || status === "approved");
      const waiting = sameRequest.filter(({ status }) => status === "pending_approval");
      return (
        findLastToEnd(startable, now, (row) => row.approved_until) ??
        findLastToEnd(waiting, now, (row) => row.expires_at)
      );
    },
    rejectedAction: (requestHash: string, now: number) =>
      findLastToEnd(
        [...t.actions.values()].filter((row) => row.request_hash === requestHash || row.effective_hash === requestHash),
        now,
        (row) => row.rejection_until,
      ),
    actions: (filter: ActionFilter) =>
      selectRows(
        t.actions,
        (row) => matches(t, row, filter),
        (a, b) => b.decision_seq - a.decision_seq,
      ).slice(filter.offset ?? 0, (filter.offset ?? 0) + filter.limit),
    openActionsOf: (owner: ActionOwner, now: number, limit: number) =>
      [...t.actions.values()]
        .filter(
          (row) =>
            openUntil(row) > now &&
            ("key_id" in owner ? row.submitted_by === owner.key_id : sameName(row.agent_id, owner.agent_id)) &&
            (!("authority" in owner) || row.authority?.startsWith(authorityPrefix(owner.authority)) === true),
        )
        .slice(0, limit),
    approvedActions: (after: ApprovedCursor, limit: number) =>
      selectRows(
        t.actions,
        ({ status, approved_until: ends, decision_seq: seq }) =>
          status === "approved" &&
          ends !== null &&
          (ends > after.approved_until || (ends === after.approved_until && seq > after.decision_seq)),
        (a, b) => (a.approved_until ?? 0) - (b.approved_until ?? 0) || a.decision_seq - b.decision_seq,
      ).slice(0, limit),
    approvals: (id: string) => votesOn(t, [id]),
    approvalsOfActions: (ids: readonly string[]) => votesOn(t, ids),
  };
}

/** Reads of decisions on actions. */
export function createDecisionReads(t: Tables) {
  return {
    decisionSpan(since: number, until: number) {
      const rows = selectRows(
        t.actions,
        (row) => row.created_at >= since && row.created_at < until,
        (a, b) => a.decision_seq - b.decision_seq,
      );
      return rows.length === 0 ? null : { first: rows[0]?.decision_seq, last: rows.at(-1)?.decision_seq };
    },
    decisions: ({ from_seq, before_seq, limit, visibility, since, until }: DecisionFilter) =>
      selectRows(
        t.actions,
        (row) =>
          matches(t, row, { visibility, since, until, before_seq, limit }) &&
          row.decision_seq >= from_seq &&
          row.decision_seq < readLedgerSize(t),
        (a, b) => b.decision_seq - a.decision_seq,
      )
        .slice(0, limit)
        .map(({ decision_seq: seq, id: action_id, created_at, request, past }) => ({
          seq,
          action_id,
          created_at,
          request,
          past,
          bytes: t.entries.get(compositeKey(seq))?.bytes,
        })),
    approvalRequests(keyId: string, since: number, until: number, most: number) {
      const rows = selectRows(
        t.actions,
        ({ submitted_by, decision, created_at }) =>
          submitted_by === keyId && decision === "require_approval" && created_at >= since && created_at < until,
        (a, b) => b.created_at - a.created_at,
      ).slice(0, most);
      return {
        requests: rows.length,
        hours: new Set(rows.map(({ created_at }) => Math.floor(created_at / 3_600_000))).size,
      };
    },
    analytics: (query: AnalyticsQuery) => countActions([...t.actions.values()], query),
  };
}

/** Reads of pending actions, earliest expiry first. */
export function createPendingReads(t: Tables) {
  const pending = (): ActionRow[] =>
    selectRows(
      t.actions,
      (row) => row.status === "pending_approval" && row.expires_at !== null,
      (a, b) => (a.expires_at ?? 0) - (b.expires_at ?? 0) || a.decision_seq - b.decision_seq,
    );
  return {
    overdueActions: (now: number, limit: number) =>
      pending()
        .filter((row) => (row.expires_at ?? 0) <= now)
        .slice(0, limit),
    pendingActions: (visibility: StoredVisibility, after: PendingCursor, limit: number, contains?: ContainedText) =>
      pending()
        .filter(
          ({ expires_at, decision_seq }) =>
            (expires_at ?? 0) > after.expires_at ||
            (expires_at === after.expires_at && decision_seq > after.decision_seq),
        )
        .filter((row) => canSee(visibility, row) && containsText(t, row, contains))
        .slice(0, limit),
    pendingCount: (visibility: StoredVisibility, now: number) =>
      pending().filter((row) => (row.expires_at ?? 0) > now && canSee(visibility, row)).length,
    oldestPending: (now: number) =>
      pending()
        .filter((row) => (row.expires_at ?? 0) > now)
        .reduce<number | null>((oldest, row) => Math.min(oldest ?? Infinity, row.created_at), null),
    nextExpiry: () => pending()[0]?.expires_at,
  };
}

/** Returns the deadline of an open action; 0 if the action is not open. */
function openUntil({ status, expires_at, approved_until }: ActionRow): number {
  if (status === "pending_approval") return expires_at ?? 0;
  return status === "allowed" || status === "approved" ? (approved_until ?? 0) : 0;
}

function findLastToEnd(
  rows: readonly ActionRow[],
  now: number,
  endOf: (row: ActionRow) => number | null,
): ActionRow | undefined {
  const ends = (row: ActionRow): number => endOf(row) ?? 0;
  return rows
    .filter((row) => ends(row) > now)
    .toSorted((a, b) => ends(b) - ends(a) || b.decision_seq - a.decision_seq)[0];
}

const EQUALITY_FILTERS = [
  "agent_id",
  "tool",
  "operation",
  "decision",
  "policy",
  "rule",
  "request_hash",
  "allowed_by",
  "plan_id",
] as const;

function matches(t: Tables, row: ActionRow, filter: ActionFilter): boolean {
  const { visibility: seen } = filter;
  return (
    ("all" in seen || ("agent_id" in seen ? row.agent_id === seen.agent_id : row.submitted_by === seen.key_id)) &&
    (filter.status === undefined || statusOf(row, filter.as_of) === filter.status) &&
    EQUALITY_FILTERS.every((name) => filter[name] === undefined || row[name] === filter[name]) &&
    (filter.first_of_plan === undefined || row.plan_position === 1) &&
    (filter.since === undefined || row.created_at >= filter.since) &&
    (filter.until === undefined || row.created_at < filter.until) &&
    (filter.from_seq === undefined || row.decision_seq >= filter.from_seq) &&
    (filter.before_seq === undefined || row.decision_seq < filter.before_seq) &&
    // The slowest condition is last.
    containsText(t, row, filter.contains)
  );
}

const votesOn = (t: Tables, ids: readonly string[]): ApprovalRow[] =>
  selectRows(
    t.approvals,
    (row) => ids.includes(row.action_id),
    (a, b) => a.seq - b.seq,
  );

function containsText(t: Tables, row: ActionRow, contains: ContainedText | undefined): boolean {
  if (contains === undefined) return true;
  const { text, id_prefix } = contains;
  const pattern = new RegExp(
    text.replace(/\W|_/g, (each) => (/[_%\\]/.test(each) ? "." : `\\${each}`)),
    "is",
  );
  const votes = row.quorum === null ? [] : votesOn(t, [row.id]);
  const { plain, json } = searchedText(row, votes);
  return (
    pattern.test(plain) ||
    pattern.test(json) ||
    (id_prefix !== "" && row.id.startsWith(id_prefix)) ||
    (row.quorum !== null && row.questions !== null) ||
    votes.some(({ principal }) => principal.startsWith("key:")) ||
    hasEarlierComments(row)
  );
}

function statusOf(row: ActionRow, asOf = -Infinity): ActionStatus {
  return row.status === "pending_approval" && (row.expires_at ?? 0) <= asOf ? "expired" : row.status;
}
