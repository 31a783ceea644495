/** On Postgres: whatever a writer of the database changes, the audit says so, or a short table says why it does not. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { flipBytes, flipColumns, removeAndRepeatRows, type Audited } from "../support/audit-flips.ts";
import { fillStore } from "../support/every-row.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { rawPostgres } from "../support/raw-store.ts";

describe("Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let audited: Audited;

  before(async () => {
    server = await startPostgres();
    const url = await server.database();
    const vkey = await fillStore(() => postgresStorage({ url, acceptUnsafeServer: true }));
    const storage = postgresStorage({ url, acceptUnsafeServer: true });
    await storage.open({ readOnly: true });
    audited = { raw: await rawPostgres(url), storage, vkey };
  });
  after(async () => {
    await audited.storage.close();
    await audited.raw.close();
    await server.stop();
  });

  test("every column of every table, changed by itself, is noticed or listed", async () => {
    // The same columns of every kind of row are flipped on SQLite.
    const flipped = await flipColumns(audited, 2);
    assert.ok(flipped > 120, String(flipped));
  });

  test("50 bytes that are changed anywhere are noticed", () => flipBytes(audited, 50, 20_261_122));

  test("a row that is gone is missed, and one too many is asked where it comes from", () =>
    removeAndRepeatRows(audited));
});
