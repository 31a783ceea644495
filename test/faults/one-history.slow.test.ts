/**
 * Several processes on a Postgres that is restored from a backup, or replaced by a standby that misses the last
 * entries. No process appends or signs anything that contradicts what a process has signed or read before, whether it
 * was busy or idle.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { LedgerTampered } from "../../src/ledger/tampered.ts";
import type { LedgerOptions, OpenLedger } from "../../src/ledger/index.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";
import { startPostgres, withoutPostgres, withoutReplication, type PostgresServer } from "../support/postgres.ts";
import { relay, type Relay } from "../support/relay.ts";
import { until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let made = 0;
const add = (ledger: OpenLedger, count: number): Promise<void> =>
  ledger.transact(async (tx) => {
    for (let i = 0; i < count; i++) tx.record(entry(made++));
  });
const isCorrupt = (error: unknown): boolean => error instanceof StorageError && error.kind === "corrupt";

interface Process {
  storage: Storage;
  ledger: OpenLedger;
  options: Partial<LedgerOptions>;
}

let folder: string;
before(() => {
  folder = temporaryFolder("assent-history-");
});
after(() => rmSync(folder, { recursive: true, force: true }));

async function open(url: string, options: Partial<LedgerOptions> = {}): Promise<Process> {
  const storage = postgresStorage({ url, poolSize: 2, connectTimeoutMs: 2000 });
  await storage.open();
  const own = { keptCheckpoint: join(folder, randomUUID(), "checkpoint"), ...options };
  try {
    return { storage, ledger: await openLedgerOn(storage, own), options: own };
  } catch (error) {
    await storage.close();
    throw error;
  }
}

async function close({ storage, ledger }: Process): Promise<void> {
  await ledger.close();
  await storage.close();
}

const sizeAt = (server: PostgresServer, url: string): Promise<number> =>
  server.run(url, async (client) => Number((await client`select size from ledger_head`)[0]?.["size"]));

/** Asserts that no process appends or signs, that each gives the reason, and that the database is unchanged. */
async function refusesAll(processes: readonly Process[], size: () => Promise<number>): Promise<void> {
  const before = await size();
  for (const { ledger } of processes) {
    await until("it refuses to sign, and is not ready", () =>
      ledger.checkpoint().then(
        () => assert.fail("it signed another history"),
        (error: unknown) => isCorrupt(error),
      ),
    );
    await assert.rejects(add(ledger, 1), StorageError);
  }
  assert.equal(await size(), before);
}

describe("a database that is restored while processes run", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => (server = await startPostgres({ isPrivate: true })));
  after(() => server.stop());

  /** Creates an address whose database can be replaced by an older copy, and two processes that use it. */
  async function deployment(): Promise<{ url: string; processes: [Process, Process]; restore(): Promise<void> }> {
    const url = await server.database();
    const name = new URL(url).pathname.slice(1);
    const first = await open(url);
    await add(first.ledger, 3);
    await close(first);
    const copy = await server.database(url);
    const copyName = new URL(copy).pathname.slice(1);
    const processes: [Process, Process] = [await open(url), await open(url)];
    return {
      url,
      processes,
      restore: () =>
        server.run(server.url, async (client) => {
          await client.unsafe(`drop database ${name} with (force)`);
          await client.unsafe(`alter database ${copyName} rename to ${name}`);
        }),
    };
  }

  it("a restored older database is rejected by every process, even by one that knows only the older entries", async () => {
    const { url, processes, restore } = await deployment();
    const [busy, other] = processes;
    // The other process does not append. It signs what it reads.
    await add(busy.ledger, 5);
    assert.equal((await other.ledger.checkpoint()).size, 8);
    const kept = readFileSync(other.options.keptCheckpoint as string, "utf8");
    assert.equal(kept.split("\n")[1], "8", "what was handed out is on the disk");
    await restore();
    await refusesAll(processes, () => sizeAt(server, url));
    for (const one of processes) await close(one);
    assert.equal(await sizeAt(server, url), 3);
    // After a restart, each process remembers what it signed or read.
    for (const { options } of processes) await assert.rejects(open(url, options), LedgerTampered);
  });

  it("a restored older database is rejected while a process continues to make decisions", async () => {
    const { url, processes, restore } = await deployment();
    const [busy] = processes;
    let isOver = false;
    const load = (async () => {
      while (!isOver) await add(busy.ledger, 1).catch(() => undefined);
    })();
    await until("the busy process has decided", async () => (await busy.ledger.head()).size > 8);
    await restore();
    await refusesAll(processes, () => sizeAt(server, url));
    isOver = true;
    await load;
    assert.equal(await sizeAt(server, url), 3);
    for (const one of processes) await close(one);
  });

  it("a restored older database is rejected by a process that starts while another has seen more entries", async () => {
    const { url, processes, restore } = await deployment();
    const [busy, other] = processes;
    await add(busy.ledger, 5);
    await close(other);
    await restore();
    const fresh = await open(url, { keptCheckpoint: null });
    await refusesAll([busy, fresh], () => sizeAt(server, url));
    await close(fresh);
    await close(busy);
  });

  it("is rejected by all processes that start at once, because one of them remembers more entries", async () => {
    const { url, processes, restore } = await deployment();
    const [busy, other] = processes;
    await add(busy.ledger, 5);
    for (const one of processes) await close(one);
    await restore();
    const fresh = open(url, { keptCheckpoint: null });
    await assert.rejects(open(url, busy.options), LedgerTampered);
    await refusesAll([await fresh], () => sizeAt(server, url));
    await close(await fresh);
    assert.equal(other.options.acceptRollback, undefined);
  });

  it("a restored older database is used once the operator accepts it and the processes that saw more have ended", async () => {
    const { url, processes, restore } = await deployment();
    await add(processes[0].ledger, 5);
    await restore();
    await refusesAll(processes, () => sizeAt(server, url));
    for (const one of processes) await close(one);
    const [accepting] = [await open(url, { ...processes[0].options, acceptRollback: true })];
    await add(accepting.ledger, 1);
    assert.equal((await accepting.ledger.checkpoint()).size, 4);
    await close(accepting);
  });
});

