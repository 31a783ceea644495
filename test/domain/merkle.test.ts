import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { toHex, utf8 } from "../../src/domain/hash.ts";
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
  type NodeSource,
} from "../../src/domain/merkle.ts";
import { leafOf, mutations, naiveConsistency, naivePath, naiveRoot, nodeOf, sourceOver } from "../support/tree.ts";

/** Every size up to this one is tested. */
const LIMIT = 66;
const MOST = 130;
const LEAVES = Array.from({ length: MOST }, (_, i) => leafOf(utf8(`entry ${i}`)));
const ROOTS = Array.from({ length: MOST + 1 }, (_, n) => naiveRoot(LEAVES.slice(0, n)));
const rootAt = (n: number): Uint8Array => ROOTS[n] as Uint8Array;
const leafAt = (i: number): Uint8Array => LEAVES[i] as Uint8Array;
const hex = (hashes: readonly Uint8Array[]): string[] => hashes.map(toHex);

test("a node is the hash of prefix, left and right, whatever their lengths", () => {
  assert.equal(
    toHex(hashNode(utf8("N123"), utf8("N456"))),
    "aa217fe888e47007fa15edab33c2b492a722cb106c64667fc2b044444de66bbb",
  );
  assert.notDeepEqual(
    hashLeaf(new Uint8Array([...leafAt(0), ...leafAt(1)])),
    hashNode(leafAt(0), leafAt(1)),
    "a leaf cannot pass for a node",
  );
});

describe(`every size to ${LIMIT}, compared with the definitions`, () => {
  test("edges, their coordinates and their roots", async () => {
    const source = sourceOver(LEAVES);
    let edge: Uint8Array[] = [];
    for (let n = 0; n <= LIMIT; n++) {
      const nodes = await Promise.all(edgeNodes(n).map(({ level, index }) => source(level, index)));
      assert.deepEqual(hex(edge), hex(nodes), `edge of ${n}`);
      assert.deepEqual(rootFromEdge(edge), rootAt(n), `root of ${n}`);
      if (n < LIMIT) edge = appendToEdge(edge, n, leafAt(n));
    }
  });

  test("inclusion: the proof equals PATH, and verifies for no other leaf or index", async () => {
    for (let size = 1; size <= LIMIT; size++) {
      // A source of exactly this size, which rejects requests for incomplete nodes.
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
        assert.equal(
          verifyInclusion({ ...claim, leafHash: leafAt((index + 1) % LIMIT) }),
          false,
          `another leaf for ${index}/${size}`,
        );
      }
    }
  });

  test("consistency: the proof equals PROOF, and does not verify for neighbouring sizes", async () => {
    for (let second = 1; second <= LIMIT; second++) {
      const leaves = LEAVES.slice(0, second);
      const source = sourceOver(leaves);
      for (let first = 1; first <= second; first++) {
        const path = await consistencyProof(first, second, source);
        assert.deepEqual(path, naiveConsistency(first, leaves), `${first} to ${second}`);
        const claim = { first, second, firstRoot: rootAt(first), secondRoot: rootAt(second), path };
        assert.equal(verifyConsistency(claim), true, `${first} to ${second}`);
        if (first === second) continue;
        assert.equal(
          verifyConsistency({ ...claim, firstRoot: rootAt(first - 1) }),
          false,
          `root ${first - 1} for ${first} to ${second}`,
        );
        assert.equal(
          verifyConsistency({ ...claim, secondRoot: rootAt(second - 1) }),
          false,
          `root ${second - 1} for ${first} to ${second}`,
        );
        assert.equal(verifyConsistency({ ...claim, first: second, second: first }), false, "backwards");
      }
    }
  });
});

