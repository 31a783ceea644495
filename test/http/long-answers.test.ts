/**
 * Answers that outlast their request end when the credential that opened them ends, or when its rights change.
 * @needs events, users
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { needs } from "../support/features.ts";
import { openAnswer, startWaiting, type OpenAnswer } from "../support/open-answer.ts";
import { invite, PAGE, startPeople, type Person } from "../support/people.ts";
import { ALLOWED, ASKED, makeKey, type Answer, type Service } from "../support/service.ts";
import { until, withTimeout } from "../support/wait.ts";

const MINUTE = 60_000;

/** A credential, and what ends it or changes its rights. */
interface OpenCredential {
  headers: Record<string, string>;
  end(): Promise<Answer | void>;
}

let service: Service;
let n = 0;
before(async () => {
  service = await startPeople({
    pluginOptions: { actions: { max_waits_per_key: 1 } },
    change(config) {
      config.groups = { contractors: { members: [], agents: ["only-this-bot"] } };
      config.server.max_wait_seconds = 3600;
    },
  });
});
after(() => service.close());

const admin = (method: string, path: string, body?: unknown): Promise<Answer> =>
  service.call(method, path, { key: service.admin, ...(body === undefined ? {} : { body }) });
const deactivate = ({ id }: { id: string }): Promise<Answer> =>
  admin("POST", `/v1/users/${id}/end`, { reason: "left" });
const submit = async (body: object): Promise<string> => (await service.call("POST", "/v1/actions", { body })).body.id;
const submitAsked = (): Promise<string> => submit({ ...ASKED, params: { ...ASKED.params, n: ++n } });

async function session(
  end: (who: Person) => Promise<Answer | void>,
  about: { roles?: string[]; groups?: string[] } = {},
): Promise<OpenCredential> {
  const who = await invite(service, { name: `Person ${++n}`, roles: ["approver", "auditor"], ...about });
  return { headers: { ...PAGE, ...who.session }, end: () => end(who) };
}

