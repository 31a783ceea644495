import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { NoteError, signCheckpoint } from "../../src/domain/checkpoint.ts";
import { toBase64, utf8 } from "../../src/domain/hash.ts";
import { formatTlogProof, parseTlogProof, ProofError, verifyTlogProof } from "../../src/domain/tlog-proof.ts";
import { leafOf, mutations, naivePath, naiveRoot } from "../support/tree.ts";
import { ed25519, signerOf } from "../support/signer.ts";

const log = signerOf("example.com/decisions");
const SIZE = 13;
const LEAVES = Array.from({ length: SIZE }, (_, i) => leafOf(utf8(`entry ${i}`)));
const checkpointOf = (size: number): string =>
  signCheckpoint({ origin: log.name, size, root: naiveRoot(LEAVES.slice(0, size)) }, log);
const CHECKPOINT = checkpointOf(SIZE);
const leafAt = (i: number): Uint8Array => LEAVES[i] as Uint8Array;
const proofOf = (index: number, size = SIZE): string =>
  formatTlogProof({ index, path: naivePath(index, LEAVES.slice(0, size)), checkpoint: checkpointOf(size) });
const check = (text: string, index: number): number => verifyTlogProof(text, leafAt(index), log.vkey, ed25519).index;

describe("verifying", () => {
  test("every leaf of every size verifies, and no other leaf", () => {
    for (let size = 1; size <= SIZE; size++) {
      for (let index = 0; index < size; index++) {
        const { index: found, checkpoint } = verifyTlogProof(proofOf(index, size), leafAt(index), log.vkey, ed25519);
        assert.deepEqual([found, checkpoint.size, checkpoint.origin], [index, size, log.name]);
        if (size > 1) assert.throws(() => check(proofOf(index, size), (index + 1) % size), ProofError);
      }
    }
  });

  test("a log of one entry has a proof without steps", () => {
    assert.equal(proofOf(0, 1), `c2sp.org/tlog-proof@v1\nindex 0\n\n${checkpointOf(1)}`);
    assert.deepEqual(parseTlogProof(proofOf(0, 1)).path, []);
  });

  test("one wrong bit or step of the path fails", () => {
    for (const { what, path } of mutations(naivePath(5, LEAVES))) {
      assert.throws(() => check(formatTlogProof({ index: 5, path, checkpoint: CHECKPOINT }), 5), ProofError, what);
    }
  });

  test("a proof under the checkpoint of another size fails", () => {
    for (const size of [6, 7, 8, 12]) {
      assert.throws(
        () => check(formatTlogProof({ index: 5, path: naivePath(5, LEAVES), checkpoint: checkpointOf(size) }), 5),
        ProofError,
        `${size}`,
      );
    }
    assert.throws(() => check(formatTlogProof({ index: 5, path: [], checkpoint: checkpointOf(3) }), 5), {
      name: "ProofError",
      message: "the path has the wrong length for index 5 in a log of size 3",
    });
  });

  test("the checkpoint must be signed by the pinned key", () => {
    const impostor = signerOf("example.com/decisions", 50);
    const forged = signCheckpoint({ origin: log.name, size: SIZE, root: naiveRoot(LEAVES) }, impostor);
    const reason = (checkpoint: string): string => {
      try {
        check(formatTlogProof({ index: 5, path: naivePath(5, LEAVES), checkpoint }), 5);
      } catch (error) {
        return error instanceof NoteError ? error.reason : String(error);
      }
      return "accepted";
    };
    assert.equal(reason(CHECKPOINT), "accepted");
    assert.equal(reason(forged), "unknown_key");
    assert.equal(reason(CHECKPOINT.replace("\n13\n", "\n14\n")), "bad_signature");
    assert.equal(reason(""), "malformed");
  });

  test("bytes of the entry that do not match its leaf hash fail", () => {
    assert.throws(() => verifyTlogProof(proofOf(5), utf8("entry 5"), log.vkey, ed25519), ProofError);
  });
});

describe("reading", () => {
  test("an extra line is second, is returned and proves nothing", () => {
    for (const extra of [new Uint8Array(0), Uint8Array.of(1, 2, 3)]) {
      const text = formatTlogProof({ index: 5, path: naivePath(5, LEAVES), checkpoint: CHECKPOINT, extra });
      assert.equal(text.split("\n")[1], `extra ${toBase64(extra)}`);
      assert.deepEqual(parseTlogProof(text), { index: 5, path: naivePath(5, LEAVES), checkpoint: CHECKPOINT, extra });
      assert.equal(check(text, 5), 5);
    }
    assert.equal(parseTlogProof(proofOf(5)).extra, null);
  });

  test("an index beyond 2^32 is read exactly", () => {
    assert.equal(
      parseTlogProof(proofOf(5).replace("index 5", "index 9007199254740991")).index,
      Number.MAX_SAFE_INTEGER,
    );
  });

  test("every other form is rejected", () => {
    const text = proofOf(5);
    const step = toBase64(naivePath(5, LEAVES)[0] as Uint8Array);
    for (const [what, wrong] of Object.entries({
      empty: "",
      "another version": text.replace("@v1", "@v2"),
      "a line before the header": `\n${text}`,
      "no blank line": text.replaceAll("\n\n", "\n"),
      CRLF: text.replaceAll("\n", "\r\n"),
      "no index": text.replace("index 5\n", ""),
      "index twice": text.replace("index 5\n", "index 5\nindex 5\n"),
      "leading zero": text.replace("index 5", "index 05"),
      "negative index": text.replace("index 5", "index -5"),
      "no number": text.replace("index 5", "index five"),
      "index above 2^53": text.replace("index 5", "index 9007199254740992"),
      "index with a space behind": text.replace("index 5", "index 5 "),
      "extra behind the index": text.replace("index 5\n", "index 5\nextra AAAA\n"),
      "extra twice": text.replace("index 5\n", "extra AAAA\nextra AAAA\nindex 5\n"),
      "extra not canonical": text.replace("index 5\n", "extra AAB=\nindex 5\n"),
      "a step without padding": text.replace(step, step.slice(0, -1)),
      "a step not canonical": text.replace(
        step,
        `${step.slice(0, -2)}${String.fromCharCode(step.charCodeAt(42) + 1)}=`,
      ),
      "a step of 31 bytes": text.replace(step, toBase64(new Uint8Array(31))),
      "64 steps": text.replace(`${step}\n`, `${step}\n`.repeat(64)),
    })) {
      assert.notEqual(wrong, text, what);
      assert.throws(() => parseTlogProof(wrong), ProofError, what);
    }
  });
});
