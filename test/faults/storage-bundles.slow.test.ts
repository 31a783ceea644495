/** Bundled entries return the same bytes to every reader, at any time, even if a bundle was damaged and repaired. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { after, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { StorageError, type EntryRow, type Storage } from "../../src/contract/storage.ts";
import type { RecordableEntry } from "../../src/contract/ledger.ts";
import { toHex } from "../../src/domain/hash.ts";
import { decodeEntryBundle, encodeEntryBundle } from "../../src/domain/tiles.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { auditLedger } from "../../src/audit/ledger.ts";
import { actionRow } from "../../src/testing/suite/rows.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { States } from "../../src/ledger/states.ts";
import { needs } from "../support/features.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";
import { ENGINES, stopEngines, tableOf } from "../support/engines.ts";
import { rawSqlite, type RawStore } from "../support/raw-store.ts";
import { ALLOWED, startService } from "../support/service.ts";
import { start, storeFolder } from "./children/spawn.ts";

after(stopEngines);

const SIZE = 256 * 3 + 40;

/** Every tenth entry is one that is read at startup, so it is not bundled. */
const isOwn = (seq: number): boolean => seq % 10 === 0;
const noted = (i: number, now: number): RecordableEntry =>
  isOwn(i)
    ? entry(i)
    : { type: "keeper:noted", v: 1, at: toRfc3339(now), action_id: null, agent_id: null, data: { i }, by: null };

/** Makes agents an entry type that every process reads when it starts. */
const FOLLOWED = States.initial([{ name: "agents", initial: 0, on: { agent: (count) => count } }]);

/** Fills a ledger with tiles, and returns its entries. */
async function fill(storage: Storage, size = SIZE): Promise<EntryRow[]> {
  const ledger = await openLedgerOn(storage, { entryFault: () => null, states: () => FOLLOWED });
  for (let done = 0; done < size;) {
    const count = Math.min(200, size - done);
    await ledger.transact(async (tx) => {
      for (let i = 0; i < count; i++) tx.record(noted(done + i, tx.now));
    });
    done += count;
  }
  await ledger.close();
  return storage.entries(0, size);
}

async function pack(storage: Storage): Promise<void> {
  for (let i = 0; ((await storage.upkeep?.(250)) ?? 0) > 0; i++) assert.ok(i < 100, "it ends");
}

const bundlesOf = async (raw: RawStore) => raw.rows(tableOf(raw, "entry_bundles"));
const isCorrupt = (message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof StorageError, String(error));
  assert.equal(error.kind, "corrupt", error.message);
  assert.match(error.message, message);
  return true;
};

const faultsOf = async (storage: Storage): Promise<string[]> => [
  ...(await auditLedger(storage, { from: 0, verify: verifyEd25519 })).faults,
  ...((await storage.inspect?.()) ?? []),
];

