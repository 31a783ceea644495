/**
 * Deletes expired idempotency keys, except those of actions that were pending when they were examined or may have run,
 * because a retry of the request could otherwise run the action twice. One process per store runs this job; two concurrent runs
 * are harmless.
 */
import type { LeaderLease } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { Ledger } from "../contract/ledger.ts";
import { createRepeatingTask } from "./repeating-task.ts";
import { nullIfCorrupt, type IdempotencyCursor, type IdempotencyRow, type StorageReader } from "../contract/storage.ts";
import { mayHaveRun } from "../domain/limit-uses.ts";

/** Maximum number of keys that are read together and deleted in one transaction. */
const PAGE_SIZE = 200;
const INTERVAL_MS = 3_600_000;
const RETRY_DELAY_MS = 60_000;
const PAUSE_MS = 20;
const START_CURSOR: IdempotencyCursor = { created_at: -1, key_id: "", route: "", idempotency_key: "" };

interface IdempotencySweep {
  start(): void;
  /** Deletes the keys that have expired. Resolves to the number of deleted keys. Rejects with StorageError. */
  sweep(): Promise<number>;
  stop(): Promise<void>;
}

interface IdempotencySweepOptions {
  storage: Pick<StorageReader, "action" | "entriesOfAction" | "idempotencyBefore">;
  ledger: Pick<Ledger, "transact">;
  lease: LeaderLease;
  keepMs: number;
  clock(): number;
  log: Logger;
}

export function createIdempotencySweep(options: IdempotencySweepOptions): IdempotencySweep {
  const { storage, ledger, lease, log } = options;
  let stopped = false;
  /**
   * Position of the last key that was examined. A retained key stays retained, so later sweeps start after this
   * position.
   */
  let passed = START_CURSOR;

  async function sweep(): Promise<number> {
    let forgotten = 0;
    while (!stopped && (await lease.isLeader())) {
      const rows = await storage.idempotencyBefore(options.clock() - options.keepMs, passed, PAGE_SIZE);
      const expired: IdempotencyRow[] = [];
      for (const row of rows) if (!(await stays(row))) expired.push(row);
      if (expired.length > 0)
        await ledger.transact(async (tx) => {
          for (const { key_id, route, idempotency_key } of expired)
            await tx.deleteIdempotency(key_id, route, idempotency_key);
        });
      forgotten += expired.length;
      passed = rows.at(-1) ?? passed;
      if (rows.length < PAGE_SIZE) break;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    return forgotten;
  }

  async function stays({ route, resource_id }: IdempotencyRow): Promise<boolean> {
    if (route !== "POST /v1/actions") return false;
    const action = await storage.action(resource_id);
    // Retain the key if the action is missing. The audit reports that fault.
    if (action === null || action.status === "pending_approval") return true;
    return mayHaveRun(action, await nullIfCorrupt(storage.entriesOfAction(resource_id)));
  }

  const rounds = createRepeatingTask({
    task: sweep,
    everyMs: INTERVAL_MS,
    afterFailureMs: RETRY_DELAY_MS,
    onFailure: (error) => log.warn("expired idempotency keys could not be deleted; retrying", { error: String(error) }),
  });

  return {
    sweep,
    start: () => rounds.start(RETRY_DELAY_MS),
    async stop() {
      stopped = true;
      await rounds.stop();
      await lease.release().catch(() => undefined);
    },
  };
}
