import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { toHex, utf8 } from "../../src/domain/hash.ts";
import {
  decodeEntryBundle,
  encodeEntryBundle,
  parseTilePath,
  rootOfTile,
  tilePath,
  tilesBetween,
  TILE_WIDTH,
} from "../../src/domain/tiles.ts";
import { leafOf, naiveRoot } from "../support/tree.ts";

const MAX = Number.MAX_SAFE_INTEGER;

describe("layout", () => {
  test("growing in steps completes each tile once, at the same positions as growing at once", () => {
    const name = ({ level, index }: { level: number; index: number }): string => `${level}/${index}`;
    const atOnce = tilesBetween(0, 70_000).map(name).sort();
    assert.equal(atOnce.length, 274);
    for (const step of [1, 7, 255, 256, 257, 10_000, 65_536]) {
      const inSteps: string[] = [];
      for (let size = 0; size < 70_000; size += step)
        inSteps.push(...tilesBetween(size, Math.min(size + step, 70_000)).map(name));
      assert.deepEqual(inSteps.sort(), atOnce, `steps of ${step}`);
    }
  });

  test("a tile comes after the tiles that it hashes", () => {
    const done = new Set<string>();
    for (const { level, index } of tilesBetween(0, 3 * 65_536)) {
      if (level > 0)
        for (let i = 0; i < 256; i++)
          assert.ok(
            done.has(`${level - 1}/${index * 256 + i}`),
            `${level}/${index} before ${level - 1}/${index * 256 + i}`,
          );
      done.add(`${level}/${index}`);
    }
    assert.equal(done.size, 3 * 256 + 3);
  });

  test("an unchanged or smaller tree completes nothing", () => {
    for (const [from, to] of [
      [0, 0],
      [256, 256],
      [0, 255],
      [257, 511],
      [512, 256],
    ] as const)
      assert.deepEqual(tilesBetween(from, to), [], `${from} to ${to}`);
  });

  test("beyond 2^32, the last entry of a tile completes one tile on each level", () => {
    assert.deepEqual(tilesBetween(2 ** 32 - 1, 2 ** 32), [
      { level: 0, index: 2 ** 24 - 1 },
      { level: 1, index: 2 ** 16 - 1 },
      { level: 2, index: 255 },
      { level: 3, index: 0 },
    ]);
    assert.deepEqual(tilesBetween(2 ** 40 + 255, 2 ** 40 + 256), [{ level: 0, index: 2 ** 32 }]);
    assert.deepEqual(tilesBetween(2 ** 40, 2 ** 40 + 255), []);
  });

  test("the root of a tile depends on its hashes and their order", () => {
    const leaves = Array.from({ length: TILE_WIDTH }, (_, i) => leafOf(utf8(`${i}`)));
    const join = (hashes: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(hashes));
    assert.equal(toHex(rootOfTile(join(leaves))), toHex(naiveRoot(leaves)));
    assert.notEqual(toHex(rootOfTile(join(leaves.toReversed()))), toHex(naiveRoot(leaves)));
    for (const length of [0, 32, 8191, 8193])
      assert.throws(() => rootOfTile(new Uint8Array(length)), {
        name: "RangeError",
        message: new RegExp(`this one ${length}$`),
      });
  });
});

