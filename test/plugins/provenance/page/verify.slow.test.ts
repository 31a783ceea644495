/**
 * The browser's verifier against the same test vectors as the service's verifier, and against that verifier on every
 * proof of many trees.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  canonicalText,
  hashLeaf,
  openCheckpoint,
  parseVkey,
  rootFromInclusion,
  verifyConsistency,
  verifyProof,
} from "../../../../plugins/provenance/page/verify.ts";
import { canonicalText as canonicalOfService } from "../../../../src/domain/canonical.ts";
import { signCheckpoint } from "../../../../src/domain/checkpoint.ts";
import { toHex, utf8 } from "../../../../src/domain/hash.ts";
import { formatTlogProof } from "../../../../src/domain/tlog-proof.ts";
import { CHECKPOINT, PROOF, VKEY } from "../../../support/proof-vectors.ts";
import { signerOf } from "../../../support/signer.ts";
import { leafOf, mutations, naiveConsistency, naivePath, naiveRoot } from "../../../support/tree.ts";

/** The sixth of the eight leaves that RFC 6962 implementations use as vectors. */
const LEAF = Uint8Array.from([0x40, 0x41, 0x42, 0x43]);

const log = signerOf("example.com/decisions");
const LEAVES = Array.from({ length: 14 }, (_, i) => leafOf(utf8(`entry ${i}`)));
const at = (i: number): Uint8Array => LEAVES[i] as Uint8Array;
const checkpointOf = (size: number): string =>
  signCheckpoint({ origin: log.name, size, root: naiveRoot(LEAVES.slice(0, size)) }, log);

describe("test vectors", () => {
  test("a leaf, a key, a checkpoint and a proof", async () => {
    assert.equal(
      toHex(await hashLeaf(utf8("L123456"))),
      "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56",
    );
    assert.equal((await parseVkey(VKEY)).name, "example.com/decisions");
    assert.equal((await openCheckpoint(CHECKPOINT, VKEY)).size, 8);
  });

  test("a log of size 8 proves only its sixth leaf", async () => {
    const proven = [];
    for (const leaf of [LEAF, Uint8Array.of(), Uint8Array.of(0), utf8("x")]) {
      proven.push(
        await verifyProof(PROOF, await hashLeaf(leaf), VKEY).then(
          ({ index }) => index,
          (error: Error) => error.message,
        ),
      );
    }
    const no = "the path does not lead from this entry to the checkpoint's root";
    assert.deepEqual(proven, [5, no, no, no]);
  });

  test("forged or mistyped proofs are rejected with a reason", async () => {
    const leaf = await hashLeaf(LEAF);
    const refused = async (text: string, vkey = VKEY): Promise<string> =>
      verifyProof(text, leaf, vkey).then(
        () => "accepted",
        (error: Error) => error.message,
      );
    assert.match(await refused(PROOF.replace("index 5", "index 4")), /does not lead/);
    assert.match(await refused(PROOF.replace("index 5", "index 8")), /does not match index 8/);
    assert.match(await refused(PROOF.replace("\n8\n", "\n9\n")), /signature of example.com\/decisions does not match/);
    assert.match(await refused(PROOF.replace("rrAwggw=", "rrAwggx=")), /not canonical base64/);
    assert.match(await refused(PROOF, log.vkey.replace("decisions", "other")), /id does not belong/);
    assert.match(await refused(PROOF, signerOf("example.com/decisions", 50).vkey), /not signed by the pinned key/);
    assert.match(await refused(PROOF, signerOf("example.com/other").vkey), /not signed by the pinned key/);
    assert.match(await refused("hello"), /this is not a proof/);
    assert.match(await refused(PROOF.replace("index 5", "index 05")), /no line "index/);
    assert.match(await refused(PROOF, "nonsense"), /is not a verifier key/);
    assert.match(await refused(PROOF.replace("decisions\n8", "deci\u0007sions\n8")), /control characters/);
  });
});

describe("compared with the service's verifier", () => {
  test("every inclusion proof of every tree up to 14 leaves verifies, and no altered one", async () => {
    for (let size = 1; size <= LEAVES.length; size++) {
      const leaves = LEAVES.slice(0, size);
      const expected = toHex(naiveRoot(leaves));
      const checkpoint = checkpointOf(size);
      for (let index = 0; index < size; index++) {
        const path = naivePath(index, leaves);
        assert.equal(
          (await verifyProof(formatTlogProof({ index, path, checkpoint }), at(index), log.vkey)).index,
          index,
        );
        // Run concurrently: the browser hashes on other threads, and waiting for each takes longer than hashing.
        await Promise.all(
          Array.from(mutations(path), async (mutation) => {
            const root = await rootFromInclusion(index, size, at(index), mutation.path);
            assert.notEqual(root === null ? null : toHex(root), expected, mutation.what);
          }),
        );
      }
    }
  });

  test("every consistency proof verifies, and none between other roots", async () => {
    for (let second = 1; second <= LEAVES.length; second++) {
      for (let first = 1; first <= second; first++) {
        const claim = {
          first,
          second,
          firstRoot: naiveRoot(LEAVES.slice(0, first)),
          secondRoot: naiveRoot(LEAVES.slice(0, second)),
          path: naiveConsistency(first, LEAVES.slice(0, second)),
        };
        assert.equal(await verifyConsistency(claim), true, `${first} to ${second}`);
        assert.equal(await verifyConsistency({ ...claim, firstRoot: at(0).map((byte) => byte ^ 1) }), false);
        assert.equal(await verifyConsistency({ ...claim, secondRoot: at(0).map((byte) => byte ^ 1) }), false);
        assert.equal(await verifyConsistency({ ...claim, path: [...claim.path, at(0)] }), false);
      }
    }
  });

  test("an index beyond 32 bits is not truncated", async () => {
    const path = Array.from({ length: 41 }, (_, i) => leafOf(utf8(String(i))));
    const roots = await Promise.all([2 ** 40 + 3, 3].map((index) => rootFromInclusion(index, 2 ** 41, at(0), path)));
    assert.notDeepEqual(roots[0], roots[1]);
  });

  test("the browser computes the same canonical JSON as the service", async () => {
    const values = [
      '{"b":[1,2.5,1e21,-0.001,"x\\u2028\\"",null,true,{}],"a":{"":[]},"10":1,"9":2,"__proto__":{"x":1},"\\ud83d\\ude02":1,"\\ufb33":2}',
      "[]",
      '"\\u0000\\u001f\\u007f"',
      "-0",
      "1e-7",
    ];
    for (const text of values) assert.equal(canonicalText(JSON.parse(text)), canonicalOfService(JSON.parse(text)));
  });
});
