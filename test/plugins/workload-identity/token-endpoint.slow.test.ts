/**
 * The exchange of an ID-JAG for an access token: what it gives, what ends it, and what hostile clients get.
 * @needs users
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, afterEach, before, describe, test } from "node:test";
import { CompactSign, SignJWT } from "jose";
import { postgresStorage } from "../../../plugins/storage-postgres/index.ts";
import users from "../../../plugins/users/index.ts";
import workloadIdentity from "../../../plugins/workload-identity/index.ts";
import type { Config } from "../../../src/config/index.ts";
import type { Plugin } from "../../../src/plugin.ts";
import { needs } from "../../support/features.ts";
import { newKey } from "../../support/keys.ts";
import { startPostgres, withoutPostgres } from "../../support/postgres.ts";
import { addPerson, person, startService, type Answer, type Service } from "../../support/service.ts";
import { startTokenIssuer, type TokenIssuer } from "../../support/token-issuer.ts";

const SELF = "https://assent.example.com";
const COMPANY = "https://login.example.com";
const PARTNER = "https://login.partner.example";
const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SECRETS = {
  "mcp-desktop": "q7Zt2XvB9rLw4KdY8sJm3HfP6cNg1TbA",
  "mcp-mailer": 'Vx4: kT9+wQz2%20Lm7/Rb3=Jd8"Hs5&Gp1',
};
const PARTNER_SECRET = "e8Wc5RyU1oKi7MvD3hXz9GqT2sBn6JfL";
const PRESET = ["actions:submit", "actions:read_own", "actions:execute", "events:read"];
const POLICY = `policy: work
rules: [{ name: calendar, tool: calendar, when: 'principal.claims.client_id == "mcp-desktop"', effect: allow }]
`;

let service: Service;
let company: TokenIssuer;
let partner: TokenIssuer;
let options: { issuers: Record<string, any>[] };

before(async () => {
  [company, partner] = [await startTokenIssuer(), await startTokenIssuer()];
  options = { issuers: configured() };
  service = await start();
});
after(async () => {
  await service.close();
  await company.close();
  await partner.close();
});
afterEach(async () => {
  company.answer = null;
  if (JSON.stringify(options.issuers) === JSON.stringify(configured())) return;
  options.issuers = configured();
  await service.restart();
});

function configured(): Record<string, any>[] {
  const common = { platform: "id-jag", audience: SELF, algorithms: ["RS256"] };
  const workload = (id: string, client_id: string, more = {}) => ({ id, agent: id, where: { client_id, ...more } });
  return [
    {
      ...common,
      id: "company",
      issuer: COMPANY,
      keys: company.jwks,
      clients: SECRETS,
      resources: ["https://mcp.example.com/mcp"],
      workloads: [workload("desktop", "mcp-desktop"), workload("mailer", "mcp-mailer")],
    },
    {
      ...common,
      id: "partner",
      issuer: PARTNER,
      keys: partner.jwks,
      claims: { tenant: "tenant" },
      clients: { "mcp-desktop": PARTNER_SECRET },
      workloads: [workload("guest", "mcp-desktop", { tenant: "acme" })],
    },
  ];
}

async function start(more: { storage?: () => ReturnType<typeof postgresStorage>; change?(config: Config): void } = {}) {
  const started = await startService({
    ...more,
    policy: POLICY,
    change(config) {
      config.agents = "bound";
      config.server.public_url = SELF;
      config.rate_limits.bad_keys_per_minute = 0;
      more.change?.(config);
    },
    plugins: [
      { plugin: users as Plugin, options: {}, origin: "users", core: true },
      { plugin: workloadIdentity as Plugin, options, origin: "workload-identity", core: true },
    ],
  });
  for (const [name, issuer] of Object.entries({ Ada: COMPANY, Bob: COMPANY, Gus: PARTNER }))
    await addPerson(started, name, { identities: [{ issuer, subject: name.toLowerCase() }] });
  return started;
}

const seconds = (): number => Math.floor((Date.now() + service.clock.now) / 1000);

const claims = (change: object = {}): Record<string, unknown> => ({
  iss: COMPANY,
  sub: "ada",
  aud: SELF,
  client_id: "mcp-desktop",
  jti: randomUUID(),
  iat: seconds(),
  exp: seconds() + 300,
  ...change,
});

const sign = (change: object = {}, header: object = {}, issuer = company): Promise<string> =>
  issuer.sign(claims(change), { typ: "oauth-id-jag+jwt", ...header });

const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString("base64")}`;
const DESKTOP = basic("mcp-desktop", SECRETS["mcp-desktop"]);

function post(form: string | Record<string, string>, authorization: string | null = DESKTOP, target = service) {
  return target.call("POST", "/oauth/token", {
    key: null,
    raw: new URLSearchParams(form).toString(),
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      ...(authorization === null ? {} : { authorization }),
    },
  });
}

const exchange = async (assertion: string | Promise<string>, more: object = {}, authorization = DESKTOP) =>
  post({ grant_type: GRANT_TYPE, assertion: await assertion, ...more }, authorization);

/** Returns an access token. */
async function tokenFor(change: object = {}, more: object = {}): Promise<string> {
  const { status, body } = await exchange(sign(change), more);
  assert.equal(status, 200, JSON.stringify(body));
  return body.access_token;
}

