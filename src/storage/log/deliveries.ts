/** Deliveries and limit uses in the logged storage. */
import type {
  DeliveryBacklog,
  DeliveryFilter,
  DeliveryRow,
  LimitSpan,
  LimitUseRow,
  StorageTransaction,
} from "../../contract/storage.ts";
import type { Tables } from "./row-types.ts";
import { copyRow, compositeKey, omitUndefined, selectRows, type Table } from "./tables.ts";

type DeliveryTables = Pick<Tables, "actions" | "deliveries" | "limitUses">;

const sorted = (t: DeliveryTables, test: (row: DeliveryRow) => boolean): DeliveryRow[] =>
  [...t.deliveries.values()].filter(test).sort((a, b) => a.position - b.position);

const byEnd = (a: DeliveryRow, b: DeliveryRow): number => a.give_up_at - b.give_up_at || a.position - b.position;
const byUrgency = (a: DeliveryRow, b: DeliveryRow): number =>
  Number(a.attempts > 0) - Number(b.attempts > 0) || byEnd(a, b);

/**
 * Returns the most urgent due delivery of each destination. Deliveries of kind `event` are sent in order, so only the
 * first waiting event of a destination is a candidate.
 */
function selectDue(t: DeliveryTables, now: number): DeliveryRow[] {
  const waiting = sorted(t, ({ state }) => state === "waiting");
  return [...new Set(waiting.map(({ destination }) => destination))]
    .flatMap((destination) => {
      const sameDestination = waiting.filter((row) => row.destination === destination);
      const [event] = sameDestination.filter(({ kind }) => kind === "event").sort(byEnd);
      return sameDestination
        .filter((row) => row.next_at <= now && (row.kind !== "event" || row === event))
        .sort(byUrgency)
        .slice(0, 1);
    })
    .sort((a, b) => a.position - b.position);
}

export function createDeliveryReads(t: DeliveryTables) {
  const used = (policy: string, limitName: string, subject: string, since: number): { count: number; sum: number } => {
    const uses = [...t.limitUses.values()].filter(
      (row) => row.policy === policy && row.limit_name === limitName && row.subject === subject && row.at >= since,
    );
    return {
      count: uses.length,
      sum: Math.min(
        uses.reduce((sum, row) => sum + row.amount, 0),
        Number.MAX_SAFE_INTEGER,
      ),
    };
  };
  return {
    delivery: (id: string) => t.deliveries.get(id),
    deliveries: ({ offset = 0, limit, before_position, ...filter }: DeliveryFilter) =>
      sorted(
        t,
        (row) =>
          (before_position === undefined || row.position < before_position) &&
          (["state", "destination", "action_id"] as const).every(
            (name) => filter[name] === undefined || row[name] === filter[name],
          ),
      )
        .reverse()
        .slice(offset, offset + limit),
    deliveriesOfAction: (id: string) => sorted(t, (row) => row.action_id === id),
    dueDeliveries: (now: number, limit: number) => selectDue(t, now).slice(0, limit),
    deliveryBacklog() {
      const countBacklog = (state: DeliveryRow["state"]): DeliveryBacklog => {
        const rows = sorted(t, (row) => row.state === state);
        return {
          count: rows.length,
          oldest: rows.length === 0 ? null : Math.min(...rows.map((row) => row.created_at)),
        };
      };
      return { scheduled: countBacklog("scheduled"), waiting: countBacklog("waiting"), dead: countBacklog("dead") };
    },
    nextScheduledDelivery() {
      const times = sorted(t, ({ state }) => state === "scheduled").map((row) => row.next_at);
      return times.length === 0 ? null : Math.min(...times);
    },
    limitUsed: used,
    limitUses: ({ policy, limit_name, subject, since }: LimitSpan, limit: number) =>
      selectRows(
        t.limitUses,
        (row) => row.policy === policy && row.limit_name === limit_name && row.subject === subject && row.at >= since,
        (a, b) => b.at - a.at || (a.action_id < b.action_id ? 1 : -1),
      ).slice(0, limit),
    limitsUsed: (spans: readonly LimitSpan[]) =>
      spans.map(({ policy, limit_name, subject, since }) => used(policy, limit_name, subject, since)),
  };
}

