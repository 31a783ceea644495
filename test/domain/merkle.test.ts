import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { toHex, utf8 } from "../../src/domain/hash.ts";
import {
  appendToEdge, consistencyProof, edgeNodes, emptyEdge, EMPTY_ROOT, hashLeaf, hashNode, inclusionProof,
  rootFromInclusion, rootOf, rootOfEdge, verifyConsistency, verifyInclusion, type NodeSource,
} from "../../src/domain/merkle.ts";
import { EIGHT, EIGHT_ROOTS, leafOf, mutations, naiveConsistency, naivePath, naiveRoot, nodeOf, sourceOver } from "../support/tree.ts";

const LIMIT = 130;
const LEAVES = Array.from({ length: LIMIT }, (_, i) => leafOf(utf8(`entry ${i}`)));
const ROOTS = Array.from({ length: LIMIT + 1 }, (_, n) => naiveRoot(LEAVES.slice(0, n)));
const rootAt = (n: number): Uint8Array => ROOTS[n] as Uint8Array;
const leafAt = (i: number): Uint8Array => LEAVES[i] as Uint8Array;
const hex = (hashes: readonly Uint8Array[]): string[] => hashes.map(toHex);

const NAMES: Record<string, string> = {
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
const named = (name: string): string => NAMES[name] ?? (EIGHT_ROOTS[Number(name.slice("root".length))] as string);

describe("known answers", () => {
  const leaves = EIGHT.map(hashLeaf);
  const source = sourceOver(leaves);

  test("leaf and node are separated by their prefix", () => {
    assert.equal(toHex(hashLeaf(utf8("L123456"))), "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56");
    assert.equal(toHex(hashNode(utf8("N123"), utf8("N456"))), "aa217fe888e47007fa15edab33c2b492a722cb106c64667fc2b044444de66bbb");
    assert.equal(toHex(EMPTY_ROOT), EIGHT_ROOTS[0]);
  });

  test("roots of the first 0 to 8 leaves, from the edge and from nodes", async () => {
    let edge: readonly Uint8Array[] = emptyEdge;
    for (let n = 0; n <= 8; n++) {
      assert.equal(toHex(rootOfEdge(edge)), EIGHT_ROOTS[n]);
      assert.equal(toHex(await rootOf(n, source)), EIGHT_ROOTS[n]);
      if (n < 8) edge = appendToEdge(edge, n, leaves[n] as Uint8Array);
    }
  });

  test("named nodes", async () => {
    for (const i of [1, 2, 4, 5, 6]) assert.equal(toHex(leaves[i] as Uint8Array), NAMES[`L${i}`]);
    assert.equal(toHex(await source(1, 1)), NAMES["N23"]);
    assert.equal(toHex(await source(1, 2)), NAMES["N45"]);
    assert.equal(toHex(await source(1, 3)), NAMES["N67"]);
    assert.equal(toHex(await source(2, 1)), NAMES["N4567"]);
  });

  for (const [index, size, names] of [[0, 8, "L1 N23 N4567"], [5, 8, "L4 N67 root4"], [2, 3, "root2"], [1, 5, "root1 N23 L4"]] as const) {
    test(`inclusion of ${index} in ${size}`, async () => {
      assert.deepEqual(hex(await inclusionProof(index, size, source)), names.split(" ").map(named));
    });
  }

  for (const [first, second, names] of [[1, 8, "L1 N23 N4567"], [2, 5, "N23 L4"], [6, 7, "N45 L6 root4"], [6, 8, "N45 N67 root4"]] as const) {
    test(`consistency from ${first} to ${second}`, async () => {
      assert.deepEqual(hex(await consistencyProof(first, second, source)), names.split(" ").map(named));
    });
  }
});

describe(`every size to ${LIMIT}, against the definitions`, () => {
  test("edges, their coordinates and their roots", async () => {
    const source = sourceOver(LEAVES);
    let edge: Uint8Array[] = [];
    for (let n = 0; n <= LIMIT; n++) {
      const nodes = await Promise.all(edgeNodes(n).map(({ level, index }) => source(level, index)));
      assert.deepEqual(hex(edge), hex(nodes), `edge of ${n}`);
      assert.deepEqual(rootOfEdge(edge), rootAt(n), `root of ${n}`);
      if (n < LIMIT) edge = appendToEdge(edge, n, leafAt(n));
    }
  });

  test("inclusion: the proof is PATH, it verifies, and for no other leaf or index", async () => {
    for (let size = 1; size <= LIMIT; size++) {
      // A source of exactly this size: asking for anything incomplete rejects.
      const leaves = LEAVES.slice(0, size);
      const source = sourceOver(leaves);
      const root = rootAt(size);
      for (let index = 0; index < size; index++) {
        const path = await inclusionProof(index, size, source);
        assert.deepEqual(path, naivePath(index, leaves), `${index}/${size}`);
        const claim = { index, size, leafHash: leafAt(index), path, root };
        assert.equal(verifyInclusion(claim), true, `${index}/${size}`);
        assert.deepEqual(rootFromInclusion(index, size, leafAt(index), path), root);
        for (const other of [index - 1, index + 1, index ^ 1, size - 1 - index]) {
          if (other === index) continue;
          assert.equal(verifyInclusion({ ...claim, index: other }), false, `index ${other} for ${index}/${size}`);
        }
        assert.equal(verifyInclusion({ ...claim, leafHash: leafAt((index + 1) % LIMIT) }), false, `another leaf for ${index}/${size}`);
      }
    }
  });

  test("consistency: the proof is PROOF, it verifies, and not for neighbouring sizes", async () => {
    for (let second = 1; second <= LIMIT; second++) {
      const leaves = LEAVES.slice(0, second);
      const source = sourceOver(leaves);
      for (let first = 1; first <= second; first++) {
        const path = await consistencyProof(first, second, source);
        assert.deepEqual(path, naiveConsistency(first, leaves), `${first} to ${second}`);
        const claim = { first, second, firstRoot: rootAt(first), secondRoot: rootAt(second), path };
        assert.equal(verifyConsistency(claim), true, `${first} to ${second}`);
        if (first === second) continue;
        assert.equal(verifyConsistency({ ...claim, firstRoot: rootAt(first - 1) }), false, `root ${first - 1} for ${first} to ${second}`);
        assert.equal(verifyConsistency({ ...claim, secondRoot: rootAt(second - 1) }), false, `root ${second - 1} for ${first} to ${second}`);
        assert.equal(verifyConsistency({ ...claim, first: second, second: first }), false, "backwards");
      }
    }
  });
});

describe("altered proofs", () => {
  test("an inclusion proof with one bit or one step wrong fails", async () => {
    for (const [index, size] of [[0, 1], [0, 2], [5, 8], [2, 3], [1, 5], [4, 5], [6, 7], [63, 130], [129, 130]] as const) {
      const path = await inclusionProof(index, size, sourceOver(LEAVES.slice(0, size)));
      const claim = { index, size, leafHash: leafAt(index), root: rootAt(size) };
      assert.equal(verifyInclusion({ ...claim, path }), true);
      for (const wrong of mutations(path)) assert.equal(verifyInclusion({ ...claim, path: wrong.path }), false, `${index}/${size}: ${wrong.what}`);
      for (const wrong of mutations([claim.root])) {
        if (wrong.path.length === 1) assert.equal(verifyInclusion({ ...claim, path, root: wrong.path[0] as Uint8Array }), false, `${index}/${size}: root, ${wrong.what}`);
      }
      for (const wrong of mutations([claim.leafHash])) {
        if (wrong.path.length === 1) assert.equal(verifyInclusion({ ...claim, path, leafHash: wrong.path[0] as Uint8Array }), false, `${index}/${size}: leaf, ${wrong.what}`);
      }
    }
  });

  test("a consistency proof with one bit or one step wrong fails", async () => {
    for (const [first, second] of [[1, 2], [1, 8], [2, 5], [4, 8], [6, 7], [6, 8], [7, 7], [64, 130], [65, 130], [129, 130]] as const) {
      const path = await consistencyProof(first, second, sourceOver(LEAVES.slice(0, second)));
      const claim = { first, second, firstRoot: rootAt(first), secondRoot: rootAt(second) };
      assert.equal(verifyConsistency({ ...claim, path }), true);
      for (const wrong of mutations(path)) assert.equal(verifyConsistency({ ...claim, path: wrong.path }), false, `${first} to ${second}: ${wrong.what}`);
      for (const side of ["firstRoot", "secondRoot"] as const) {
        for (const wrong of mutations([claim[side]])) {
          if (wrong.path.length === 1) assert.equal(verifyConsistency({ ...claim, path, [side]: wrong.path[0] as Uint8Array }), false, `${first} to ${second}: ${side}, ${wrong.what}`);
        }
      }
    }
  });

  test("a history that was rewritten before the first size has no proof that verifies", async () => {
    const rewritten = LEAVES.slice(0, 100).with(3, leafOf(utf8("something else")));
    const path = await consistencyProof(60, 100, sourceOver(rewritten));
    assert.equal(verifyConsistency({ first: 60, second: 100, firstRoot: rootAt(60), secondRoot: naiveRoot(rewritten), path }), false);
  });

  test("a leaf hash with a byte behind it is not taken for the leaf", () => {
    const [a, b] = [leafAt(0), leafAt(1)];
    const root = nodeOf(a, b);
    assert.equal(verifyInclusion({ index: 0, size: 2, leafHash: new Uint8Array([...a, 7]), path: [b], root }), false);
    assert.equal(verifyInclusion({ index: 1, size: 2, leafHash: new Uint8Array([...b, 7]), path: [a], root }), false);
    assert.equal(verifyInclusion({ index: 0, size: 1, leafHash: new Uint8Array(31), path: [], root: new Uint8Array(31) }), false);
  });

  test("numbers that are no index or size are false, never an exception", () => {
    const claim = { index: 0, size: 1, leafHash: leafAt(0), path: [], root: leafAt(0) };
    assert.equal(verifyInclusion(claim), true);
    for (const wrong of [-1, 1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) assert.equal(verifyInclusion({ ...claim, index: wrong }), false, `index ${wrong}`);
    for (const wrong of [-1, 0, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) assert.equal(verifyInclusion({ ...claim, size: wrong }), false, `size ${wrong}`);
    const same = { first: 5, second: 5, firstRoot: rootAt(5), secondRoot: rootAt(5), path: [] };
    assert.equal(verifyConsistency(same), true);
    assert.equal(verifyConsistency({ ...same, first: 0, firstRoot: EMPTY_ROOT }), false);
    assert.equal(verifyConsistency({ ...same, first: 0, second: 0, firstRoot: EMPTY_ROOT, secondRoot: EMPTY_ROOT }), false);
    for (const wrong of [-5, 0.5, Number.NaN, 2 ** 53]) {
      assert.equal(verifyConsistency({ ...same, first: wrong }), false, `first ${wrong}`);
      assert.equal(verifyConsistency({ ...same, second: wrong }), false, `second ${wrong}`);
    }
  });
});

/** A tree of 2^53 leaves at most, all of them equal: a node depends on its level alone. */
const UNIFORM: Uint8Array[] = [leafOf(utf8("again"))];
for (let level = 1; level <= 53; level++) UNIFORM.push(nodeOf(UNIFORM[level - 1] as Uint8Array, UNIFORM[level - 1] as Uint8Array));

function uniform(size: number): { source: NodeSource; asked: { level: number; index: number }[] } {
  const asked: { level: number; index: number }[] = [];
  const source: NodeSource = (level, index) => {
    asked.push({ level, index });
    if (BigInt(index + 1) << BigInt(level) > BigInt(size)) return Promise.reject(new Error(`node ${level}/${index} is not complete`));
    return Promise.resolve(UNIFORM[level] as Uint8Array);
  };
  return { source, asked };
}

/** Root by the definition in BigInt: MTH(n) = node(MTH(k), MTH(n - k)). */
function uniformRoot(size: bigint): Uint8Array {
  const level = size.toString(2).length - 1;
  const power = 1n << BigInt(level);
  return size === power ? (UNIFORM[level] as Uint8Array) : nodeOf(UNIFORM[level] as Uint8Array, uniformRoot(size - power));
}

describe("beyond 32 bits", () => {
  const MAX = Number.MAX_SAFE_INTEGER;
  const sizes = [2 ** 31, 2 ** 31 + 1, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 32 + 5, 2 ** 40 + 2 ** 33 + 3, 2 ** 52, MAX - 1, MAX];

  test("roots, and coordinates that cover the tree without a gap", async () => {
    for (const size of sizes) {
      const { source, asked } = uniform(size);
      assert.deepEqual(await rootOf(size, source), uniformRoot(BigInt(size)), `${size}`);
      let end = 0n;
      for (const { level, index } of asked) {
        assert.equal(BigInt(index) << BigInt(level), end, `${size}: ${level}/${index}`);
        end = BigInt(index + 1) << BigInt(level);
      }
      assert.equal(end, BigInt(size));
      assert.deepEqual(edgeNodes(size), asked);
    }
  });

  test("inclusion verifies at the index, and not at the one that 32 bits would confuse it with", async () => {
    for (const size of sizes) {
      const root = uniformRoot(BigInt(size));
      const leafHash = UNIFORM[0] as Uint8Array;
      for (const index of [0, 1, 2 ** 31 - 1, Math.floor(size / 2), size - 2, size - 1]) {
        const path = await inclusionProof(index, size, uniform(size).source);
        assert.ok(path.length <= 53);
        assert.equal(verifyInclusion({ index, size, leafHash, path, root }), true, `${index}/${size}`);
        for (const wrong of mutations(path)) {
          // Equal leaves make equal steps: what swapping or doubling yields may be the same path.
          if (wrong.what.startsWith("bit 0 ")) assert.equal(verifyInclusion({ index, size, leafHash, path: wrong.path, root }), false, `${index}/${size}: ${wrong.what}`);
        }
      }
    }
    // The last leaf of 2^32 + 5 has a path of 2 steps; its lowest 32 bits are 4.
    const size = 2 ** 32 + 5;
    const path = await inclusionProof(size - 1, size, uniform(size).source);
    assert.equal(path.length, 2);
    assert.equal(verifyInclusion({ index: (size - 1) % 2 ** 32, size, leafHash: UNIFORM[0] as Uint8Array, path, root: uniformRoot(BigInt(size)) }), false);
  });

  test("distinct leaves beyond 2^32: the exact index is proven", async () => {
    // 2^32 equal leaves, then five that differ.
    const tail = Array.from({ length: 5 }, (_, i) => leafOf(utf8(`tail ${i}`)));
    const size = 2 ** 32 + 5;
    const source: NodeSource = (level, index) => {
      const from = index * 2 ** level - 2 ** 32;
      return Promise.resolve(from < 0 ? (UNIFORM[level] as Uint8Array) : naiveRoot(tail.slice(from, from + 2 ** level)));
    };
    const root = nodeOf(UNIFORM[32] as Uint8Array, naiveRoot(tail));
    assert.deepEqual(await rootOf(size, source), root);
    for (let i = 0; i < 5; i++) {
      const path = await inclusionProof(2 ** 32 + i, size, source);
      assert.deepEqual(path, [...naivePath(i, tail), UNIFORM[32]]);
      const leafHash = tail[i] as Uint8Array;
      assert.equal(verifyInclusion({ index: 2 ** 32 + i, size, leafHash, path, root }), true);
      for (const index of [i, 2 ** 32 + ((i + 1) % 5), 2 ** 33 + i]) assert.equal(verifyInclusion({ index, size, leafHash, path, root }), false, `${index} for ${2 ** 32 + i}`);
    }
  });

  test("consistency between large sizes", async () => {
    for (const second of sizes) {
      for (const first of [1, 2 ** 31 - 1, 2 ** 31, Math.floor(second / 2), second - 1, second]) {
        if (first > second) continue;
        const path = await consistencyProof(first, second, uniform(second).source);
        const claim = { first, second, firstRoot: uniformRoot(BigInt(first)), secondRoot: uniformRoot(BigInt(second)), path };
        assert.equal(verifyConsistency(claim), true, `${first} to ${second}`);
        if (first !== second && first > 1) assert.equal(verifyConsistency({ ...claim, first: first - 1 }), false, `${first} as ${first - 1} to ${second}`);
      }
    }
  });

  test("an edge grows across 2^32 and up to the largest size", () => {
    for (const size of [2 ** 32 - 1, 2 ** 32, 2 ** 40 - 1, MAX - 1]) {
      const edge = edgeNodes(size).map(({ level }) => UNIFORM[level] as Uint8Array);
      assert.deepEqual(rootOfEdge(appendToEdge(edge, size, UNIFORM[0] as Uint8Array)), uniformRoot(BigInt(size) + 1n), `${size}`);
    }
  });
});

describe("wrong arguments", () => {
  const never: NodeSource = () => Promise.reject(new Error("asked for a node"));
  const leaf = leafAt(0);

  test("appending leaves the old edge alone and refuses one of another size", () => {
    const edge = appendToEdge(appendToEdge(emptyEdge, 0, leaf), 1, leafAt(1));
    const before = hex(edge);
    appendToEdge(edge, 2, leafAt(2));
    assert.deepEqual(hex(edge), before);
    assert.deepEqual(emptyEdge, []);
    assert.throws(() => appendToEdge([], 3, leaf), { name: "RangeError", message: "the right edge of a tree of size 3 has 2 hashes, not 0" });
    assert.throws(() => appendToEdge([leaf, leaf], 4, leaf), /size 4 has 1 hashes, not 2/);
    assert.throws(() => appendToEdge([], 0, new Uint8Array(31)), { name: "RangeError", message: "a leaf hash has 32 bytes, not 31" });
    for (const size of [-1, 0.5, Number.NaN, Number.MAX_SAFE_INTEGER]) assert.throws(() => appendToEdge([], size, leaf), RangeError, `${size}`);
  });

  test("there is no inclusion proof outside the tree", async () => {
    for (const [index, size] of [[0, 0], [1, 1], [-1, 4], [0.5, 4], [Number.NaN, 4], [8, 8], [0, -1], [0, 2 ** 53]] as const) {
      await assert.rejects(inclusionProof(index, size, never), RangeError, `${index}/${size}`);
    }
  });

  test("there is no consistency proof from nothing, backwards or between what is no size", async () => {
    for (const [first, second] of [[0, 0], [0, 5], [6, 5], [-1, 5], [1.5, 5], [1, Number.NaN], [1, 2 ** 53]] as const) {
      await assert.rejects(consistencyProof(first, second, never), RangeError, `${first} to ${second}`);
    }
    assert.throws(() => edgeNodes(2 ** 53), RangeError);
  });

  test("a node that cannot be read rejects the proof", async () => {
    await assert.rejects(inclusionProof(3, 7, never), /asked for a node/);
    await assert.rejects(consistencyProof(3, 7, never), /asked for a node/);
    await assert.rejects(rootOf(7, never), /asked for a node/);
  });
});