async function assertRefused(
  answer: Answer | Promise<Answer>,
  error: string,
  why: RegExp,
  what?: string,
): Promise<void> {
  const { status, body, headers } = await answer;
  assert.deepEqual([status, body.error], [error === "invalid_client" ? 401 : 400, error], what ?? JSON.stringify(body));
  assert.match(body.error_description, why, what);
  assert.match(body.error_description, /^[\x20-\x7e]*$/);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(body.access_token, undefined);
}

const submit = (key: string, agent_id = "desktop", target = service): Promise<Answer> =>
  target.call("POST", "/v1/actions", { key, body: { agent_id, tool: "calendar", operation: "add", params: {} } });

const me = (key: string, target = service): Promise<Answer> => target.call("GET", "/v1/me", { key });

test("an ID-JAG gives an access token, with which the agent acts for the user", async () => {
  const answer = await exchange(sign());
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  const { access_token, expires_in, ...rest } = answer.body;
  assert.deepEqual(rest, { token_type: "Bearer", scope: PRESET.join(" ") });
  assert.ok(expires_in > 300 && expires_in <= 600, `the lifetime is ${expires_in}, with the tolerance of five minutes`);
  assert.deepEqual(
    ["cache-control", "pragma"].map((name) => answer.headers.get(name)),
    ["no-store", "no-cache"],
  );
  const done = await submit(access_token);
  assert.equal(done.body.status, "allowed", JSON.stringify(done.body));
  assert.deepEqual(done.body.submitted_by?.principal ?? (await me(access_token)).body.principal, person("Ada"));
  assert.equal((await submit(access_token, "mailer")).body.code, "AGENT_MISMATCH");
  const { body } = await me(access_token);
  assert.deepEqual([body.key.agent_id, body.scopes], ["desktop", PRESET]);
  const lasts = (Date.parse(body.key.expires_at) - (Date.now() + service.clock.now)) / 1000;
  assert.ok(lasts > 300 && lasts <= expires_in + 1, `the key's expiry is that of the token, in ${lasts} s`);
});

test("the metadata leads to the endpoint, and names no issuer of ID-JAGs and no client", async () => {
  const read = (name: string): Promise<Answer> => service.call("GET", `/.well-known/${name}`, { key: null });
  const { body: resource } = await read("oauth-protected-resource");
  assert.deepEqual(resource.authorization_servers, [SELF]);
  const { body: server } = await read("oauth-authorization-server");
  assert.equal(server.issuer, SELF);
  assert.equal(server.token_endpoint, `${SELF}/oauth/token`);
  assert.deepEqual(server.grant_types_supported, [GRANT_TYPE]);
  assert.deepEqual(server.authorization_grant_profiles_supported, ["urn:ietf:params:oauth:grant-profile:id-jag"]);
  assert.ok(!/login\.|mcp-/.test(JSON.stringify([resource, server])));
});

test("without an issuer of ID-JAGs there is no endpoint and no metadata", async () => {
  options.issuers = [];
  await service.restart();
  for (const path of ["/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource"])
    assert.equal((await service.call("GET", path, { key: null })).status, 404, path);
  assert.equal((await exchange(sign())).status, 404);
});

