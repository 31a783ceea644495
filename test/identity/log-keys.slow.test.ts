/**
 * Rotation of the key that signs checkpoints: the ledger records the new key, and clients that pinned the old key
 * follow.
 * @needs provenance
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, it } from "node:test";
import { verifyProofText } from "../../src/cli/verify.ts";
import { createAssent } from "../../clients/typescript/index.ts";
import { verifyProof as clientProof } from "../../clients/typescript/proof.ts";
import { NoteError, openCheckpoint, parseVkey, readNote } from "../../src/domain/checkpoint.ts";
import { decodeEntry, type LogKeyEntry } from "../../src/domain/entries.ts";
import { toHex } from "../../src/domain/hash.ts";
import { VaultError } from "../../src/identity/key-files.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { newKey } from "../support/keys.ts";
import { signerOf } from "../support/signer.ts";
import { ALLOWED, startService, type Service, type ServiceOptions } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const DAY = 86_400_000;

let service: Service;
const start = async (options: ServiceOptions = {}): Promise<void> => {
  service = await startService(options);
};
afterEach(() => service.close());

const file = (name: string): string => join(service.folder, name);
const idOf = (vkey: string): string => toHex(parseVkey(vkey).id);
const decide = async (): Promise<string> =>
  (await service.call("POST", "/v1/actions", { body: ALLOWED })).body.decision_hash;
const proofOf = async (hash: string, suffix = ""): Promise<string> => {
  const { body } = await service.call("GET", `/v1/provenance/${hash}/proof${suffix}`, { key: service.admin });
  return typeof body === "string" ? body : JSON.stringify(body);
};
const present = async (): Promise<string> =>
  (await service.call("GET", "/v1/provenance/keys", { key: service.admin })).body.keys[0].vkey;
const checkpoint = async (): Promise<string> =>
  (await service.call("GET", "/v1/provenance/checkpoint", { key: service.admin })).body;
/** Ids of the keys that signed it, in order. */
const signedBy = (note: string): string[] => readNote(note).signatures.map(({ id }) => toHex(id));
const rotate = (overlap = 30 * DAY, again = false) => service.runtime.rotateLogKey({ overlap, again });

