/**
 * Before the first job of a batch runs, reads the rows that the jobs announced, in at most two round trips for all
 * jobs. Without the prefetch, each job would wait for the database under the ledger's lock. Later writes of the jobs
 * update or evict prefetched rows.
 */
import type { PrefetchKeys } from "../../contract/ledger.ts";
import {
  nullIfCorrupt,
  type ActionRow,
  type EntryRow,
  type HistorySpan,
  type IdempotencyLookup,
  type IdempotencyRow,
  type KeyRow,
  type LimitSpan,
  type LimitUseRow,
  type PastActionRef,
  type PastActionRow,
  type StorageReader,
} from "../../contract/storage.ts";

type Reader = Pick<
  StorageReader,
  | "action"
  | "actionsById"
  | "entriesOfAction"
  | "idempotency"
  | "idempotencies"
  | "key"
  | "limitUsed"
  | "limitsUsed"
  | "pastActions"
>;
type LimitUsage = Awaited<ReturnType<StorageReader["limitUsed"]>>;

/** The prefetched reads. The methods update or evict them when a job writes. */
export interface PrefetchedRows extends Pick<
  Reader,
  "action" | "entriesOfAction" | "idempotency" | "key" | "limitUsed" | "pastActions"
> {
  insertAction(row: Pick<ActionRow, "id">): void;
  noteAsked(id: string): void;
  updateAction(id: string): void;
  eraseAction(id: string): void;
  revokeKey(id: string): void;
  touchKey(id: string): void;
  insertIdempotency(row: IdempotencyRow): void;
  deleteIdempotency(keyId: string, route: string, idempotencyKey: string): void;
  insertLimitUse(row: LimitUseRow): void;
  releaseLimitUses(): void;
  insertPastAction(row: PastActionRef): void;
  movePastAction(): void;
  removePastAction(): void;
}

const cacheKey = (...parts: readonly (string | number)[]): string => JSON.stringify(parts);

const spanKey = ({ policy, basis, subject, since, limit }: HistorySpan): string =>
  cacheKey(policy, basis, subject, since, limit);

