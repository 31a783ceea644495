/** Test vectors from RFC 6962, RFC 8785 and the C2SP specifications. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { canonicalText } from "../../src/domain/canonical.ts";
import {
  formatCheckpoint,
  formatVkey,
  openCheckpoint,
  openNote,
  parseCheckpoint,
  parseVkey,
  signCheckpoint,
  NoteError,
} from "../../src/domain/checkpoint.ts";
import { concatBytes, fromBase64, fromHex, sha256, sha256Hex, toHex, utf8 } from "../../src/domain/hash.ts";
import {
  appendToEdge,
  consistencyProof,
  edgeNodes,
  EMPTY_ROOT,
  hashLeaf,
  hashNode,
  inclusionProof,
  rootFromInclusion,
  computeRoot,
  rootFromEdge,
  verifyConsistency,
  verifyInclusion,
} from "../../src/domain/merkle.ts";
import { decodeEntryBundle, encodeEntryBundle, parseTilePath, tilePath, tilesBetween } from "../../src/domain/tiles.ts";
import { formatTlogProof, parseTlogProof, ProofError, verifyTlogProof } from "../../src/domain/tlog-proof.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { CHECKPOINT, PROOF, VKEY } from "../support/proof-vectors.ts";
import { signerOf } from "../support/signer.ts";

const LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"].map(
  fromHex,
);
const ROOTS = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];
const NODE = {
  L1: "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
  L2: "0298d122906dcfc10892cb53a73992fc5b9f493ea4c9badb27b791b4127a7fe7",
  L4: "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
  L5: "4271a26be0d8a84f0bd54c8c302e7cb3a3b5d1fa6780a40bcce2873477dab658",
  L6: "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f",
  N23: "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
  N45: "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
  N67: "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
  N4567: "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
};

/** The algorithm of RFC 6962 section 2.1, as a reference for the real code. */
function mth(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return sha256(new Uint8Array(0));
  if (leaves.length === 1) return sha256(concatBytes(Uint8Array.of(0), leaves[0] as Uint8Array));
  const k = largestPower(leaves.length);
  return sha256(concatBytes(Uint8Array.of(1), mth(leaves.slice(0, k)), mth(leaves.slice(k))));
}
function path(m: number, d: readonly Uint8Array[]): Uint8Array[] {
  if (d.length === 1) return [];
  const k = largestPower(d.length);
  return m < k ? [...path(m, d.slice(0, k)), mth(d.slice(k))] : [...path(m - k, d.slice(k)), mth(d.slice(0, k))];
}
function subproof(m: number, d: readonly Uint8Array[], b: boolean): Uint8Array[] {
  if (m === d.length) return b ? [] : [mth(d)];
  const k = largestPower(d.length);
  return m <= k
    ? [...subproof(m, d.slice(0, k), b), mth(d.slice(k))]
    : [...subproof(m - k, d.slice(k), false), mth(d.slice(0, k))];
}
function largestPower(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}
const nodesOf = (leaves: readonly Uint8Array[]) => (level: number, index: number) => {
  const part = leaves.slice(index * 2 ** level, (index + 1) * 2 ** level);
  assert.equal(part.length, 2 ** level, `node ${level}/${index} is not complete in a tree of ${leaves.length}`);
  return Promise.resolve(mth(part));
};
const hexes = (hashes: readonly Uint8Array[]): string[] => hashes.map(toHex);

