/**
 * Agents that present a token of their platform instead of an API key, in the formats that the platforms issue.
 * @needs authzen, users
 */
import { userState } from "../../../src/domain/users.ts";
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { digestEmail } from "../../../src/domain/person-reference.ts";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parse } from "yaml";
import authzen from "../../../plugins/authzen/index.ts";
import users from "../../../plugins/users/index.ts";
import workloadIdentity from "../../../plugins/workload-identity/index.ts";
import { type DecisionEntry, decodeEntry, type User } from "../../../src/core.ts";
import { toRfc3339, type Plugin } from "../../../src/plugin.ts";
import { needs } from "../../support/features.ts";
import { openAnswer, type OpenAnswer } from "../../support/open-answer.ts";
import { invite, ORIGIN, PAGE, type Person } from "../../support/people.ts";
import { ROOT } from "../../support/process.ts";
import { addPerson, makeKey, startService, type Answer, type Service, person } from "../../support/service.ts";
import { startTokenIssuer, type TokenIssuer } from "../../support/token-issuer.ts";
import { until } from "../../support/wait.ts";

const AUDIENCE = "https://assent.example.com";
const GITHUB = "https://token.actions.githubusercontent.com";
const CLUSTER = "https://kubernetes.default.svc.cluster.local";
const COMPANY = "https://login.example.com";
const SECRET = "q7Zt2XvB9rLw4KdY8sJm3HfP6cNg1TbA";
const POLICY = `
policy: workloads
rules:
  - name: deploy-web
    tool: deploy
    when: principal.claims.issuer == "github" && principal.claims.repository == "acme/web"
    effect: allow
  - name: other-deployments
    tool: deploy
    when: has(principal.claims.repository)
    effect: deny
  - name: pods
    tool: pods
    when: principal.claims.namespace == "prod" && principal.claims.pod.startsWith("planner-")
    effect: allow
  - name: trust-domain
    tool: mesh
    when: principal.claims.subject == "spiffe://example.org/ns/prod/sa/planner"
    effect: allow
  - name: calendar
    tool: calendar
    effect: allow
  - name: pay
    tool: pay
    effect: require_approval
  - name: wait
    tool: wait
    effect: require_approval
limits:
  - name: per-repository
    tool: deploy
    operation: limited
    per: principal.claims.repository
    count: 1
    window: 1h
`;

let service: Service;
let github: TokenIssuer;
let cluster: TokenIssuer;
let mesh: TokenIssuer;
let company: TokenIssuer;

before(async () => {
  [github, cluster, mesh, company] = await Promise.all([
    startTokenIssuer(),
    startTokenIssuer(),
    startTokenIssuer("ES256"),
    startTokenIssuer(),
  ]);
  service = await startService({
    policy: POLICY,
    change(config) {
      config.agents = "bound";
      config.server.public_url = ORIGIN;
      config.rate_limits.bad_keys_per_minute = 0;
      config.rate_limits.per_key = { requests: 1000, seconds: 60 };
    },
    plugins: [
      { plugin: users as Plugin, options: {}, origin: "users", core: true },
      { plugin: authzen as Plugin, options: { enabled: true }, origin: "authzen" },
      { plugin: workloadIdentity as Plugin, options: { issuers: issuers() }, origin: "workload-identity", core: true },
    ],
  });
  await addPerson(service, "Platform team");
});
after(async () => {
  await service.close();
  for (const issuer of [github, cluster, mesh, company]) await issuer.close();
});

