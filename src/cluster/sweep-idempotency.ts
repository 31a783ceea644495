/**
 * Forgets idempotency keys whose time is over. A key whose action may have run stays for as long as the action: sent
 * again it must not be decided again, because what it asked for would happen twice. What was never allowed cannot have
 * run. Of several processes on one store, one does it; done twice, it forgets nothing twice.
 */
import type { LeaderLease } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { Ledger } from "../contract/ledger.ts";
import { createRepeatingTask } from "./repeating-task.ts";
import { nullIfCorrupt, type IdempotencyCursor, type IdempotencyRow, type StorageReader } from "../contract/storage.ts";
import { mayHaveRun } from "../domain/limit-uses.ts";

/** Keys that are looked at together, and forgotten in one transaction. */
const PAGE = 200;
const BETWEEN = 3_600_000;
const AFTER_FAILURE = 60_000;
const BREATH = 20;
const FIRST: IdempotencyCursor = { created_at: -1, key_id: "", route: "", idempotency_key: "" };

export interface IdempotencySweep {
  start(): void;
  /** Forgets what is due now. Resolves to how many. Rejects with StorageError. */
  sweep(): Promise<number>;
  stop(): Promise<void>;
}

export interface IdempotencySweepOptions {
  storage: Pick<StorageReader, "action" | "entriesOfAction" | "idempotencyBefore">;
  ledger: Pick<Ledger, "transact">;
  lease: LeaderLease;
  keepMs: number;
  clock(): number;
  log: Logger;
}

export function createIdempotencySweep(options: IdempotencySweepOptions): IdempotencySweep {
  const { storage, ledger, lease: duty, log } = options;
  let stopped = false;
  /** What was passed stays for good: every later sweep begins behind it. */
  let passed = FIRST;

  async function sweep(): Promise<number> {
    let forgotten = 0;
    while (!stopped && (await duty.isLeader())) {
      const rows = await storage.idempotencyBefore(options.clock() - options.keepMs, passed, PAGE);
      const over: IdempotencyRow[] = [];
      for (const row of rows) if (!(await stays(row))) over.push(row);
      if (over.length > 0)
        await ledger.transact(async (tx) => {
          for (const { key_id, route, idempotency_key } of over)
            await tx.deleteIdempotency(key_id, route, idempotency_key);
        });
      forgotten += over.length;
      passed = rows.at(-1) ?? passed;
      if (rows.length < PAGE) break;
      await new Promise((resolve) => setTimeout(resolve, BREATH));
    }
    return forgotten;
  }

  async function stays({ route, resource_id }: IdempotencyRow): Promise<boolean> {
    if (route !== "POST /v1/actions") return false;
    const action = await storage.action(resource_id);
    // One that is not there is for the audit to tell of.
    if (action === null || action.status === "pending_approval") return true;
    return mayHaveRun(action, await nullIfCorrupt(storage.entriesOfAction(resource_id)));
  }

  const rounds = createRepeatingTask({
    task: sweep,
    everyMs: BETWEEN,
    afterFailureMs: AFTER_FAILURE,
    onFailure: (error) =>
      log.warn("old idempotency keys could not be forgotten; trying again", { error: String(error) }),
  });

  return {
    sweep,
    start: () => rounds.start(AFTER_FAILURE),
    async stop() {
      stopped = true;
      await rounds.stop();
      await duty.release().catch(() => undefined);
    },
  };
}
