/** A witness cosigns only checkpoints that extend its last one; and the log's handling of its responses. */
import assert from "node:assert/strict";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { SignedCheckpoint } from "../../../src/contract/ledger.ts";
import { formatVkey, openCheckpoint, signCheckpoint, type NoteSigner } from "../../../src/domain/checkpoint.ts";
import { formatCosignature, verifyCosignatures, formatCosignerVkey } from "../../../src/domain/cosignature.ts";
import { formatAddCheckpoint } from "../../../plugins/witness/protocol.ts";
import { verifyEd25519 } from "../../../src/identity/vault.ts";
import {
  createWitness,
  createWitnessStateStore,
  type Witness,
  type WitnessStateStore,
} from "../../../plugins/witness/witness.ts";
import { Witnesses } from "../../../plugins/witness/witnesses.ts";
import { createLogger } from "../../../src/serve/log.ts";
import { newSigner } from "../../support/keys.ts";
import { leafOf, naiveConsistency, naiveRoot } from "../../support/tree.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const log = newSigner("example.com/log");
const logVkey = formatVkey(log.name, log.publicKey);
const cosigner = newSigner("witness.example.com/w1");
const vkey = formatCosignerVkey(cosigner.name, cosigner.publicKey);
const leaves = Array.from({ length: 40 }, (_, i) => leafOf(Buffer.from(`entry ${i}`)));
/** The same log up to ten entries, and a fork from there. */
const forked = leaves.map((leaf, i) => (i < 10 ? leaf : leafOf(Buffer.from(`other ${i}`))));

const noteOf = (size: number, of = leaves, by = log): string =>
  signCheckpoint({ origin: by.name, size, root: naiveRoot(of.slice(0, size)) }, by);
const proofOf = (old: number, size: number, of = leaves): Uint8Array[] =>
  old === 0 || old === size ? [] : naiveConsistency(old, of.slice(0, size));
const request = (old: number, size: number, of = leaves): string =>
  formatAddCheckpoint({ old, proof: proofOf(old, size, of), checkpoint: noteOf(size, of) });