function issuers(): object[] {
  return [
    {
      id: "github",
      platform: "github-actions",
      issuer: GITHUB,
      audience: AUDIENCE,
      algorithms: ["RS256"],
      keys: github.jwks,
      claims: { repository: "repository", ref: "ref", run_id: "run_id", attempt: "run_attempt", audience_list: "list" },
      workloads: [
        {
          id: "web",
          agent: "deployer",
          subject: "repo:acme/web:ref:refs/heads/main",
          where: { repository: "acme/web" },
          owner: person("Platform team"),
        },
        { id: "rest", agent: "builder", subject: "repo:acme/*:ref:refs/heads/main" },
        { id: "late", agent: "late", subject: "repo:late/late:ref:refs/heads/main" },
        { id: "ghost", agent: "ghost", subject: "repo:ghost/ghost:ref:refs/heads/main", owner: person("Gus") },
        { id: "doomed", agent: "doomed", subject: "repo:doomed/doomed:ref:refs/heads/main" },
      ],
    },
    {
      id: "cluster",
      platform: "kubernetes",
      issuer: CLUSTER,
      audience: AUDIENCE,
      algorithms: ["RS256"],
      keys: cluster.jwks,
      claims: { namespace: ["kubernetes.io", "namespace"], pod: ["kubernetes.io", "pod", "name"] },
      workloads: [{ id: "planner", agent: "planner", subject: "system:serviceaccount:prod:planner" }],
    },
    {
      id: "mesh",
      platform: "spiffe",
      issuer: "spiffe://example.org",
      audience: AUDIENCE,
      algorithms: ["ES256"],
      keys: mesh.jwks,
      workloads: [{ id: "planner", agent: "mesh-planner", subject: "spiffe://example.org/ns/*/sa/planner" }],
    },
    {
      id: "company",
      platform: "id-jag",
      issuer: COMPANY,
      audience: ORIGIN,
      algorithms: ["RS256"],
      keys: company.jwks,
      workloads: [
        { id: "desktop", agent: "desktop", where: { client_id: "mcp-desktop" } },
        { id: "mailer", agent: "mailer", where: { client_id: "mcp-mailer" } },
      ],
      clients: { "mcp-desktop": SECRET, "mcp-mailer": SECRET },
    },
  ];
}

const seconds = (): number => Math.floor((Date.now() + service.clock.now) / 1000);
const times = (validFor: number): object => ({ iat: seconds(), nbf: seconds(), exp: seconds() + validFor });

/** What GitHub puts into the token of a workflow. */
function githubClaims(repository = "acme/web", over: object = {}): object {
  return {
    jti: "f9a0e3c1-example",
    sub: `repo:${repository}:ref:refs/heads/main`,
    aud: AUDIENCE,
    ref: "refs/heads/main",
    sha: "4a2f5c0e",
    repository,
    repository_owner: "acme",
    repository_id: "74",
    run_id: "19104",
    run_attempt: "1",
    actor: "ada",
    workflow: "deploy",
    event_name: "push",
    job_workflow_ref: `${repository}/.github/workflows/deploy.yml@refs/heads/main`,
    runner_environment: "github-hosted",
    iss: GITHUB,
    ...times(300),
    ...over,
  };
}

/** A bound service account token: no `typ`, and the audience in a list. */
function clusterClaims(over: object = {}): object {
  return {
    aud: [AUDIENCE],
    iss: CLUSTER,
    jti: "0f6a2f8e-example",
    sub: "system:serviceaccount:prod:planner",
    "kubernetes.io": {
      namespace: "prod",
      node: { name: "node-1", uid: "1" },
      pod: { name: "planner-7c5d", uid: "2" },
      serviceaccount: { name: "planner", uid: "3" },
    },
    ...times(3607),
    ...over,
  };
}

const idJagClaims = (sub: string, over: object = {}): object => ({
  iss: COMPANY,
  sub,
  aud: ORIGIN,
  client_id: "mcp-desktop",
  jti: randomUUID(),
  ...times(300),
  ...over,
});

/** Returns the access token that a client gets for an ID-JAG of this user. */
async function actFor(sub: string, client_id = "mcp-desktop"): Promise<string> {
  const assertion = await company.sign(idJagClaims(sub, { client_id }), { typ: "oauth-id-jag+jwt" });
  const answer = await exchange(service, { assertion, client_id });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.access_token;
}

const exchange = (from: Service, form: Record<string, string>): Promise<Answer> =>
  from.call("POST", "/oauth/token", {
    key: null,
    raw: new URLSearchParams({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      client_secret: SECRET,
      ...form,
    }).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });

const signGithub = (repository?: string, over?: object): Promise<string> =>
  github.sign(githubClaims(repository, over), { typ: "JWT" });

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

const keysOf = async (agent: string): Promise<any[]> => {
  const { body } = await service.call("GET", "/v1/api-keys", { key: service.admin });
  return body.api_keys.filter((key: { agent_id: string }) => key.agent_id === agent);
};

test("a GitHub Actions token submits as its agent, and conditions read its claims", async () => {
  const token = await signGithub();
  const allowed = await submit(token, "deployer", "deploy");
  assert.equal(allowed.body.status, "allowed", JSON.stringify(allowed.body));
  assert.equal((await submit(await signGithub("acme/api"), "builder", "deploy")).body.status, "denied");
  const other = await submit(token, "builder", "deploy");
  assert.equal(other.body.code, "AGENT_MISMATCH");
});

