/**
 * A database that aborts transactions with serialization failures (SQLSTATE 40001), as distributed engines do, in each
 * statement of a batch and in its commit. No request is rejected because of it, and nothing is recorded twice.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";

/** Every other call fails. `nextval` is not rolled back with the transaction. */
const CONFLICT = `create function conflict() returns trigger language plpgsql as $$ begin
  if nextval('conflicts') % 2 = 1 then raise exception using errcode = '40001', message = 'restart transaction'; end if;
  return null; end $$`;

const TRIGGERS: Record<string, string> = {
  "the actions": "after insert on actions for each statement",
  "the idempotency keys": "after insert on idempotency for each statement",
  "the entries": "after insert on entries for each statement",
  "the head": "after update on ledger_head for each statement",
};

describe("conflicts on Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let service: Service;
  let url: string;
  before(async () => {
    server = await startPostgres();
    url = await server.database();
    service = await startService({ storage: () => postgresStorage({ url, poolSize: 3 }) });
    await server.run(url, async (sql) => {
      await sql.unsafe("create sequence conflicts");
      await sql.unsafe(CONFLICT);
    });
  });
  after(async () => {
    await service.close();
    await server.stop();
  });

  async function submitWith(trigger: string, name: string): Promise<void> {
    const size = async (): Promise<number> => (await service.storage.head()).size;
    const first = await size();
    await server.run(url, (sql) => sql.unsafe(trigger));
    const submit = (i: number) =>
      service.call("POST", "/v1/actions", { body: ALLOWED, headers: { "idempotency-key": `${name}-${i}` } });
    const numbers = Array.from({ length: 12 }, (_, i) => i);
    const answers = await Promise.all(numbers.map(submit));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    const [row] = await server.run(url, (sql) => sql<{ last: string }[]>`select last_value as last from conflicts`);
    assert.ok(Number(row?.last) >= 2, "nothing was in the way");
    assert.equal(await size(), first + numbers.length);
    const again = await Promise.all(numbers.map(submit));
    assert.deepEqual(
      again.map(({ body }) => body.id as string),
      answers.map(({ body }) => body.id as string),
    );
    await server.run(url, async (sql) => {
      await sql.unsafe(`drop trigger in_the_way on ${/ on (\w+)/.exec(trigger)?.[1]}`);
      await sql.unsafe("alter sequence conflicts restart");
    });
  }

  for (const [what, when] of Object.entries(TRIGGERS))
    it(`in ${what}`, () =>
      submitWith(`create trigger in_the_way ${when} execute function conflict()`, what.replaceAll(" ", "-")));

  it("in the commit", () =>
    submitWith(
      "create constraint trigger in_the_way after update on ledger_head deferrable initially deferred for each row execute function conflict()",
      "commit",
    ));

  it("the ledger is complete and passes its audit", async () => {
    const { status, body } = await service.call("GET", "/readyz", { key: null });
    assert.equal(status, 200, JSON.stringify(body));
    await service.restart();
  });
});
