/** C2SP tlog-cosignature, compared with signatures that are computed here. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { formatCheckpoint, NoteError, openCheckpoint, signNote, formatVkey } from "../../src/domain/checkpoint.ts";
import {
  formatCosignature,
  verifyCosignatures,
  formatCosignerVkey,
  parseCosignerVkey,
} from "../../src/domain/cosignature.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { newSigner } from "../support/keys.ts";

const log = newSigner("example.com/log");
const witness = newSigner("witness.example.com/w1");
const vkey = formatCosignerVkey(witness.name, witness.publicKey);
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
      reason(() => parseCosignerVkey(formatVkey(log.name, log.publicKey))),
      "bad_key",
    );
    assert.equal(
      reason(() => openCheckpoint(note, vkey, verifyEd25519)),
      "bad_key",
    );
  });
});