test(
  "the decision's entry has the named claims, and a replay with them gives the same decision",
  needs("replay"),
  async () => {
    const done = await submit(await signGithub(), "deployer", "deploy");
    const { facts, submitted_by } = await decisionOf(done);
    assert.deepEqual(facts.principal.claims, {
      issuer: "github",
      subject: "repo:acme/web:ref:refs/heads/main",
      repository: "acme/web",
      ref: "refs/heads/main",
      run_id: "19104",
      attempt: "1",
    });
    const [key] = await keysOf("deployer");
    assert.deepEqual(submitted_by, {
      agent_id: "deployer",
      key_id: key.id,
      owner: person("Platform team"),
      principal: person("Platform team"),
    });
    const replay = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: done.body.id } });
    assert.equal(replay.status, 200, JSON.stringify(replay.body));
    assert.equal(replay.body.equal, true, JSON.stringify(replay.body));
  },
);

test("a Kubernetes service account token, without `typ` and with nested claims, submits", async () => {
  const done = await submit(await cluster.sign(clusterClaims()), "planner", "pods");
  assert.equal(done.body.status, "allowed", JSON.stringify(done.body));
});

test("a JWT-SVID without `iss` submits, and so does one whose key is in a SPIFFE bundle", async () => {
  const claims = { sub: "spiffe://example.org/ns/prod/sa/planner", aud: [AUDIENCE], ...times(300) };
  assert.equal((await submit(await mesh.sign(claims), "mesh-planner", "mesh")).body.status, "allowed");
  await mesh.addKey("bundled", { use: "jwt-svid" });
  service.clock.now += 60_000;
  const token = await mesh.sign({ ...claims, ...times(300) }, { kid: "bundled", typ: "JOSE" });
  assert.equal((await submit(token, "mesh-planner", "mesh")).body.status, "allowed");
});

test("an ID-JAG submits for its user, who cannot approve, not even after a change of name", async () => {
  const ada = await signedInUser("ada");
  const bob = await signedInUser("bob");
  const token = await actFor("ada");
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
  const asked = await submit(await actFor("carol"), "desktop", "pay", "secret");
  const read = async (key: string) => (await service.call("GET", `/v1/actions/${asked.body.id}`, { key })).status;
  assert.equal(await read(await actFor("carol")), 200);
  assert.equal(await read(await actFor("dan")), 404);
});