describe("the client", () => {
  test("authenticates with its own secret, in one way", async () => {
    const inBody = { client_id: "mcp-desktop", client_secret: SECRETS["mcp-desktop"] };
    const form = async (more: object) => ({ grant_type: GRANT_TYPE, assertion: await sign(), ...more });
    assert.equal((await post(await form(inBody), null)).status, 200);
    const mailer = basic("mcp-mailer", SECRETS["mcp-mailer"]);
    assert.equal((await exchange(sign({ client_id: "mcp-mailer" }), {}, mailer)).status, 200, "form-encoded");
    assert.equal((await exchange(sign(), { client_id: "mcp-desktop" })).status, 200, "the same client_id");
    await assertRefused(exchange(sign(), inBody), "invalid_request", /two ways/);
    await assertRefused(exchange(sign(), { client_id: "mcp-mailer" }), "invalid_request", /not the client/);
    const failures: [string | null, object][] = [
      [null, {}],
      [null, { client_id: "mcp-desktop" }],
      [null, { client_id: "mcp-desktop", client_secret: "" }],
      [null, { client_secret: SECRETS["mcp-desktop"] }],
      [null, { client_id: "mcp-desktop", client_secret: SECRETS["mcp-mailer"] }],
      [null, { client_id: "toString", client_secret: "function toString() { [native code] }" }],
      [null, { client_id: "__proto__", client_secret: "[object Object]" }],
      [basic("mcp-desktop", ""), {}],
      [basic("", SECRETS["mcp-desktop"]), {}],
      [basic("mcp-desktop", `${SECRETS["mcp-desktop"]} `), {}],
      [`Basic ${Buffer.from("mcp-desktop").toString("base64")}`, {}],
      [`Basic ${Buffer.from("mcp-desktop:%zz").toString("base64")}`, {}],
      ["Basic", {}],
      [`Bearer ${service.admin}`, inBody],
      [`${DESKTOP}, ${DESKTOP}`, {}],
    ];
    for (const [authorization, more] of failures) {
      const answer = await post(await form(more), authorization);
      await assertRefused(answer, "invalid_client", /./, JSON.stringify([authorization, more]));
      assert.match(answer.headers.get("www-authenticate") ?? "", /^Basic /);
    }
  });

  test("cannot exchange what another client got, neither with its own secret nor without one", async () => {
    const assertion = await sign({ client_id: "mcp-mailer" });
    await assertRefused(exchange(assertion), "invalid_grant", /another client/);
    const own = await exchange(assertion, {}, basic("mcp-mailer", SECRETS["mcp-mailer"]));
    assert.equal(own.status, 200, "the attempt of the other client did not use it up");
  });

  test("cannot use the secret that it has at one issuer with an ID-JAG of another issuer", async () => {
    const guest = { iss: PARTNER, sub: "gus", tenant: "acme" };
    await assertRefused(exchange(sign(guest, {}, partner)), "invalid_grant", /no issuer/);
    const secret = basic("mcp-desktop", PARTNER_SECRET);
    await assertRefused(exchange(sign(), {}, secret), "invalid_grant", /no issuer/);
    const { body } = await exchange(sign(guest, {}, partner), {}, secret);
    assert.equal((await me(body.access_token)).body.key.agent_id, "guest");
  });
});

