/** A store that lacks entries: streams and pages report the gap instead of skipping it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../../plugins/storage-sqlite/load-library.ts";
import { ALLOWED, startService } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("a page that lacks entries is rejected, wherever the gap is", async () => {
  const path = join(temporaryFolder("assent-gap-"), "assent.db");
  const service = await startService({ storage: () => sqliteStorage({ path }), broken: true });
  try {
    for (let i = 0; i < 3; i++) await service.call("POST", "/v1/actions", { body: ALLOWED });
    const { size } = await service.storage.head();
    const read = (after: number) => service.call("GET", `/v1/events/page?after=${after}`, { key: service.admin });
    assert.equal((await read(size - 4)).body.events.length, 3);
    const { DatabaseSync } = await loadSqlite();
    const db = new DatabaseSync(path);
    db.exec(`drop trigger entries_no_delete; delete from entries where seq = ${size - 2}`);
    for (const after of [size - 4, size - 3]) {
      const { status, body } = await read(after);
      assert.deepEqual([status, body.code], [503, "STORAGE_UNAVAILABLE"], `after ${after}`);
    }
    assert.equal((await read(size - 2)).body.events.length, 1, "what is behind it can be read");
    db.exec(`delete from entries where seq = ${size - 1}`);
    db.close();
    assert.equal((await read(size - 2)).status, 503, "the newest ones are missing");
  } finally {
    await service.close();
  }
});