describe("paths", () => {
  test("every path is parsed to its tile", () => {
    for (const level of [0, 1, 5, 63, "entries"] as const) {
      for (const index of [0, 1, 9, 10, 999, 1000, 1_234_067, 2 ** 32, MAX]) {
        for (const width of [1, 9, 10, 255, 256])
          assert.deepEqual(parseTilePath(tilePath(level, index, width)), { level, index, width });
      }
    }
  });

  test("groups of three digits", () => {
    assert.equal(tilePath(0, 0), "tile/0/000");
    assert.equal(tilePath(0, 999), "tile/0/999");
    assert.equal(tilePath(0, 1000), "tile/0/x001/000");
    assert.equal(tilePath("entries", MAX), "tile/entries/x009/x007/x199/x254/x740/991");
    assert.equal(tilePath(2, 5, 256), "tile/2/005", "256 is the full tile");
  });

  test("another spelling of a tile is rejected", () => {
    for (const path of [
      "",
      "tile",
      "/tile/0/000",
      "tile/0/000/",
      "tile/0/x000/000",
      "tile/0/0",
      "tile/0/0000",
      "tile/0/x001",
      "tile/0/001/x002",
      "tile/0/x01/000",
      "tile/0/000.p",
      "tile/0/000.p/",
      "tile/0/000.p/0",
      "tile/0/000.p/00",
      "tile/0/000.p/007",
      "tile/0/000.p/256",
      "tile/0/000.p/999",
      "tile/0/000.p/1/2",
      "tile/00/000",
      "tile/-1/000",
      "tile/64/000",
      "tile/99/000",
      "tile/x/000",
      "tile/Entries/000",
      "tile/0/000\n",
      "tile/0/..%2f",
      "tile/0/../000",
      "tile/0/x009/x007/x199/x254/x740/992",
      "tile/0/x999/x999/x999/x999/x999/x999/999",
      "tile/0/٠٠٠",
    ])
      assert.equal(parseTilePath(path), null, JSON.stringify(path));
  });

  test("an invalid tile has no path", () => {
    for (const [level, index, width] of [
      [-1, 0, 256],
      [64, 0, 256],
      [0.5, 0, 256],
      [0, -1, 256],
      [0, 1.5, 256],
      [0, 2 ** 53, 256],
      [0, 0, 0],
      [0, 0, 257],
      [0, 0, 1.5],
      [0, 0, Number.NaN],
    ] as const) {
      assert.throws(() => tilePath(level, index, width), RangeError, `${level} ${index} ${width}`);
    }
  });
});

describe("entry bundles", () => {
  test("lengths are big-endian, and the largest entry fits", () => {
    assert.equal(toHex(encodeEntryBundle([utf8("ab"), new Uint8Array(0), utf8("c")])), "0002616200000001" + "63");
    const largest = new Uint8Array(65_535).fill(7);
    const bytes = encodeEntryBundle([largest, utf8("x")]);
    assert.equal(toHex(bytes.subarray(0, 2)), "ffff");
    assert.deepEqual(decodeEntryBundle(bytes), [largest, utf8("x")]);
    assert.deepEqual(decodeEntryBundle(new Uint8Array(0)), []);
  });

  test("a bundle that is cut inside an entry is rejected", () => {
    const bytes = encodeEntryBundle([utf8("abc"), utf8("de"), utf8("")]);
    const whole = new Set([0, 5, 9, 11]);
    for (let length = 0; length <= bytes.length; length++) {
      if (whole.has(length))
        assert.deepEqual(encodeEntryBundle(decodeEntryBundle(bytes.subarray(0, length))), bytes.subarray(0, length));
      else
        assert.throws(
          () => decodeEntryBundle(bytes.subarray(0, length)),
          { name: "RangeError", message: "the bundle is truncated" },
          `${length} bytes`,
        );
    }
  });

  test("257 entries or an entry of 65,536 bytes are rejected", () => {
    const full = Array.from({ length: 256 }, (_, i) => Uint8Array.of(i));
    assert.deepEqual(decodeEntryBundle(encodeEntryBundle(full)), full);
    assert.throws(() => encodeEntryBundle([...full, utf8("x")]), {
      name: "RangeError",
      message: /at most 256 entries/,
    });
    assert.throws(() => decodeEntryBundle(new Uint8Array(2 * 257)), {
      name: "RangeError",
      message: /at most 256 entries/,
    });
    assert.throws(() => encodeEntryBundle([new Uint8Array(65_536)]), { name: "RangeError", message: /65536 bytes/ });
  });
});