describe("a change of the log's key", () => {
  it("both keys sign during the overlap, and then only the new one", async () => {
    await start();
    const before = await decide();
    const old = await present();
    const { vkey, previous, recorded } = await rotate();
    assert.deepEqual([previous, recorded, vkey === old], [old, true, false]);
    assert.equal(await present(), vkey);
    await decide();
    const both = await checkpoint();
    assert.deepEqual(signedBy(both), [idOf(vkey), idOf(old)]);
    // Another reader of notes, which knows one of them, accepts it.
    for (const key of [old, vkey]) assert.ok(openCheckpoint(both, key, verifyEd25519).size > 0);
    await service.restart();
    await decide();
    assert.deepEqual(signedBy(await checkpoint()), [idOf(vkey), idOf(old)], "also after a restart");
    service.clock.now += 30 * DAY;
    await decide();
    assert.deepEqual(signedBy(await checkpoint()), [idOf(vkey)]);
    await service.restart();
    await decide();
    assert.deepEqual(signedBy(await checkpoint()), [idOf(vkey)]);
    // A client that pinned the old key long ago follows with any later proof.
    for (const text of [await proofOf(before), await proofOf(await decide())]) {
      const verified = verifyProofText(text, old, null);
      assert.deepEqual([verified.vkey, verified.moved.map((one) => one.vkey)], [vkey, [vkey]]);
      assert.deepEqual(verifyProofText(text, vkey, null).moved, []);
    }
  });

  it("the data folder has both keys, each readable only by its owner", async () => {
    await start();
    const old = await present();
    const pem = readFileSync(file("log-key.pem"), "utf8");
    const { vkey } = await rotate();
    const kept = file(`log-key.${idOf(old)}.pem`);
    assert.equal(readFileSync(kept, "utf8"), pem);
    for (const path of [kept, file("log-key.pem")]) assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(existsSync(file("log-key.next.pem")), false);
    rmSync(kept);
    await service.restart();
    await decide();
    assert.deepEqual(signedBy(await checkpoint()), [idOf(vkey)], "a key that is gone signs nothing along");
  });

  it("several rotations follow each other, and a pin of any key leads to the last", async () => {
    await start();
    const first = await present();
    const { vkey: second } = await rotate(0);
    const { vkey: third } = await rotate(30 * DAY);
    const hash = await decide();
    const [json, text] = [await proofOf(hash), await proofOf(hash, ".tlog-proof")];
    const entry = Buffer.from(JSON.parse(json).leaf as string, "base64");
    for (const pin of [first, second, third]) {
      assert.equal(verifyProofText(json, pin, null).vkey, third);
      assert.equal(verifyProofText(text, pin, entry).vkey, third);
      assert.equal((await clientProof(JSON.parse(json), hash, pin)).vkey, third);
    }
    const other = signerOf(parseVkey(first).name, 77).vkey;
    assert.throws(() => verifyProofText(json, other, null), /NOT VERIFIED/);
    assert.throws(() => verifyProofText(text, other, entry), /NOT VERIFIED/);
    await assert.rejects(clientProof(JSON.parse(json), hash, other));
  });

  it("the ledger entry has both signatures, which the audit verifies from any of the keys", async () => {
    await start();
    const old = await present();
    const { vkey, seq } = await rotate();
    const [row] = await service.storage.entries(seq, seq + 1);
    const entry = decodeEntry<LogKeyEntry>(row?.bytes as Uint8Array);
    assert.deepEqual([entry.type, entry.previous, entry.vkey, entry.by], ["log_key", old, vkey, null]);
    assert.equal(Date.parse(entry.previous_until) - Date.parse(entry.at), 30 * DAY);
    for (const key of [old, vkey]) assert.ok(openCheckpoint(entry.handover, key, verifyEd25519).size <= seq);
    for (const key of [old, vkey]) assert.deepEqual((await auditStore(service.storage, key)).faults, []);
    assert.match((await auditStore(service.storage, old.replace(/\+.*/, ""))).faults.join(), /not a key of the log/);
    assert.equal((await auditStore(service.storage, old)).logKeys.changes.length, 1);
  });

  it("running the command twice rotates once; --again rotates again", async () => {
    await start();
    const made = await rotate();
    const { size } = await service.storage.head();
    assert.deepEqual(await rotate(), { ...made, recorded: false });
    assert.equal((await service.storage.head()).size, size);
    const again = await rotate(0, true);
    assert.deepEqual([again.recorded, again.previous], [true, made.vkey]);
    await decide();
    assert.equal(signedBy(await checkpoint()).length, 2, "the first still has its days, the second has not");
  });

  it("a rotation interrupted before its entry changes nothing, and continues with the same key", async () => {
    await start();
    const old = await present();
    const waiting = newKey();
    writeFileSync(file("log-key.next.pem"), waiting, { mode: 0o600 });
    await service.restart();
    await decide();
    assert.deepEqual(signedBy(await checkpoint()), [idOf(old)]);
    await rotate();
    assert.equal(readFileSync(file("log-key.pem"), "utf8").trim(), waiting.trim());
  });

  it("a rotation interrupted after its entry is finished at the next start, whichever file was in place", async () => {
    await start();
    const old = readFileSync(file("log-key.pem"));
    const oldKey = await present();
    const { vkey } = await rotate();
    const next = readFileSync(file("log-key.pem"));
    const kept = file(`log-key.${idOf(oldKey)}.pem`);
    for (const wasKept of [false, true]) {
      writeFileSync(file("log-key.next.pem"), next, { mode: 0o600 });
      writeFileSync(file("log-key.pem"), old, { mode: 0o600 });
      if (!wasKept) rmSync(kept);
      await service.restart();
      assert.deepEqual([readFileSync(file("log-key.pem")), readFileSync(kept)], [next, old]);
      assert.equal(existsSync(file("log-key.next.pem")), false);
      await decide();
      assert.deepEqual(signedBy(await checkpoint()), [idOf(vkey), idOf(oldKey)]);
    }
    assert.equal((await rotate()).recorded, false);
  });

  it("the permit key is rejected as a log key, and every log key as a permit key", async () => {
    await start();
    writeFileSync(file("log-key.next.pem"), readFileSync(file("permit-key.pem")), { mode: 0o600 });
    const { size } = await service.storage.head();
    await assert.rejects(rotate(), (error) => error instanceof VaultError && /signs permits/.test(error.message));
    assert.equal((await service.storage.head()).size, size);
    rmSync(file("log-key.next.pem"));
    const old = readFileSync(file("log-key.pem"), "utf8");
    await rotate();
    for (const key of [old, readFileSync(file("log-key.pem"), "utf8")])
      await assert.rejects(service.runtime.rotatePermitKey({ key, overlap: 0 }), /key of the log/);
  });
});

describe("a next key that equals the current one", () => {
  it("has no effect: the service starts, and nothing is changed", async () => {
    const key = newKey();
    await start({ change: (config) => void Object.assign(config.ledger, { key, next_key: key }) });
    const before = await present();
    await assert.rejects(rotate(), (error) => error instanceof VaultError && /name another one/.test(error.message));
    await decide();
    assert.deepEqual([await present(), signedBy(await checkpoint())], [before, [idOf(before)]]);
  });
});