/** Removes up to `max` matching rows of `table` in the given order. Returns the number of removed rows. */
export function removeRows<Row>(
  table: Table<Row>,
  key: (row: Row) => string,
  test: (row: Row) => boolean,
  order: (row: Row) => number,
  max: number,
): number {
  const rows = [...table.values()]
    .filter(test)
    .sort((a, b) => order(a) - order(b))
    .slice(0, max);
  for (const row of rows) table.delete(key(row));
  return rows.length;
}

const useKey = (row: LimitUseRow): string =>
  compositeKey(row.policy, row.limit_name, row.subject, row.at, row.action_id);

export function createDeliveryWrites(t: DeliveryTables) {
  const pending = (id: string | null): boolean =>
    id !== null && [...t.actions.values()].some((row) => row.id === id && row.status === "pending_approval");
  return {
    insertDelivery(row: Omit<DeliveryRow, "position">) {
      if (t.deliveries.get(row.id) !== undefined) throw new Error(`a delivery ${row.id} already exists`);
      const position = Math.max(0, ...[...t.deliveries.values()].map((other) => other.position)) + 1;
      t.deliveries.set(row.id, copyRow({ ...row, position }));
    },
    updateDelivery(...[id, guard, change]: Parameters<StorageTransaction["updateDelivery"]>) {
      const row = t.deliveries.get(id);
      if (row === undefined || row.state !== guard.state || row.attempts !== guard.attempts) return false;
      t.deliveries.set(id, copyRow({ ...row, ...omitUndefined(change) }));
      return true;
    },
    deferDeliveries(...[destination, deferral]: Parameters<StorageTransaction["deferDeliveries"]>) {
      const { except, events, others, last_error, updated_at } = deferral;
      const until = (row: DeliveryRow): number => (row.kind === "event" ? events : others);
      const sooner = sorted(
        t,
        (row) =>
          row.state === "waiting" && row.destination === destination && row.id !== except && row.next_at < until(row),
      );
      for (const row of sooner)
        t.deliveries.set(row.id, {
          ...row,
          next_at: until(row),
          last_error: row.attempts === 0 ? last_error : row.last_error,
          updated_at,
        });
      return sooner.length;
    },
    hastenDeliveries(destination: string, attempts: number, now: number) {
      const later = sorted(
        t,
        (row) =>
          row.state === "waiting" && row.destination === destination && row.attempts <= attempts && row.next_at > now,
      );
      for (const row of later) t.deliveries.set(row.id, { ...row, next_at: now });
      return later.length;
    },
    releaseDeliveries(now: number) {
      const ripe = sorted(t, (row) => row.state === "scheduled" && row.next_at <= now);
      for (const row of ripe) t.deliveries.set(row.id, { ...row, state: "waiting" });
      return ripe.length;
    },
    pruneDeliveries: (before: number, max: number) =>
      removeRows(
        t.deliveries,
        (row) => row.id,
        (row) =>
          row.state !== "scheduled" && row.state !== "waiting" && row.updated_at < before && !pending(row.action_id),
        (row) => row.updated_at,
        max,
      ),
    insertLimitUse(row: LimitUseRow) {
      if (t.limitUses.get(useKey(row)) !== undefined) throw new Error("this use already exists");
      t.limitUses.set(useKey(row), copyRow(row));
    },
    releaseLimitUses(actionId: string) {
      removeRows(
        t.limitUses,
        useKey,
        (row) => row.action_id === actionId,
        (row) => row.at,
        Infinity,
      );
    },
    pruneLimitUses: (now: number, max: number) =>
      removeRows(
        t.limitUses,
        useKey,
        (row) => row.until <= now,
        (row) => row.until,
        max,
      ),
  };
}
