/** A poll that looks at many entries of others: the service does other things between its pages. */
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
