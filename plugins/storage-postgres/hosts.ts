/** Chooses a usable host among those in a URL. The usable host changes with every failover. */
import { setTimeout as pause } from "node:timers/promises";
import { StorageError, type StorageErrorKind } from "../../src/storage/index.ts";
import type { Address } from "./dial.ts";
import { toStorageError } from "./postgres-errors.ts";
import type { Session } from "./database-session.ts";

/** Delay before a rejected host is tried again, while another host has not responded yet. Milliseconds. */
const TRY_AGAIN = 250;
/** If all hosts were rejected, the first of these kinds of errors that occurred is reported. */
const MOST_TELLING: readonly StorageErrorKind[] = ["corrupt", "readonly"];

/**
 * Returns the session of the first usable host. Tries all hosts in parallel, because a paused or disconnected host does
 * not respond until the connection timeout. Retries rejected hosts until all have responded, because one of them may be
 * promoted. Rejects with StorageError once every host was rejected.
 */
export function connectToUsableHost(
  addresses: readonly Address[],
  open: (address: Address) => Promise<Session>,
): Promise<Session> {
  const failures = new Map<Address, StorageError>();
  let isOver = false;
  return new Promise((resolve, reject) => {
    async function attempt(address: Address): Promise<void> {
      while (!isOver) {
        try {
          const session = await open(address);
          if (isOver) return void session.end();
          isOver = true;
          return resolve(session);
        } catch (error) {
          failures.set(address, toStorageError(error, "connect"));
        }
        if (isOver) return;
        if (failures.size === addresses.length) {
          isOver = true;
          return reject(summarize(failures));
        }
        await pause(TRY_AGAIN);
      }
    }
    for (const address of addresses) void attempt(address);
  });
}

function summarize(failures: ReadonlyMap<Address, StorageError>): StorageError {
  const all = [...failures.values()];
  const kind = MOST_TELLING.find((candidate) => all.some((error) => error.kind === candidate)) ?? "unavailable";
  const first = all.find((error) => error.kind === kind) as StorageError;
  if (failures.size === 1) return first;
  const reasons = [...failures].map(([{ host, port }, { message }]) => `${host}:${port}: ${message}`);
  return new StorageError(kind, `no host of the address can be used: ${reasons.join("; ")}`, { cause: first });
}
