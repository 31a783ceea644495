/**
 * The authorization server: what clients exchange for access tokens, and who may present them.
 * @needs oauth, users, workload-identity
 */
import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import oauth from "../../../plugins/oauth/index.ts";
import { grantState } from "../../../plugins/oauth/state.ts";
import workloadIdentity from "../../../plugins/workload-identity/index.ts";
import { type DecisionEntry, decodeEntry, type User, userState } from "../../../src/core.ts";
import { type Plugin, toRfc3339 } from "../../../src/plugin.ts";
import { invite, ORIGIN, type Person, usersPlugin } from "../../support/people.ts";
import { makeKey, startService, type Answer, type Service } from "../../support/service.ts";
import { startTokenIssuer, type TokenIssuer } from "../../support/token-issuer.ts";

const COMPANY = "https://login.example.com";
const RESOURCE = "https://mcp.example.com/mcp";
const OTHER_RESOURCE = "https://other.example.com/mcp";
const SECRET = "a secret of the desktop client";
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const POLICY = `
policy: tools
rules:
  - name: calendar
    tool: calendar
    when: principal.claims.client_id == "mcp-desktop" && principal.claims.resource == "${RESOURCE}"
    effect: allow
  - name: browser
    tool: notes
    effect: allow
  - name: pay
    tool: pay
    effect: require_approval
`;

let service: Service;
let company: TokenIssuer;
let ada: Person;
let bob: Person;
let proxyKey = "";
let otherKey = "";
let proxyId = "";
const resources: object[] = [{ url: RESOURCE, agent: "assistant", redirect_hosts: ["app.example.com"] }];

before(async () => {
  company = await startTokenIssuer();
  const options = {
    resources,
    issuers: [
      {
        id: "company",
        issuer: COMPANY,
        keys: company.jwks,
        algorithms: ["RS256"],
        claims: { tenant: "tenant" },
        clients: [
          {
            id: "mcp-desktop",
            secret: SECRET,
            agent: "desktop",
          },
          {
            id: "mcp-other",
            secret: `${SECRET} too`,
            agent: "other",
          },
        ],
      },
    ],
  };
  service = await startService({
    policy: POLICY,
    change(config) {
      config.server.public_url = ORIGIN;
      config.rate_limits.bad_keys_per_minute = 0;
    },
    plugins: [
      usersPlugin(),
      { plugin: workloadIdentity as Plugin, options: {}, origin: "workload-identity", core: true },
      { plugin: oauth as Plugin, options, origin: "oauth", core: true },
    ],
  });
  ({ key: proxyKey, id: proxyId } = await makeKey(service, { name: "proxy", scopes: ["oauth:present"] }));
  const other = await makeKey(service, { name: "other proxy", scopes: ["oauth:present"] });
  otherKey = other.key;
  resources[0] = { ...resources[0], keys: [proxyId] };
  resources.push({ url: OTHER_RESOURCE, agent: "assistant", keys: [other.id] });
  await service.restart();
  [ada, bob] = [
    await invite(service, { name: "Ada", roles: ["approver"] }),
    await invite(service, { name: "Bob", roles: ["approver"] }),
  ];
  await linkIdentity(ada, "ada");
});
after(async () => {
  await service.close();
  await company.close();
});

/** Records that the person signed in at the company's provider. */
async function linkIdentity(person: Person, subject: string): Promise<void> {
  await service.runtime.host.ledger.transact(async (tx) => {
    const user = { ...(tx.state(userState).get(person.id) as User), identities: [{ issuer: COMPANY, subject }] };
    const about = { change: "updated", user, reason: null, confirmed_by: null, by: null } as const;
    tx.record({ type: "user", v: 1, at: toRfc3339(tx.now), ...about });
  });
}

const seconds = (): number => Math.floor((Date.now() + service.clock.now) / 1000);

const assertion = (change: object = {}, header: object = {}): Promise<string> =>
  company.sign(
    {
      iss: COMPANY,
      sub: "ada",
      aud: ORIGIN,
      client_id: "mcp-desktop",
      resource: RESOURCE,
      jti: randomUUID(),
      iat: seconds(),
      exp: seconds() + 300,
      ...change,
    },
    { typ: "oauth-id-jag+jwt", ...header },
  );

