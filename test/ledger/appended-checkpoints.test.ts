/** Checkpoints at the end of an append-only file. */
import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { openCheckpoint } from "../../src/domain/checkpoint.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { entry, openLedgerOn, vault } from "../support/ledger.ts";
import { until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

interface Line {
  at: string;
  note: string;
  size: number;
}
const linesOf = (path: string): Line[] =>
  (existsSync(path) ? readFileSync(path, "utf8") : "")
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line) as Line);

it("each is appended and signed; a partial line loses none, and an unavailable file only delays", async () => {
  const folder = temporaryFolder("assent-appended-");
  const path = join(folder, "away", "checkpoints.jsonl");
  const storage = memoryStorage();
  await storage.open();
  const open = () => openLedgerOn(storage, { checkpointLog: { path, everyMs: 20 } });
  try {
    let ledger = await open();
    const add = (i: number) => ledger.transact((tx) => Promise.resolve(tx.record(entry(i))));
    await add(0);
    await until("the first is there", () => linesOf(path).some(({ size }) => size === 1));
    await add(1);
    await ledger.close();
    appendFileSync(path, '{"at":"2026-');
    ledger = await open();
    await add(2);
    await until("the third is there", () => linesOf(path).some(({ size }) => size === 3));
    const before = readFileSync(path, "utf8");
    // Create a folder at the path of the file.
    rmSync(path);
    mkdirSync(path);
    await add(3);
    assert.equal((await ledger.head()).size, 4, "nothing waits for it");
    rmSync(path, { recursive: true });
    appendFileSync(path, before);
    await until("a checkpoint covers the missed entries", () => linesOf(path).some(({ size }) => size === 4));
    assert.ok(readFileSync(path, "utf8").startsWith(before), "what stood there stays");
    for (const { note, size } of linesOf(path))
      assert.equal(openCheckpoint(note, ledger.vkey, (...args) => vault.verify(...args)).size, size);
    await ledger.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await storage.close();
  }
});

it("a restart adds no empty line, and a folder that was moved away is not created again", async () => {
  const folder = temporaryFolder("assent-appended-");
  const place = join(folder, "place");
  const path = join(place, "checkpoints.jsonl");
  const storage = memoryStorage();
  await storage.open();
  try {
    for (const i of [0, 1, 2]) {
      const ledger = await openLedgerOn(storage, { checkpointLog: { path, everyMs: 20 } });
      await ledger.transact((tx) => Promise.resolve(tx.record(entry(i))));
      await ledger.close();
    }
    assert.deepEqual(
      readFileSync(path, "utf8")
        .split("\n")
        .map((line) => (line === "" ? "" : (JSON.parse(line) as Line).size))
        // A slow machine also appends the checkpoint of the empty log.
        .filter((size) => size !== 0),
      [1, 2, 3, ""],
    );
    const ledger = await openLedgerOn(storage, { checkpointLog: { path, everyMs: 20 } });
    await ledger.transact((tx) => Promise.resolve(tx.record(entry(3))));
    await until("the fourth is there", () => linesOf(path).some(({ size }) => size === 4));
    renameSync(place, join(folder, "moved"));
    await ledger.transact((tx) => Promise.resolve(tx.record(entry(4))));
    await ledger.close();
    assert.deepEqual(readdirSync(folder), ["moved"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await storage.close();
  }
});