for (const { name, skip, createDatabase: place } of ENGINES) {
  describe(`bundles on ${name}`, { skip }, () => {
    it("return every entry byte for byte by range, hash and type and to a copy, and new entries keep their own bytes", async () => {
      const at = await place();
      const storage = at.storage({ unbundledEntries: 256 });
      await storage.open();
      const rows = await fill(storage);
      await pack(storage);
      const raw = await at.raw();
      const stored = await raw.rows(tableOf(raw, "entries"));
      assert.deepEqual(
        (await bundlesOf(raw)).map(({ start }) => start),
        [0, 256],
      );
      await raw.close();
      stored.forEach(({ bytes }, seq) =>
        assert.equal((bytes as Uint8Array).length > 0, seq >= 512 || isOwn(seq), String(seq)),
      );

      const copied = [];
      for (let last = null; ;) {
        const page = (await storage.copying?.read("entries", last, 100)) ?? [];
        if (page.length === 0) break;
        copied.push(...page);
        last = page.at(-1) as never;
      }
      const written = rows.map((row) => ({ ...row, followed: row.followed ? 1 : 0 }));
      assert.deepEqual(copied, written);
      assert.deepEqual(await storage.copying?.last("entries"), written.at(-1));
      for (const [from, to] of [
        [0, SIZE],
        [255, 257],
        [511, 513],
        [300, 301],
      ] as const)
        assert.deepEqual(await storage.entries(from, to), rows.slice(from, to));
      for (const seq of [0, 255, 256, 511, 512])
        assert.deepEqual(await storage.entryByHash(rows[seq]!.leaf_hash), rows[seq]);
      assert.deepEqual(
        await storage.followedEntries(200, 40),
        rows.slice(200, 600).filter(({ seq }) => isOwn(seq)),
      );
      await storage.write(async (tx) => assert.deepEqual(await tx.entries(250, 260), rows.slice(250, 260)));
      assert.deepEqual(await faultsOf(storage), []);
      await storage.close();
      const again = at.storage();
      await again.open();
      assert.deepEqual(await again.entries(0, SIZE), rows);
      await again.close();
    });

    it("are required for emptying an entry's bytes, and nothing else of the entry can change", async () => {
      const at = await place();
      const storage = at.storage({ unbundledEntries: 512 });
      await storage.open();
      const rows = await fill(storage);
      const empty = name === "SQLite" ? "x''" : "''";
      await assert.rejects(at.sql(`update entries set bytes = ${empty} where seq = 5`), /append-only/);
      await pack(storage);
      await at.sql("update entries set bytes = bytes where false");
      for (const change of [
        `bytes = ${empty} where seq = 700`,
        "bytes = leaf_hash where seq = 700",
        "bytes = leaf_hash where seq = 5",
        "bytes = leaf_hash where seq = 10",
        `bytes = ${empty} where seq = 5`,
        `bytes = ${empty}, agent_id = 'x' where seq = 301`,
        "seq = seq where seq = 301",
      ])
        await assert.rejects(at.sql(`update entries set ${change}`), /append-only/, change);
      await assert.rejects(at.sql("update entry_bundles set start = start"), /append-only/);
      await assert.rejects(at.sql("delete from entry_bundles"), /append-only/);
      // A bundle must follow the last one, cover a complete tile, and not be empty.
      for (const place of ["start + 255", "start + 512", "-256", "start"])
        await assert.rejects(
          at.sql(`insert into entry_bundles (start, bytes) select ${place}, bytes from entry_bundles`),
          /append-only|unique|duplicate/i,
          place,
        );
      const nothing = name === "SQLite" ? "x''" : "''";
      await assert.rejects(at.sql(`insert into entry_bundles (start, bytes) values (256, ${nothing})`), /append-only/);
      // If the bundle exists, the entries' bytes may be emptied and nothing else, except those that are read at
      // startup.
      await at.sql(`insert into entry_bundles (start, bytes) select 256, bytes from entry_bundles`);
      for (const more of ["agent_id = 'x'", "type = 'stop'", "created_at = 1", "leaf_hash = bytes", "action_id = 'a'"])
        await assert.rejects(
          at.sql(`update entries set bytes = ${empty}, ${more} where seq = 301`),
          /append-only/,
          more,
        );
      await assert.rejects(at.sql(`update entries set bytes = ${empty} where seq = 300`), /append-only/);
      await assert.rejects(
        at.sql("update entries set action_id = null, agent_id = null where seq = 300"),
        /append-only/,
      );
      await at.sql("insert into entry_bundles (start, bytes) select 512, bytes from entry_bundles where start = 0");
      await assert.rejects(
        at.sql("insert into entry_bundles (start, bytes) select 768, bytes from entry_bundles where start = 0"),
        /append-only/,
        "the head does not cover all of it",
      );
      if (name !== "SQLite") {
        const shadows = `create temp table entry_bundles (start bigint, bytes bytea);
          create temp table ledger_head (id bigint, size bigint);
          insert into pg_temp.entry_bundles values (768, 'x'); insert into pg_temp.ledger_head values (1, 9999)`;
        await assert.rejects(at.sql(`${shadows}; update entries set bytes = '' where seq = 801`), /append-only/);
        await assert.rejects(at.sql(`${shadows}; insert into public.entry_bundles values (1024, 'x')`), /append-only/);
      }
      assert.deepEqual(await storage.entries(0, SIZE), rows);
      // A bundle that does not match its entries is detected before the entries are emptied.
      assert.match((await faultsOf(storage)).join(), /a bundle at 256, but only 26 of its 256 entries/);
      await storage.close();
    });

    it("are created completely or not at all, and only once", async (t) => {
      const at = await place();
      const storage = at.storage({ unbundledEntries: 0 });
      t.after(() => storage.close());
      await storage.open();
      const rows = await fill(storage);
      const raw = await at.raw();
      t.after(() => raw.close());
      if (name === "SQLite")
        await at.sql(
          "create trigger thwarted before update on entries when old.seq = 101 begin select raise(abort, 'thwarted'); end",
        );
      else
        await at.sql(
          `create function thwarted() returns trigger language plpgsql as $f$ begin raise exception 'thwarted'; end $f$;
           create trigger thwarted before update on entries for each row when (old.seq = 101) execute function thwarted()`,
        );
      await assert.rejects(pack(storage), /thwarted/);
      assert.deepEqual(await bundlesOf(raw), []);
      assert.deepEqual(await storage.entries(0, SIZE), rows);
      await at.sql(name === "SQLite" ? "drop trigger thwarted" : "drop trigger thwarted on entries");
      // Two processes bundle at once while others read.
      const other = name === "SQLite" ? storage : at.storage({ unbundledEntries: 0 });
      await other.open();
      t.after(() => other.close());
      let done = false;
      const reading = (async () => {
        let reads = 0;
        for (; !done || reads < 3; reads++) {
          assert.deepEqual(await storage.entries(0, SIZE), rows);
          await new Promise((resolve) => setImmediate(resolve));
        }
        return reads;
      })();
      await Promise.all([pack(storage), pack(other), pack(storage)]).finally(() => (done = true));
      assert.ok((await reading) > 0);
      assert.deepEqual(
        (await bundlesOf(raw)).map(({ start }) => start),
        [0, 256, 512],
      );
      assert.deepEqual(await storage.entries(0, SIZE), rows);
      assert.deepEqual(await faultsOf(storage), []);
    });

    it("that are lost, damaged or altered are reported as corrupt, and never returned as different entries", async (t) => {
      const at = await place();
      const filling = at.storage({ unbundledEntries: 256 });
      await filling.open();
      const rows = await fill(filling);
      await pack(filling);
      await filling.close();
      const raw = await at.raw();
      t.after(() => raw.close());
      const table = tableOf(raw, "entry_bundles");
      const [bundle] = await raw.rows(table);
      assert.ok(bundle !== undefined);
      const packed = bundle["bytes"] as Uint8Array;
      const flipped = new Uint8Array(packed);
      flipped[packed.length >> 1] = (packed[packed.length >> 1] ?? 0) ^ 4;
      const changed = decodeEntryBundle(gunzipSync(packed)).map((bytes, i) =>
        i === 77 ? new TextEncoder().encode(new TextDecoder().decode(bytes).replace('"i":77', '"i":78')) : bytes,
      );
      const rebuilt = new Uint8Array(gzipSync(encodeEntryBundle(changed)));
      const short = new Uint8Array(gzipSync(encodeEntryBundle(changed.slice(0, 200))));
      const bomb = new Uint8Array(gzipSync(new Uint8Array(100_000_000)));
      const whole = /the bundle of entries 0 to 255 cannot be read/;
      const cases: [string, Uint8Array | null, RegExp][] = [
        ["missing", null, /the bundle of entries 0 to 255 is missing/],
        ["a byte", flipped, whole],
        ["nothing", new Uint8Array(0), whole],
        ["no gzip", changed[0] as Uint8Array, whole],
        ["short", short, whole],
        ["a bomb", bomb, whole],
        ["another entry", rebuilt, /entry 77 was altered/],
      ];
      for (const [what, bytes, words] of cases) {
        if (bytes === null) await raw.remove(table, bundle);
        else await raw.set(table, bundle, "bytes", bytes);
        const storage = at.storage({ unbundledEntries: 0 });
        await storage.open();
        await assert.rejects(storage.entries(70, 80), isCorrupt(words), what);
        await assert.rejects(storage.entryByHash(rows[77]!.leaf_hash), isCorrupt(words), what);
        await assert.rejects(storage.copying!.read("entries", null, 100), isCorrupt(words), what);
        // Other operations continue: a read leaves no unfinished work.
        await storage.write(async (tx) => {
          await assert.rejects(tx.entries(70, 80), isCorrupt(words), what);
          await tx.putMeta("after", what);
        });
        assert.equal(await storage.meta("after"), what);
        assert.deepEqual(await storage.entries(256, SIZE), rows.slice(256), what);
        assert.match((await faultsOf(storage)).join("\n"), words, what);
        await storage.close();
        if (bytes === null) await raw.insert(table, bundle);
        else await raw.set(table, bundle, "bytes", packed);
      }
      const stray = { ...bundle, start: 900_096 };
      await raw.insert(table, stray);
      const storage = at.storage();
      await storage.open();
      t.after(() => storage.close());
      assert.match((await faultsOf(storage)).join(), /a bundle at 900096, but only 0 of its 256 entries/);
      await raw.remove(table, stray);
      assert.deepEqual(await faultsOf(storage), []);
    });

    it("are not created from altered entries", async (t) => {
      const at = await place();
      const storage = at.storage({ unbundledEntries: 0 });
      await storage.open();
      t.after(() => storage.close());
      await fill(storage, 600);
      const raw = await at.raw();
      t.after(() => raw.close());
      const entries = tableOf(raw, "entries");
      const row = (await raw.rows(entries))[300];
      assert.ok(row !== undefined);
      await raw.set(entries, row, "bytes", new TextEncoder().encode("{}"));
      assert.equal(await storage.upkeep?.(600), 600, "the bundle before the altered entry is made");
      await assert.rejects(pack(storage), isCorrupt(/entry 300 was altered/));
      assert.deepEqual(
        (await bundlesOf(raw)).map(({ start }) => start),
        [0],
      );
      const found = await raw.rows(entries);
      assert.deepEqual(
        found.slice(255, 257).map((row) => (row["bytes"] as Uint8Array).length > 0),
        [false, true],
      );
      assert.match((await faultsOf(storage)).join(), /entry 300 was altered/);
      await storage.write(async (tx) => {
        for (let i = 0; i < 3; i++) await tx.insertAction(actionRow(i));
      });
      assert.equal(await storage.upkeep?.(2), 2, "the sums do not wait for it");
      await assert.rejects(pack(storage), isCorrupt(/entry 300 was altered/));
    });
  });
}

