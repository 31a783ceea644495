/**
 * On Postgres, the audit reports a change of any column, except the columns in `UNRECORDED_COLUMNS`.
 * @needs agents, authority, grants, plans, questions, reviewers, retention, stop, sub-agents, suggestions, tasks, users
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { flipColumns, removeAndRepeatRows, type Audited } from "../support/audit-flips.ts";
import { fillStore } from "../support/every-row.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { rawPostgres } from "../support/raw-store.ts";

describe("Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let audited: Audited;

  before(async () => {
    server = await startPostgres();
    const url = await server.database();
    const filled = await fillStore(() => postgresStorage({ url, acceptUnsafeServer: true }));
    const storage = postgresStorage({ url, acceptUnsafeServer: true });
    await storage.open({ readOnly: true });
    audited = { raw: await rawPostgres(url), storage, ...filled };
  });
  after(async () => {
    await audited.storage.close();
    await audited.raw.close();
    await server.stop();
  });

  // The SQLite test covers the audit with rows of every kind. This test checks that the Postgres storage passes every
  // column and row to the audit.
  test("the audit reports a change of any column, except the listed ones", async () => {
    assert.ok((await flipColumns(audited, 1)) > 100);
  });

  test("the audit reports a missing row and an additional row", async () => {
    assert.ok((await removeAndRepeatRows(audited, 1)) > 8);
  });
});
