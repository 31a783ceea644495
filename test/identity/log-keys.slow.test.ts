/** The key that signs checkpoints: followed by another in the ledger, with everybody who pinned the old one able to follow. */
import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, it } from "node:test";
import { verifyProofText } from "../../src/cli/verify.ts";
import { createAssent } from "../../src/client/index.ts";
import { verifyProof as clientProof } from "../../src/client/proof.ts";
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
  it("is signed along by the old key for the overlap, and after it by the new one alone", async () => {
    await start();
    const before = await decide();
    const old = await present();
    const { vkey, previous, recorded } = await rotate();
    assert.deepEqual([previous, recorded, vkey === old], [old, true, false]);
    assert.equal(await present(), vkey);
    await decide();
    const both = await checkpoint();
    assert.deepEqual(signedBy(both), [idOf(vkey), idOf(old)]);
    // Somebody else's reader of notes, who knows one of them, takes it.
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
    // Whoever pinned the old key long ago moves on with any proof, however late.
    for (const text of [await proofOf(before), await proofOf(await decide())]) {
      const verified = verifyProofText(text, old, null);
      assert.deepEqual([verified.vkey, verified.moved.map((one) => one.vkey)], [vkey, [vkey]]);
      assert.deepEqual(verifyProofText(text, vkey, null).moved, []);
    }
  });

  it("leaves the data folder with both keys, each for its owner alone", async () => {
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

  it("follows another, and a pin of any of them leads to the last", async () => {
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

  it("stands in the ledger with what both keys signed, and the audit holds it to that, from whichever key it is given", async () => {
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

  it("is not made twice by a command that is run twice; --again makes another", async () => {
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

  it("that ended before the ledger had it changes nothing, and goes on with the same key", async () => {
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

  it("that ended after the ledger had it is finished at the next start, wherever it was in putting the files in place", async () => {
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

  it("refuses the key that signs permits, and permits refuse every key of the log", async () => {
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

describe("a next key that is the present one", () => {
  it("is none yet: the service starts with it, and nothing is changed", async () => {
    const key = newKey();
    await start({ change: (config) => void Object.assign(config.ledger, { key, next_key: key }) });
    const before = await present();
    await assert.rejects(rotate(), (error) => error instanceof VaultError && /name another one/.test(error.message));
    await decide();
    assert.deepEqual([await present(), signedBy(await checkpoint())], [before, [idOf(before)]]);
  });
});

describe("a key that is no longer the log's", () => {
  it("starts no service: neither the old one alone, nor a foreign one", async () => {
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

  it("moves no pin by an entry that it did not sign, whoever wrote that to the store", async () => {
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
      // A change of the past of another key is passed over; then the checkpoint must be signed by the pin, which it is here.
      if (what === "another key before") assert.deepEqual(verifyProofText(text, old, null).moved, []);
      else {
        assert.throws(() => verifyProofText(text, old, null), /NOT VERIFIED/, what);
        await assert.rejects(clientProof(JSON.parse(text), hash, old), what);
      }
    }
    // And the first key as the store has it: what the entries trace back to is not that.
    const { storage } = service;
    await storage.write((tx) => tx.putMeta("log_vkey", thief.vkey));
    assert.match((await auditStore(storage, old)).faults.join(), /differs from the log's first key/);
    await assert.rejects(service.restart());
  });
});

describe("what was kept before a change", () => {
  it("still holds after it: proofs under the old key, and the checkpoint beside the store", async () => {
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

  it("tells a copy of the store from before it, which starts with the old key when that is accepted", async () => {
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
      rmSync(file("checkpoint"));
      await service.restart();
      assert.equal(await present(), old);
      await decide();
    } finally {
      rmSync(copy, { recursive: true });
    }
  });

  it("is checked by the client under the pin that it has, and it is told of the new one", async () => {
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
