/**
 * What the jobs of a batch are known to read, read for all of them at once before the first one runs: each would else
 * wait for the database under the ledger's lock. What the jobs write of it afterwards is followed here.
 */
import type { Foresight } from "../contract/host.ts";
import type {
  ActionRow,
  IdempotencyName,
  IdempotencyRow,
  LimitSpan,
  LimitUseRow,
  StorageReader,
} from "../contract/storage.ts";

type Reader = Pick<
  StorageReader,
  "action" | "actionIds" | "idempotency" | "idempotencies" | "limitUsed" | "limitsUsed"
>;
type Used = Awaited<ReturnType<StorageReader["limitUsed"]>>;

/** Reads as the jobs see them; the rest is told when a job writes. */
export interface Foreseen extends Pick<Reader, "action" | "idempotency" | "limitUsed"> {
  insertAction(row: Pick<ActionRow, "id">): void;
  insertIdempotency(row: IdempotencyRow): void;
  deleteIdempotency(keyId: string, route: string, idempotencyKey: string): void;
  insertLimitUse(row: LimitUseRow): void;
  releaseLimitUses(): void;
}

const textOf = (...parts: readonly (string | number)[]): string => JSON.stringify(parts);

/** `foresights` may be wrong: what nobody foresaw is read when it is asked for. */
export async function foresee(tx: Reader, foresights: readonly Foresight[]): Promise<Foreseen> {
  const ids = new Set<string>();
  const names = new Map<string, IdempotencyName>();
  const spans = new Map<string, LimitSpan>();
  for (const { action, idempotency, limits = [] } of foresights) {
    if (action !== undefined) ids.add(action);
    if (idempotency !== undefined)
      names.set(textOf(idempotency.key_id, idempotency.route, idempotency.idempotency_key), idempotency);
    for (const span of limits) spans.set(textOf(span.policy, span.limit_name, span.subject, span.since), span);
  }
  const [actions, rows, used] = await Promise.all([
    ids.size === 0 ? [] : tx.actionIds([...ids]),
    names.size === 0 ? [] : tx.idempotencies([...names.values()]),
    spans.size === 0 ? [] : tx.limitsUsed([...spans.values()]),
  ]);
  for (const id of actions) ids.delete(id);
  const rowsByName = new Map<string, IdempotencyRow | null>([...names.keys()].map((name) => [name, null]));
  for (const row of rows) rowsByName.set(textOf(row.key_id, row.route, row.idempotency_key), row);
  /** By policy, limit and subject. */
  const uses = new Map<string, { since: number; used: Used }[]>();
  const remember = ({ policy, limit_name, subject, since }: LimitSpan, used: Used): void => {
    const key = textOf(policy, limit_name, subject);
    uses.set(key, [...(uses.get(key) ?? []), { since, used }]);
  };
  [...spans.values()].forEach((span, i) => remember(span, used[i] as Used));

  return {
    // Only of those that are not there is it known what they are.
    action: (id) => (ids.has(id) ? Promise.resolve(null) : tx.action(id)),
    insertAction: ({ id }) => void ids.delete(id),
    async idempotency(keyId, route, idempotencyKey) {
      const row = rowsByName.get(textOf(keyId, route, idempotencyKey));
      return row === undefined ? tx.idempotency(keyId, route, idempotencyKey) : row;
    },
    async limitUsed(policy, limit_name, subject, since) {
      const earlier = uses.get(textOf(policy, limit_name, subject))?.find((span) => span.since === since);
      if (earlier !== undefined) return earlier.used;
      const used = await tx.limitUsed(policy, limit_name, subject, since);
      remember({ policy, limit_name, subject, since }, used);
      return used;
    },
    insertIdempotency: (row) => void rowsByName.set(textOf(row.key_id, row.route, row.idempotency_key), row),
    deleteIdempotency: (keyId, route, idempotencyKey) => void rowsByName.delete(textOf(keyId, route, idempotencyKey)),
    insertLimitUse({ policy, limit_name, subject, at, amount }) {
      for (const span of uses.get(textOf(policy, limit_name, subject)) ?? []) {
        const { count, sum } = span.used;
        if (span.since <= at) span.used = { count: count + 1, sum: Math.min(sum + amount, Number.MAX_SAFE_INTEGER) };
      }
    },
    // Whose they were is known to the store.
    releaseLimitUses: () => uses.clear(),
  };
}