describe("altered proofs", () => {
  test("an inclusion proof with one bit or one step wrong fails", async () => {
    for (const [index, size] of [
      [0, 1],
      [0, 2],
      [5, 8],
      [2, 3],
      [1, 5],
      [4, 5],
      [6, 7],
      [63, 130],
      [129, 130],
    ] as const) {
      const path = await inclusionProof(index, size, sourceOver(LEAVES.slice(0, size)));
      const claim = { index, size, leafHash: leafAt(index), root: rootAt(size) };
      assert.equal(verifyInclusion({ ...claim, path }), true);
      for (const wrong of mutations(path))
        assert.equal(verifyInclusion({ ...claim, path: wrong.path }), false, `${index}/${size}: ${wrong.what}`);
      for (const wrong of mutations([claim.root])) {
        if (wrong.path.length === 1)
          assert.equal(
            verifyInclusion({ ...claim, path, root: wrong.path[0] as Uint8Array }),
            false,
            `${index}/${size}: root, ${wrong.what}`,
          );
      }
      for (const wrong of mutations([claim.leafHash])) {
        if (wrong.path.length === 1)
          assert.equal(
            verifyInclusion({ ...claim, path, leafHash: wrong.path[0] as Uint8Array }),
            false,
            `${index}/${size}: leaf, ${wrong.what}`,
          );
      }
    }
  });

  test("a consistency proof with one bit or one step wrong fails", async () => {
    for (const [first, second] of [
      [1, 2],
      [1, 8],
      [2, 5],
      [4, 8],
      [6, 7],
      [6, 8],
      [7, 7],
      [64, 130],
      [65, 130],
      [129, 130],
    ] as const) {
      const path = await consistencyProof(first, second, sourceOver(LEAVES.slice(0, second)));
      const claim = { first, second, firstRoot: rootAt(first), secondRoot: rootAt(second) };
      assert.equal(verifyConsistency({ ...claim, path }), true);
      for (const wrong of mutations(path))
        assert.equal(verifyConsistency({ ...claim, path: wrong.path }), false, `${first} to ${second}: ${wrong.what}`);
      for (const side of ["firstRoot", "secondRoot"] as const) {
        for (const wrong of mutations([claim[side]])) {
          if (wrong.path.length === 1)
            assert.equal(
              verifyConsistency({ ...claim, path, [side]: wrong.path[0] as Uint8Array }),
              false,
              `${first} to ${second}: ${side}, ${wrong.what}`,
            );
        }
      }
    }
  });

  test("there is no valid proof if entries before the first size were rewritten", async () => {
    const rewritten = LEAVES.slice(0, 100).with(3, leafOf(utf8("something else")));
    const path = await consistencyProof(60, 100, sourceOver(rewritten));
    assert.equal(
      verifyConsistency({ first: 60, second: 100, firstRoot: rootAt(60), secondRoot: naiveRoot(rewritten), path }),
      false,
    );
  });

  test("a leaf hash with an additional byte is not accepted", () => {
    const [a, b] = [leafAt(0), leafAt(1)];
    const root = nodeOf(a, b);
    assert.equal(verifyInclusion({ index: 0, size: 2, leafHash: new Uint8Array([...a, 7]), path: [b], root }), false);
    assert.equal(verifyInclusion({ index: 1, size: 2, leafHash: new Uint8Array([...b, 7]), path: [a], root }), false);
    assert.equal(
      verifyInclusion({ index: 0, size: 1, leafHash: new Uint8Array(31), path: [], root: new Uint8Array(31) }),
      false,
    );
  });

  test("a path that is too long or too short fails, even under a root that was computed for it", () => {
    const [a, b, c] = [leafAt(0), leafAt(1), leafAt(2)];
    assert.equal(
      verifyInclusion({ index: 0, size: 1, leafHash: a, path: [b], root: nodeOf(b, a) }),
      false,
      "a step above the root",
    );
    assert.equal(
      verifyInclusion({ index: 0, size: 2, leafHash: a, path: [b, c], root: nodeOf(c, nodeOf(a, b)) }),
      false,
      "a step above the root",
    );
    assert.equal(
      verifyInclusion({ index: 0, size: 4, leafHash: a, path: [b], root: nodeOf(a, b) }),
      false,
      "stops below the root",
    );
    assert.equal(verifyInclusion({ index: 0, size: 2, leafHash: a, path: [], root: a }), false, "no step at all");
    const two = { first: 2, firstRoot: rootAt(2) };
    assert.equal(
      verifyConsistency({ ...two, second: 4, secondRoot: nodeOf(rootAt(2), c), path: [c] }),
      true,
      "by itself this is a proof",
    );
    assert.equal(
      verifyConsistency({ ...two, second: 8, secondRoot: nodeOf(rootAt(2), c), path: [c] }),
      false,
      "stops below the root",
    );
    // Above the root f and s are 0, so both sides would take the step.
    assert.equal(
      verifyConsistency({
        first: 3,
        second: 4,
        firstRoot: nodeOf(b, nodeOf(rootAt(2), a)),
        secondRoot: nodeOf(b, nodeOf(rootAt(2), nodeOf(a, c))),
        path: [a, c, rootAt(2), b],
      }),
      false,
      "a step above the root",
    );
    assert.equal(
      verifyConsistency({
        first: 3,
        second: 4,
        firstRoot: nodeOf(rootAt(2), a),
        secondRoot: nodeOf(rootAt(2), nodeOf(a, c)),
        path: [a, c, rootAt(2)],
      }),
      true,
      "without it this is a proof",
    );
  });

  test("numbers that are not an index or size return false, without an exception", () => {
    const claim = { index: 0, size: 1, leafHash: leafAt(0), path: [], root: leafAt(0) };
    assert.equal(verifyInclusion(claim), true);
    for (const wrong of [-1, 1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])
      assert.equal(verifyInclusion({ ...claim, index: wrong }), false, `index ${wrong}`);
    for (const wrong of [-1, 0, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])
      assert.equal(verifyInclusion({ ...claim, size: wrong }), false, `size ${wrong}`);
    const same = { first: 5, second: 5, firstRoot: rootAt(5), secondRoot: rootAt(5), path: [] };
    assert.equal(verifyConsistency(same), true);
    assert.equal(verifyConsistency({ ...same, first: 0, firstRoot: EMPTY_ROOT }), false);
    assert.equal(
      verifyConsistency({ ...same, first: 0, second: 0, firstRoot: EMPTY_ROOT, secondRoot: EMPTY_ROOT }),
      false,
    );
    for (const wrong of [-5, 0.5, Number.NaN, 2 ** 53]) {
      assert.equal(verifyConsistency({ ...same, first: wrong }), false, `first ${wrong}`);
      assert.equal(verifyConsistency({ ...same, second: wrong }), false, `second ${wrong}`);
    }
  });
});

