/** C2SP tlog-cosignature and the body of tlog-witness, compared with signatures and bytes that are computed here. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { formatCheckpoint, NoteError, openCheckpoint, signNote, formatVkey } from "../../src/domain/checkpoint.ts";
import {
  formatCosignature,
  verifyCosignatures,
  formatWitnessVkey,
  parseWitnessVkey,
} from "../../src/domain/cosignature.ts";
import { formatAddCheckpoint, parseAddCheckpoint } from "../../src/domain/witness-protocol.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { newSigner } from "../support/keys.ts";

const log = newSigner("example.com/log");
const witness = newSigner("witness.example.com/w1");
const vkey = formatWitnessVkey(witness.name, witness.publicKey);
const text = formatCheckpoint({ origin: log.name, size: 8, root: new Uint8Array(32).fill(7) });
const note = signNote(text, log);
const reason = (what: () => unknown): string => {
  try {
    what();
    return "nothing was thrown";
  } catch (error) {
    assert.ok(error instanceof NoteError, String(error));
    return error.reason;
  }
};

describe("cosignatures", () => {
  test("the line matches the specification", () => {
    const line = formatCosignature(text, 1_679_315_147, witness);
    const [, name, encoded] = /^\u2014 (\S+) (\S+)\n$/.exec(line) as unknown as [string, string, string];
    const bytes = Buffer.from(encoded, "base64");
    assert.equal(name, witness.name);
    const id = createHash("sha256").update(`${witness.name}\n`).update(Uint8Array.of(4)).update(witness.publicKey);
    assert.deepEqual(bytes.subarray(0, 4), id.digest().subarray(0, 4));
    assert.equal(bytes.readBigUInt64BE(4), 1_679_315_147n);
    const signed = Buffer.from(`cosignature/v1\ntime 1679315147\n${text}`);
    assert.ok(verifyEd25519(witness.publicKey, signed, bytes.subarray(12)));
    assert.equal(bytes.length, 4 + 8 + 64);
  });

  test("are found next to the log's own signature, and leave it unchanged", () => {
    const cosigned =
      note +
      formatCosignature(text, 1_700_000_000, newSigner("somebody.example/else")) +
      formatCosignature(text, 1, witness);
    assert.deepEqual(verifyCosignatures(cosigned, [vkey], verifyEd25519), [{ name: witness.name, seconds: 1 }]);
    assert.deepEqual(verifyCosignatures(note, [vkey], verifyEd25519), []);
    assert.equal(openCheckpoint(cosigned, formatVkey(log.name, log.publicKey), verifyEd25519).size, 8);
  });

  test("with another time or text, truncated, or plain under the witness's id, reject the note", () => {
    const line = formatCosignature(text, 1_700_000_000, witness);
    const bytes = Buffer.from(line.split(" ")[2] as string, "base64");
    const lineOf = (changed: Buffer): string => `\u2014 ${witness.name} ${changed.toString("base64")}\n`;
    const time = Buffer.from(bytes);
    time.writeUInt8(time.readUInt8(11) ^ 1, 11);
    const huge = Buffer.from(bytes);
    huge.fill(0xff, 4, 12);
    const other = formatCosignature(
      formatCheckpoint({ origin: log.name, size: 9, root: new Uint8Array(32) }),
      1,
      witness,
    );
    const plain = Buffer.concat([bytes.subarray(0, 4), witness.sign(Buffer.from(text))]);
    for (const bad of [lineOf(time), lineOf(huge), lineOf(bytes.subarray(0, -1)), other, lineOf(plain)])
      assert.equal(
        reason(() => verifyCosignatures(note + bad, [vkey], verifyEd25519)),
        "bad_signature",
      );
  });

  test("a log's key is not a witness's key, nor the other way round", () => {
    assert.equal(
      reason(() => parseWitnessVkey(formatVkey(log.name, log.publicKey))),
      "bad_key",
    );
    assert.equal(
      reason(() => openCheckpoint(note, vkey, verifyEd25519)),
      "bad_key",
    );
  });
});

describe("add-checkpoint", () => {
  test("is written as the specification shows it, and read again", () => {
    const request = { old: 5, proof: [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)], checkpoint: note };
    const body = formatAddCheckpoint(request);
    const hash = (byte: number): string => Buffer.alloc(32, byte).toString("base64");
    assert.equal(body, `old 5\n${hash(1)}\n${hash(2)}\n\n${note}`);
    assert.deepEqual(parseAddCheckpoint(body), request);
    assert.deepEqual(parseAddCheckpoint(`old 0\n\n${note}`), { old: 0, proof: [], checkpoint: note });
  });

  test("in another form is rejected", () => {
    const hash = Buffer.alloc(32).toString("base64");
    for (const bad of [
      "",
      "old 5",
      `old 05\n\n${note}`,
      `old -1\n\n${note}`,
      `OLD 5\n\n${note}`,
      `old 99999999999999999\n\n${note}`,
      `old 5\n${hash.slice(0, -2)}\n\n${note}`,
      `old 5\n${Buffer.alloc(31).toString("base64")}\n\n${note}`,
      `old 5\n${`${hash}\n`.repeat(64)}\n${note}`,
    ])
      assert.equal(
        reason(() => parseAddCheckpoint(bad)),
        "malformed",
        bad,
      );
  });
});
