/** SQL statements for the ledger reads of the contract. */
import { sql, type Kysely } from "kysely";
import type { EntryType, EntryRow, LedgerReads, TileRow } from "../../src/storage/index.ts";
import { prepareBundleReads, type BundleReader } from "./bundles.ts";
import { findEntriesByHash, type prepareHashIndexReads } from "./hash-index.ts";
import { prepareFollowedEntries } from "./lists.ts";
import * as schema from "./table-schema.ts";
import type { Tables } from "./table-schema.ts";
import { param, prepare, readRows, type SqlReader, type Statement } from "./statement.ts";

/** Use a literal, so that the planner can use the partial index. */
const DECISION = sql.lit<EntryType>("decision");

export function prepareLedgerReads(db: Kysely<Tables>) {
  const entries = db.selectFrom("entries").select(schema.ENTRY_COLUMNS);
  return {
    entries: prepare(() => entries.where("seq", ">=", param("from")).where("seq", "<", param("to")).orderBy("seq")),
    // Finds the decision through the action's `decision_seq`, so that the index over `action_id` does not have to
    // contain decisions.
    entriesOfAction: prepare(() =>
      entries
        .where("action_id", "=", param("action_id"))
        .where("type", "<>", DECISION)
        .unionAll(
          entries
            .where(
              "seq",
              "=",
              db.selectFrom("actions").select("decision_seq").where("id", "=", param("action_id", "uuid")),
            )
            .where("action_id", "=", param("action_id"))
            .where("type", "=", DECISION),
        )
        .orderBy("seq"),
    ),
    followedEntries: prepareFollowedEntries(db),
    leafHashes: prepare(() =>
      db
        .selectFrom("entries")
        .select("leaf_hash")
        .where("seq", ">=", param("from"))
        .where("seq", "<", param("to"))
        .orderBy("seq"),
    ),
    tile: prepare(() =>
      db
        .selectFrom("tiles")
        .select(schema.TILE_COLUMNS)
        .where("level", "=", param("level"))
        .where("index", "=", param("index")),
    ),
    tileRoots: prepare(() =>
      db
        .selectFrom("tiles")
        .select("root")
        .where("level", "=", param("level"))
        .where("index", ">=", param("from"))
        .where("index", "<", param("to"))
        .orderBy("index"),
    ),
    ...prepareBundleReads(db),
    entryWithHash: prepare(() => entries.where("seq", "=", param("seq")).where("leaf_hash", "=", param("leaf_hash"))),
  };
}

type StoredEntry = Tables["entries"];
type Reads = Omit<LedgerReads, "head" | "checkpoint">;

export function createLedgerReader(
  reads: ReturnType<typeof prepareLedgerReads> & ReturnType<typeof prepareHashIndexReads>,
  db: SqlReader,
  bundles: BundleReader,
): Reads {
  async function entries(statement: Statement, values: object): Promise<EntryRow[]> {
    const rows = await bundles.withBytes(db, await readRows<StoredEntry>(db, statement, values));
    return rows.map((row) => Object.assign(row, { followed: row.followed === 1 }));
  }
  return {
    entries: (from, to) => entries(reads.entries, { from, to }),
    async entryByHash(leaf_hash) {
      for await (const seqs of findEntriesByHash(reads, db, leaf_hash))
        for (const seq of seqs) {
          const [entry] = await entries(reads.entryWithHash, { seq, leaf_hash });
          if (entry !== undefined) return entry;
        }
      return null;
    },
    entriesOfAction: (action_id) => entries(reads.entriesOfAction, { action_id }),
    followedEntries: (from, limit) => entries(reads.followedEntries, { from, limit }),
    leafHashes: async (from, to) =>
      (await readRows<{ leaf_hash: Uint8Array }>(db, reads.leafHashes, { from, to })).map((row) => row.leaf_hash),
    tile: async (level, index) => (await readRows<TileRow>(db, reads.tile, { level, index }))[0] ?? null,
    tileRoots: async (level, from, to) =>
      (await readRows<{ root: Uint8Array }>(db, reads.tileRoots, { level, from, to })).map((row) => row.root),
  };
}
