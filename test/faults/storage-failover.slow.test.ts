/**
 * A primary with a standby. A process compares what it has read before with the contents of each new connection, and an
 * acknowledged decision is durable whatever the server's settings are.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { auditLedger } from "../../src/audit/ledger.ts";
import { type OpenLedger } from "../../src/ledger/index.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";
import { openLink } from "../support/link.ts";
import { relay, type Relay } from "../support/relay.ts";
import { freePort, startPostgres, withoutReplication, type PostgresServer } from "../support/postgres.ts";
import { withTimeout, until } from "../support/wait.ts";

let made = 0;
const add = (ledger: OpenLedger, count: number): Promise<void> =>
  ledger.transact(async (tx) => {
    for (let i = 0; i < count; i++) tx.record(entry(made++));
  });
const isKind =
  (kind: StorageError["kind"], words: RegExp) =>
  (error: unknown): boolean =>
    error instanceof StorageError && error.kind === kind && words.test(error.message);

async function eventually(work: () => Promise<void>): Promise<void> {
  let failure: unknown;
  await until(
    () => `${String(failure)} no more`,
    () =>
      work().then(
        () => true,
        (error: unknown) => ((failure = error), false),
      ),
    100,
  );
}

describe("a failover to a standby without the last entries", { skip: withoutReplication }, () => {
  let primary: PostgresServer;
  let standby: PostgresServer;
  let network: Relay;
  before(async () => {
    primary = await startPostgres({
      isPrivate: true,
      settings: ["wal_level=replica", "max_wal_senders=4", "hot_standby=on"],
    });
    await primary.run(primary.url, (client) => client.unsafe("create database ledger"));
    standby = await primary.standby();
    network = await relay(Number(new URL(primary.url).port));
  });
  after(async () => {
    await network.stop();
    await standby.stop();
    await primary.stop();
  });

  it(
    "connects to the next host of its address if the first is a standby or unreachable",
    { timeout: 60_000 },
    async () => {
      const [first, second] = [new URL(standby.url).port, new URL(primary.url).port];
      const storage = postgresStorage({
        url: `postgres://assent@127.0.0.1:1,127.0.0.1:${first},127.0.0.1:${second}/ledger`,
        poolSize: 1,
      });
      await storage.open();
      await storage.ping();
      let told = 0;
      const stop = await (storage.watch as NonNullable<Storage["watch"]>)(() => told++);
      const before = told;
      await storage.write(async (tx) => tx.append([], [], await tx.head()));
      await until("it is told of a commit", () => told > before);
      await stop();
      await storage.close();
      const nowhere = postgresStorage({ url: `postgres://assent@127.0.0.1:1,127.0.0.1:${first}/ledger` });
      await assert.rejects(nowhere.open(), isKind("readonly", /standby/));
    },
  );

  it("does not wait for a host that accepts connections and never answers", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    const [first, second] = [(silent.address() as AddressInfo).port, new URL(primary.url).port];
    // Longer than this test can take.
    const patience = { connectTimeoutMs: 600_000 };
    const storage = postgresStorage({
      url: `postgres://assent@127.0.0.1:${first},127.0.0.1:${second}/ledger`,
      poolSize: 1,
      ...patience,
    });
    await withTimeout("the other host is used", storage.open());
    await withTimeout("it is written to", storage.ping());
    await storage.close();
    silent.close();
  });

  it(
    "is rejected by every process that has read the last entries, and every process rejects a standby",
    { timeout: 180_000 },
    async () => {
      const url = new URL(primary.url);
      url.pathname = "/ledger";
      url.port = String(network.port);
      const storages = [0, 1].map(() => postgresStorage({ url: url.href, poolSize: 2, connectTimeoutMs: 2000 }));
      for (const storage of storages) await storage.open();
      const [writing, idle] = [await openLedgerOn(storages[0] as Storage), await openLedgerOn(storages[1] as Storage)];
      await add(writing, 5);
      await eventually(async () => assert.equal(await sizeOn(standby), 5));

      // From here on, the standby receives nothing more.
      await standby.run(standby.url, async (client) => {
        await client.unsafe("alter system set primary_conninfo = ''");
        await client.unsafe("select pg_reload_conf()");
        const receivers = async (): Promise<unknown> =>
          (await client`select count(*)::int as n from pg_stat_wal_receiver`)[0]?.["n"];
        await eventually(async () => assert.equal(await receivers(), 0));
      });
      await add(writing, 3);
      const signed = await writing.checkpoint();
      assert.equal(signed.size, 8);
      assert.equal((await idle.head()).size, 8, "the idle one has seen the tail");

      // A standby rejects writes.
      network.to(Number(new URL(standby.url).port));
      await eventually(() => assert.rejects(storages[1]?.ping() as Promise<void>, isKind("readonly", /standby/)));

      await primary.stopServer();
      await standby.promote();
      for (const [ledger, storage] of [
        [idle, storages[1] as Storage],
        [writing, storages[0] as Storage],
      ] as const) {
        const lost = isKind("corrupt", /does not continue the 8 entries that this process has seen/);
        await eventually(() => assert.rejects(ledger.head(), lost));
        await assert.rejects(ledger.checkpoint(), lost);
        await assert.rejects(storage.entries(0, 9), lost, "nothing is read from it");
        await assert.rejects(add(ledger, 1), StorageError, "nothing is written to it");
      }
      assert.equal(await sizeOn(standby), 5);

      // A process that has not read the last entries does not continue from the standby either, because the other
      // processes report a longer ledger.
      url.port = new URL(standby.url).port;
      const other = postgresStorage({ url: url.href, poolSize: 1 });
      await other.open();
      const forked = await openLedgerOn(other);
      await assert.rejects(add(forked, 6), isKind("corrupt", /the process \S+ has signed or seen 8/));
      await assert.rejects(forked.checkpoint(), isKind("corrupt", /No process appends or signs/));
      await forked.close();
      await other.close();
      assert.equal(await sizeOn(standby), 5);
      await assert.rejects(add(idle, 1), StorageError);

      // The primary returns, and the processes recover.
      await primary.startServer();
      await standby.stopServer();
      network.to(Number(new URL(primary.url).port));
      for (const ledger of [idle, writing]) {
        await eventually(async () => void (await ledger.head()));
        await add(ledger, 1);
      }
      await writing.close();
      await idle.close();
      assert.equal(await sizeOn(primary), 10);
      // Audit only the log, because these entries do not describe rows of other tables.
      const { faults } = await auditLedger(storages[0] as Storage, {
        from: 0,
        keys: () => ({ first: writing.vkey, changes: [] }),
        verify: verifyEd25519,
      });
      assert.deepEqual(faults, []);
      for (const storage of storages) await storage.close();
    },
  );

  async function sizeOn(server: PostgresServer): Promise<number> {
    const url = new URL(server.url);
    url.pathname = "/ledger";
    return server.run(url.href, async (client) => Number((await client`select size from ledger_head`)[0]?.["size"]));
  }
});

describe("a server that may lose what it has acknowledged", { skip: withoutReplication }, () => {
  it(
    "commits durably although synchronous_commit is off everywhere, through a crash",
    { timeout: 120_000 },
    async () => {
      const server = await startPostgres({
        isPrivate: true,
        // A background writer that sleeps: data that the commit itself does not flush is lost.
        settings: ["synchronous_commit=off", "wal_writer_delay=10s", "bgwriter_lru_maxpages=0"],
      });
      try {
        const url = await server.database();
        const name = new URL(url).pathname.slice(1);
        await server.run(url, async (client) => {
          await client.unsafe(`alter database ${name} set synchronous_commit = off`);
          await client.unsafe("alter role assent set synchronous_commit = off");
        });
        const storage = postgresStorage({ url, poolSize: 1 });
        await storage.open();
        for (let round = 0; round < 5; round++) {
          await storage.write((tx) => tx.putMeta("acknowledged", String(round)));
          await server.crash();
          await eventually(async () => assert.equal(await storage.meta("acknowledged"), String(round)));
        }
        await server.run(url, (client) =>
          client.unsafe(`alter database ${name} set synchronous_commit = remote_apply`),
        );
        const again = postgresStorage({ url, poolSize: 1 });
        await again.open();
        await again.write((tx) => tx.putMeta("acknowledged", "stronger"));
        await again.close();
        await storage.close();
      } finally {
        await server.stop();
      }
    },
  );

  it("is refused at the start, unless that is accepted", { timeout: 60_000 }, async () => {
    const server = await startPostgres({ isPrivate: true, settings: ["fsync=off", "full_page_writes=off"] });
    try {
      const url = await server.database();
      const storage = postgresStorage({ url });
      await assert.rejects(
        storage.open(),
        isKind("unavailable", /fsync = off and full_page_writes = off.*accept_unsafe_server/),
      );
      const accepted = postgresStorage({ url, acceptUnsafeServer: true });
      await accepted.open();
      await accepted.ping();
      await accepted.close();
    } finally {
      await server.stop();
    }
  });

  it("does not acknowledge a commit whose wait for a synchronous standby was cancelled", async () => {
    const server = await startPostgres({ isPrivate: true });
    try {
      const url = await server.database();
      const storage = postgresStorage({ url, poolSize: 1 });
      await storage.open();
      await server.run(url, async (client) => {
        await client.unsafe("alter system set synchronous_standby_names = 'gone'");
        await client.unsafe("select pg_reload_conf()");
      });
      const written = storage
        .write((tx) => tx.putMeta("a", "b"))
        .then(
          () => "acknowledged",
          (error: unknown) => error,
        );
      await until("the commit waits for the standby", () =>
        server.run(url, async (client) => {
          const rows = await client`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`;
          return rows.length > 0;
        }),
      );
      const outcome = await written;
      assert.ok(outcome instanceof StorageError && outcome.kind === "unavailable", String(outcome));
      assert.match(outcome.message, /standby|synchronous/);
      await server.run(url, async (client) => {
        await client.unsafe("alter system reset synchronous_standby_names");
        await client.unsafe("select pg_reload_conf()");
      });
      await storage.write((tx) => tx.putMeta("a", "c"));
      assert.equal(await storage.meta("a"), "c");
      await storage.close();
    } finally {
      await server.stop();
    }
  });

  it("keeps a commit waiting for a synchronous standby beyond the statement timeout", async () => {
    const server = await startPostgres({ isPrivate: true });
    const sync = (setting: string): Promise<void> =>
      server.run(server.url, async (client) => {
        await client.unsafe(`alter system ${setting}`);
        await client.unsafe("select pg_reload_conf()");
      });
    try {
      const url = await server.database();
      const storage = postgresStorage({ url, poolSize: 1, statementTimeoutMs: 500 });
      await storage.open();
      await sync("set synchronous_standby_names = 'gone'");
      const written = storage.write((tx) => tx.putMeta("a", "b"));
      written.catch(() => undefined);
      await until("the commit has waited for longer than a statement may take", () =>
        server.run(url, async (client) => {
          const rows =
            await client`select 1 from pg_stat_activity where wait_event = 'SyncRep' and clock_timestamp() - query_start > interval '2 s'`;
          return rows.length > 0;
        }),
      );
      // Otherwise another process could read data that a failover can lose.
      assert.equal(await storage.meta("a"), null);
      await sync("reset synchronous_standby_names");
      await written;
      assert.equal(await storage.meta("a"), "b");
      await storage.close();
    } finally {
      await server.stop();
    }
  });
});

describe("a primary that stops answering without closing its connections", { skip: withoutReplication }, () => {
  it("is abandoned as soon as a standby was promoted, whatever the timeouts are", async () => {
    const primary = await startPostgres({
      isPrivate: true,
      settings: ["wal_level=replica", "max_wal_senders=4", "hot_standby=on"],
    });
    await primary.run(primary.url, (client) => client.unsafe("create database ledger"));
    const standby = await primary.standby();
    const port = await freePort();
    const link = await openLink(
      { host: "127.0.0.1", port },
      { host: "127.0.0.1", port: Number(new URL(primary.url).port) },
    );
    const storage = postgresStorage({
      url: `postgres://assent@127.0.0.1:${port},127.0.0.1:${new URL(standby.url).port}/ledger`,
      poolSize: 2,
      // Longer than this test can take.
      statementTimeoutMs: 600_000,
      lockTimeoutMs: 600_000,
      connectTimeoutMs: 600_000,
    });
    await storage.open();
    const ledger = await openLedgerOn(storage);
    await add(ledger, 5);
    const onStandby = new URL(standby.url);
    onStandby.pathname = "/ledger";
    await until("the standby has it", () =>
      standby.run(
        onStandby.href,
        async (client) => Number((await client`select size from ledger_head`)[0]?.["size"]) === 5,
      ),
    );
    link.disconnect();
    const unanswered = add(ledger, 1);
    await standby.promote();
    await assert.rejects(withTimeout("the old primary is given up", unanswered), isKind("unavailable", /failed over/));
    await withTimeout(
      "the new primary is written to",
      eventually(() => add(ledger, 1)),
    );
    assert.equal((await ledger.head()).size, 6);
    await ledger.close();
    await storage.close();
    await link.close();
    await standby.stop();
    await primary.stop();
  });
});