test("an agent cannot read, start, finish, cancel or repeat an action of another agent of the same user", async () => {
  const person = await signedInUser("hal");
  const [desktop, mailer] = [await actFor("hal"), await actFor("hal", "mcp-mailer")];
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
  "an authority that an agent gives with an ID-JAG lasts as long as its user, not its token",
  needs("sub-agents"),
  async () => {
    const kim = await signedInUser("kim");
    const token = await actFor("kim");
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

test(
  "an agent can neither see nor end an authority that the same agent of another user gave",
  needs("sub-agents"),
  async () => {
    await signedInUser("lea");
    await signedInUser("max");
    const leas = await actFor("lea");
    const give = async (agent_id: string): Promise<string> =>
      (
        await service.call("POST", "/v1/authorities", {
          key: leas,
          body: { agent_id, for: "2h", tools: ["calendar"], reason: "private" },
        })
      ).body.id;
    const [toHelper, toMailer] = [await give("lea-helper"), await give("mailer")];
    const helper = (await makeKey(service, { name: "lea-helper", preset: "agent", agent_id: "lea-helper" })).key;
    const body = { agent_id: "desktop", for: "1h", parent: toHelper, tools: ["calendar"] };
    const { body: toDesktop } = await service.call("POST", "/v1/authorities", { key: helper, body });
    const listed = async (key: string): Promise<string[]> =>
      (await service.call("GET", "/v1/authorities", { key })).body.authorities.map(({ id }: { id: string }) => id);
    const end = async (id: string, key: string): Promise<number> =>
      (await service.call("DELETE", `/v1/authorities/${id}`, { key })).status;
    for (const [client, seen] of [
      // An agent with an API key gave it to every agent of this name.
      ["mcp-desktop", [toDesktop.id]],
      ["mcp-mailer", []],
    ] as const) {
      const key = await actFor("max", client);
      assert.deepEqual(await listed(key), seen);
      for (const id of [toHelper, toMailer]) {
        assert.equal((await service.call("GET", `/v1/authorities/${id}`, { key })).status, 404);
        assert.equal(await end(id, key), 404);
      }
      assert.equal(await end(toDesktop.id, key), client === "mcp-desktop" ? 403 : 404);
    }
    assert.deepEqual(await listed(await actFor("lea", "mcp-mailer")), [toMailer], "the other agent of the same user");
    assert.equal(await end(toMailer, await actFor("lea", "mcp-mailer")), 403);
    for (const id of [toDesktop.id, toMailer, toHelper]) assert.equal(await end(id, leas), 200);
  },
);

test("an ID-JAG of someone who never signed in, or who was deactivated, is rejected", async () => {
  const assertion = await company.sign(idJagClaims("zoe"), { typ: "oauth-id-jag+jwt" });
  const unknown = await exchange(service, { assertion, client_id: "mcp-desktop" });
  assert.deepEqual([unknown.status, unknown.body.error], [400, "invalid_grant"]);
  assert.match(unknown.body.error_description, /never signed in/);
  const fred = await signedInUser("fred");
  const token = await actFor("fred");
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
    const token = await actFor("grace");
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

test("an event stream ends when the token that opened it expires", needs("events"), async () => {
  const token = await signGithub("acme/web");
  const stream = (await openAnswer(service, "/v1/events", { authorization: `Bearer ${token}` })).follow();
  await until("the stream begins", () => stream.text() !== "");
  service.clock.now += 3_600_000;
  const later = await submit(service.agent, "support-bot", "wait");
  await until("the stream ends", () => stream.hasEnded());
  assert.ok(!stream.text().includes(later.body.id));
});

test("a workload token can neither approve nor manage, whatever it claims", needs("stop"), async () => {
  const token = await signGithub("acme/web", {
    scope: "admin",
    scopes: ["admin"],
    roles: ["admin"],
    repository: "acme/web",
  });
  const me = await service.call("GET", "/v1/me", { key: token });
  assert.deepEqual(me.body.scopes, ["actions:submit", "actions:read_own", "actions:execute", "events:read"]);
  const pending = await submit(await cluster.sign(clusterClaims()), "planner", "pay");
  const requests: [string, string, object?][] = [
    ["POST", `/v1/actions/${pending.body.id}/approval`, { approve: true, token: "x" }],
    ["POST", "/v1/api-keys", { name: "more", preset: "admin" }],
    ["GET", "/v1/users"],
    ["POST", "/v1/stop", { reason: "x" }],
    ["POST", "/v1/grants", {}],
  ];
  for (const [method, path, body] of requests) {
    const answer = await service.call(method, path, { key: token, ...(body === undefined ? {} : { body }) });
    assert.equal(answer.body.code, "INSUFFICIENT_SCOPE", `${method} ${path}`);
  }
});

test("a suspended agent and a stop deny a token as they deny a key", needs("agents", "stop"), async () => {
  const token = await cluster.sign(clusterClaims());
  const admin = { key: service.admin };
  await service.call("POST", "/v1/agents", { ...admin, body: { id: "planner" } });
  await service.call("POST", "/v1/agents/planner/suspend", { ...admin, body: {} });
  assert.equal((await submit(token, "planner", "pods")).body.reason_code, "AGENT_SUSPENDED");
  const resumed = await service.call("POST", "/v1/agents/planner/resume", { ...admin });
  assert.equal(resumed.status, 200, JSON.stringify(resumed.body));
  const stop = await service.call("POST", "/v1/stop", { ...admin, body: { reason: "test", agent: "planner" } });
  assert.equal((await submit(token, "planner", "pods")).body.reason_code, "STOPPED");
  await service.call("POST", `/v1/stop/${stop.body.stop?.id ?? stop.body.id}/lift`, {
    ...admin,
    body: { reason: "test" },
  });
  assert.equal((await submit(token, "planner", "pods")).body.status, "allowed");
});

test("revoking the workload's key refuses its tokens at once, cancels its actions, and lasts beyond a restart", async () => {
  const token = await signGithub("doomed/doomed");
  const asked = await submit(token, "doomed", "wait");
  assert.equal(asked.body.status, "pending_approval", JSON.stringify(asked.body));
  const [key] = await keysOf("doomed");
  assert.equal(key.name, "workload github/doomed");
  assert.equal((await service.call("DELETE", `/v1/api-keys/${key.id}`, { key: service.admin })).status, 200);
  assert.equal((await submit(token, "doomed", "wait")).status, 401);
  const after = await service.call("GET", `/v1/actions/${asked.body.id}`, { key: service.admin });
  assert.equal(after.body.status, "cancelled");
  await service.restart();
  const refused = await submit(token, "doomed", "wait");
  assert.equal(refused.status, 401);
  assert.match(refused.body.detail, /was revoked/);
  assert.equal((await keysOf("doomed")).length, 1);
});

test("a token is refused while the configured owner of its workload is not a user", async () => {
  await invite(service, { name: "Uri", roles: ["viewer"] });
  const token = await signGithub("ghost/ghost");
  const refused = await submit(token, "ghost", "wait");
  assert.equal(refused.status, 401);
  assert.match(refused.body.detail, /owner of the workload "ghost" is not valid: no user is "user:/);
  assert.deepEqual(await keysOf("ghost"), []);
  await addPerson(service, "Gus");
  assert.equal((await submit(token, "ghost", "wait")).status, 202);
  const [key] = await keysOf("ghost");
  assert.equal(key.owner, person("Gus"));
  assert.equal((await service.call("DELETE", `/v1/api-keys/${key.id}`, { key: service.admin })).status, 200);
  await service.restart();
  assert.match((await submit(token, "ghost", "wait")).body.detail, /was revoked/);
});

test("a different key with the workload's name is not treated as the workload's key", async () => {
  await makeKey(service, { name: "workload github/late", agent_id: "late", preset: "agent" });
  assert.equal((await submit(await signGithub("late/late"), "late", "wait")).status, 202);
  const names = (await keysOf("late")).map(({ name, created_by }) => [name, created_by === null]);
  assert.deepEqual(
    names.sort(),
    [
      ["workload github/late", false],
      ["workload github/late", true],
    ].sort(),
  );
});

test("many first tokens at once create one key", async () => {
  const claims = { sub: "spiffe://example.org/ns/dev/sa/planner", aud: AUDIENCE, ...times(300) };
  const token = await mesh.sign(claims);
  await service.restart();
  await Promise.all(Array.from({ length: 8 }, () => submit(token, "mesh-planner", "wait")));
  assert.equal((await keysOf("mesh-planner")).length, 1);
});

test("limits count by a claim", async () => {
  const token = await signGithub();
  assert.equal((await submit(token, "deployer", "deploy", "limited")).body.status, "allowed");
  assert.equal((await submit(token, "deployer", "deploy", "limited")).body.reason_code, "LIMIT_EXCEEDED");
});

test("a condition on claims denies an API key of the same agent", async () => {
  const { key } = await makeKey(service, { name: "deployer by hand", agent_id: "deployer", preset: "agent" });
  const { body } = await submit(key, "deployer", "deploy");
  assert.equal(body.status, "denied");
  assert.equal(body.reason_code, "CONDITION_ERROR");
});

test("what a token's action waited for can be started with a new token, after the first has expired", async () => {
  const asked = await submit(await signGithub(), "deployer", "wait");
  const { key } = await makeKey(service, { name: "uris key", owner: "Uri", preset: "approver" });
  const seen = await service.call("GET", `/v1/actions/${asked.body.id}`, { key });
  const vote = { approve: true, token: seen.body.approval_token };
  await service.call("POST", `/v1/actions/${asked.body.id}/approval`, { key, body: vote });
  const old = await signGithub("acme/web", times(60));
  service.clock.now += 10 * 60_000;
  const start = (key: string) => service.call("POST", `/v1/actions/${asked.body.id}/start`, { key, body: {} });
  assert.equal((await start(old)).status, 401);
  assert.equal((await start(await signGithub())).status, 200);
});

test("an approval for a token with other claims lets no token of the same workload run the action", async () => {
  const [lib, other] = [await signGithub("acme/lib"), await signGithub("acme/other")];
  const post = (key: string, path: string, body: object = {}): Promise<Answer> =>
    service.call("POST", path, { key, body });
  const joined = (key: string): Promise<Answer> =>
    post(key, "/v1/actions?join=open", { agent_id: "builder", tool: "wait", operation: "claims", params: {} });
  const asked = await joined(lib);
  const { key } = await makeKey(service, { name: "ulas key", owner: "Ula", preset: "approver" });
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${asked.body.id}`, { key })).body;
  await post(key, `/v1/actions/${asked.body.id}/approval`, { approve: true, token });
  const second = await joined(other);
  assert.deepEqual([second.status, second.body.status], [202, "pending_approval"]);
  for (const path of ["start", "permit"]) {
    const refused = await post(other, `/v1/actions/${asked.body.id}/${path}`);
    assert.deepEqual([refused.status, refused.body.code], [403, "NOT_THE_SUBMITTER"], path);
  }
  const again = await joined(await signGithub("acme/lib"));
  assert.deepEqual([again.body.id, again.body.status], [asked.body.id, "approved"]);
  assert.equal((await post(lib, `/v1/actions/${asked.body.id}/start`)).status, 200);
});

test("a token passes through a facade", async () => {
  const answer = await service.call("POST", "/access/v1/evaluation", {
    key: await cluster.sign(clusterClaims()),
    body: { subject: { type: "agent", id: "planner" }, action: { name: "run" }, resource: { type: "pods", id: "1" } },
  });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.equal(answer.body.decision, true, JSON.stringify(answer.body));
});

test("requests with one workload's tokens share a rate limit", async () => {
  const first = await service.call("GET", "/v1/me", { key: await signGithub("acme/web", { jti: "1" }) });
  const second = await service.call("GET", "/v1/me", { key: await signGithub("acme/web", { jti: "2" }) });
  const left = ({ headers }: Answer): number => Number(/r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1]);
  assert.equal(left(second), left(first) - 1);
});

test("the configurations in the documentation accept tokens of their platforms", async () => {
  const page = readFileSync(join(ROOT, "docs/workload-identity.md"), "utf8");
  const blocks = [...page.matchAll(/```yaml\n(plugins:\n[^]*?)```/g)].map(([, text]) => parse(text as string));
  const documented = blocks.flatMap(({ plugins }) => plugins[1].options.issuers) as { id: string }[];
  assert.deepEqual(
    documented.map(({ id }) => id),
    ["github", "cluster", "mesh", "company", "login"],
  );
  const keys = [github, cluster, mesh, company].map(({ jwks }) => jwks);
  const options = {
    issuers: documented.map((issuer, at) => ({ ...issuer, keys: keys[at] ?? company.jwks })) as Record<string, any>[],
  };
  // The page has two configurations of one provider.
  Object.assign(options.issuers[4] as object, { issuer: `${COMPANY}/api` });
  const documentedSecret = "e8Wc5RyU1oKi7MvD3hXz9GqT2sBn6JfL";
  assert.deepEqual(options.issuers[3]?.["clients"], { "mcp-desktop": "${MCP_DESKTOP_SECRET}" });
  Object.assign(options.issuers[3] as object, { clients: { "mcp-desktop": documentedSecret } });
  const other = await startService({
    change: (config) => (config.server.public_url = AUDIENCE),
    plugins: [
      { plugin: users as Plugin, options: {}, origin: "users", core: true },
      { plugin: workloadIdentity as Plugin, options, origin: "workload-identity", core: true },
    ],
  });
  // The documented owner of a workload.
  await addPerson(other, "Ada", { email: digestEmail("ada@example.com") });
  const now = Math.floor(Date.now() / 1000);
  const at = { iat: now, nbf: now, exp: now + 300 };
  const mine = { sub: "spiffe://example.org/ns/prod/sa/planner", aud: AUDIENCE, ...at };
  const tokens = [
    await github.sign(githubClaims("acme/web", at), { typ: "JWT" }),
    await cluster.sign(clusterClaims(at)),
    await mesh.sign(mine),
  ];
  for (const key of tokens) assert.equal((await other.call("GET", "/v1/me", { key })).status, 200);
  const assertion = await company.sign(idJagClaims("nobody", { ...at, aud: AUDIENCE }), { typ: "oauth-id-jag+jwt" });
  const { body } = await exchange(other, { assertion, client_id: "mcp-desktop", client_secret: documentedSecret });
  assert.match(body.error_description, /never signed in/);
  const access = idJagClaims("nobody", { ...at, iss: `${COMPANY}/api`, aud: "https://mcp.example.com/mcp" });
  const { body: refused } = await other.call("GET", "/v1/me", { key: await company.sign(access, { typ: "at+jwt" }) });
  assert.match(refused.detail, /never signed in/);
  await other.close();
});
