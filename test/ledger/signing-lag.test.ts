/** A disk that does not respond while the newest checkpoint is stored: nothing stays unsigned for long, and no wait hangs. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { StorageError } from "../../src/contract/storage.ts";
import { createLogger } from "../../src/serve/log.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { openCheckpointFile } from "../../src/ledger/sign/checkpoint-file.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until, withTimeout } from "../support/wait.ts";

/** Twice the time limit of a write, which a busy machine must not exceed while the disk responds. */
const LIMIT_MS = 1_000;
const UNAVAILABLE = (error: unknown): boolean => error instanceof StorageError && error.kind === "unavailable";

let folder: string;
let path: string;
let storage: ReturnType<typeof memoryStorage>;
/** Lets go of the thread that waits for the pipe. */
let release: () => void;

beforeEach(async () => {
  folder = temporaryFolder("assent-lag-");
  path = join(folder, "checkpoint");
  storage = memoryStorage();
  await storage.open();
  release = () => {};
});
afterEach(async () => {
  release();
  await storage.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Replaces the file with a pipe without a writer, on which a read waits like on a disk that does not respond. */
function hang(file = path): void {
  rmSync(file, { force: true });
  execFileSync("mkfifo", [file]);
  release = () => {
    release = () => {};
    try {
      // Fails if nothing reads.
      closeSync(openSync(file, constants.O_WRONLY | constants.O_NONBLOCK));
    } catch {
      rmSync(file, { force: true });
    }
  };
}

const open = (more: Parameters<typeof openLedgerOn>[1] = {}) =>
  openLedgerOn(storage, { keptCheckpoint: path, signingLimitMs: LIMIT_MS, ...more });

describe("while the disk does not respond", () => {
  test("decisions are refused once entries have been unsigned for too long, until they are signed; stops are not", async () => {
    const logged: string[] = [];
    const log = createLogger("info", (line) => logged.push(line));
    const ledger = await open({ log });
    const add = () => ledger.transact((tx) => Promise.resolve(tx.record(entry(0))));
    await add();
    await until("the entry is signed", () => ledger.unsignedMs() === 0);
    hang();
    const reason = /have been unsigned for more than 1 s: .*the disk did not respond within 0.5 s/;
    await until("decisions are refused", () =>
      add().then(
        () => false,
        (error: unknown) => UNAVAILABLE(error) && reason.test(String(error)),
      ),
    );
    assert.ok(ledger.unsignedMs() > LIMIT_MS);
    await assert.rejects(withTimeout("the checkpoint", ledger.checkpoint()), UNAVAILABLE);
    const { size } = await ledger.head();
    await ledger.transactFirst((tx) => Promise.resolve(tx.record(entry(1))));
    assert.equal((await ledger.head()).size, size + 1);
    release();
    await until("decisions continue", () =>
      add().then(
        () => true,
        () => false,
      ),
    );
    await until("everything is signed", () => ledger.unsignedMs() === 0);
    assert.equal((await ledger.checkpoint()).size, size + 2);
    assert.equal(logged.filter((line) => line.includes("decisions are refused")).length, 1, logged.join("\n"));
    assert.ok(logged.some((line) => line.includes("entries are signed again")));
    await ledger.close();
  });

  test("a failed signature is repeated without a further decision", async () => {
    const ledger = await open();
    await ledger.transact((tx) => Promise.resolve(tx.record(entry(0))));
    await until("the entry is signed", () => ledger.unsignedMs() === 0);
    hang();
    await ledger.transact((tx) => Promise.resolve(tx.record(entry(1))));
    await until("the signature has failed", () => ledger.unsignedMs() > 2 * LIMIT_MS);
    release();
    await until("the entry is signed", () => ledger.unsignedMs() === 0);
    await ledger.close();
    assert.match(readFileSync(path, "utf8"), /^ledger\.example\n2\n/);
  });

  test("entries that a killed process left unsigned are signed as soon as the store can be read", async () => {
    const killed = await open();
    await killed.transact((tx) => Promise.resolve(tx.record(entry(0))));
    await until("the entry is signed", () => killed.unsignedMs() === 0);
    hang();
    await killed.transact((tx) => Promise.resolve(tx.record(entry(1))));
    await assert.rejects(withTimeout("the close", killed.close()));
    release();
    rmSync(path, { force: true });
    let failures: number | null = null;
    const ledger = await openLedgerOn(
      {
        ...storage,
        // Read last before the signature.
        entries(...range) {
          if (range[0] === 1) failures ??= 0;
          return storage.entries(...range);
        },
        leafHashes(...range) {
          if (failures !== 0) return storage.leafHashes(...range);
          failures++;
          return Promise.reject(new StorageError("locked", "the database is locked"));
        },
      },
      { keptCheckpoint: path, signingLimitMs: LIMIT_MS },
    );
    await until(
      "the entries are signed",
      () => existsSync(path) && readFileSync(path, "utf8").startsWith("ledger.example\n2\n"),
    );
    assert.equal(failures, 1);
    await ledger.close();
  });

  test("the ledger closes, and reports the write that has not ended", async () => {
    const ledger = await open();
    await ledger.transact((tx) => Promise.resolve(tx.record(entry(0))));
    await until("the entry is signed", () => ledger.unsignedMs() === 0);
    hang();
    await ledger.transact((tx) => Promise.resolve(tx.record(entry(1))));
    await assert.rejects(
      withTimeout("the close", ledger.close()),
      /the disk did not respond to the write of .*checkpoint/,
    );
  });

  test("an appended checkpoint does not delay the close", async () => {
    const appended = join(folder, "appended.jsonl");
    const ledger = await open({ keptCheckpoint: null, checkpointLog: { path: appended, everyMs: 10 } });
    hang(appended);
    await ledger.transact((tx) => Promise.resolve(tx.record(entry(0))));
    await assert.rejects(
      withTimeout("the close", ledger.close()),
      /the disk did not respond to the write of .*appended/,
    );
  });

  test("a file outside the data folder is skipped until its disk responds", async () => {
    const logged: string[] = [];
    const file = openCheckpointFile(
      path,
      createLogger("info", (line) => logged.push(line)),
      {
        optional: true,
        limitMs: LIMIT_MS,
      },
    );
    hang();
    await withTimeout("the first", file.keep("first"));
    await withTimeout("the second", file.keep("second"));
    assert.equal(logged.length, 1, logged.join("\n"));
    release();
    await until("the write has ended", () => !file.isWriting());
    await file.keep("third");
    assert.equal(readFileSync(path, "utf8"), "third");
  });
});