describe("wrong arguments", () => {
  const never: NodeSource = () => Promise.reject(new Error("asked for a node"));
  const leaf = leafAt(0);

  test("appending leaves the old edge unchanged and rejects an edge of another size", () => {
    const edge = appendToEdge(appendToEdge([], 0, leaf), 1, leafAt(1));
    const before = hex(edge);
    appendToEdge(edge, 2, leafAt(2));
    assert.deepEqual(hex(edge), before);
    assert.throws(() => appendToEdge([], 3, leaf), {
      name: "RangeError",
      message: "the right edge of a tree of size 3 has 2 hashes, not 0",
    });
    assert.throws(() => appendToEdge([leaf, leaf], 4, leaf), /size 4 has 1 hashes, not 2/);
    assert.throws(() => appendToEdge([], 0, new Uint8Array(31)), {
      name: "RangeError",
      message: "a leaf hash has 32 bytes, not 31",
    });
    for (const size of [-1, 0.5, Number.NaN, Number.MAX_SAFE_INTEGER])
      assert.throws(() => appendToEdge([], size, leaf), RangeError, `${size}`);
  });

  test("there is no inclusion proof outside the tree", async () => {
    for (const [index, size] of [
      [0, 0],
      [1, 1],
      [-1, 4],
      [0.5, 4],
      [Number.NaN, 4],
      [8, 8],
      [0, -1],
      [0, 2 ** 53],
    ] as const) {
      await assert.rejects(inclusionProof(index, size, never), RangeError, `${index}/${size}`);
    }
  });

  test("there is no consistency proof from size 0, backwards, or for invalid sizes", async () => {
    for (const [first, second] of [
      [0, 0],
      [0, 5],
      [6, 5],
      [-1, 5],
      [1.5, 5],
      [1, Number.NaN],
      [1, 2 ** 53],
    ] as const) {
      await assert.rejects(consistencyProof(first, second, never), RangeError, `${first} to ${second}`);
    }
    assert.throws(() => edgeNodes(2 ** 53), RangeError);
  });

  test("an unreadable node rejects the proof", async () => {
    await assert.rejects(inclusionProof(3, 7, never), /asked for a node/);
    await assert.rejects(consistencyProof(3, 7, never), /asked for a node/);
    await assert.rejects(computeRoot(7, never), /asked for a node/);
  });
});