describe("an ID-JAG", () => {
  test("works once, also for many requests at once and after a restart", async () => {
    const assertion = await sign();
    const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(assertion)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array<number>(7).fill(400)]);
    await service.restart();
    await assertRefused(exchange(assertion), "invalid_grant", /exchanged before/);
    const { jti } = JSON.parse(Buffer.from(assertion.split(".")[1] as string, "base64url").toString());
    await assertRefused(exchange(sign({ jti, exp: seconds() + 301 })), "invalid_grant", /exchanged before/);
    const guest = sign({ iss: PARTNER, sub: "gus", tenant: "acme", jti }, {}, partner);
    const secret = basic("mcp-desktop", PARTNER_SECRET);
    assert.equal((await exchange(guest, {}, secret)).status, 200, "another issuer can use the same jti");
  });

  test("is remembered until no process accepts it, and then forgotten", async () => {
    const stored = async (): Promise<number> =>
      (await service.storage.documents({ plugin: "workload-identity", prefix: "", limit: 1000 })).length;
    for (let i = 0; i < 12; i++) await tokenFor();
    const before = await stored();
    service.clock.now += 5 * 3_600_000;
    for (let i = 0; i < 40; i++) await tokenFor();
    const after = await stored();
    assert.ok(before >= 12 && after >= 40 && after < before + 40, `${before} documents, then ${after}`);
  });

  test("is remembered by a process whose clock was hours ahead, or is hours behind", async () => {
    const hours = 3_600_000;
    const exchanged = await Promise.all(Array.from({ length: 12 }, () => sign()));
    for (const assertion of exchanged) assert.equal((await exchange(assertion)).status, 200);
    const long = await Promise.all(Array.from({ length: 40 }, () => sign({ exp: seconds() + 80_000 })));
    service.clock.now += 2 * hours;
    for (const assertion of long) assert.equal((await exchange(assertion)).status, 200);
    service.clock.now -= 2 * hours;
    for (const assertion of exchanged) await assertRefused(exchange(assertion), "invalid_grant", /exchanged before/);
    await tokenFor();
    service.clock.now += 3 * hours;
    for (let i = 0; i < 60; i++) await tokenFor();
    service.clock.now -= 3 * hours;
    for (const assertion of exchanged) await assertRefused(exchange(assertion), "invalid_grant", /exchanged before/);
    service.clock.now += 3 * hours;
    await tokenFor();
  });

  test("with a wrong signature, type, audience, time or claim gives no token", async () => {
    const rows: [string, object, object, RegExp][] = [
      ["type of an ID token", {}, { typ: "JWT" }, /type jwt/],
      ["type of an access token", {}, { typ: "at+jwt" }, /type at\+jwt/],
      ["issuer with a slash", { iss: `${COMPANY}/` }, {}, /no issuer/],
      ["several audiences", { aud: [SELF, "https://other.example.com"] }, {}, /aud/],
      ["no audience", { aud: [] }, {}, /aud/],
      ["the token endpoint as the audience", { aud: `${SELF}/oauth/token` }, {}, /aud/],
      ["expired", { iat: seconds() - 900, exp: seconds() - 301 }, {}, /exp/],
      ["issued in the future", { iat: seconds() + 360, exp: seconds() + 600 }, {}, /iat/],
      ["not valid yet", { nbf: seconds() + 360 }, {}, /nbf/],
      ["empty subject", { sub: "" }, {}, /sub/],
      ["empty jti", { jti: "" }, {}, /jti/],
      ["jti that is no string", { jti: 7 }, {}, /jti/],
      ["empty client_id", { client_id: "" }, {}, /client_id/],
      ["list of clients", { client_id: ["mcp-desktop"] }, {}, /client_id/],
      ["bound to a key", { cnf: { jkt: "x" } }, {}, /cnf/],
      ["details that narrow it", { authorization_details: [{ type: "x" }] }, {}, /authorization_details/],
      ["scope that is no string", { scope: [PRESET[0]] }, {}, /scope/],
      ["unknown user", { sub: "zoe" }, {}, /never signed in/],
      ["user of a tenant", { tenant: "acme" }, {}, /tenant/],
    ];
    for (const [what, change, header, why] of rows)
      await assertRefused(exchange(sign(change, header)), "invalid_grant", why, what);
    assert.equal((await exchange(sign({ aud: [SELF] }))).status, 200, "a list with one audience");
    const unsigned = `${Buffer.from('{"alg":"none","typ":"oauth-id-jag+jwt"}').toString("base64url")}.${Buffer.from(JSON.stringify(claims())).toString("base64url")}.`;
    await assertRefused(exchange(unsigned), "invalid_grant", /not valid/);
    const header = { alg: "HS256", typ: "oauth-id-jag+jwt", kid: "first" };
    const forged = new SignJWT(claims()).setProtectedHeader(header).sign(Buffer.from(JSON.stringify(company.keys[0])));
    await assertRefused(exchange(forged), "invalid_grant", /alg/);
    const foreign = new SignJWT(claims())
      .setProtectedHeader({ ...header, alg: "RS256", jku: partner.jwks })
      .sign(partner.privateKey("first"));
    await assertRefused(exchange(foreign), "invalid_grant", /signature/);
    const twice = `${JSON.stringify(claims()).slice(0, -1)},"client_id":"mcp-mailer"}`;
    const ambiguous = new CompactSign(Buffer.from(twice))
      .setProtectedHeader({ ...header, alg: "RS256" })
      .sign(company.privateKey("first"));
    await assertRefused(exchange(ambiguous), "invalid_grant", /client_id/);
  });

  test("of a tenant is accepted only for a workload that names the tenant", async () => {
    const secret = basic("mcp-desktop", PARTNER_SECRET);
    for (const tenant of ["evil", "", ["acme"]])
      await assertRefused(
        exchange(sign({ iss: PARTNER, sub: "gus", tenant }, {}, partner), {}, secret),
        "invalid_grant",
        /no workload/,
        JSON.stringify(tenant),
      );
  });
});

