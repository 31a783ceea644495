/** Publishes signed checkpoints, so that other parties can detect a forked log. */
import type { Config } from "../../config/index.ts";
import type { LeaderLease } from "../../contract/core-host.ts";
import type { Logger } from "../../contract/host.ts";
import type { Ledger } from "../../contract/ledger.ts";
import type { Storage } from "../../contract/storage.ts";
import type { VerifySignature } from "../../domain/checkpoint.ts";
import { createPostedCheckpoints } from "./posted-checkpoints.ts";
import { Witnesses } from "./witnesses.ts";

/**
 * Starts to publish checkpoints to the configured witnesses and webhooks.
 * @param createLease a function that creates a lease, so that only one process publishes
 */
export function publishCheckpoints(
  config: Config["ledger"],
  { ledger, storage }: { ledger: Ledger; storage: Pick<Storage, "meta" | "write"> },
  createLease: (name: string) => LeaderLease,
  log: Logger,
  verify: VerifySignature,
): { name: string; close(): Promise<void> }[] {
  const started: { name: string; close(): Promise<void> }[] = [];
  if (config.witnesses.length > 0) {
    const everyMs = config.witness_seconds * 1000;
    const witnesses = new Witnesses({
      witnesses: config.witnesses,
      ledger,
      storage,
      lease: createLease("witnesses"),
      everyMs,
      log,
      verify,
    });
    started.push({ name: "witnesses", close: () => witnesses.stop() });
    witnesses.start();
  }
  if (config.checkpoint_webhooks.length > 0) {
    const everyMs = config.checkpoint_webhook_seconds * 1000;
    const posted = createPostedCheckpoints({
      urls: config.checkpoint_webhooks,
      ledger,
      lease: createLease("checkpoint-webhooks"),
      everyMs,
      log,
    });
    started.push({ name: "checkpoint webhooks", close: () => posted.stop() });
    posted.start();
  }
  return started;
}
