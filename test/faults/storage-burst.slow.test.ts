/**
 * All writes of a batch are sent to Postgres together with its COMMIT, without waiting for results in between. If a
 * statement fails or the head is not the expected one, nothing is committed and no request is acknowledged.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresDialect } from "../../plugins/storage-sql/dialects/postgres.ts";
import type { SqlEngine, SqlTransaction } from "../../plugins/storage-sql/engine.ts";
import { createSqlStorage } from "../../plugins/storage-sql/sql-storage.ts";
import { PostgresEngine } from "../../plugins/storage-postgres/postgres-engine.ts";
import { override } from "../support/override.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { startService, type Answer, type Service } from "../support/service.ts";

const POLICY = "policy: spending\nrules:\n  - { name: pay, tool: pay, effect: allow }\n";

type Query = SqlTransaction["query"];

describe("a batch and its commit in one burst", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let service: Service;
  let storage: ReturnType<typeof createSqlStorage>;
  /** Replaces the statements that a transaction of the ledger sends. */
  let change: ((tx: SqlTransaction) => SqlTransaction) | null = null;
  before(async () => {
    server = await startPostgres();
    const engine = new PostgresEngine({
      url: await server.database(),
      poolSize: 3,
      statementTimeoutMs: 30_000,
      silenceMs: 30_000,
      lockTimeoutMs: 10_000,
      connectTimeoutMs: 10_000,
      tls: "from-url",
      acceptUnsafeServer: false,
      notify: true,
    });
    const changed: SqlEngine = override<SqlEngine>(engine, {
      async begin(purpose, reads) {
        const tx = await engine.begin(purpose, reads);
        return change === null || purpose !== "write" ? tx : change(tx);
      },
    });
    service = await startService({
      storage: () => (storage = createSqlStorage(changed, postgresDialect)),
      policy: POLICY,
    });
  });
  after(async () => {
    change = null;
    await service.close();
    await server.stop();
  });

  let n = 0;
  const submit = (): Promise<Answer> =>
    service.call("POST", "/v1/actions", {
      body: { agent_id: "support-bot", tool: "pay", operation: "refund", params: { n: ++n } },
    });
  const isWrite = (sql: string): boolean => /^(insert|update|delete)/i.test(sql);

  it("sends a decision's writes and its COMMIT without waiting for a result in between", async () => {
    const sent: string[] = [];
    change = (tx) => {
      let commit: () => void = () => {};
      const committing = new Promise<void>((resolve) => (commit = resolve));
      const query: Query = async (sql, values) => {
        const answer = tx.query(sql, values);
        answer.catch(() => undefined);
        // If the storage waits for this result before it sends the commit, it waits forever.
        if (isWrite(sql)) {
          sent.push(sql.split(" ").slice(0, 3).join(" ").replaceAll('"', ""));
          await committing;
        }
        return answer;
      };
      return {
        ...tx,
        query,
        commit(moved) {
          commit();
          return tx.commit(moved);
        },
      };
    };
    assert.equal((await submit()).status, 200);
    change = null;
    assert.ok(sent.includes("insert into actions"), sent.join("; "));
    assert.ok(sent.includes("update ledger_head set"), sent.join("; "));
    assert.ok(sent.includes("insert into entries"), sent.join("; "));
  });

  const faults: Record<string, (tx: SqlTransaction) => Query> = {
    "the update of the head is lost and answered as if it had run": (tx) => async (sql, values) =>
      sql.startsWith('update "ledger_head"') ? { rows: [], changes: 1 } : tx.query(sql, values),
    "the update of the head meets another head": (tx) => async (sql, values) =>
      sql.startsWith('update "ledger_head"') ? tx.query(`${sql} and false`, values) : tx.query(sql, values),
    "the update of the head writes another root": (tx) => async (sql, values) =>
      tx.query(
        sql,
        sql.startsWith('update "ledger_head"')
          ? values.map((value, i) => (i === 1 ? new Uint8Array(32) : value))
          : values,
      ),
    "the insert of the entry fails": (tx) => async (sql, values) =>
      sql.startsWith('insert into "entries"') ? tx.query("select 1 / 0", []) : tx.query(sql, values),
    "the insert of the action fails": (tx) => async (sql, values) =>
      sql.startsWith('insert into "actions"') ? tx.query("select 1 / 0", []) : tx.query(sql, values),
  };
  for (const [fault, query] of Object.entries(faults))
    it(`commits nothing and returns no response if ${fault}`, async () => {
      const earlier = await storage.head();
      let met = false;
      change = (tx) => ({
        ...tx,
        query: (sql, values) => {
          met ||= sql.startsWith('insert into "entries"');
          return query(tx)(sql, values);
        },
      });
      const { status } = await submit();
      change = null;
      assert.ok(met);
      assert.equal(status, 503);
      assert.equal((await storage.head()).size, earlier.size);
      assert.equal((await storage.entries(earlier.size, earlier.size + 10)).length, 0);
      assert.equal((await submit()).status, 200);
      assert.equal((await storage.head()).size, earlier.size + 1);
    });
});
