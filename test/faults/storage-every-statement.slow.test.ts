/**
 * A serialization failure (SQLSTATE 40001) in each statement of a request in turn: its lock, its reads, its writes and
 * its commit. The response is the same as without the failure, and everything is recorded once.
 * @needs analytics, provenance
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresDialect } from "../../plugins/storage-sql/dialects/postgres.ts";
import type { SqlEngine, SqlTransaction } from "../../plugins/storage-sql/engine.ts";
import { createSqlStorage } from "../../plugins/storage-sql/sql-storage.ts";
import { PostgresEngine } from "../../plugins/storage-postgres/postgres-engine.ts";
import { override } from "../support/override.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ASKED, waitForSignature, startService, type Answer, type Service } from "../support/service.ts";

const POLICY = `policy: spending
rules:
  - { name: pay, tool: pay, effect: allow }
  - { name: ask, tool: stripe, effect: require_approval }
limits:
  - { name: few, tool: pay, per: agent, count: 100000, window: 1h }
`;
const PAID = { agent_id: "support-bot", tool: "pay", operation: "refund" };
/** Makes Postgres fail the statement, which aborts its transaction. */
const GIVE_UP = "do $$ begin raise exception using errcode = '40001', message = 'restart transaction'; end $$";

/** Wraps an engine. `at(n)` makes the n-th statement from now on fail; 0 for none. */
function conflicting(engine: SqlEngine): { engine: SqlEngine; at(which: number): void; met(): boolean } {
  let left = 0;
  let met = false;
  const now = (): boolean => {
    if (left === 0 || --left > 0) return false;
    return (met = true);
  };
  const transaction = (tx: SqlTransaction): SqlTransaction => ({
    ...tx,
    query: (sql, values) => (now() ? tx.query(GIVE_UP, []) : tx.query(sql, values)),
    commit: async (moved) => (now() ? void (await tx.query(GIVE_UP, [])) : tx.commit(moved)),
  });
  return {
    engine: override<SqlEngine>(engine, {
      query: (sql, values) => (now() ? engine.query(GIVE_UP, []) : engine.query(sql, values)),
      async begin(purpose) {
        const fails = now();
        const tx = await engine.begin(purpose);
        if (!fails) return transaction(tx);
        const error: unknown = await tx.query(GIVE_UP, []).catch((thrown: unknown) => thrown);
        await tx.rollback(error);
        throw error;
      },
      ...(engine.snapshot === undefined
        ? {}
        : {
            snapshot: (work) =>
              (engine as Required<SqlEngine>).snapshot((query) =>
                work((sql, values) => (now() ? query(GIVE_UP, []) : query(sql, values))),
              ),
          }),
    }),
    at(which) {
      left = which;
      met = false;
    },
    met: () => met,
  };
}

describe("a conflict in every statement", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let service: Service;
  let faults: ReturnType<typeof conflicting>;
  before(async () => {
    server = await startPostgres();
    const url = await server.database();
    faults = conflicting(
      new PostgresEngine({
        url,
        poolSize: 3,
        statementTimeoutMs: 30_000,
        silenceMs: 30_000,
        lockTimeoutMs: 10_000,
        connectTimeoutMs: 10_000,
        tls: "from-url",
        acceptUnsafeServer: false,
        notify: true,
      }),
    );
    service = await startService({ storage: () => createSqlStorage(faults.engine, postgresDialect), policy: POLICY });
  });
  after(async () => {
    faults.at(0);
    await service.close();
    await server.stop();
  });

  let names = 0;
  const submit = (body: object): Promise<Answer> =>
    service.call("POST", "/v1/actions", { body, headers: { "idempotency-key": `name-${++names}` } });
  const waiting = async (): Promise<{ id: string; token: string }> => {
    const { id } = (await submit({ ...ASKED, params: { n: ++names } })).body;
    const { body } = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
    return { id, token: body.approval_token };
  };
  const allowed = async (): Promise<string> => (await submit({ ...PAID, params: { n: ++names } })).body.id as string;

  /** Requests, each with a preparation that runs without faults, and the expected status. */
  const requests: Record<string, { status: number; ready?(): Promise<unknown>; ask(ready: never): Promise<Answer> }> = {
    "a submission under a limit": { status: 200, ask: () => submit({ ...PAID, params: { n: ++names } }) },
    "a submission that asks people": { status: 202, ask: () => submit({ ...ASKED, params: { n: ++names } }) },
    "a submission sent again": {
      status: 200,
      ready: async () => submit({ ...PAID, params: { again: names } }),
      ask: () =>
        service.call("POST", "/v1/actions", {
          body: { ...PAID, params: { again: names - 1 } },
          headers: { "idempotency-key": `name-${names}` },
        }),
    },
    "a vote": {
      status: 200,
      ready: waiting,
      ask: ({ id, token }: { id: string; token: string }) =>
        service.call("POST", `/v1/actions/${id}/approval`, { key: service.admin, body: { approve: true, token } }),
    },
    "a start": { status: 200, ready: allowed, ask: (id: string) => service.call("POST", `/v1/actions/${id}/start`) },
    "a result": {
      status: 200,
      ready: async () => {
        const id = await allowed();
        await service.call("POST", `/v1/actions/${id}/start`);
        return id;
      },
      ask: (id: string) => service.call("POST", `/v1/actions/${id}/result`, { body: { success: true } }),
    },
    "a cancellation": {
      status: 200,
      ready: waiting,
      ask: ({ id }: { id: string }) => service.call("POST", `/v1/actions/${id}/cancel`),
    },
    "a new key": {
      status: 201,
      ask: () =>
        service.call("POST", "/v1/api-keys", {
          key: service.admin,
          body: { name: `key-${++names}`, scopes: ["actions:submit"] },
        }),
    },
    "a look at an action": {
      status: 200,
      ready: allowed,
      ask: (id: string) => service.call("GET", `/v1/actions/${id}`),
    },
    "a list": { status: 200, ask: () => service.call("GET", "/v1/actions?limit=3", { key: service.admin }) },
    "a permit": { status: 200, ready: allowed, ask: (id: string) => service.call("POST", `/v1/actions/${id}/permit`) },
    "a proof": {
      status: 200,
      ready: async () => (await submit({ ...PAID, params: { n: ++names } })).body.decision_hash,
      ask: (hash: string) => service.call("GET", `/v1/provenance/${hash}/proof`, { key: service.admin }),
    },
    analytics: { status: 200, ask: () => service.call("GET", "/v1/analytics", { key: service.admin }) },
  };

  for (const [what, { status, ready, ask }] of Object.entries(requests))
    it(`in ${what}`, async () => {
      const made = (): Promise<unknown> => ready?.() ?? Promise.resolve();
      const without = await ask((await made()) as never);
      assert.equal(without.status, status, JSON.stringify(without.body));
      let which = 1;
      for (; ; which++) {
        const first = await made();
        await waitForSignature(service);
        const { size } = await service.storage.head();
        faults.at(which);
        const answer = await ask(first as never);
        const met = faults.met();
        faults.at(0);
        assert.equal(answer.status, status, `statement ${which}: ${JSON.stringify(answer.body)}`);
        assert.ok((await service.storage.head()).size <= size + 1, `statement ${which}: it was done twice`);
        if (!met) break;
      }
      assert.ok(which > 1, "no statement failed");
    });
});