describe("scopes and resources", () => {
  test("are those that the ID-JAG and the request have in common, and the token has no others", async () => {
    const rows: [object, object, string[]][] = [
      [{ scope: "chat.read actions:read_own" }, {}, ["actions:read_own"]],
      [{}, { scope: "actions:read_own" }, ["actions:read_own"]],
      [{ scope: "events:read actions:submit" }, { scope: "actions:submit admin" }, ["actions:submit"]],
    ];
    for (const [change, more, granted] of rows) {
      const { body } = await exchange(sign(change), more);
      assert.equal(body.scope, granted.join(" "));
      assert.deepEqual((await me(body.access_token)).body.scopes, granted);
      const { status, body: done } = await submit(body.access_token);
      const isAllowed = granted.includes("actions:submit");
      assert.deepEqual([status, done.code], isAllowed ? [200, undefined] : [403, "INSUFFICIENT_SCOPE"]);
    }
    for (const [change, more] of [
      [{ scope: "admin" }, {}],
      [{ scope: "" }, {}],
      [{ scope: "events:read" }, { scope: "actions:submit" }],
    ])
      await assertRefused(exchange(sign(change), more), "invalid_scope", /actions:submit/);
  });

  test("an ID-JAG for other resources gives no token, and the response names the granted ones", async () => {
    const other = "https://other.example.com/mcp";
    const proxy = "https://mcp.example.com/mcp";
    for (const [claim, requested, granted] of [
      [SELF, undefined, SELF],
      [`${SELF}/`, undefined, `${SELF}/`],
      [[other, proxy], undefined, proxy],
      [[SELF, proxy], proxy, proxy],
      [undefined, proxy, proxy],
      [undefined, "", undefined],
    ] as const) {
      const { status, body } = await exchange(
        sign({ resource: claim }),
        requested === undefined ? {} : { resource: requested },
      );
      assert.deepEqual([status, body.resource], [200, granted], JSON.stringify(body));
    }
    for (const [claim, requested] of [
      [other, undefined],
      [[], undefined],
      [null, undefined],
      [7, undefined],
      [`${SELF}.evil.example`, undefined],
      [SELF, other],
      [SELF, proxy],
      [undefined, other],
    ] as const)
      await assertRefused(
        exchange(sign({ resource: claim }), requested === undefined ? {} : { resource: requested }),
        "invalid_target",
        /resource/,
        JSON.stringify([claim, requested]),
      );
    const repeated = `grant_type=${GRANT_TYPE}&assertion=${await sign()}&resource=&resource=${encodeURIComponent(other)}`;
    await assertRefused(post(repeated), "invalid_target", /resource/);
  });
});