describe("a key that is no longer the log's", () => {
  it("starts no service, whether it is an old key or a foreign one", async () => {
    await start();
    const old = readFileSync(file("log-key.pem"));
    const { seq } = await rotate();
    const right = readFileSync(file("log-key.pem"));
    const kept = file(`log-key.${idOf((await service.runtime.host.ledger.logKeys()).at(-1)?.vkey ?? "")}.pem`);
    writeFileSync(file("log-key.pem"), old);
    await assert.rejects(
      service.restart(),
      (error) => error instanceof VaultError && error.message.includes(`changed at entry ${seq}`),
    );
    writeFileSync(file("log-key.pem"), newKey());
    await assert.rejects(service.restart(), /belongs to the log with the key/);
    writeFileSync(file("log-key.pem"), right);
    assert.ok(existsSync(kept));
    await service.restart();
    await decide();
  });

  it("an entry that the pinned key did not sign does not change the pin, even if it is in the store", async () => {
    await start({ broken: true });
    const hash = await decide();
    const old = await present();
    await rotate();
    await decide();
    const proof = JSON.parse(await proofOf(hash));
    const leaf = (change: (entry: LogKeyEntry & { seq: number }) => object): string => {
      const entry = JSON.parse(Buffer.from(proof.log_keys[0].leaf as string, "base64").toString());
      const log_keys = [{ ...proof.log_keys[0], leaf: Buffer.from(JSON.stringify(change(entry))).toString("base64") }];
      return JSON.stringify({ ...proof, log_keys });
    };
    const thief = signerOf(parseVkey(old).name, 99);
    const lies: Record<string, string> = {
      "another key": leaf((entry) => ({ ...entry, vkey: thief.vkey })),
      "another key before": leaf((entry) => ({ ...entry, previous: thief.vkey })),
      "another end": leaf((entry) => ({ ...entry, previous_until: "2099-01-01T00:00:00.000Z" })),
      "another place": leaf((entry) => ({ ...entry, seq: entry.seq - 1 })),
      "a handover with one signature": leaf((entry) => ({
        ...entry,
        handover: entry.handover.split("\n").slice(0, -2).join("\n") + "\n",
      })),
      "no handover": leaf((entry) => ({ ...entry, handover: "" })),
      "another type": leaf((entry) => ({ ...entry, type: "agent" })),
    };
    for (const [what, text] of Object.entries(lies)) {
      // An altered entry of another key is skipped; then the pin must have signed the checkpoint, as it did here.
      if (what === "another key before") assert.deepEqual(verifyProofText(text, old, null).moved, []);
      else {
        assert.throws(() => verifyProofText(text, old, null), /NOT VERIFIED/, what);
        await assert.rejects(clientProof(JSON.parse(text), hash, old), what);
      }
    }
    // The first key in the store, which the entries do not lead back to.
    const { storage } = service;
    await storage.write((tx) => tx.putMeta("log_vkey", thief.vkey));
    assert.match((await auditStore(storage, old)).faults.join(), /differs from the log's first key/);
    await assert.rejects(service.restart());
  });
});

describe("data saved before a rotation", () => {
  it("proofs under the old key, and the checkpoint next to the store, are still valid", async () => {
    await start();
    const hash = await decide();
    const [old, early] = [await present(), await proofOf(hash)];
    await service.restart();
    const note = readFileSync(file("checkpoint"), "utf8");
    await rotate(0);
    await service.restart();
    assert.deepEqual(verifyProofText(early, old, null).moved, []);
    assert.ok(openCheckpoint(note, old, verifyEd25519).size > 0);
    assert.throws(() => openCheckpoint(readFileSync(file("checkpoint"), "utf8"), old, verifyEd25519), NoteError);
  });

  it("a copy of the store from before the rotation is detected, and starts with the old key if that is accepted", async () => {
    const copy = temporaryFolder("assent-restore-");
    try {
      await start({ broken: true });
      await decide();
      const old = await present();
      await service.runtime.stop();
      cpSync(service.folder, copy, { recursive: true });
      await service.restart();
      await rotate(0);
      await decide();
      await service.runtime.stop();
      for (const name of ["assent.db", "log-key.pem"]) cpSync(join(copy, name), file(name));
      for (const name of ["assent.db-wal", "assent.db-shm"]) rmSync(file(name), { force: true });
      await assert.rejects(service.restart(), /before the log's key was changed.*--accept-rollback/s);
      for (const name of ["checkpoint", "head"]) rmSync(file(name));
      await service.restart();
      assert.equal(await present(), old);
      await decide();
    } finally {
      rmSync(copy, { recursive: true });
    }
  });

  it("the client verifies data under its pinned key, and is notified of the new one", async () => {
    await start();
    const hash = await decide();
    const old = await present();
    const { vkey } = await rotate(0);
    await decide();
    const fetched: typeof fetch = (input, init) => service.runtime.fetch(new Request(input, init));
    const heard: string[] = [];
    const client = createAssent({
      url: "http://assent.test",
      apiKey: service.admin,
      fetch: fetched,
      logKey: old,
      onLogKey: (key) => heard.push(key),
    });
    await client.proof(hash);
    assert.deepEqual(heard, [vkey]);
  });
});
