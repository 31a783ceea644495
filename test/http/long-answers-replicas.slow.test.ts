/**
 * Answers that outlast their request end in every process of a deployment when their credential ends or changes.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { needs } from "../support/features.ts";
import { SECRET } from "../support/deployment.ts";
import { newKey } from "../support/keys.ts";
import { openAnswer, startWaiting } from "../support/open-answer.ts";
import { invite, PAGE, startPeople, type Person } from "../support/people.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ALLOWED, ASKED, makeKey, type Answer, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

const LOG_KEY = newKey();

describe("an answer of one of two processes on one Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let here: Service;
  let there: Service;
  let admin: string;
  let n = 0;
  before(async () => {
    server = await startPostgres();
    const url = await server.database();
    const start = (more: object = {}): Promise<Service> =>
      startPeople({
        ...more,
        storage: () => postgresStorage({ url, poolSize: 3 }),
        pluginOptions: { actions: { max_waits_per_key: 1 } },
        change(config) {
          config.secret = SECRET;
          config.ledger.key = LOG_KEY;
          config.ledger.origin = "long-answers.test/log";
          config.server.max_wait_seconds = 3600;
        },
      });
    here = await start();
    // Both share one store, which the first audits.
    there = await start({ broken: true });
    admin = here.admin;
  });
  after(async () => {
    await there.close();
    await here.close();
    await server.stop();
  });

  const change = (method: string, path: string, body?: unknown): Promise<Answer> =>
    here.call(method, path, { key: admin, ...(body === undefined ? {} : { body }) });
  const submit = async (body: object): Promise<string> => (await here.call("POST", "/v1/actions", { body })).body.id;
  const person = (): Promise<Person> => invite(here, { name: `Person ${++n}`, roles: ["approver", "auditor"] });

  const changes: Record<string, () => Promise<{ headers: Record<string, string>; end(): Promise<Answer> }>> = {
    async "deactivates its user"() {
      const who = await person();
      const end = () => change("POST", `/v1/users/${who.id}/end`, { reason: "left" });
      return { headers: { ...PAGE, ...who.session }, end };
    },
    async "signs its user out"() {
      const who = await person();
      return { headers: { ...PAGE, ...who.session }, end: () => who.call("DELETE", "/v1/session") };
    },
    async "takes a role from its user"() {
      const who = await person();
      const end = () => change("PATCH", `/v1/users/${who.id}`, { roles: ["approver"] });
      return { headers: { ...PAGE, ...who.session }, end };
    },
    async "revokes its key"() {
      const { id, key } = await makeKey(here, { name: `key ${++n}`, scopes: ["events:read", "actions:read"] }, admin);
      const end = () => change("DELETE", `/v1/api-keys/${id}`);
      return { headers: { authorization: `Bearer ${key}` }, end };
    },
    async "takes a role from the maker of its key"() {
      const maker = await invite(here, { name: `Maker ${++n}`, roles: ["admin"] });
      const { body } = await maker.call("POST", "/v1/api-keys", {
        name: `key ${n}`,
        scopes: ["events:read", "actions:read"],
      });
      const end = () => change("PATCH", `/v1/users/${maker.id}`, { roles: ["key_manager"] });
      return { headers: { authorization: `Bearer ${body.key}` }, end };
    },
  };

  it("ends when another process ends its credential or takes rights from it", needs("events"), async () => {
    for (const [name, open] of Object.entries(changes)) {
      const { headers, end } = await open();
      const id = await submit({ ...ASKED, params: { ...ASKED.params, n: ++n } });
      const stream = (await openAnswer(there, "/v1/events", headers)).follow();
      const idle = (await openAnswer(there, "/v1/events?type=stop", headers)).follow();
      const waiting = await startWaiting(there, id, headers);
      const earlier = await submit(ALLOWED);
      await until(`an event arrives before the other ${name}`, () => stream.text().includes(earlier));
      const ended = await end();
      assert.ok(ended.status < 300, JSON.stringify(ended.body));
      const later = await Promise.all(Array.from({ length: 20 }, () => submit(ALLOWED)));
      await until(`the streams end after the other ${name}`, () => stream.hasEnded() && idle.hasEnded());
      assert.deepEqual(
        later.filter((each) => stream.text().includes(each)),
        [],
        name,
      );
      const { status, body } = await waiting();
      assert.ok([401, 409].includes(status), `${name}: ${JSON.stringify(body)}`);
    }
  });

  it("continues when another process changes the rights of others", needs("events"), async () => {
    const { key } = await makeKey(here, { name: `key ${++n}`, scopes: ["events:read", "actions:read"] }, admin);
    const opened = await openAnswer(there, "/v1/events", { authorization: `Bearer ${key}` });
    const stream = opened.follow();
    const who = await person();
    await change("POST", `/v1/users/${who.id}/end`, { reason: "left" });
    const id = await submit(ALLOWED);
    await until("the event arrives", () => stream.text().includes(id));
    assert.equal(stream.hasEnded(), false);
    opened.close();
  });
});