describe("merkle tree", () => {
  test("roots of the eight leaves, by the edge and by nodes", async () => {
    let edge: Uint8Array[] = [];
    assert.equal(toHex(EMPTY_ROOT), ROOTS[0]);
    for (let n = 0; n <= 8; n++) {
      assert.equal(toHex(rootFromEdge(edge)), ROOTS[n]);
      assert.equal(toHex(await computeRoot(n, nodesOf(LEAVES.slice(0, n)))), ROOTS[n]);
      if (n < 8) edge = appendToEdge(edge, n, hashLeaf(LEAVES[n] as Uint8Array));
    }
  });

  test("leaf and node", () => {
    assert.equal(toHex(hashLeaf(utf8("L123456"))), "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56");
    const node = sha256(concatBytes(Uint8Array.of(1), utf8("N123"), utf8("N456")));
    assert.equal(toHex(node), "aa217fe888e47007fa15edab33c2b492a722cb106c64667fc2b044444de66bbb");
    assert.equal(toHex(hashNode(fromHex(NODE.L4), fromHex(NODE.L5))), NODE.N45);
  });

  test("named inclusion and consistency proofs", async () => {
    const inclusion = async (m: number, n: number) => hexes(await inclusionProof(m, n, nodesOf(LEAVES.slice(0, n))));
    const consistency = async (m: number, n: number) =>
      hexes(await consistencyProof(m, n, nodesOf(LEAVES.slice(0, n))));
    assert.deepEqual(await inclusion(0, 8), [NODE.L1, NODE.N23, NODE.N4567]);
    assert.deepEqual(await inclusion(5, 8), [NODE.L4, NODE.N67, ROOTS[4]]);
    assert.deepEqual(await inclusion(2, 3), [ROOTS[2]]);
    assert.deepEqual(await inclusion(1, 5), [ROOTS[1], NODE.N23, NODE.L4]);
    assert.deepEqual(await consistency(1, 8), [NODE.L1, NODE.N23, NODE.N4567]);
    assert.deepEqual(await consistency(2, 5), [NODE.N23, NODE.L4]);
    assert.deepEqual(await consistency(6, 7), [NODE.N45, NODE.L6, ROOTS[4]]);
    assert.deepEqual(await consistency(6, 8), [NODE.N45, NODE.N67, ROOTS[4]]);
  });

  test("every proof up to 70 leaves equals the RFC's and verifies; no altered proof does", async () => {
    const leaves = Array.from({ length: 70 }, (_, i) => utf8(`leaf ${i}`));
    for (let n = 1; n <= leaves.length; n++) {
      const tree = leaves.slice(0, n);
      const node = nodesOf(tree);
      const root = mth(tree);
      for (let m = 0; m < n; m++) {
        const proof = await inclusionProof(m, n, node);
        assert.deepEqual(hexes(proof), hexes(path(m, tree)));
        const claim = { index: m, size: n, leafHash: hashLeaf(tree[m] as Uint8Array), path: proof, root };
        assert.ok(verifyInclusion(claim));
        assert.ok(!verifyInclusion({ ...claim, index: m + 1 }) || n === 1);
        assert.ok(!verifyInclusion({ ...claim, path: [...proof, root] }));
        if (proof.length > 0) {
          assert.ok(!verifyInclusion({ ...claim, path: proof.slice(1) }));
          assert.ok(!verifyInclusion({ ...claim, path: [flip(proof[0] as Uint8Array), ...proof.slice(1)] }));
        }
        assert.ok(!verifyInclusion({ ...claim, root: flip(root) }));
      }
      for (let m = 1; m <= n; m++) {
        const proof = await consistencyProof(m, n, node);
        assert.deepEqual(hexes(proof), hexes(subproof(m, tree, true)));
        const claim = { first: m, second: n, firstRoot: mth(tree.slice(0, m)), secondRoot: root, path: proof };
        assert.ok(verifyConsistency(claim));
        assert.ok(!verifyConsistency({ ...claim, firstRoot: flip(claim.firstRoot) }));
        assert.ok(!verifyConsistency({ ...claim, secondRoot: flip(root) }));
        assert.ok(!verifyConsistency({ ...claim, path: [...proof, root] }));
        proof.forEach((_, i) =>
          assert.ok(!verifyConsistency({ ...claim, path: proof.map((hash, j) => (i === j ? flip(hash) : hash)) })),
        );
      }
    }
  });

  test("verifiers work beyond 32 bits and reject invalid sizes", () => {
    const leafHash = hashLeaf(utf8("x"));
    const index = 2 ** 40 + 3;
    const size = 2 ** 41;
    const proof = Array.from({ length: 41 }, (_, i) => hashLeaf(utf8(String(i))));
    const root = rootFromInclusion(index, size, leafHash, proof);
    assert.ok(root !== null);
    assert.ok(verifyInclusion({ index, size, leafHash, path: proof, root }));
    assert.ok(
      !verifyInclusion({ index: 3, size, leafHash, path: proof, root }),
      "a 32-bit index would take these for equal",
    );
    for (const [i, n] of [
      [-1, 4],
      [4, 4],
      [0.5, 4],
      [0, 2 ** 53],
      [NaN, 4],
    ] as const)
      assert.equal(rootFromInclusion(i, n, leafHash, []), null);
    assert.ok(!verifyConsistency({ first: 0, second: 4, firstRoot: EMPTY_ROOT, secondRoot: leafHash, path: [] }));
  });

  test("the edge's coordinates", () => {
    assert.deepEqual(edgeNodes(7), [
      { level: 2, index: 0 },
      { level: 1, index: 2 },
      { level: 0, index: 6 },
    ]);
    assert.deepEqual(edgeNodes(0), []);
    assert.equal(edgeNodes(2 ** 40 + 1).length, 2);
  });
});

