/** Stores with the sums of an earlier form of schema 3, which had one row for each value: analytics answered 503 from them for good. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import postgres from "postgres";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { MIGRATIONS, type Migration } from "../../src/storage/sql/migrations.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { actionRow, appendSome, T0 } from "../../src/testing/suite/rows.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { temporaryFolder } from "./children/spawn.ts";

const HOUR = 3_600_000;
const from = Math.floor(T0 / HOUR) * HOUR;

const first: Migration = {
  version: 3,
  name: "sums for analytics",
  statements: (kit) =>
    (MIGRATIONS[2] as Migration)
      .statements(kit)
      .map((statement) =>
        statement
          .replace(/"counts" (text[^,]*)/, '"value" $1, "count" integer not null')
          .replace('"start"))', '"start", "value"))'),
      ),
};

async function upgraded(make: (migrations?: readonly Migration[]) => Storage): Promise<void> {
  const older = make([...MIGRATIONS.slice(0, 2), first]);
  await older.open();
  await older.close();
  const newer = make();
  await newer.open();
  try {
    const { applied, known } = await newer.schema();
    assert.equal(applied, known);
    const total = async (): Promise<number> =>
      (await newer.analytics({ visibility: { all: true }, boundaries: [from, from + HOUR] })).decision.reduce(
        (sum, { count }) => sum + count,
        0,
      );
    assert.equal(await total(), 0);
    await newer.write(async (tx) => {
      await tx.insertAction(actionRow(0, { created_at: T0 }));
      await appendSome(tx, 1);
    });
    assert.equal(await total(), 1);
    assert.equal(await newer.upkeep?.(10), 1, "the sums are kept again");
    assert.equal(await total(), 1);
  } finally {
    await newer.close();
  }
}

describe("sums of the first form", () => {
  let server: PostgresServer | null = null;
  before(async () => {
    if (withoutPostgres === false) server = await startPostgres();
  });
  after(() => server?.stop());

  it("are made anew on SQLite", async () => {
    const path = join(temporaryFolder(), "assent.db");
    await upgraded((migrations) => sqliteStorage({ path, ...(migrations === undefined ? {} : { migrations }) }));
  });

  it(
    "are made anew on Postgres, and refuse a change outside of a transaction as before",
    { skip: withoutPostgres },
    async () => {
      const url = await (server as PostgresServer).database();
      await upgraded((migrations) => postgresStorage({ url, ...(migrations === undefined ? {} : { migrations }) }));
      const sql = postgres(url, { max: 1 });
      try {
        await assert.rejects(sql`delete from action_sums`, /outside of a transaction of the service/);
      } finally {
        await sql.end();
      }
    },
  );
});
