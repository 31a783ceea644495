import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { utf8 } from "../../src/domain/hash.ts";
import {
  appendToEdge,
  consistencyProof,
  edgeNodes,
  inclusionProof,
  computeRoot,
  rootFromEdge,
  verifyConsistency,
  verifyInclusion,
  type NodeSource,
} from "../../src/domain/merkle.ts";
import { leafOf, mutations, naivePath, naiveRoot, nodeOf } from "../support/tree.ts";

/** A tree of up to 2^53 equal leaves, in which a node depends only on its level. */
const UNIFORM: Uint8Array[] = [leafOf(utf8("again"))];
for (let level = 1; level <= 53; level++)
  UNIFORM.push(nodeOf(UNIFORM[level - 1] as Uint8Array, UNIFORM[level - 1] as Uint8Array));

function uniform(size: number): { source: NodeSource; asked: { level: number; index: number }[] } {
  const asked: { level: number; index: number }[] = [];
  const source: NodeSource = (level, index) => {
    asked.push({ level, index });
    if (BigInt(index + 1) << BigInt(level) > BigInt(size))
      return Promise.reject(new Error(`node ${level}/${index} is not complete`));
    return Promise.resolve(UNIFORM[level] as Uint8Array);
  };
  return { source, asked };
}

/** Root by the definition in BigInt: MTH(n) = node(MTH(k), MTH(n - k)). */
function uniformRoot(size: bigint): Uint8Array {
  const level = size.toString(2).length - 1;
  const power = 1n << BigInt(level);
  return size === power
    ? (UNIFORM[level] as Uint8Array)
    : nodeOf(UNIFORM[level] as Uint8Array, uniformRoot(size - power));
}

describe("beyond 32 bits", () => {
  const MAX = Number.MAX_SAFE_INTEGER;
  const sizes = [
    2 ** 31,
    2 ** 31 + 1,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 32 + 1,
    2 ** 32 + 5,
    2 ** 40 + 2 ** 33 + 3,
    2 ** 52,
    MAX - 1,
    MAX,
  ];

  test("roots, and coordinates that cover the tree without gaps", async () => {
    for (const size of sizes) {
      const { source, asked } = uniform(size);
      assert.deepEqual(await computeRoot(size, source), uniformRoot(BigInt(size)), `${size}`);
      let end = 0n;
      for (const { level, index } of asked) {
        assert.equal(BigInt(index) << BigInt(level), end, `${size}: ${level}/${index}`);
        end = BigInt(index + 1) << BigInt(level);
      }
      assert.equal(end, BigInt(size));
      assert.deepEqual(edgeNodes(size), asked);
    }
  });

  test("inclusion verifies at the index, and not at the index that 32-bit arithmetic would give", async () => {
    for (const size of sizes) {
      const root = uniformRoot(BigInt(size));
      const leafHash = UNIFORM[0] as Uint8Array;
      for (const index of [0, 1, 2 ** 31 - 1, Math.floor(size / 2), size - 2, size - 1]) {
        const path = await inclusionProof(index, size, uniform(size).source);
        assert.ok(path.length <= 53);
        assert.equal(verifyInclusion({ index, size, leafHash, path, root }), true, `${index}/${size}`);
        for (const wrong of mutations(path)) {
          // With equal leaves, a swapped or duplicated path can equal the original, so only bit flips must fail.
          if (wrong.what.startsWith("bit 0 "))
            assert.equal(
              verifyInclusion({ index, size, leafHash, path: wrong.path, root }),
              false,
              `${index}/${size}: ${wrong.what}`,
            );
        }
      }
    }
    // The last leaf of 2^32 + 5 has a path of 2 steps, of which the lowest 32 bits are 4.
    const size = 2 ** 32 + 5;
    const path = await inclusionProof(size - 1, size, uniform(size).source);
    assert.equal(path.length, 2);
    assert.equal(
      verifyInclusion({
        index: (size - 1) % 2 ** 32,
        size,
        leafHash: UNIFORM[0] as Uint8Array,
        path,
        root: uniformRoot(BigInt(size)),
      }),
      false,
    );
  });

  test("distinct leaves beyond 2^32: the exact index is proven", async () => {
    // 2^32 equal leaves, then five different ones.
    const tail = Array.from({ length: 5 }, (_, i) => leafOf(utf8(`tail ${i}`)));
    const size = 2 ** 32 + 5;
    const source: NodeSource = (level, index) => {
      const from = index * 2 ** level - 2 ** 32;
      return Promise.resolve(
        from < 0 ? (UNIFORM[level] as Uint8Array) : naiveRoot(tail.slice(from, from + 2 ** level)),
      );
    };
    const root = nodeOf(UNIFORM[32] as Uint8Array, naiveRoot(tail));
    assert.deepEqual(await computeRoot(size, source), root);
    for (let i = 0; i < 5; i++) {
      const path = await inclusionProof(2 ** 32 + i, size, source);
      assert.deepEqual(path, [...naivePath(i, tail), UNIFORM[32]]);
      const leafHash = tail[i] as Uint8Array;
      assert.equal(verifyInclusion({ index: 2 ** 32 + i, size, leafHash, path, root }), true);
      for (const index of [i, 2 ** 32 + ((i + 1) % 5), 2 ** 33 + i])
        assert.equal(verifyInclusion({ index, size, leafHash, path, root }), false, `${index} for ${2 ** 32 + i}`);
    }
  });

  test("consistency between large sizes", async () => {
    for (const second of sizes) {
      for (const first of [1, 2 ** 31 - 1, 2 ** 31, Math.floor(second / 2), second - 1, second]) {
        if (first > second) continue;
        const path = await consistencyProof(first, second, uniform(second).source);
        const claim = {
          first,
          second,
          firstRoot: uniformRoot(BigInt(first)),
          secondRoot: uniformRoot(BigInt(second)),
          path,
        };
        assert.equal(verifyConsistency(claim), true, `${first} to ${second}`);
        if (first !== second && first > 1)
          assert.equal(
            verifyConsistency({ ...claim, first: first - 1 }),
            false,
            `${first} as ${first - 1} to ${second}`,
          );
      }
    }
  });

  test("an edge grows across 2^32 and up to the largest size", () => {
    for (const size of [2 ** 32 - 1, 2 ** 32, 2 ** 40 - 1, MAX - 1]) {
      const edge = edgeNodes(size).map(({ level }) => UNIFORM[level] as Uint8Array);
      assert.deepEqual(
        rootFromEdge(appendToEdge(edge, size, UNIFORM[0] as Uint8Array)),
        uniformRoot(BigInt(size) + 1n),
        `${size}`,
      );
    }
  });

  test("a tree of 2^53 - 1 leaves accepts no more", () => {
    const edge = edgeNodes(MAX).map(({ level }) => UNIFORM[level] as Uint8Array);
    assert.throws(() => appendToEdge(edge, MAX, UNIFORM[0] as Uint8Array), {
      name: "RangeError",
      message: "9007199254740992 is not the size of a tree",
    });
  });
});