/** Reads the rows that the jobs need. `requests` can be incomplete, because jobs read missing rows themselves. */
export async function prefetchRows(tx: Reader, requests: readonly PrefetchKeys[]): Promise<PrefetchedRows> {
  const histories = new Set<string>();
  const names = new Map<string, IdempotencyLookup>();
  const spans = new Map<string, LimitSpan>();
  const pasts = new Map<string, HistorySpan>();
  for (const { history, idempotency, limits = [], pastActions: spansOfPast = [] } of requests) {
    for (const span of spansOfPast) pasts.set(spanKey(span), span);
    if (history !== undefined) histories.add(history);
    if (idempotency !== undefined)
      names.set(cacheKey(idempotency.key_id, idempotency.route, idempotency.idempotency_key), idempotency);
    for (const span of limits) spans.set(cacheKey(span.policy, span.limit_name, span.subject, span.since), span);
  }
  const [stored, rows, used, past] = await Promise.all([
    readActionRows(tx, histories),
    names.size === 0 ? [] : tx.idempotencies([...names.values()]),
    spans.size === 0 ? [] : tx.limitsUsed([...spans.values()]),
    // Use one statement for each history: given a list, Postgres may read the whole table instead of the index.
    Promise.all([...pasts.values()].map(async (span) => ({ span, actions: await tx.pastActions(span) }))),
  ]);
  /** Past actions, keyed by span. */
  const pastActions = new Map<string, { span: HistorySpan; actions: PastActionRow[] }>(
    past.map((item) => [spanKey(item.span), item]),
  );
  const rowsByName = new Map<string, IdempotencyRow | null>([...names.keys()].map((name) => [name, null]));
  for (const row of rows) rowsByName.set(cacheKey(row.key_id, row.route, row.idempotency_key), row);
  /** Limit uses, keyed by policy, limit and subject. */
  const uses = new Map<string, { since: number; used: LimitUsage }[]>();
  const remember = ({ policy, limit_name, subject, since }: LimitSpan, used: LimitUsage): void => {
    const key = cacheKey(policy, limit_name, subject);
    uses.set(key, [...(uses.get(key) ?? []), { since, used }]);
  };
  [...spans.values()].forEach((span, i) => remember(span, used[i] as LimitUsage));

  return {
    async action(id) {
      const row = stored.actions.get(id);
      return row === undefined ? tx.action(id) : row === null ? null : { ...row };
    },
    insertAction: ({ id }) => void stored.actions.delete(id),
    noteAsked: (id) => void stored.actions.delete(id),
    // Evict all histories, because any of them can contain the action.
    updateAction(id) {
      stored.actions.delete(id);
      pastActions.clear();
    },
    eraseAction(id) {
      stored.actions.delete(id);
      pastActions.clear();
    },
    pastActions: async (span) => pastActions.get(spanKey(span))?.actions ?? tx.pastActions(span),
    insertPastAction({ policy, basis, subject }) {
      for (const [key, { span }] of pastActions)
        if (span.policy === policy && span.basis === basis && span.subject === subject) pastActions.delete(key);
    },
    movePastAction: () => pastActions.clear(),
    removePastAction: () => pastActions.clear(),
    // Prefetched entries stay valid after writes, because stored entries do not change. `createBatchReads` adds the
    // entries of the batch.
    entriesOfAction: async (id) => stored.entries.get(id)?.slice() ?? tx.entriesOfAction(id),
    async key(id) {
      const key = stored.keys.get(id);
      return key === undefined ? tx.key(id) : { ...key };
    },
    revokeKey: (id) => void stored.keys.delete(id),
    touchKey: (id) => void stored.keys.delete(id),
    async idempotency(keyId, route, idempotencyKey) {
      const row = rowsByName.get(cacheKey(keyId, route, idempotencyKey));
      return row === undefined ? tx.idempotency(keyId, route, idempotencyKey) : row;
    },
    async limitUsed(policy, limit_name, subject, since) {
      const earlier = uses.get(cacheKey(policy, limit_name, subject))?.find((span) => span.since === since);
      if (earlier !== undefined) return earlier.used;
      const used = await tx.limitUsed(policy, limit_name, subject, since);
      remember({ policy, limit_name, subject, since }, used);
      return used;
    },
    insertIdempotency: (row) => void rowsByName.set(cacheKey(row.key_id, row.route, row.idempotency_key), row),
    deleteIdempotency: (keyId, route, idempotencyKey) => void rowsByName.delete(cacheKey(keyId, route, idempotencyKey)),
    insertLimitUse({ policy, limit_name, subject, at, amount }) {
      for (const span of uses.get(cacheKey(policy, limit_name, subject)) ?? []) {
        const { count, sum } = span.used;
        if (span.since <= at) span.used = { count: count + 1, sum: Math.min(sum + amount, Number.MAX_SAFE_INTEGER) };
      }
    },
    // Evict all sums, because only the store knows the limits and subjects of the released uses.
    releaseLimitUses: () => uses.clear(),
  };
}

/** Rows of the requested actions, keyed by id. Omits corrupt entries, so that only the jobs that need them fail. */
interface ActionRows {
  /** Null if the row does not exist. */
  actions: Map<string, ActionRow | null>;
  entries: Map<string, readonly EntryRow[]>;
  keys: Map<string, KeyRow>;
}

async function readActionRows(tx: Reader, ids: ReadonlySet<string>): Promise<ActionRows> {
  const rows = ids.size === 0 ? [] : await tx.actionsById([...ids]);
  const [entries, keys] = await Promise.all([
    // Use one statement for each action: given a list, Postgres may read the whole table. Also, corrupt bytes then
    // affect only one action.
    Promise.all(rows.map(({ id }) => nullIfCorrupt(tx.entriesOfAction(id)))),
    Promise.all([...new Set(rows.map(({ submitted_by }) => submitted_by))].map((id) => tx.key(id))),
  ]);
  return {
    actions: new Map([...[...ids].map((id) => [id, null] as const), ...rows.map((row) => [row.id, row] as const)]),
    entries: new Map(rows.flatMap(({ id }, i) => (entries[i] == null ? [] : [[id, entries[i]] as const]))),
    keys: new Map(keys.flatMap((key) => (key === null ? [] : [[key.id, key] as const]))),
  };
}
