/** SQL for the documents of plugins. */
import { sql, type Kysely } from "kysely";
import type { DocumentFilter, DocumentReads, DocumentRow, DocumentWrites } from "../../src/storage/index.ts";
import { DOCUMENT_COLUMNS, type Tables } from "./table-schema.ts";
import { param, params, prepare, readRows, type SqlExecutor, type SqlReader, type Statement } from "./statement.ts";

type Reads = ReturnType<typeof prepareDocumentReads>;
type Writes = ReturnType<typeof prepareDocumentWrites>;

export function prepareDocumentReads(db: Kysely<Tables>) {
  const rows = db.selectFrom("documents").select(DOCUMENT_COLUMNS).where("plugin", "=", param("plugin"));
  return { document: prepare(() => rows.where("key", "=", param("key"))), documentLists: documentLists(db) };
}

/** Returns the statement for a combination of bounds. Prepares it on first use. */
function documentLists(db: Kysely<Tables>): (bounds: { after: boolean; to: boolean }) => Statement {
  const statements = new Map<string, Statement>();
  return ({ after, to }) => {
    const shape = `${after} ${to}`;
    let statement = statements.get(shape);
    if (statement === undefined) {
      let query = db
        .selectFrom("documents")
        .select(DOCUMENT_COLUMNS)
        .where("plugin", "=", param("plugin"))
        .where("key", ">=", param("prefix"))
        .orderBy("key")
        .limit(param<number>("limit"));
      if (after) query = query.where("key", ">", param("after"));
      if (to) query = query.where("key", "<", param("to"));
      statement = prepare(() => query);
      statements.set(shape, statement);
    }
    return statement;
  };
}

export function createDocumentReader(reads: Reads, db: SqlReader): DocumentReads {
  const many = (statement: Statement, values: object): Promise<DocumentRow[]> => readRows(db, statement, values);
  return {
    document: async (plugin, key) => (await many(reads.document, { plugin, key }))[0] ?? null,
    documents(filter: DocumentFilter) {
      const to = behindPrefix(filter.prefix);
      const statement = reads.documentLists({ after: filter.after !== undefined, to: to !== null });
      return many(statement, { ...filter, to });
    },
  };
}

/** Returns the smallest string, by code point, that follows all strings with this prefix; null if there is none. */
function behindPrefix(prefix: string): string | null {
  const points = Array.from(prefix);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const point = last.codePointAt(0) as number;
    // Skip the surrogates, which are not characters.
    if (point < 0x10ffff) return points.join("") + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1);
  }
  return null;
}

export function prepareDocumentWrites(db: Kysely<Tables>) {
  const one = db.updateTable("documents").where("plugin", "=", param("plugin")).where("key", "=", param("key"));
  return {
    countDocument: prepare(() =>
      db
        .insertInto("document_counter")
        .values({ id: sql.lit(1), last: sql.lit(1) })
        .onConflict((conflict) => conflict.column("id").doUpdateSet({ last: sql<number>`document_counter.last + 1` })),
    ),
    lastDocument: prepare(() => db.selectFrom("document_counter").select("last").where("id", "=", sql.lit(1))),
    insertDocument: prepare(() =>
      db
        .insertInto("documents")
        .values(params<Tables["documents"]>(DOCUMENT_COLUMNS))
        .onConflict((conflict) => conflict.columns(["plugin", "key"]).doNothing()),
    ),
    updateDocument: prepare(() =>
      one
        .set({ value: param<string>("value"), version: param<number>("version"), seal: param<string>("seal") })
        .where("version", "=", param("if_version")),
    ),
    deleteDocument: prepare(() =>
      db
        .deleteFrom("documents")
        .where("plugin", "=", param("plugin"))
        .where("key", "=", param("key"))
        .where("version", "=", param("if_version")),
    ),
  };
}

export function createDocumentWriter(writes: Writes, db: SqlExecutor): DocumentWrites {
  return {
    async putDocument(document, if_version) {
      // Increase the counter first. If the write then fails, the unused version is harmless.
      await db.run(writes.countDocument, {});
      const version = Number((await db.all(writes.lastDocument, {}))[0]?.["last"]);
      const statement = if_version === null ? writes.insertDocument : writes.updateDocument;
      return (await db.run(statement, { ...document, version, if_version })) === 1 ? version : null;
    },
    deleteDocument: async (plugin, key, if_version) =>
      (await db.run(writes.deleteDocument, { plugin, key, if_version })) === 1,
  };
}