it(
  "a store with bundled decisions passes its audit, a change of any byte of a bundle is reported, and proofs and replay are unchanged",
  needs("events", "provenance", "replay"),
  async (t) => {
    const folder = storeFolder();
    const path = join(folder, "assent.db");
    const service = await startService({ storage: () => sqliteStorage({ path, unbundledEntries: 0 }) });
    t.after(() => service.close());
    const ids: string[] = [];
    for (let i = 0; i < 270; i++)
      ids.push((await service.call("POST", "/v1/actions", { body: { ...ALLOWED, context: { i } } })).body.id as string);
    const ask = async () => {
      const [first] = await service.storage.entriesOfAction(ids[3] as string);
      assert.ok(first !== undefined);
      const hash = toHex(first.leaf_hash);
      const proof = await service.call("GET", `/v1/provenance/${hash}/proof`, { key: service.admin });
      const replay = await service.call("POST", "/v1/replay", { key: service.admin, body: { hash } });
      const events = await service.call("GET", "/v1/events/page?after=3&limit=100", { key: service.admin });
      for (const { status } of [proof, replay, events]) assert.equal(status, 200);
      return { first, events: events.body, replay: replay.body };
    };
    const before = await ask();
    await pack(service.storage);
    assert.deepEqual(await ask(), before);
    for (const id of ids) assert.equal((await service.storage.entriesOfAction(id))[0]?.action_id, id);
    const vkey = (await service.storage.meta("log_vkey")) ?? undefined;
    assert.deepEqual((await auditStore(service.storage, vkey)).faults, []);
    const raw = await rawSqlite(path);
    t.after(() => raw.close());
    const table = tableOf(raw, "entry_bundles");
    const [bundle] = await raw.rows(table);
    assert.ok(bundle !== undefined);
    const packed = bundle["bytes"] as Uint8Array;
    const fresh = async (): Promise<string[]> => {
      const storage = sqliteStorage({ path });
      await storage.open({ readOnly: true });
      try {
        return (await auditStore(storage, vkey)).faults;
      } finally {
        await storage.close();
      }
    };
    // Bytes 4 to 9 of a gzip file are a timestamp and flags, which do not affect the content.
    for (const at of [
      0,
      1,
      10,
      11,
      2000,
      packed.length >> 1,
      packed.length - 9,
      packed.length - 5,
      packed.length - 1,
    ]) {
      const other = new Uint8Array(packed);
      other[at] = (other[at] as number) ^ 1;
      await raw.set(table, bundle, "bytes", other);
      assert.match((await fresh()).join("\n"), /entries 0 to 255/, String(at));
    }
    await raw.set(table, bundle, "bytes", packed);
    await raw.set(table, bundle, "start", 256);
    assert.match((await fresh()).join("\n"), /the bundle of entries 0 to 255 is missing/);
    await raw.set(table, { ...bundle, start: 256 }, "start", 0);
    assert.deepEqual(await fresh(), []);
  },
);

