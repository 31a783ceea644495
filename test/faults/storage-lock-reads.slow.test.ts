/**
 * Reads that Postgres receives together with the statement that locks the ledger's head. They must show what the previous
 * holder of the lock committed, and must not hide why the lock was not acquired.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { PostgresEngine } from "../../plugins/storage-postgres/postgres-engine.ts";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { postgresDialect } from "../../plugins/storage-sql/dialects/postgres.ts";
import type { SqlEngine } from "../../plugins/storage-sql/engine.ts";
import { createSqlStorage } from "../../plugins/storage-sql/sql-storage.ts";
import { override } from "../support/override.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { until } from "../support/wait.ts";

describe("reads together with the lock", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  /** Counts the reads that each transaction of the ledger sends after it has the lock. */
  function countingStorage(url: string): { storage: Storage; reads: string[][] } {
    const reads: string[][] = [];
    const engine = new PostgresEngine({
      url,
      poolSize: 2,
      statementTimeoutMs: 30_000,
      silenceMs: 30_000,
      lockTimeoutMs: 30_000,
      connectTimeoutMs: 10_000,
      tls: "from-url",
      acceptUnsafeServer: false,
      notify: true,
    });
    const counting: SqlEngine = override<SqlEngine>(engine, {
      async begin(purpose, ahead) {
        const tx = await engine.begin(purpose, ahead);
        if (purpose !== "write") return tx;
        const sent: string[] = [];
        reads.push(sent);
        return {
          ...tx,
          query(sql, values) {
            if (/^select/i.test(sql)) sent.push(sql);
            return tx.query(sql, values);
          },
        };
      },
    });
    return { storage: createSqlStorage(counting, postgresDialect), reads };
  }

  it("show the other process's entries, so that a batch sends no other reads", async () => {
    const url = await server.database();
    const { storage, reads } = countingStorage(url);
    const other = postgresStorage({ url, poolSize: 2 });
    await storage.open();
    await other.open();
    const [here, there] = [await openLedgerOn(storage), await openLedgerOn(other)];
    try {
      for (let i = 0; i < 6; i++) {
        await there.transact(async (tx) => tx.record(entry(2 * i)));
        await here.transact(async (tx) => tx.record(entry(2 * i + 1)));
        // In its first batch, a process does not know yet that another process writes.
        if (i === 0) reads.length = 0;
      }
      assert.equal((await here.head()).size, 12);
      assert.ok(reads.length >= 5);
      assert.deepEqual(reads.flat(), []);
    } finally {
      await here.close();
      await there.close();
      await storage.close();
      await other.close();
    }
  });

  it("see what the holder commits while they wait for the lock", async () => {
    const url = await server.database();
    const [one, two] = [postgresStorage({ url, poolSize: 2 }), postgresStorage({ url, poolSize: 2 })];
    await one.open();
    await two.open();
    const ledger = await openLedgerOn(one);
    try {
      const before = (await one.head()).size;
      let go = (): void => {};
      const gate = new Promise<void>((resolve) => (go = resolve));
      let holds = false;
      const held = ledger.transact(async (tx) => {
        holds = true;
        await gate;
        return tx.record(entry(1));
      });
      await until("the lock is held", () => holds);
      const reading = two.write(
        async (tx) => {
          const { size } = await tx.head();
          return { size, hashes: await tx.leafHashes(before, size), newest: await tx.entries(size - 1, size) };
        },
        { readFrom: before },
      );
      await until("the second waits for the lock", async () => {
        const waiting = await server.run(
          url,
          (sql) =>
            sql`select 1 from pg_stat_activity where datname = current_database() and application_name = 'assent writer' and wait_event_type = 'Lock'`,
        );
        return waiting.length === 1;
      });
      go();
      const { seq, hash } = await held;
      const read = await reading;
      assert.equal(read.size, seq + 1);
      assert.equal(Buffer.from(read.hashes.at(-1) as Uint8Array).toString("hex"), hash);
      assert.equal(read.newest[0]?.seq, seq);
    } finally {
      await ledger.close();
      await one.close();
      await two.close();
    }
  });

  it("fail with the lock's own error", async () => {
    const url = await server.database();
    const one = postgresStorage({ url, poolSize: 2 });
    const two = postgresStorage({ url, poolSize: 2, lockTimeoutMs: 200 });
    await one.open();
    await two.open();
    try {
      let go = (): void => {};
      const gate = new Promise<void>((resolve) => (go = resolve));
      let holds = false;
      const held = one.write(async () => {
        holds = true;
        await gate;
      });
      await until("the lock is held", () => holds);
      await assert.rejects(
        two.write(() => Promise.resolve(), { readFrom: 0 }),
        /lock timeout \(SQLSTATE 55P03\)/,
      );
      go();
      await held;
      assert.equal(await two.write(async (tx) => (await tx.head()).size, { readFrom: 0 }), 0, "the session goes on");
    } finally {
      await one.close();
      await two.close();
    }
  });
});
