/** Polls and streams that read many entries yield between their pages. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { setImmediate } from "node:timers";
import { after, before, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { ALLOWED, startService, type Service } from "../../support/service.ts";

let service: Service;
/** Turns of the event loop, counted while `isCounting`. */
let turn = 0;
let isCounting = false;
/** The turn of each read of entries. */
let reads: number[] = [];

before(async () => {
  service = await startService({
    storage(folder) {
      const storage = sqliteStorage({ path: join(folder, "assent.db") });
      const entries = storage.entries.bind(storage);
      storage.entries = (from, to) => {
        if (isCounting) reads.push(turn);
        return entries(from, to);
      };
      return storage;
    },
  });
  await Promise.all(Array.from({ length: 900 }, () => service.call("POST", "/v1/actions", { body: ALLOWED })));
});
after(() => service.close());

/** Returns the turn of each read of entries while `work` runs. */
async function turnsOfReads(work: () => Promise<unknown>): Promise<number[]> {
  const count = (): void => {
    turn++;
    if (isCounting) setImmediate(count);
  };
  reads = [];
  isCounting = true;
  setImmediate(count);
  try {
    await work();
  } finally {
    isCounting = false;
  }
  return reads;
}

test("each page of a poll is a turn of the event loop", async () => {
  const pages = await turnsOfReads(async () => {
    const path = "/v1/events/page?after=-1&agent_id=nobody";
    const { body } = await service.call("GET", path, { key: service.admin });
    assert.deepEqual([body.events, body.next_after], [[], body.head]);
  });
  assert.ok(pages.length >= 3, `${pages.length} pages`);
  assert.equal(new Set(pages).size, pages.length, `turns of the pages: ${pages.join(", ")}`);
});

test("streams that replay read one batch of entries in each turn of the event loop, all of them together", async () => {
  const { size } = await service.storage.head();
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
  const turns = await turnsOfReads(() => Promise.all([replay(), replay(), replay()]));
  assert.ok(turns.length >= 9, `${turns.length} reads`);
  assert.equal(new Set(turns).size, turns.length, `turns of the reads: ${turns.join(", ")}`);
});