function flip(hash: Uint8Array): Uint8Array {
  const changed = hash.slice();
  changed[7] = (changed[7] as number) ^ 1;
  return changed;
}

const signer = signerOf("example.com/decisions");
const { publicKey } = signer;
function reason(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof NoteError) return error.reason;
    if (error instanceof ProofError) return "proof";
    throw error;
  }
  return "none";
}

describe("signed notes and checkpoints", () => {
  test("the specification's example note verifies", () => {
    const vkey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
    const note =
      "This is an example message.\n\n\u2014 example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";
    assert.equal(openNote(note, [vkey], verifyEd25519), "This is an example message.\n");
    assert.equal(
      reason(() => openNote(note.replace("example message", "Example message"), [vkey], verifyEd25519)),
      "bad_signature",
    );
    assert.equal(
      reason(() => openNote(note, [VKEY], verifyEd25519)),
      "unknown_key",
    );
    assert.equal(
      openNote(`${note}\u2014 other.example AAAAAAA=\n`, [vkey], verifyEd25519),
      "This is an example message.\n",
      "signatures by others are passed over",
    );
    for (const broken of [
      note.replace("\u2014", "-"),
      note.slice(0, -1),
      note.replace("\n\n", "\n"),
      note.replace("An", "A\u0007n").replace("This", "T\tis"),
      note.replace("aQM=", "aQN="),
    ]) {
      assert.equal(
        reason(() => openNote(broken, [vkey], verifyEd25519)),
        "malformed",
      );
    }
  });

  test("the checkpoint of the eight leaves has exactly the expected bytes", () => {
    assert.equal(formatVkey(signer.name, publicKey), VKEY);
    assert.equal(
      signCheckpoint({ origin: signer.name, size: 8, root: fromHex(ROOTS[8] as string) }, signer),
      CHECKPOINT,
    );
    assert.deepEqual(openCheckpoint(CHECKPOINT, VKEY, verifyEd25519), {
      origin: signer.name,
      size: 8,
      root: fromHex(ROOTS[8] as string),
    });
    assert.equal(
      reason(() => openCheckpoint(CHECKPOINT.replace("\n8\n", "\n9\n"), VKEY, verifyEd25519)),
      "bad_signature",
    );
  });

  test("invalid checkpoints and keys are rejected", () => {
    const root = "XcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=";
    for (const text of [
      `o\n08\n${root}\n`,
      `o\n-1\n${root}\n`,
      `o\n9007199254740992\n${root}\n`,
      `o\n8\n${root.slice(4)}\n`,
      `o\n8\n${root}`,
      `\n8\n${root}\n`,
      `o\n8\n${root.replace("yg=", "yh=")}\n`,
    ]) {
      assert.equal(
        reason(() => parseCheckpoint(text)),
        "bad_checkpoint",
        JSON.stringify(text),
      );
    }
    assert.equal(parseCheckpoint(`o\n8\n${root}\nextension\n`).size, 8);
    for (const key of [
      "",
      "a+b",
      VKEY.replace("d0c41141", "d0c41142"),
      VKEY.replace("example", "exa mple"),
      `${VKEY}=`,
      VKEY.replace("AQOh", "BAOh"),
    ]) {
      assert.equal(
        reason(() => parseVkey(key)),
        "bad_key",
        key,
      );
    }
    assert.equal(
      reason(() => formatCheckpoint({ origin: "a b", size: 1, root: fromHex(ROOTS[1] as string) })),
      "bad_checkpoint",
    );
  });

  test("the proof of leaf 5 has exactly the expected bytes, and altered ones fail", async () => {
    const proof = await inclusionProof(5, 8, nodesOf(LEAVES));
    assert.equal(formatTlogProof({ index: 5, path: proof, checkpoint: CHECKPOINT }), PROOF);
    const leaf = hashLeaf(LEAVES[5] as Uint8Array);
    assert.equal(verifyTlogProof(PROOF, leaf, VKEY, verifyEd25519).index, 5);
    assert.equal(parseTlogProof(PROOF.replace("index", "extra AAAA\nindex")).extra?.length, 3);
    assert.equal(
      reason(() => verifyTlogProof(PROOF, hashLeaf(LEAVES[4] as Uint8Array), VKEY, verifyEd25519)),
      "proof",
    );
    for (const broken of [
      PROOF.replace("index 5", "index 4"),
      PROOF.replace("index 5", "index 05"),
      PROOF.replace("nms=", "nmt="),
      PROOF.replace("@v1", "@v2"),
      PROOF.replace(/^vBoG.*\n/m, ""),
    ]) {
      assert.equal(
        reason(() => verifyTlogProof(broken, leaf, VKEY, verifyEd25519)),
        "proof",
        broken,
      );
    }
  });
});

