/** The list of processes, on a server that accepts connections and stops responding. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import type { ProcessTable } from "../../src/contract/storage.ts";
import { startPostgres, withoutPostgres } from "../support/postgres.ts";
import { relay } from "../support/relay.ts";

it("times out after its own limit, not after that of writes", { skip: withoutPostgres }, async () => {
  const server = await startPostgres();
  const url = new URL(await server.database());
  let hangs = false;
  const between = await relay(Number(url.port), (client, behind) => {
    client.on("data", (chunk: Buffer) => void (hangs || behind.write(chunk)));
    behind.pipe(client);
  });
  url.port = String(between.port);
  url.hostname = "127.0.0.1";
  const storage = postgresStorage({ url: url.href, poolSize: 1, lockTimeoutMs: 60_000 });
  await storage.open();
  try {
    const processes = storage.processes as ProcessTable;
    await processes.list();
    hangs = true;
    await assert.rejects(processes.list(), /did not respond within 3000 ms/);
    hangs = false;
    await processes.list();
  } finally {
    hangs = false;
    await storage.close();
    await between.stop();
    await server.stop();
  }
});