it("SIGKILL while bundles are created loses nothing: every entry is unchanged, and the next start continues", async () => {
  const path = join(storeFolder(), "assent.db");
  const service = await startService({ storage: () => sqliteStorage({ path, unbundledEntries: 100_000 }) });
  for (let done = 0; done < 2600; done += 20)
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        service.call("POST", "/v1/actions", { body: { ...ALLOWED, context: { i: done + i } } }),
      ),
    );
  const entries = await service.storage.entries(0, 3000);
  const vkey = (await service.storage.meta("log_vkey")) ?? undefined;
  await service.close();
  const { DatabaseSync } = await loadSqlite();
  const bundles = (): number => {
    const db = new DatabaseSync(path);
    try {
      return Number((db.prepare("select count(*) as n from entry_bundles").all()[0] as { n: number }).n);
    } finally {
      db.close();
    }
  };
  const seen = new Set<number>();
  for (let i = 0; i < 8; i++) {
    const player = start("upkeep", path);
    assert.equal(await player.next(), "open");
    await player.next();
    await sleep(Math.random() * 15);
    await player.kill();
    seen.add(bundles());
    const storage = sqliteStorage({ path });
    await storage.open({ readOnly: true });
    assert.deepEqual(await storage.entries(0, 3000), entries);
    assert.deepEqual((await auditStore(storage, vkey)).faults, []);
    await storage.close();
  }
  assert.ok(seen.size > 1, "some were made before it was killed");
  const player = start("upkeep", path);
  for (let word = ""; word !== "done";) word = await player.next();
  assert.equal(bundles(), 10);
  const storage = sqliteStorage({ path });
  await storage.open();
  assert.deepEqual(await storage.entries(0, 3000), entries);
  assert.deepEqual((await auditStore(storage, vkey)).faults, []);
  await storage.close();
});
