/** A poll that reads many entries of other agents yields between its pages. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { setImmediate } from "node:timers";
import { test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { ALLOWED, startService } from "../../support/service.ts";

test("each page of a poll is a turn of the event loop", async () => {
  let turn = 0;
  let polling = false;
  const pages: number[] = [];
  const service = await startService({
    storage(folder) {
      const storage = sqliteStorage({ path: join(folder, "assent.db") });
      const entries = storage.entries.bind(storage);
      storage.entries = (from, to) => {
        if (polling) pages.push(turn);
        return entries(from, to);
      };
      return storage;
    },
  });
  try {
    await Promise.all(Array.from({ length: 600 }, () => service.call("POST", "/v1/actions", { body: ALLOWED })));
    const count = (): void => {
      turn++;
      if (polling) setImmediate(count);
    };
    polling = true;
    setImmediate(count);
    const { body } = await service.call("GET", "/v1/events/page?after=-1&agent_id=nobody", {
      key: service.admin,
    });
    polling = false;
    assert.deepEqual([body.events, body.next_after], [[], body.head]);
    assert.ok(pages.length >= 3, `${pages.length} pages`);
    assert.equal(new Set(pages).size, pages.length, `turns of the pages: ${pages.join(", ")}`);
  } finally {
    await service.close();
  }
});

test("streams that replay read one batch of entries in each turn of the event loop, all of them together", async () => {
  let turn = 0;
  let counting = false;
  const reads: number[] = [];
  const service = await startService({
    storage(folder) {
      const storage = sqliteStorage({ path: join(folder, "assent.db") });
      const entries = storage.entries.bind(storage);
      storage.entries = (from, to) => {
        if (counting) reads.push(turn);
        return entries(from, to);
      };
      return storage;
    },
  });
  try {
    await Promise.all(Array.from({ length: 900 }, () => service.call("POST", "/v1/actions", { body: ALLOWED })));
    const { size } = await service.storage.head();
    const count = (): void => {
      turn++;
      if (counting) setImmediate(count);
    };
    const replay = async (): Promise<void> => {
      const response = await service.runtime.fetch(
        new Request("http://assent.test/v1/events?after=-1", { headers: { authorization: `Bearer ${service.admin}` } }),
      );
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      for (let text = ""; !text.includes(`id: ${size - 1}\n`);) {
        const { value } = await reader.read();
        text = text.slice(-1000) + Buffer.from(value ?? []).toString();
      }
      await reader.cancel();
    };
    counting = true;
    setImmediate(count);
    await Promise.all([replay(), replay(), replay()]);
    counting = false;
    assert.ok(reads.length >= 9, `${reads.length} reads`);
    assert.equal(new Set(reads).size, reads.length, `turns of the reads: ${reads.join(", ")}`);
  } finally {
    await service.close();
  }
});
