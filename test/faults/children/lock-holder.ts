/**
 * Holds the ledger's lock on Postgres until it reads a line from standard input, then writes, and prints the outcome.
 */
import { once } from "node:events";
import { postgresStorage } from "../../../plugins/storage-postgres/index.ts";
import { StorageError } from "../../../src/contract/storage.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const storage = postgresStorage({ url: process.argv[2] ?? "" });
await storage.open();
await storage
  .write(async (tx) => {
    await tx.head();
    say("holds the lock");
    await once(process.stdin, "data");
    await tx.putMeta("a", "stopped");
  })
  .then(
    () => say("committed"),
    (error: unknown) => say(error instanceof StorageError ? error.kind : String(error)),
  );
await storage.close();
process.exit(0);
