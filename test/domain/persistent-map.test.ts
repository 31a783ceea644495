import assert from "node:assert/strict";
import { test } from "node:test";
import { PersistentMap } from "../../src/domain/persistent-map.ts";

test("every version equals a Map with the same changes, in the same order", () => {
  const reference = new Map<number, number>();
  let map = PersistentMap.of<number, number>();
  const versions: { map: PersistentMap<number, number>; entries: [number, number][] }[] = [];
  let seed = 7;
  for (let i = 0; i < 2000; i++) {
    seed = (seed * 48_271) % 2_147_483_647;
    const key = seed % 700;
    map = map.with(key, i);
    reference.set(key, i);
    assert.equal(map.size, reference.size);
    if (i % 97 === 0) versions.push({ map, entries: [...reference] });
  }
  for (const version of versions) {
    assert.deepEqual([...version.map], version.entries);
    for (const [key, value] of version.entries) assert.equal(version.map.get(key), value);
    assert.equal(version.map.get(-1), undefined);
    assert.equal(version.map.has(-1), false);
  }
});

test("10,000 additions copy each entry only a few times", () => {
  let copied = 0;
  class Counted extends Map<number, number> {
    override set(key: number, value: number): this {
      copied++;
      return super.set(key, value);
    }
  }
  const original = globalThis.Map;
  globalThis.Map = Counted as unknown as MapConstructor;
  try {
    let map = PersistentMap.of<number, number>();
    for (let i = 0; i < 10_000; i++) map = map.with(i, i);
    assert.equal(map.size, 10_000);
  } finally {
    globalThis.Map = original;
  }
  assert.ok(copied > 0 && copied < 60 * 10_000, `${copied} copies`);
});