describe("tiles", () => {
  test("layout of a log of 70,000 entries", () => {
    const full = tilesBetween(0, 70_000);
    assert.equal(full.filter(({ level }) => level === 0).length, 273);
    assert.deepEqual(
      full.filter(({ level }) => level > 0),
      [{ level: 1, index: 0 }],
    );
    assert.deepEqual(tilesBetween(255, 256), [{ level: 0, index: 0 }]);
    assert.deepEqual(tilesBetween(256, 511), []);
    assert.deepEqual(tilesBetween(65_535, 65_536), [
      { level: 0, index: 255 },
      { level: 1, index: 0 },
    ]);
  });

  test("paths are formatted and parsed", () => {
    assert.equal(tilePath(0, 1_234_067), "tile/0/x001/x234/067");
    assert.equal(tilePath(1, 1, 17), "tile/1/001.p/17");
    assert.deepEqual(parseTilePath("tile/0/x001/x234/067"), { level: 0, index: 1_234_067, width: 256 });
    assert.deepEqual(parseTilePath("tile/entries/273.p/112"), { level: "entries", index: 273, width: 112 });
    for (const path of [
      "tile/0/1",
      "tile/0/x000/001",
      "tile/0/000.p/0",
      "tile/0/000.p/256",
      "tile/00/000",
      "tile/0/001/002",
      "tile/0/000.p/01",
    ])
      assert.equal(parseTilePath(path), null, path);
  });

  test("the partial tile of the eight leaves, and entry bundles", () => {
    assert.equal(
      sha256Hex(concatBytes(...LEAVES.map(hashLeaf))),
      "aea2f1bbb5140fd5f8eacb503fdf54c00c3d860c72588e40233addd416bc8f10",
    );
    assert.deepEqual(decodeEntryBundle(encodeEntryBundle(LEAVES)).map(toHex), LEAVES.map(toHex));
    assert.throws(() => decodeEntryBundle(Uint8Array.of(0, 5, 1)), RangeError);
    assert.throws(() => decodeEntryBundle(Uint8Array.of(0)), RangeError);
    assert.throws(() => encodeEntryBundle([new Uint8Array(65_536)]), RangeError);
  });
});

describe("canonical JSON", () => {
  test("the vectors", () => {
    const one = canonicalText(
      JSON.parse(
        '{"1":{"f":{"f":"hi","F":5},"\\n":56.0},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{}}',
      ),
    );
    assert.equal(
      one,
      '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
    );
    assert.equal(sha256Hex(utf8(one)), "605f65004ec2db7692522a0852c22f1c989e036d547e88963d1a3143cf3195d5");
    assert.equal(
      canonicalText(JSON.parse("[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]")),
      "[333333333.3333333,1e+30,4.5,0.002,1e-27]",
    );
    const keys = ["\u20ac", "\r", "\ufb33", "1", "\u{1f602}", "\u0080", "\u00f6", "</script>", "\n"];
    const sorted = Object.keys(JSON.parse(canonicalText(Object.fromEntries(keys.map((key) => [key, 0])))) as object);
    assert.deepEqual(
      sorted,
      ["1", "\n", "\r", "</script>", "\u0080", "\u00f6", "\u20ac", "\u{1f602}", "\ufb33"],
      "V8 lists the integer key first; the rest by code units",
    );
  });

  test("numbers by their bits", () => {
    const number = (hex: string) => canonicalText(Buffer.from(hex, "hex").readDoubleBE());
    assert.equal(number("4340000000000001"), "9007199254740994");
    assert.equal(number("444b1ae4d6e2ef50"), "1e+21");
    assert.equal(number("3eb0c6f7a0b5ed8c"), "9.999999999999997e-7");
    assert.equal(number("44b52d02c7e14af7"), "1.0000000000000001e+23");
    assert.equal(number("8000000000000000"), "0");
  });

  test("invalid JSON is rejected, and unusual keys are kept", () => {
    for (const value of [NaN, Infinity, "\ud800", { a: "\udc00" }, { "\ud800": 1 }])
      assert.throws(() => canonicalText(value));
    assert.equal(canonicalText(JSON.parse('{"toJSON":1,"__proto__":{"x":1}}')), '{"__proto__":{"x":1},"toJSON":1}');
  });
});

test("base64 is accepted only in canonical form", () => {
  assert.deepEqual(fromBase64("AQI="), Uint8Array.of(1, 2));
  for (const text of ["AQI", "AQJ=", "AQ I=", "AQI=\n", "AQ==="])
    assert.throws(() => fromBase64(text), RangeError, text);
});
