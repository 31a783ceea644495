/**
 * Sends the ledger's entries to one sink, in order, each at least once. Only one process at a time does this. The
 * position is stored with the ledger, and advances only after the sink has confirmed a batch.
 */
import { setImmediate } from "node:timers/promises";
import {
  type CoreHost,
  createRepeatingTask,
  formatTlogProof,
  type LeaderLease,
  toHex,
  utf8,
  VERSION,
} from "../../src/core.ts";
import { toApiActivity } from "./api-activity.ts";
import type { Sink } from "./sink.ts";

const BATCH = 100;
/**
 * Interval between exports without new entries, in case an announcement was missed. New entries start an export
 * immediately. Milliseconds.
 */
const INTERVAL_MS = 5000;
const AFTER_FAILURE = 2000;

interface EventExport {
  readonly name: string;
  /** Returns the number of entries that the sink has not confirmed. */
  lag(): Promise<number>;
  start(): void;
  /** Sends all entries that exist now. Rejects if the sink or the store fails. */
  round(): Promise<void>;
  stop(): Promise<void>;
}

export function createEventExport(host: CoreHost, name: string, sink: Sink): EventExport {
  const key = `position:${name}`;
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, host.stopping]);
  let lease: LeaderLease | null = null;
  /**
   * Position of the next entry to send; null if it must be read again because another process may have sent entries.
   */
  let position: { next: number; version: number | null } | null = null;
  let unsubscribe: (() => void) | null = null;

  async function round(): Promise<void> {
    lease ??= host.leaderLease(`ocsf:${name}`);
    try {
      while (!signal.aborted) {
        if (!(await lease.isLeader())) {
          position = null;
          return;
        }
        position ??= await readPosition();
        if (!(await sendBatch(position))) return;
        await setImmediate();
      }
    } catch (error) {
      position = null;
      throw error;
    }
  }

  /** Sends the next batch. Returns false if there is nothing to send. */
  async function sendBatch(from: { next: number; version: number | null }): Promise<boolean> {
    const { size } = await host.ledger.head();
    if (from.next >= size) return false;
    const checkpoint = await host.ledger.checkpoint();
    const rows = await host.entries(from.next, Math.min(from.next + BATCH, checkpoint.size));
    const last = rows.at(-1);
    if (last === undefined) return false;
    await sink.write(await renderEvents(host, rows, checkpoint), signal);
    position = await storePosition({ next: last.seq + 1, uid: toHex(last.leaf_hash) }, from.version);
    return true;
  }

  /**
   * Returns the position after the last event that the sink has. If a crash prevented the position from being stored,
   * the sink is ahead of it.
   */
  async function readPosition(): Promise<{ next: number; version: number | null }> {
    const stored = await host.documents.get(key);
    const next = (stored?.value as { next: number } | undefined)?.next ?? 0;
    const version = stored?.version ?? null;
    const last = await sink.resume();
    if (last === null || last.sequence < next) return { next, version };
    const [row] = await host.entries(last.sequence, last.sequence + 1);
    if (row !== undefined && toHex(row.leaf_hash) === last.uid) return { next: last.sequence + 1, version };
    host.log.warn(
      "an export contains events from a different history of the log; it continues at its stored position",
      {
        export: name,
        next,
      },
    );
    return { next, version };
  }

  async function storePosition(value: { next: number; uid: string }, ifVersion: number | null) {
    const version = await host.ledger.transact((tx) => host.documents.within(tx).put(key, value, ifVersion));
    if (version === null) throw new Error("another process sends the same export; waiting for it");
    return { next: value.next, version };
  }

  const rounds = createRepeatingTask({
    task: round,
    everyMs: INTERVAL_MS,
    afterFailureMs: AFTER_FAILURE,
    onFailure: (error) =>
      host.log.warn("events could not be exported; retrying", { export: name, error: String(error) }),
  });

  return {
    name,
    round,
    async lag() {
      const stored = await host.documents.get(key);
      const { size } = await host.ledger.head();
      return Math.max(0, size - ((stored?.value as { next: number } | undefined)?.next ?? 0));
    },
    start() {
      unsubscribe = host.ledger.onGrowth(() => void rounds.run());
      rounds.start();
    },
    async stop() {
      unsubscribe?.();
      stopping.abort(new Error("the export is stopping"));
      await rounds.stop();
      await sink.close();
      await lease?.release().catch(() => undefined);
    },
  };
}

/** Returns the events of the entries, each with the proof of its inclusion in the checkpoint. */
async function renderEvents(
  { ledger }: CoreHost,
  rows: Awaited<ReturnType<CoreHost["entries"]>>,
  checkpoint: Awaited<ReturnType<CoreHost["ledger"]["checkpoint"]>>,
) {
  const events = [];
  for (const row of rows) {
    const { index, path, log_keys } = await ledger.inclusion(row.seq, checkpoint);
    const extra = log_keys.length === 0 ? null : utf8(JSON.stringify({ log_keys }));
    const proof = formatTlogProof({ index, path, checkpoint: checkpoint.note, extra });
    events.push(toApiActivity(row, proof, { origin: ledger.origin, version: VERSION }));
  }
  return events;
}