describe("a request", () => {
  test("with a missing, repeated or unknown parameter", async () => {
    const assertion = await sign();
    await assertRefused(post({ assertion }), "invalid_request", /grant_type is missing/);
    await assertRefused(post({ grant_type: "", assertion }), "invalid_request", /grant_type is missing/);
    await assertRefused(post({ grant_type: GRANT_TYPE }), "invalid_request", /assertion is missing/);
    await assertRefused(post({ grant_type: GRANT_TYPE, assertion: "" }), "invalid_request", /assertion is missing/);
    for (const grant_type of ["refresh_token", "client_credentials", GRANT_TYPE.toUpperCase(), '\u{1f600}"\\'])
      await assertRefused(post({ grant_type, assertion }), "unsupported_grant_type", /jwt-bearer/);
    for (const name of ["grant_type", "assertion", "scope", "client_id"]) {
      const form = new URLSearchParams({
        grant_type: GRANT_TYPE,
        assertion,
        scope: "events:read",
        client_id: "mcp-desktop",
      });
      form.append(name, "");
      await assertRefused(post(form.toString()), "invalid_request", new RegExp(`${name} occurs twice`));
    }
    assert.equal((await exchange(assertion, { unknown: "x", scope: "" })).status, 200);
  });

  test("that is no form, is too long, or has an assertion that is no JWT or too long", async () => {
    const json = { key: null, body: { grant_type: GRANT_TYPE }, headers: { authorization: DESKTOP } };
    assert.equal((await service.call("POST", "/oauth/token", json)).status, 415);
    assert.equal((await post({ grant_type: GRANT_TYPE, assertion: "x".repeat(20_000) })).status, 413);
    await assertRefused(exchange("x"), "invalid_grant", /not a JWT/);
    await assertRefused(exchange(service.admin), "invalid_grant", /not a JWT/);
    await assertRefused(exchange(sign({ pad: "x".repeat(6500) })), "invalid_grant", /8192/);
    await assertRefused(exchange(tokenFor()), "invalid_grant", /no issuer/);
    assert.equal((await service.call("GET", "/oauth/token", { key: null })).status, 405);
  });
});

describe("an access token", () => {
  test("with any changed character is refused, and so is its ID-JAG", async () => {
    const token = await tokenFor({}, { scope: "actions:read_own" });
    const [head, body = "", mac = ""] = token.split(".");
    const content = JSON.parse(Buffer.from(body, "base64url").toString());
    const changed = Buffer.from(JSON.stringify({ ...content, scopes: PRESET })).toString("base64url");
    const flipped = `${mac.startsWith("A") ? "B" : "A"}${mac.slice(1)}`;
    for (const value of [`${head}.${changed}.${mac}`, `${head}.${body}.${flipped}`, `${head}.${body}.`])
      assert.equal((await me(value)).status, 401);
    const refused = await me(content.assertion);
    assert.equal(refused.status, 401);
    assert.match(refused.body.detail, /not a bearer token/);
    assert.equal((await me(token)).status, 200);
  });

  test("ends with its ID-JAG, and after an hour at most", async () => {
    const short = await tokenFor();
    const long = await tokenFor({ exp: seconds() + 80_000 });
    service.clock.now += 590_000;
    assert.deepEqual([(await me(short)).status, (await me(long)).status], [200, 200]);
    service.clock.now += 20_000;
    assert.deepEqual([(await me(short)).status, (await me(long)).status], [401, 200]);
    service.clock.now += 3_000_000;
    assert.equal((await me(long)).status, 401);
  });

  test("ends with its user, and its agent's suspension denies its actions", needs("agents"), async () => {
    const token = await tokenFor({ sub: "bob" });
    const admin = { key: service.admin };
    await service.call("POST", "/v1/agents", { ...admin, body: { id: "desktop" } });
    await service.call("POST", "/v1/agents/desktop/suspend", { ...admin, body: {} });
    assert.equal((await submit(token)).body.reason_code, "AGENT_SUSPENDED");
    await service.call("POST", "/v1/agents/desktop/resume", { ...admin });
    assert.equal((await submit(token)).body.status, "allowed");
    const path = `/v1/users/${person("Bob").slice(5)}/end`;
    assert.equal((await service.call("POST", path, { ...admin, body: { reason: "left" } })).status, 200);
    assert.equal((await submit(token)).status, 401);
    await assertRefused(exchange(sign({ sub: "bob" })), "invalid_grant", /deactivated/);
  });

  test("ends with its issuer, client, secret or agent in the configuration", async () => {
    const token = await tokenFor();
    const changes: [string, (company: Record<string, any>) => void, RegExp][] = [
      ["issuer", () => options.issuers.shift(), /no issuer/],
      [
        "secret",
        (own) => (own["clients"] = { ...SECRETS, "mcp-desktop": "n3Fy8QkW5tZp2RxC7vLb4HdS9mJg6TuE" }),
        /secret/,
      ],
      ["workload", (own) => own["workloads"].shift(), /no workload/],
      ["algorithm", (own) => (own["algorithms"] = ["ES256"]), /alg/],
    ];
    for (const [what, change, why] of changes) {
      options.issuers = configured();
      change(options.issuers[0] as Record<string, any>);
      await service.restart();
      const refused = await submit(token);
      assert.equal(refused.status, 401, what);
      assert.match(refused.body.detail, why, what);
    }
    options.issuers = configured();
    await service.restart();
    assert.equal((await submit(token)).body.status, "allowed", "nothing else ended it");
  });

  test("ends when the issuer withdraws its key", async () => {
    await company.addKey("leaked");
    service.clock.now += 31_000;
    const { body } = await exchange(sign({ exp: seconds() + 3000 }, { kid: "leaked" }));
    assert.equal((await me(body.access_token)).status, 200);
    company.keys = company.keys.filter(({ kid }) => kid !== "leaked");
    service.clock.now += 601_000;
    assert.match((await me(body.access_token)).body.detail, /no applicable key/);
  });

  test("of another service is not accepted", async () => {
    const other = await start();
    const token = await tokenFor();
    assert.equal((await me(token, other)).status, 401);
    await other.close();
  });
});

