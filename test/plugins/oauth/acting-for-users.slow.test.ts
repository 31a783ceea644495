/**
 * What an agent may do that acts for a user with an access token.
 * @needs oauth, users, workload-identity
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import oauth from "../../../plugins/oauth/index.ts";
import workloadIdentity from "../../../plugins/workload-identity/index.ts";
import { type DecisionEntry, decodeEntry, type User, userState } from "../../../src/core.ts";
import { type Plugin, toRfc3339 } from "../../../src/plugin.ts";
import { needs } from "../../support/features.ts";
import { openAnswer, type OpenAnswer } from "../../support/open-answer.ts";
import { invite, ORIGIN, PAGE, type Person, usersPlugin } from "../../support/people.ts";
import { makeKey, startService, type Answer, type Service } from "../../support/service.ts";
import { startTokenIssuer, type TokenIssuer } from "../../support/token-issuer.ts";

const COMPANY = "https://login.example.com";
const RESOURCE = "https://mcp.example.com/mcp";
const SECRET = "a secret of both clients";
const POLICY = `
policy: users
rules:
  - name: calendar
    tool: calendar
    effect: allow
  - name: pay
    tool: pay
    effect: require_approval
`;

let service: Service;
let company: TokenIssuer;
let proxyKey = "";

before(async () => {
  company = await startTokenIssuer();
  const issuer = {
    id: "company",
    issuer: COMPANY,
    algorithms: ["RS256"],
    keys: company.jwks,
    clients: ["desktop", "mailer"].map((agent) => ({
      id: `mcp-${agent}`,
      secret: SECRET,
      agent,
    })),
  };
  service = await startService({
    policy: POLICY,
    change(config) {
      config.agents = "bound";
      config.server.public_url = ORIGIN;
      config.rate_limits.bad_keys_per_minute = 0;
      config.rate_limits.per_key = { requests: 1000, seconds: 60 };
    },
    plugins: [
      usersPlugin(),
      { plugin: workloadIdentity as Plugin, options: {}, origin: "workload-identity", core: true },
      {
        plugin: oauth as Plugin,
        options: { resources: [{ url: RESOURCE }], issuers: [issuer] },
        origin: "oauth",
        core: true,
      },
    ],
  });
  proxyKey = (await makeKey(service, { name: "proxy", scopes: ["oauth:present"] })).key;
});
after(async () => {
  await service.close();
  await company.close();
});

/** Exchanges an ID-JAG for an access token. Returns the credential that the proxy presents. */
async function exchange(sub: string, client_id = "mcp-desktop"): Promise<string> {
  const now = Math.floor((Date.now() + service.clock.now) / 1000);
  const claims = {
    iss: COMPANY,
    sub,
    aud: ORIGIN,
    client_id,
    resource: RESOURCE,
    jti: randomUUID(),
    iat: now,
    exp: now + 300,
  };
  const assertion = await company.sign(claims, { typ: "oauth-id-jag+jwt" });
  const grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer";
  const { body } = await service.call("POST", "/oauth/token", {
    key: null,
    raw: new URLSearchParams({ grant_type, assertion, client_id, client_secret: SECRET }).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  return `${proxyKey}.${body.access_token}.`;
}

const submit = (key: string, agent_id: string, tool: string, operation = "run"): Promise<Answer> =>
  service.call("POST", "/v1/actions", { key, body: { agent_id, tool, operation, params: {} } });

async function decisionOf({ body }: Answer): Promise<DecisionEntry> {
  const rows = await service.runtime.host.storage.entriesOfAction(body.id as string);
  return decodeEntry<DecisionEntry>((rows[0] as (typeof rows)[number]).bytes);
}

/** A user who signed in at the company's provider. */
async function signedInUser(sub: string): Promise<Person> {
  const person = await invite(service, { name: `User ${sub}`, roles: ["approver", "viewer"] });
  await service.runtime.host.ledger.transact(async (tx) => {
    const user = { ...(tx.state(userState).get(person.id) as User), identities: [{ issuer: COMPANY, subject: sub }] };
    tx.record({
      type: "user",
      v: 1,
      at: toRfc3339(tx.now),
      change: "updated",
      user,
      reason: null,
      confirmed_by: null,
      by: null,
    });
  });
  return person;
}

test("an access token submits for its user, who cannot approve, not even after a change of name", async () => {
  const ada = await signedInUser("ada");
  const bob = await signedInUser("bob");
  const token = await exchange("ada");
  const asked = await submit(token, "desktop", "pay");
  assert.equal(asked.body.status, "pending_approval", JSON.stringify(asked.body));
  const { submitted_by, facts } = await decisionOf(asked);
  assert.equal(submitted_by.principal, `user:${ada.id}`);
  assert.equal(facts.principal.claims?.["client_id"], "mcp-desktop");
  const renamed = await service.call("PATCH", `/v1/users/${ada.id}`, { key: service.admin, body: { name: "Eve" } });
  assert.equal(renamed.status, 200, JSON.stringify(renamed.body));
  const own = await ada.call("GET", `/v1/actions/${asked.body.id}`);
  assert.equal(own.body.approval_token, undefined);
  const seen = await bob.call("GET", `/v1/actions/${asked.body.id}`);
  const vote = { approve: true, token: seen.body.approval_token };
  const done = await bob.call("POST", `/v1/actions/${asked.body.id}/approval`, vote);
  assert.equal(done.body.status, "approved", JSON.stringify(done.body));
  const started = await service.call("POST", `/v1/actions/${asked.body.id}/start`, { key: token, body: {} });
  assert.equal(started.status, 200, JSON.stringify(started.body));
});

test("an agent that acts for one user cannot see another user's data", async () => {
  await signedInUser("carol");
  await signedInUser("dan");
  const sign = (sub: string) => exchange(sub);
  const asked = await submit(await sign("carol"), "desktop", "pay", "secret");
  const read = async (key: string) => (await service.call("GET", `/v1/actions/${asked.body.id}`, { key })).status;
  assert.equal(await read(await sign("carol")), 200);
  assert.equal(await read(await sign("dan")), 404);
});

test("an agent cannot read, start, finish, cancel or repeat an action of another agent of the same user", async () => {
  const person = await signedInUser("hal");
  const sign = (client: string) => exchange("hal", client);
  const [desktop, mailer] = [await sign("mcp-desktop"), await sign("mcp-mailer")];
  const request = { tool: "calendar", operation: "run", params: {} };
  const post = (key: string, path: string, body: object, headers = {}): Promise<Answer> =>
    service.call("POST", path, { key, body, headers });
  const repeated = { "idempotency-key": "one" };
  const own = await post(desktop, "/v1/actions", { agent_id: "desktop", ...request }, repeated);
  assert.equal(own.body.status, "allowed", JSON.stringify(own.body));
  const path = `/v1/actions/${own.body.id}`;
  const list = async (key: string): Promise<string[]> =>
    (await service.call("GET", "/v1/actions", { key })).body.actions.map(({ id }: { id: string }) => id);
  assert.deepEqual([await list(desktop), await list(mailer)], [[own.body.id], []]);
  const assertHidden = async (): Promise<void> => {
    for (const done of [
      await service.call("GET", path, { key: mailer }),
      await post(mailer, `${path}/start`, {}),
      await post(mailer, `${path}/permit`, {}),
      await post(mailer, `${path}/result`, { success: true }),
      await post(mailer, `${path}/cancel`, {}),
    ])
      assert.deepEqual([done.status, done.body.code], [404, "ACTION_NOT_FOUND"], JSON.stringify(done.body));
  };
  await assertHidden();
  assert.equal((await post(desktop, `${path}/start`, {})).status, 200);
  await assertHidden();
  const other = await post(mailer, "/v1/actions", { agent_id: "mailer", ...request }, repeated);
  assert.equal(other.status, 200, "the idempotency key of the other agent is not this agent's");
  assert.notEqual(other.body.id, own.body.id);
  const again = await post(desktop, "/v1/actions", { agent_id: "desktop", ...request }, repeated);
  assert.equal(again.body.id, own.body.id);
  assert.equal((await post(desktop, `${path}/result`, { success: true })).status, 200);
  const seen = (await person.call("GET", "/v1/actions")).body.actions.map(({ id }: { id: string }) => id);
  assert.ok(
    [own, other].every(({ body }) => seen.includes(body.id)),
    "the person sees the actions of both",
  );
});

test(
  "an authority that an agent gives with an access token lasts as long as its user, not its token",
  needs("sub-agents"),
  async () => {
    const kim = await signedInUser("kim");
    const token = await exchange("kim");
    const helper = (await makeKey(service, { name: "helper", preset: "agent", agent_id: "helper" })).key;
    const body = { agent_id: "helper", for: "2h", tools: ["calendar"] };
    const given = await service.call("POST", "/v1/authorities", { key: token, body });
    assert.equal(given.status, 201, JSON.stringify(given.body));
    const run = (): Promise<Answer> =>
      service.call("POST", "/v1/actions", {
        key: helper,
        body: { agent_id: "helper", tool: "calendar", operation: "run", params: {}, authority: given.body.id },
      });
    assert.equal((await run()).body.status, "allowed");
    service.clock.now += 10 * 60_000;
    assert.equal((await run()).body.status, "allowed");
    await service.call("POST", `/v1/users/${kim.id}/end`, { key: service.admin, body: { reason: "left" } });
    assert.equal((await run()).body.status, "denied");
  },
);

test("deactivating the user ends the agent's access and its open actions", async () => {
  const fred = await signedInUser("fred");
  const token = await exchange("fred");
  const asked = await submit(token, "desktop", "pay");
  assert.equal(asked.body.status, "pending_approval");
  await service.call("POST", `/v1/users/${fred.id}/end`, { key: service.admin, body: { reason: "left" } });
  assert.equal((await submit(token, "desktop", "pay")).status, 401);
  const after = await service.call("GET", `/v1/actions/${asked.body.id}`, { key: service.admin });
  assert.equal(after.body.status, "cancelled");
});

test(
  "an agent that acts for a user uses up neither the user's rate limit nor their event streams",
  needs("events"),
  async () => {
    const grace = await signedInUser("grace");
    const token = await exchange("grace");
    const left = ({ headers }: Answer): number => Number(/r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1]);
    const before = left(await grace.call("GET", "/v1/me"));
    const opened: OpenAnswer[] = [];
    const open = async (headers: Record<string, string>): Promise<number> => {
      const stream = await openAnswer(service, "/v1/events", headers);
      opened.push(stream);
      return stream.status;
    };
    for (;;) if ((await open({ authorization: `Bearer ${token}` })) === 429) break;
    assert.equal(await open({ ...PAGE, ...grace.session }), 200);
    assert.equal(left(await grace.call("GET", "/v1/me")), before - 2);
    for (const stream of opened) stream.close();
  },
);
