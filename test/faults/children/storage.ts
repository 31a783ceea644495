/**
 * Roles of the storage's fault tests, which run in a child process so that a test can kill it, trace it or put it on a
 * small disk: `node --import tsx storage.ts <role> <path>`. A role prints one line for each fact. It exits with code 0
 * only if it completes.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { StorageError, type Storage } from "../../../src/contract/storage.ts";
import { actionRow, appendEntries } from "../../../src/testing/suite/rows.ts";

const [role, path = ""] = process.argv.slice(2);

function say(...words: (string | number)[]): void {
  process.stdout.write(`${words.join(" ")}\n`);
}

/** Writes three entries and one action in one transaction. Returns the ledger's size after it. */
async function step(storage: Storage, padding = 0): Promise<number> {
  return storage.write(async (tx) => {
    const { size } = await tx.head();
    await tx.insertAction(actionRow(size, { request: "x".repeat(padding) }));
    await appendEntries(tx, 3);
    await tx.putMeta("size", String(size + 3));
    return size + 3;
  });
}

async function kindOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "ok",
    (error: unknown) => (error instanceof StorageError ? error.kind : `not a StorageError: ${String(error)}`),
  );
}

const roles: Record<string, () => Promise<void>> = {
  /** Migrates a store to the newest schema. */
  async migrate() {
    const storage = sqliteStorage({ path });
    say("open");
    await storage.open();
    await storage.close();
    say("done");
  },

  /** Runs all deferred maintenance of the store. */
  async upkeep() {
    const storage = sqliteStorage({ path, unbundledEntries: 0 });
    await storage.open();
    say("open");
    while (((await storage.upkeep?.(250)) ?? 0) > 0) say("piece");
    await storage.close();
    say("done");
  },

  /** Opens the store, prints a line, and keeps it open. */
  async hold() {
    const storage = sqliteStorage({ path });
    const kind = await kindOf(storage.open());
    say(kind);
    if (kind === "ok") await sleep(60_000);
  },

  /**
   * Opens the store, prints its process id and keeps the store open. If the store rejects it, prints the reason and
   * exits.
   */
  async contend() {
    const storage = sqliteStorage({ path });
    try {
      await storage.open();
    } catch (error) {
      return say((error as Error).message);
    }
    say("ok", process.pid);
    await sleep(60_000);
    await storage.close();
  },

  /** Writes until it is killed, and prints each acknowledged size. */
  async write() {
    const storage = sqliteStorage({ path });
    await storage.open();
    say("open");
    for (;;) say(await step(storage, 3000));
  },

  /** Retries while syncs fail (a test injects the failures), and checks that no acknowledged data is lost. */
  async sync() {
    const storage = sqliteStorage({ path });
    let failures = 0;
    const open = async (): Promise<void> => {
      while ((await kindOf(storage.open())) !== "ok") assert.ok(++failures < 100, "the store never opened");
    };
    await open();
    let acknowledged = 0;
    for (let i = 0; i < 60; i++) {
      try {
        acknowledged = await step(storage, 20_000);
      } catch (error) {
        assert.ok(error instanceof StorageError, String(error));
        failures++;
        const { size } = await storage.head();
        assert.ok(
          size === acknowledged || size === acknowledged + 3,
          `${acknowledged} were acknowledged, the head says ${size}`,
        );
        acknowledged = size;
      }
      if (i % 20 === 19) {
        await storage.close();
        await open();
        assert.equal((await storage.head()).size, acknowledged);
        assert.equal((await storage.entries(0, 999)).length, acknowledged);
      }
    }
    await storage.close();
    say(failures, acknowledged);
  },

  /** Fills a private disk of a few MiB. */
  async full() {
    const ballast = join(dirname(path), "ballast");
    writeFileSync(ballast, new Uint8Array(4_000_000));
    const storage = sqliteStorage({ path });
    await storage.open();
    let acknowledged = 0;
    let kind = "ok";
    for (let i = 0; i < 400 && kind === "ok"; i++)
      kind = await kindOf(step(storage, 30_000).then((size) => (acknowledged = size)));
    assert.equal(kind, "full");
    assert.ok(acknowledged > 0);
    for (let i = 0; i < 5; i++) {
      assert.equal(await kindOf(step(storage, 30_000)), "full");
      assert.equal((await storage.head()).size, acknowledged);
      assert.equal((await storage.entries(0, 9999)).length, acknowledged);
    }
    const other = sqliteStorage({ path: join(dirname(path), "other.db") });
    assert.equal(await kindOf(other.open()), "full");
    rmSync(ballast);
    assert.equal(await step(storage, 30_000), acknowledged + 3);
    await storage.ping();
    assert.equal(await kindOf(other.open()), "ok");
    await other.close();
    await storage.close();
    await storage.open();
    assert.equal((await storage.entries(0, 9999)).length, acknowledged + 3);
    await storage.close();
    say("recovered");
  },

  /** Opens the store, writes once and closes it. Prints the outcome and the size after it. */
  async once() {
    const storage = sqliteStorage({ path });
    const kind = await kindOf(storage.open());
    if (kind !== "ok") return say(kind);
    say(kind, await step(storage));
    await storage.close();
  },

  /** Opens stores in folders and files without write permission. */
  async permissions() {
    mkdirSync(dirname(path), { recursive: true });
    const folder = join(dirname(path), "data");
    mkdirSync(folder, { mode: 0o500 });
    const storage = sqliteStorage({ path: join(folder, "assent.db") });
    assert.equal(await kindOf(storage.open()), "readonly");
    assert.equal(await kindOf(sqliteStorage({ path: join(folder, "sub", "assent.db") }).open()), "readonly");
    chmodSync(folder, 0o700);
    await storage.open();
    await storage.close();
    // In child processes, because SQLite keeps files open until its statements are garbage-collected.
    const once = (): string =>
      execFileSync(
        process.execPath,
        [...process.execArgv, process.argv[1] as string, "once", join(folder, "assent.db")],
        { encoding: "utf8" },
      );
    assert.equal(once(), "ok 3\n");
    chmodSync(join(folder, "assent.db"), 0o400);
    assert.equal(once(), "readonly\n");
    chmodSync(join(folder, "assent.db"), 0o600);
    assert.equal(once(), "ok 6\n");
    say("recovered");
  },
};

const play = roles[role ?? ""];
if (play === undefined) throw new Error(`there is no role "${role}"; the roles are ${Object.keys(roles).join(", ")}`);
await play();