async function keyOf(end: (maker: Person, key: { id: string }) => Promise<Answer | void>): Promise<OpenCredential> {
  const maker = await invite(service, { name: `Maker ${++n}`, roles: ["admin"] });
  const made = await maker.call("POST", "/v1/api-keys", {
    name: `key ${n}`,
    scopes: ["events:read", "actions:read", "actions:submit", "policies:read"],
    expires_at: new Date(service.runtime.host.clock() + 60 * MINUTE).toISOString(),
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return { headers: { authorization: `Bearer ${made.body.key}` }, end: () => end(maker, made.body) };
}

const advance = async (ms: number): Promise<void> => {
  service.clock.now += ms;
};

const CASES: Record<string, () => Promise<OpenCredential>> = {
  "its user is deactivated": () => session(deactivate),
  "its user signs out": () => session((who) => who.call("DELETE", "/v1/session")),
  "all sessions of its user are ended": () => session(({ id }) => admin("DELETE", `/v1/users/${id}/sessions`)),
  "its user loses a role": () => session(({ id }) => admin("PATCH", `/v1/users/${id}`, { roles: ["approver"] })),
  "its user comes under a limit": () =>
    session(({ id }) => admin("PATCH", `/v1/users/${id}`, { groups: ["contractors"] })),
  "its session was not used for too long": () => session(() => advance(13 * 60 * MINUTE)),
  "a delegation to its user ends": async () => {
    const from = await invite(service, { name: `Delegator ${++n}`, roles: ["approver"] });
    const to = await invite(service, {
      name: `Delegate ${++n}`,
      roles: ["approver", "auditor"],
      groups: ["contractors"],
    });
    const end = new Date(service.runtime.host.clock() + MINUTE).toISOString();
    const made = await from.call("POST", `/v1/users/${from.id}/delegations`, { to: to.id, until: end });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    return { headers: { ...PAGE, ...to.session }, end: () => advance(2 * MINUTE) };
  },
  "its key is revoked": () => keyOf((_, { id }) => admin("DELETE", `/v1/api-keys/${id}`)),
  "its key expires": () => keyOf(() => advance(61 * MINUTE)),
  "the maker of its key loses a role": () =>
    keyOf(({ id }) => admin("PATCH", `/v1/users/${id}`, { roles: ["approver"] })),
  "the maker of its key is deactivated": () => keyOf(deactivate),
};

describe("an answer that outlasts its request ends, and delivers nothing more, when", () => {
  for (const [name, open] of Object.entries(CASES))
    it(name, async () => {
      const { headers, end } = await open();
      const id = await submitAsked();
      const streams = {
        read: await openAnswer(service, "/v1/events", headers),
        idle: await openAnswer(service, "/v1/events?type=stop", headers),
        unread: await openAnswer(service, "/v1/events", headers),
      };
      const [read, idle] = [streams.read.follow(), streams.idle.follow()];
      const waiting = await startWaiting(service, id, headers);
      assert.match((await streams.unread.next()) ?? "", /event: position/);
      const earlier = await submit(ALLOWED);
      await until("an event arrives", () => read.text().includes(earlier));

      const ended = await end();
      assert.ok(ended === undefined || ended.status < 300, JSON.stringify(ended?.body));
      const later = await submit(ALLOWED);
      await until("the streams end", () => read.hasEnded() && idle.hasEnded());
      assert.ok(!read.text().includes(later), "a later event was delivered");
      assert.ok(!(await restOf(streams.unread)).includes(earlier), "an earlier event was delivered later");
      const { status, body } = await waiting();
      assert.ok([401, 409].includes(status), JSON.stringify(body));
      assert.equal(body.id, undefined);
    });
});

/** Reads to the end. */
async function restOf(answer: OpenAnswer): Promise<string> {
  const rest = answer.follow();
  await until("the answer ends", () => rest.hasEnded());
  return rest.text();
}

describe("an answer that outlasts its request", () => {
  const reader = (scopes: string[]): ReturnType<typeof makeKey> => makeKey(service, { name: `reader ${++n}`, scopes });
  const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
  const revoke = (id: string): Promise<Answer> => admin("DELETE", `/v1/api-keys/${id}`);

  before(async () => {
    await Promise.all(Array.from({ length: 300 }, () => submit(ALLOWED)));
  });

  it("names the reason in the last line of an event stream", needs("events"), async () => {
    const { id, key } = await reader(["events:read", "actions:read"]);
    const stream = (await openAnswer(service, "/v1/events", bearer(key))).follow();
    await revoke(id);
    await until("the stream ends", () => stream.hasEnded());
    assert.match(stream.text(), /\n: the key "reader \d+" was revoked or has expired[^\n]*\n$/);
  });

  it(
    "continues when the rights of other keys change, and when its own rights are read again unchanged",
    needs("events"),
    async () => {
      const [one, other] = [await reader(["events:read", "actions:read"]), await reader(["events:read"])];
      const opened = await openAnswer(service, "/v1/events", bearer(one.key));
      const stream = opened.follow();
      const person = await invite(service, { name: `Person ${++n}`, roles: ["viewer"] });
      await revoke(other.id);
      await deactivate(person);
      const id = await submit(ALLOWED);
      await until("the event arrives", () => stream.text().includes(id));
      assert.equal(stream.hasEnded(), false);
      opened.close();
    },
  );

  it("is cut off if it is a page that its client has not read to the end", needs("events"), async () => {
    const { id, key } = await reader(["events:read", "actions:read"]);
    const page = await openAnswer(service, "/v1/events/page?limit=1000", bearer(key));
    assert.equal(page.status, 200);
    assert.notEqual(await page.next(), null);
    await revoke(id);
    await assert.rejects(async () => {
      while ((await page.next()) !== null);
    });
  });

  it("is cut off if it is the progress of a backtest, ahead of the result", needs("replay"), async () => {
    const { id, key } = await reader(["replay:run", "actions:read"]);
    const body = { policy_set: "current", limit: 1000 };
    const progress = await openAnswer(service, "/v1/replay/progress", bearer(key), body);
    assert.equal(progress.status, 200);
    await revoke(id);
    assert.ok(!(await restOf(progress)).includes("result"));
  });

  it("is a refusal if it is a submission that waits, and its key loses a right", async () => {
    const maker = await invite(service, { name: `Maker ${++n}`, roles: ["admin"] });
    const { body: made } = await maker.call("POST", "/v1/api-keys", {
      name: `submitter ${n}`,
      scopes: ["actions:submit", "actions:execute", "actions:read"],
    });
    const call = (path: string, method: string, body?: object): Promise<Answer> =>
      service.call(method, path, { key: made.key, headers: { prefer: "wait=3600, permit" }, ...(body && { body }) });
    const waiting = call("/v1/actions", "POST", { ...ASKED, params: { ...ASKED.params, n: ++n } });
    let id = "";
    await until("the request waits", async () => {
      const { actions } = (await admin("GET", "/v1/approvals")).body;
      id = actions.find((each: { submitted_by: string }) => each.submitted_by === made.id)?.id ?? "";
      return id !== "";
    });
    await admin("PATCH", `/v1/users/${maker.id}`, { roles: ["key_manager"] });
    const { status, body } = await withTimeout("the submission", waiting);
    assert.deepEqual([status, body.code, body.permit], [409, "RIGHTS_CHANGED", undefined], JSON.stringify(body));
  });

  it("is a refusal if its request was uploaded slowly, and its key is revoked meanwhile", async () => {
    const { id, key } = await reader(["actions:submit", "actions:read"]);
    const text = new TextEncoder().encode(JSON.stringify(ALLOWED));
    let isBeingRead: () => void = () => {};
    const reading = new Promise<void>((resolve) => (isBeingRead = resolve));
    let revoked: () => void = () => {};
    const revocation = new Promise<void>((resolve) => (revoked = resolve));
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          isBeingRead();
          await revocation;
          controller.enqueue(text);
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { ...bearer(key), "content-type": "application/json" };
    const init = { method: "POST", headers, body, duplex: "half" } as RequestInit;
    const answer = service.runtime.fetch(new Request("http://assent.test/v1/gate/decide", init));
    await reading;
    await revoke(id);
    revoked();
    const { status } = await answer;
    assert.equal(status, 401);
  });

  it("is the answer to the request that ends its own credential", async () => {
    const { id, key } = await reader(["keys:manage"]);
    assert.equal((await service.call("DELETE", `/v1/api-keys/${id}`, { key })).status, 200);
    const person = await invite(service, { name: `Person ${++n}`, roles: ["admin"] });
    assert.equal((await person.call("DELETE", `/v1/users/${person.id}/sessions`)).status, 204);
  });
});