const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString("base64")}`;

const post = (path: string, form: object, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", path, {
    key: null,
    raw: new URLSearchParams(form as Record<string, string>).toString(),
    headers: { ...FORM, ...headers },
  });

const exchange = async (token: string | Promise<string>, id = "mcp-desktop", secret = SECRET): Promise<Answer> =>
  post("/oauth/token", { grant_type: JWT_BEARER, assertion: await token }, { authorization: basic(id, secret) });

async function assertRefused(
  answer: Answer | Promise<Answer>,
  error: string,
  why: RegExp,
  status = 400,
): Promise<void> {
  const { status: got, body } = await answer;
  assert.deepEqual([got, body.error], [status, error], JSON.stringify(body));
  assert.match(body.error_description, why);
}

/** The credential that a proxy presents for its client. */
const presented = (token: string, key = proxyKey): string => `${key}.${token}.`;

const submit = (key: string, tool: string, agent_id: string): Promise<Answer> =>
  service.call("POST", "/v1/actions", { key, body: { agent_id, tool, operation: "run", params: {} } });

async function decisionOf({ body }: Answer): Promise<DecisionEntry> {
  const rows = await service.runtime.host.storage.entriesOfAction(body.id as string);
  return decodeEntry<DecisionEntry>((rows[0] as (typeof rows)[number]).bytes);
}

const register = (metadata: object): Promise<Answer> =>
  service.call("POST", "/oauth/register", { key: null, body: metadata });

interface SignIn {
  person?: Person;
  change?: object;
  redirect_uri?: string;
  answer?: "allow" | "refuse";
}

const verifier = randomBytes(32).toString("base64url");
const challenge = createHash("sha256").update(verifier).digest("base64url");

/** Connects an app as a browser does. */
async function connect({ person = ada, change = {}, answer = "allow", ...more }: SignIn = {}) {
  const { redirect_uri = "http://127.0.0.1:49152/callback" } = more;
  const client = (await register({ client_name: "Editor", redirect_uris: ["http://127.0.0.1/callback"] })).body;
  const request = {
    response_type: "code",
    client_id: client.client_id,
    redirect_uri,
    state: "s",
    resource: RESOURCE,
    code_challenge: challenge,
    code_challenge_method: "S256",
    ...change,
  };
  const done = await person.call("POST", "/v1/oauth/consent", { ...request, answer });
  const url = done.status === 200 ? new URL(done.body.redirect) : null;
  const code = url?.searchParams.get("code") ?? "";
  const form = { grant_type: "authorization_code", code, redirect_uri, client_id: client.client_id };
  return { done, url, form: { ...form, code_verifier: verifier } };
}

const refresh = (tokens: Answer["body"], { client_id }: { client_id: string }): Promise<Answer> =>
  post("/oauth/token", { grant_type: "refresh_token", refresh_token: tokens.refresh_token, client_id });

test("describes itself, and only with a resource", async () => {
  const { body } = await service.call("GET", "/.well-known/oauth-authorization-server", { key: null });
  assert.deepEqual([body.issuer, body.token_endpoint], [ORIGIN, `${ORIGIN}/oauth/token`]);
  assert.ok(body.grant_types_supported.includes(JWT_BEARER));
  const plain = await startService({
    plugins: [
      usersPlugin(),
      { plugin: workloadIdentity as Plugin, options: {}, origin: "workload-identity", core: true },
      { plugin: oauth as Plugin, options: {}, origin: "oauth", core: true },
    ],
  });
  const { status } = await plain.call("GET", "/.well-known/oauth-authorization-server", { key: null });
  assert.equal(status, 404);
  await plain.close();
});

test("an ID-JAG is exchanged for a token with which the proxy acts as the user and the client's agent", async () => {
  const { status, body, headers } = await exchange(assertion({ tenant: "acme" }));
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual([body.token_type, body.refresh_token], ["Bearer", undefined]);
  assert.ok(body.expires_in > 3500 && body.expires_in <= 3600);
  assert.equal(headers.get("cache-control"), "no-store");
  const action = await submit(presented(body.access_token), "calendar", "desktop");
  assert.deepEqual([action.status, action.body.status], [200, "allowed"], JSON.stringify(action.body));
  const { submitted_by, facts } = await decisionOf(action);
  assert.deepEqual([submitted_by.principal, submitted_by.agent_id], [ada.principal, "desktop"]);
  const claims = { issuer: "company", subject: "ada", client_id: "mcp-desktop", resource: RESOURCE, tenant: "acme" };
  assert.deepEqual(facts.principal.claims, claims);
  const pending = await submit(presented(body.access_token), "pay", "desktop");
  assert.equal(pending.body.status, "pending_approval");
  const seen = await ada.call("GET", `/v1/actions/${pending.body.id}`);
  assert.equal(seen.body.approval_token ?? null, null, "the user cannot approve the agent's request");
  assert.equal((await submit(presented(body.access_token), "calendar", "another")).status, 403);
});

test("the access token alone, or with a key that may not present it, is no credential", async () => {
  const { access_token: token } = (await exchange(assertion())).body;
  const refusedWith = async (value: string): Promise<number> => (await submit(value, "calendar", "desktop")).status;
  assert.equal(await refusedWith(token), 401);
  assert.equal(await refusedWith(presented(token, otherKey)), 401, "the key of another proxy");
  assert.equal(await refusedWith(presented(token, service.agent)), 401, "a key without the scope");
  assert.equal(await refusedWith(presented(token, `${proxyKey}x`)), 401);
  assert.equal(await refusedWith(`${proxyKey}..`), 401);
  assert.equal(await refusedWith(presented(`${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`)), 401);
  assert.equal(await refusedWith(presented(token.replace("_1_", "_2_"))), 401);
  assert.equal(await refusedWith(proxyKey), 403, "the proxy's key allows nothing by itself");
  assert.equal(await refusedWith(presented(token)), 200);
});

test("an ID-JAG works once, also after a restart, and never as a bearer token", async () => {
  const token = await assertion();
  assert.equal((await exchange(token)).status, 200);
  await assertRefused(exchange(token), "invalid_grant", /exchanged before/);
  await service.restart();
  await assertRefused(exchange(token), "invalid_grant", /exchanged before/);
  assert.equal((await submit(await assertion(), "calendar", "desktop")).status, 401);
  const both = await assertion();
  const answers = await Promise.all([exchange(both), exchange(both), exchange(both)]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400]);
});

test("an ID-JAG must be current, for this service, this client and a known user", async () => {
  const cases: [change: object, why: RegExp][] = [
    [{ aud: "https://elsewhere.example.com" }, /aud/],
    [{ aud: [ORIGIN, "https://elsewhere.example.com"] }, /aud/],
    [{ iss: "https://unknown.example.com" }, /no issuer/],
    [{ exp: seconds() - 301, iat: seconds() - 600 }, /exp/],
    [{ iat: seconds() + 301, exp: seconds() + 600 }, /future/],
    [{ nbf: seconds() + 301 }, /nbf/],
    [{ exp: seconds() + 7200 }, /longer/],
    [{ jti: undefined }, /jti/],
    [{ client_id: "mcp-other" }, /another client/],
    [{ sub: "zoe" }, /never signed in/],
    [{ resource: [RESOURCE] }, /one address/],
    [{ resource: undefined }, /one address/],
    [{ cnf: { jkt: "x" } }, /bound to a key/],
  ];
  for (const [change, why] of cases) await assertRefused(exchange(assertion(change)), "invalid_grant", why);
  await assertRefused(exchange(assertion({ resource: "https://x.example.com" })), "invalid_target", /no resource/);
  await assertRefused(exchange(assertion({}, { typ: "JWT" })), "invalid_grant", /type/);
  await assertRefused(exchange("not.a.jwt"), "invalid_grant", /not a JWT/);
  const [head, body] = (await assertion()).split(".");
  await assertRefused(exchange(`${head}.${body}.AAAA`), "invalid_grant", /signature/);
  // A difference of the clocks of up to five minutes is tolerated.
  assert.equal((await exchange(assertion({ exp: seconds() - 200, iat: seconds() - 400 }))).status, 200);
  assert.equal((await exchange(assertion({ iat: seconds() + 200, exp: seconds() + 400 }))).status, 200);
});

test("the client must authenticate as the client of the ID-JAG", async () => {
  await assertRefused(exchange(assertion(), "mcp-desktop", "wrong"), "invalid_client", /secret/, 401);
  await assertRefused(exchange(assertion(), "unknown"), "invalid_client", /unknown/, 401);
  await assertRefused(exchange(assertion(), "mcp-other", `${SECRET} too`), "invalid_grant", /another client/);
  const form = { grant_type: JWT_BEARER, assertion: await assertion(), client_id: "mcp-desktop" };
  await assertRefused(post("/oauth/token", form), "invalid_client", /secret/, 401);
  const both = { ...form, client_secret: SECRET };
  await assertRefused(
    post("/oauth/token", both, { authorization: basic("mcp-desktop", SECRET) }),
    "invalid_request",
    /two ways/,
  );
  assert.equal((await post("/oauth/token", both)).status, 200);
  const twice = `${new URLSearchParams({ ...both, assertion: await assertion() })}&client_id=mcp-desktop`;
  const answer = await service.call("POST", "/oauth/token", { key: null, raw: twice, headers: FORM });
  await assertRefused(answer, "invalid_request", /twice/);
  await assertRefused(post("/oauth/token", { grant_type: "password" }), "unsupported_grant_type", /password/);
});

test("without the provider's keys, no ID-JAG is exchanged, and the client is told to try again", async () => {
  await service.restart();
  for (const broken of [{ status: 500, body: "" }, { body: "garbage" }, { body: '{"keys":[]}' }]) {
    company.answer = broken;
    const { status, body } = await exchange(assertion());
    assert.equal(body.access_token, undefined);
    assert.ok([400, 503].includes(status), JSON.stringify(body));
    await service.restart();
  }
  company.answer = { status: 500, body: "" };
  await assertRefused(exchange(assertion()), "temporarily_unavailable", /keys/, 503);
  company.answer = null;
  await service.restart();
  assert.equal((await exchange(assertion())).status, 200);
});

test("a person connects an app in the browser, and the app refreshes its token", async () => {
  const { done, url, form } = await connect();
  assert.equal(done.status, 200, JSON.stringify(done.body));
  assert.deepEqual([done.body.client, done.body.agent_id], ["Editor", "assistant"]);
  assert.deepEqual([url?.port, url?.searchParams.get("state"), url?.searchParams.get("iss")], ["49152", "s", ORIGIN]);
  const first = (await post("/oauth/token", form)).body;
  assert.equal((await submit(presented(first.access_token), "notes", "assistant")).body.status, "allowed");
  const second = (await refresh(first, form)).body;
  assert.notEqual(second.access_token, first.access_token);
  // A lost answer: the same refresh yields the same tokens.
  assert.deepEqual((await refresh(first, form)).body.access_token, second.access_token);
  assert.equal((await submit(presented(first.access_token), "notes", "assistant")).status, 200, "until it expires");
  service.clock.now += 31_000;
  await assertRefused(refresh(first, form), "invalid_grant", /used before/);
  await assertRefused(refresh(second, form), "invalid_grant", /has ended/);
  assert.equal((await submit(presented(second.access_token), "notes", "assistant")).status, 401);
});

test("an access token expires, and a refresh token with the sign-in", async () => {
  const { form } = await connect();
  const first = (await post("/oauth/token", form)).body;
  service.clock.now += 3_601_000;
  assert.equal((await submit(presented(first.access_token), "notes", "assistant")).status, 401);
  const second = (await refresh(first, form)).body;
  assert.equal((await submit(presented(second.access_token), "notes", "assistant")).status, 200);
  service.clock.now += 30 * 86_400_000;
  await assertRefused(refresh(second, form), "invalid_grant", /ended/);
  service.clock.now = 0;
});

test("a code works once, with its verifier and address; a second use ends what it started", async () => {
  const one = await connect();
  await assertRefused(
    post("/oauth/token", { ...one.form, code_verifier: "x".repeat(43) }),
    "invalid_grant",
    /verifier/,
  );
  const wrong = { ...one.form, redirect_uri: "http://127.0.0.1:1/callback" };
  await assertRefused(post("/oauth/token", wrong), "invalid_grant", /redirect/);
  const forged = { ...one.form, code: one.form.code.replace(/.$/, (end) => (end === "A" ? "B" : "A")) };
  await assertRefused(post("/oauth/token", forged), "invalid_grant", /not issued/);
  const elsewhere = { ...one.form, resource: OTHER_RESOURCE };
  await assertRefused(post("/oauth/token", elsewhere), "invalid_target", /another resource/);
  const tokens = (await post("/oauth/token", one.form)).body;
  await assertRefused(post("/oauth/token", one.form), "invalid_grant", /before/);
  assert.equal((await submit(presented(tokens.access_token), "notes", "assistant")).status, 401);
  const late = await connect();
  service.clock.now += 61_000;
  await assertRefused(post("/oauth/token", late.form), "invalid_grant", /expired/);
  service.clock.now = 0;
});

test("a refusal, an API key, a foreign address and a client without PKCE connect nothing", async () => {
  const refused = await connect({ answer: "refuse" });
  assert.deepEqual([refused.url?.searchParams.get("error"), refused.form.code], ["access_denied", ""]);
  const request = { client_id: refused.form.client_id, redirect_uri: refused.form.redirect_uri, answer: "allow" };
  const full = { ...request, response_type: "code", code_challenge: challenge, code_challenge_method: "S256" };
  const byKey = await service.call("POST", "/v1/oauth/consent", {
    key: service.admin,
    body: { ...full, resource: RESOURCE },
  });
  assert.equal(byKey.body.code, "OAUTH_PERSON_REQUIRED");
  const codes = [
    await connect({ redirect_uri: "http://127.0.0.1/other" }),
    await connect({ redirect_uri: "https://evil.example.com/callback" }),
    await connect({ change: { code_challenge_method: "plain" } }),
    await connect({ change: { code_challenge: "short" } }),
    await connect({ change: { response_type: "token" } }),
    await connect({ change: { resource: "https://unknown.example.com" } }),
  ].map(({ done }) => done.body.code);
  assert.deepEqual(new Set(codes), new Set(["OAUTH_REQUEST_INVALID"]));
  const { client_id } = (await register({ redirect_uris: ["https://evil.example.com/x", "https://app.example.com/x"] }))
    .body;
  const web = { ...full, client_id, resource: RESOURCE };
  const evil = await ada.call("POST", "/v1/oauth/consent", { ...web, redirect_uri: "https://evil.example.com/x" });
  assert.match(evil.body.detail, /evil\.example\.com/);
  const listed = await ada.call("POST", "/v1/oauth/consent", { ...web, redirect_uri: "https://app.example.com/x" });
  assert.equal(listed.status, 200, JSON.stringify(listed.body));
});

test("only addresses of programs and web applications can be registered, and ids cannot be made up", async () => {
  for (const uri of [
    "javascript:alert(1)",
    "javascript://x.y/%0aalert(1)",
    "data:text/html,x",
    "http://evil.example.com/x",
    "http://127.0.0.1.evil.example.com/x",
    "https://user@app.example.com/x",
    "https://app.example.com/x#y",
    "file:///etc/passwd",
    "no address",
  ])
    assert.equal((await register({ redirect_uris: [uri] })).body.error, "invalid_redirect_uri", uri);
  for (const uri of [
    "cursor://anysphere.cursor-mcp/oauth",
    "com.example.app:/x",
    "http://[::1]:9/x",
    "https://a.example/x",
  ])
    assert.equal((await register({ redirect_uris: [uri] })).status, 201, uri);
  const forged = `app_${Buffer.from('{"n":"Evil","r":["javascript:alert(1)"]}').toString("base64url")}`;
  const query = new URLSearchParams({ client_id: forged, redirect_uri: "javascript:alert(1)", response_type: "code" });
  assert.equal((await service.call("GET", `/oauth/authorize?${query}`, { key: null })).status, 400);
  const { body } = await register({ client_name: "A\u202eb\nc", redirect_uris: ["http://localhost/x"] });
  assert.equal(body.client_name, "Abc");
});

test("a user sees and ends the own apps only, and deactivation ends them", async () => {
  const { form } = await connect({ person: bob });
  const tokens = (await post("/oauth/token", form)).body;
  const list = async (person: Person): Promise<{ id: string; user: string }[]> =>
    (await person.call("GET", "/v1/oauth/apps")).body.apps;
  const [app] = await list(bob);
  assert.equal(app?.user, bob.principal);
  assert.ok((await list(ada)).every(({ user }) => user === ada.principal));
  assert.equal((await ada.call("DELETE", `/v1/oauth/apps/${app?.id}`)).status, 404);
  assert.equal((await bob.call("DELETE", `/v1/oauth/apps/${app?.id}`)).status, 200);
  assert.equal((await submit(presented(tokens.access_token), "notes", "assistant")).status, 401);
  const again = (await post("/oauth/token", (await connect({ person: bob })).form)).body;
  assert.equal((await post("/oauth/revoke", { token: again.refresh_token })).status, 200);
  assert.equal((await submit(presented(again.access_token), "notes", "assistant")).status, 401);
  const third = await connect({ person: bob });
  const last = (await post("/oauth/token", third.form)).body;
  const unused = await connect({ person: bob });
  const end = await service.call("POST", `/v1/users/${bob.id}/end`, { key: service.admin, body: { reason: "left" } });
  assert.equal(end.status, 200, JSON.stringify(end.body));
  assert.equal((await submit(presented(last.access_token), "notes", "assistant")).status, 401);
  await assertRefused(refresh(last, third.form), "invalid_grant", /ended/);
  await assertRefused(post("/oauth/token", unused.form), "invalid_grant", /deactivated/);
  const introspected = await service.call("POST", "/oauth/introspect", {
    key: proxyKey,
    raw: `token=${last.access_token}`,
    headers: FORM,
  });
  assert.deepEqual(introspected.body, { active: false });
});

test("grants that are over are removed from memory, and what was exchanged for them stays used until then", async () => {
  const { byId, byUsed } = await service.runtime.host.state(grantState);
  assert.equal(byUsed.size, byId.size);
});