let folder: string;
beforeEach(() => (folder = temporaryFolder("assent-witness-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const witnessOn = (state: WitnessStateStore = createWitnessStateStore(folder)): Witness =>
  createWitness({ logs: [logVkey], state, signer: cosigner, clock: () => 1_700_000_000_000, verify: verifyEd25519 });

describe("a witness", () => {
  test("cosigns a log as it grows, even after a restart", async () => {
    let witness = witnessOn();
    for (const [old, size] of [
      [0, 3],
      [3, 8],
      [8, 8],
      [8, 33],
    ] as const) {
      const answer = await witness.addCheckpoint(request(old, size));
      assert.deepEqual([answer.status, answer.contentType], [200, "text/plain; charset=utf-8"], answer.body);
      assert.deepEqual(verifyCosignatures(noteOf(size) + answer.body, [vkey], verifyEd25519), [
        { name: cosigner.name, seconds: 1_700_000_000 },
      ]);
      witness = witnessOn();
    }
    assert.equal(readdirSync(folder).length, 1, "no part of a file is left");
  });

  test("returns its own size to a request from another size, and cosigns nothing", async () => {
    const witness = witnessOn();
    assert.equal((await witness.addCheckpoint(request(0, 12))).status, 200);
    for (const body of [request(0, 20), request(5, 20), request(13, 20), request(0, 12), request(3, 9)])
      assert.deepEqual(await witness.addCheckpoint(body), {
        status: 409,
        body: "12\n",
        contentType: "text/x.tlog.size",
      });
  });

  test("cosigns no other history, smaller tree, or invalid proof", async () => {
    const witness = witnessOn();
    assert.equal((await witness.addCheckpoint(request(0, 12))).status, 200);
    const status = async (body: string): Promise<number> => (await witness.addCheckpoint(body)).status;
    assert.equal(await status(request(12, 12, forked)), 409, "the same size with another root");
    assert.equal(await status(request(12, 20, forked)), 422, "a proof of the fork");
    assert.equal(
      await status(formatAddCheckpoint({ old: 12, proof: proofOf(12, 20), checkpoint: noteOf(20, forked) })),
      422,
      "a proof of the log under the fork's checkpoint",
    );
    assert.equal(await status(formatAddCheckpoint({ old: 12, proof: [], checkpoint: noteOf(20) })), 422, "no proof");
    assert.equal(
      await status(formatAddCheckpoint({ old: 12, proof: [], checkpoint: noteOf(9) })),
      400,
      "a smaller one",
    );
    assert.equal(await status(request(12, 20)), 200, "and goes on with what does extend it");
    const fresh = witnessOn(createWitnessStateStore(temporaryFolder("fresh-", folder)));
    const withProof = formatAddCheckpoint({ old: 0, proof: proofOf(3, 8), checkpoint: noteOf(8) });
    assert.equal((await fresh.addCheckpoint(withProof)).status, 422, "a proof from nothing");
  });

  test("knows its logs by origin and key", async () => {
    const witness = witnessOn();
    const stranger = newSigner("example.com/log");
    const other = newSigner("example.com/another");
    const body = (by: NoteSigner): string =>
      formatAddCheckpoint({ old: 0, proof: [], checkpoint: noteOf(4, leaves, by) });
    assert.equal((await witness.addCheckpoint(body(stranger))).status, 403);
    assert.equal((await witness.addCheckpoint(body(other))).status, 404);
    assert.equal((await witness.addCheckpoint("nonsense")).status, 400);
    assert.equal((await witness.addCheckpoint(`old 0\n\nno checkpoint\n`)).status, 400);
  });

  test("keeps two logs apart: each has its own size and history", async () => {
    const other = newSigner("other.example/log");
    const options = { state: createWitnessStateStore(folder), signer: cosigner, clock: () => 0, verify: verifyEd25519 };
    const logs = [logVkey, formatVkey(other.name, other.publicKey)];
    const ask = async (old: number, size: number, by: NoteSigner, of = leaves): Promise<number> =>
      (
        await createWitness({ ...options, logs }).addCheckpoint(
          formatAddCheckpoint({ old, proof: proofOf(old, size, of), checkpoint: noteOf(size, of, by) }),
        )
      ).status;
    assert.deepEqual([await ask(0, 12, log), await ask(0, 20, other, forked)], [200, 200]);
    assert.equal(await ask(20, 33, log), 409, "the size of the other one");
    assert.equal(await ask(12, 33, other, forked), 409);
    assert.equal(await ask(20, 33, other), 422, "the past of the other one");
    assert.deepEqual([await ask(12, 33, log), await ask(20, 33, other, forked)], [200, 200]);
    const posing = { ...other, name: log.name };
    assert.equal(await ask(33, 40, posing), 403, "signed with the other one's key");
    assert.equal(readdirSync(folder).length, 2);
  });

  test("a witness cosigns only one of two forks that arrive at the same time", async () => {
    const witness = witnessOn();
    assert.equal((await witness.addCheckpoint(request(0, 10))).status, 200);
    const answers = await Promise.all([
      witness.addCheckpoint(request(10, 20)),
      witness.addCheckpoint(request(10, 20, forked)),
      witness.addCheckpoint(request(10, 15)),
    ]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 409, 409],
    );
  });

  test("returns nothing that it could not store, and refuses to continue from a damaged record", async () => {
    const files = createWitnessStateStore(folder);
    const failing = witnessOn({ ...files, write: () => Promise.reject(new Error("disk full")) });
    await assert.rejects(failing.addCheckpoint(request(0, 8)), /disk full/);
    assert.equal((await witnessOn().addCheckpoint(request(0, 8))).status, 200);
    const [name] = readdirSync(folder);
    writeFileSync(join(folder, name as string), '{"origin":"example.com/another","size":1,"root":""}');
    await assert.rejects(witnessOn().addCheckpoint(request(0, 9)), /does not contain the cosigned state/);
    writeFileSync(join(folder, name as string), "");
    await assert.rejects(witnessOn().addCheckpoint(request(0, 9)));
  });
});

describe("a log with witnesses", () => {
  const signed = (size: number, of = leaves): SignedCheckpoint => ({
    size,
    root: naiveRoot(of.slice(0, size)),
    note: noteOf(size, of),
  });
  const duty = { isLeader: () => Promise.resolve(true), release: () => Promise.resolve() };

  function logWith(answer: (body: string) => Promise<Response>, more: { url: string; vkey: string }[] = []) {
    let kept: string | null = null;
    let [size, of] = [0, leaves];
    const lines: string[] = [];
    const witnesses = new Witnesses({
      witnesses: [{ url: "https://witness.example.com/", vkey }, ...more],
      ledger: {
        checkpoint: () => Promise.resolve(signed(size, of)),
        consistency: (first, second) => Promise.resolve(proofOf(first, second, of)),
        keepCosigned: (note) => Promise.resolve(void (kept = note)),
      },
      lease: duty,
      everyMs: 1e9,
      log: createLogger("info", (text) => lines.push(text)),
      verify: verifyEd25519,
      fetch: async (url, init) => {
        assert.equal(init?.redirect, "error");
        return url === "https://witness.example.com/add-checkpoint"
          ? answer(init?.body as string)
          : Promise.reject(new Error("refused"));
      },
    });
    return {
      lines,
      grow: async (to: number, history = leaves) => {
        [size, of] = [to, history];
        await witnesses.round();
        if (kept === null) return null;
        return [
          openCheckpoint(kept, logVkey, verifyEd25519).size,
          verifyCosignatures(kept, [vkey], verifyEd25519).length,
        ];
      },
    };
  }
  const by = (witness: Witness) => async (body: string) => {
    const answer = await witness.addCheckpoint(body);
    return new Response(answer.body, { status: answer.status, headers: { "Content-Type": answer.contentType } });
  };

  test("keeps the newest cosigned checkpoint, and learns the witness's size from it", async () => {
    const { grow, lines } = logWith(by(witnessOn()));
    assert.equal(await grow(0), null);
    assert.deepEqual(await grow(8), [8, 1]);
    assert.deepEqual(await grow(33), [33, 1]);
    const restarted = logWith(by(witnessOn()));
    assert.deepEqual(await restarted.grow(40), [40, 1], "409 tells the size");
    assert.deepEqual(lines, []);
  });

  test("reports that the witness has seen more, or another history, and stores nothing new", async () => {
    const witness = witnessOn();
    assert.equal((await witness.addCheckpoint(request(0, 20))).status, 200);
    const behind = logWith(by(witness));
    assert.equal(await behind.grow(12), null);
    assert.match(behind.lines.join(""), /it has cosigned 20 entries of this log, and the store has 12/);
    assert.equal(await behind.grow(12), null);
    assert.equal(behind.lines.length, 1, "once for each reason");
    const other = logWith(by(witness));
    assert.equal(await other.grow(30, forked), null);
    assert.match(other.lines.join(""), /it responded with status 422/);
  });

  test("accepts only a cosignature by that key on that checkpoint", async () => {
    const time = 1_700_000_000;
    for (const body of [
      "",
      formatCosignature(noteOf(8).split("\n\n")[0] + "\n", time, newSigner(cosigner.name)),
      formatCosignature("example.com/log\n9\nAAAA\n", time, cosigner),
      "x".repeat(70_000),
    ]) {
      const { grow, lines } = logWith(() => Promise.resolve(new Response(body)));
      assert.equal(await grow(8), null);
      assert.match(lines.join(""), /contains no cosignature|more than 65536 bytes/);
    }
  });

  test("stores the cosignature of one witness when another is unreachable", async () => {
    const dead = { url: "https://dead.example.com", vkey: formatCosignerVkey("dead", newSigner("dead").publicKey) };
    const { grow, lines } = logWith(by(witnessOn()), [dead]);
    assert.deepEqual(await grow(8), [8, 1]);
    assert.match(lines.join(""), /"witness":"https:\/\/dead.example.com","error":"refused"/);
  });
});