describe("a restart of the database", { skip: withoutPostgres }, () => {
  it("a restored database that lost nothing is used by every process", async () => {
    const server = await startPostgres({ isPrivate: true });
    const url = await server.database();
    const processes = [await open(url), await open(url)] as const;
    await add(processes[0].ledger, 2);
    assert.equal((await processes[1].ledger.checkpoint()).size, 2);
    await server.crash();
    for (const { ledger } of processes)
      await until("it decides again", () =>
        add(ledger, 1).then(
          () => true,
          () => false,
        ),
      );
    for (const { ledger } of processes) assert.equal((await ledger.checkpoint()).size, 4);
    for (const one of processes) await close(one);
    await server.stop();
  });
});

describe("a failover to a standby without the last entries", { skip: withoutReplication }, () => {
  let primary: PostgresServer;
  let standby: PostgresServer;
  let network: Relay;
  let url: string;
  before(async () => {
    primary = await startPostgres({
      isPrivate: true,
      settings: ["wal_level=replica", "max_wal_senders=4", "hot_standby=on"],
    });
    await primary.run(primary.url, (client) => client.unsafe("create database ledger"));
    network = await relay(Number(new URL(primary.url).port));
    const address = new URL(primary.url);
    address.pathname = "/ledger";
    address.port = String(network.port);
    url = address.href;
  });
  after(async () => {
    await network.stop();
    await standby.stop();
    await primary.stop();
  });

  it("a restored older database is rejected by an idle process, because the busy process reports the missing entries", async () => {
    const [busy, idle] = [await open(url), await open(url, { keptCheckpoint: null })];
    await add(busy.ledger, 5);
    standby = await primary.standby();
    const onStandby = new URL(standby.url);
    onStandby.pathname = "/ledger";
    await until("the standby has it", async () => (await sizeAt(standby, onStandby.href)) === 5);
    await standby.run(standby.url, async (client) => {
      await client.unsafe("alter system set primary_conninfo = ''");
      await client.unsafe("select pg_reload_conf()");
    });
    await until("the standby hears nothing more", async () =>
      standby.run(standby.url, async (client) => (await client`select 1 from pg_stat_wal_receiver`).length === 0),
    );
    await idle.ledger.head();
    await add(busy.ledger, 15);
    await primary.stopServer();
    await standby.promote();
    network.to(Number(new URL(standby.url).port));
    await refusesAll([idle, busy], () => sizeAt(standby, onStandby.href));
    assert.equal(await sizeAt(standby, onStandby.href), 5);
    await close(idle);
    await close(busy);
  });
});
