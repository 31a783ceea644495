import assert from "node:assert/strict";
import { test } from "node:test";
import { createAnnouncer } from "../../../plugins/storage-postgres/announcer.ts";

test("announces the newest size of several commits once, and the last one at the end", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: number[] = [];
  const announcer = createAnnouncer(async (size) => void sent.push(size));
  for (const size of [1, 2, 3]) announcer.moved(size);
  t.mock.timers.tick(50);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(sent, [3]);
  announcer.moved(4);
  announcer.moved(5);
  await announcer.end();
  assert.deepEqual(sent, [3, 5]);
});

test("continues after an announcement that failed", async () => {
  const sent: number[] = [];
  const announcer = createAnnouncer(async (size) => {
    if (size === 1) throw new Error("no connection");
    sent.push(size);
  });
  announcer.moved(1);
  await announcer.end();
  announcer.moved(2);
  await announcer.end();
  assert.deepEqual(sent, [2]);
});