test("while the keys of the issuer cannot be read, nothing is exchanged, nothing runs, and the ID-JAG is not used up", async () => {
  const token = await tokenFor({ exp: seconds() + 80_000 });
  for (const answer of [
    { status: 500, body: "" },
    { body: "garbage" },
    { body: "{}" },
    { status: 302, body: "", headers: { location: company.jwks } },
  ]) {
    company.answer = answer;
    await service.restart();
    const assertion = await sign();
    const refused = await exchange(assertion);
    assert.deepEqual([refused.status, refused.body.error], [503, "temporarily_unavailable"], answer.body);
    assert.equal(refused.headers.get("retry-after"), "30");
    assert.match(refused.body.error_description, /the keys of the issuer 'company' cannot be read now/);
    const denied = await submit(token);
    assert.deepEqual([denied.status, denied.body.code], [503, "WORKLOAD_IDENTITY_KEYS_UNAVAILABLE"]);
    company.answer = null;
    service.clock.now += 31_000;
    assert.equal((await exchange(assertion)).status, 200);
  }
});

test(
  "on two processes and one Postgres, one exchange succeeds, also with clocks apart, and both accept its token",
  { skip: withoutPostgres },
  async () => {
    const server = await startPostgres();
    const url = await server.database();
    const log = newKey();
    const nodes: Service[] = [];
    try {
      for (let i = 0; i < 2; i++)
        nodes.push(
          await start({
            storage: () => postgresStorage({ url, poolSize: 3 }),
            change(config) {
              config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
              config.ledger.key = log;
              config.ledger.origin = "exchange.test/log";
            },
          }),
        );
      const [one, two] = nodes as [Service, Service];
      const at = (now: number): object => ({ iat: Math.floor(now / 1000), exp: Math.floor(now / 1000) + 300 });
      const form = async (ahead: number) => ({
        grant_type: GRANT_TYPE,
        assertion: await sign(at(Date.now() + ahead)),
      });
      const exchanged: Record<string, string>[] = [];
      for (let round = 0; round < 8; round++) {
        const same = await form(0);
        const answers = await Promise.all([one, two, two, one].map((node) => post(same, DESKTOP, node)));
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400, 400]);
        const { access_token } = answers.find(({ status }) => status === 200)?.body ?? {};
        for (const node of nodes) assert.equal((await submit(access_token, "desktop", node)).body.status, "allowed");
        exchanged.push(same);
      }
      // The process whose clock is ahead removes what it takes for old.
      const ahead = 20 * 60_000;
      two.clock.now += ahead;
      for (let i = 0; i < 40; i++) assert.equal((await post(await form(ahead), DESKTOP, two)).status, 200);
      for (const same of exchanged) await assertRefused(post(same, DESKTOP, one), "invalid_grant", /exchanged before/);
    } finally {
      for (const node of nodes) await node.close();
      await server.stop();
    }
  },
);
