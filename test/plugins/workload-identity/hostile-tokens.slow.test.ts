/** Hostile, broken and misdirected tokens, and issuers whose keys are slow, huge, wrong or gone. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { CompactSign, exportSPKI, importJWK, type JWK, SignJWT } from "jose";
import workloadIdentity from "../../../plugins/workload-identity/index.ts";
import type { Plugin } from "../../../src/plugin.ts";
import { needs } from "../../support/features.ts";
import { ALLOWED, makeKey, startService, type Answer, type Service } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { startTokenIssuer, type TokenIssuer } from "../../support/token-issuer.ts";

const AUDIENCE = "https://assent.example.com";
const ISSUER = "https://ci.example.com";
const CLUSTER = "https://cluster.example.com";
const COMPANY = "https://login.example.com";
const SUBJECT = "repo:acme/web:ref:refs/heads/main";

let service: Service;
let ci: TokenIssuer;
let cluster: TokenIssuer;
const keyFile = join(temporaryFolder("assent-jwks-"), "jwks.json");

before(async () => {
  [ci, cluster] = [await startTokenIssuer(), await startTokenIssuer()];
  await cluster.addKey("cluster-only");
  writeFileSync(keyFile, JSON.stringify({ keys: cluster.keys }));
  service = await start();
});
after(async () => {
  await service.close();
  await ci.close();
  await cluster.close();
});
afterEach(() => {
  ci.answer = null;
});

function start(issuers = configured()): Promise<Service> {
  return startService({
    change(config) {
      config.agents = "bound";
      config.server.public_url = AUDIENCE;
      config.rate_limits.bad_keys_per_minute = 0;
    },
    plugins: [{ plugin: workloadIdentity as Plugin, options: { issuers }, origin: "workload-identity", core: true }],
  });
}

function configured(): object[] {
  const common = { audience: AUDIENCE, algorithms: ["RS256"] };
  return [
    {
      ...common,
      id: "ci",
      platform: "github-actions",
      issuer: ISSUER,
      keys: ci.jwks,
      claims: { repository: "repository", list: "list" },
      workloads: [{ id: "web", agent: "deployer", subject: "repo:acme/*:ref:refs/heads/*" }],
    },
    {
      ...common,
      id: "cluster",
      platform: "kubernetes",
      issuer: CLUSTER,
      keys: keyFile,
      workloads: [{ id: "planner", agent: "planner", subject: "system:serviceaccount:prod:planner" }],
    },
    {
      ...common,
      id: "company",
      platform: "id-jag",
      issuer: COMPANY,
      keys: ci.jwks,
      clients: { desktop: "q7Zt2XvB9rLw4KdY8sJm3HfP6cNg1TbA" },
      workloads: [{ id: "desktop", agent: "desktop", where: { client_id: "desktop" } }],
    },
    {
      ...common,
      id: "mesh",
      platform: "spiffe",
      issuer: "spiffe://example.org",
      keys: ci.jwks,
      workloads: [{ id: "planner", agent: "mesh", subject: "spiffe://example.org/planner" }],
    },
  ];
}

const now = (): number => Math.floor((Date.now() + service.clock.now) / 1000);
const claims = (over: object = {}): Record<string, unknown> => ({
  iss: ISSUER,
  sub: SUBJECT,
  aud: AUDIENCE,
  repository: "acme/web",
  jti: "1",
  iat: now(),
  nbf: now(),
  exp: now() + 300,
  ...over,
});
const without = (name: string): object => Object.fromEntries(Object.entries(claims()).filter(([key]) => key !== name));
const sign = (over: object = {}, header: object = {}): Promise<string> =>
  ci.sign(claims(over), { typ: "JWT", ...header });
const encode = (value: unknown): string =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

const use = (key: string, target = service): Promise<Answer> => target.call("GET", "/v1/me", { key });

async function assertRefused(token: string | Promise<string>, reason: RegExp, what?: string): Promise<void> {
  const answer = await use(await token);
  assert.equal(answer.status, 401, `${what}: ${JSON.stringify(answer.body)}`);
  assert.equal(answer.body.code, "INVALID_CREDENTIAL", what);
  assert.match(answer.body.detail, reason, what);
}

test("the honest token, which all others here differ from in one point, is accepted", async () => {
  const { status, body } = await use(await sign());
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.key.agent_id, "deployer");
});

test("a token is accepted by the time of day, although the ledger's clock is a day ahead", needs("stop"), async () => {
  const ahead = await start();
  try {
    const submit = (key: string): Promise<Answer> =>
      ahead.call("POST", "/v1/actions", { key, body: { ...ALLOWED, agent_id: "deployer" } });
    ahead.clock.now += 86_400_000;
    await ahead.call("POST", "/v1/stop", { key: ahead.admin, body: { reason: "an entry", tool: "none" } });
    ahead.clock.now -= 86_400_000;
    assert.ok(ahead.runtime.host.ledger.clockAhead() > 86_000_000);
    assert.equal((await use(await sign(), ahead)).status, 200);
    assert.equal((await submit(await sign())).body.status, "allowed");
    assert.equal((await use(await sign({ exp: now() - 600, iat: now() - 900, nbf: now() - 900 }), ahead)).status, 401);
  } finally {
    await ahead.close();
  }
});

describe("signatures", () => {
  test("no algorithm, in any spelling, and no signature", async () => {
    for (const alg of ["none", "None", "NONE", ""]) {
      const unsigned = `${encode({ alg, typ: "JWT", kid: "first" })}.${encode(claims())}.`;
      await assertRefused(unsigned, /not valid/, alg);
      const [, , signature] = (await sign()).split(".");
      await assertRefused(unsigned + signature, /not valid/, alg);
    }
  });

  test("HS256 with the public key as the secret", async () => {
    const jwk = ci.keys[0] as JWK;
    const pem = await exportSPKI((await importJWK(jwk, "RS256")) as CryptoKey);
    for (const secret of [pem, JSON.stringify(jwk), jwk.n as string]) {
      const forged = await new SignJWT(claims())
        .setProtectedHeader({ alg: "HS256", typ: "JWT", kid: "first" })
        .sign(Buffer.from(secret));
      await assertRefused(forged, /"alg"/);
    }
  });

  test("an algorithm that is not configured, although the issuer has a key for it", async () => {
    await ci.addKey("elliptic", { alg: "ES256" });
    await assertRefused(sign({}, { alg: "ES256", kid: "elliptic" }), /"alg"/);
    await assertRefused(
      sign({}, { alg: "RS512" }).catch(
        () => `${encode({ alg: "RS512", typ: "JWT", kid: "first" })}.${encode(claims())}.AAAA`,
      ),
      /"alg"/,
    );
  });

  test("a changed payload, header or signature", async () => {
    const [head = "", , signature = ""] = (await sign()).split(".");
    await assertRefused(`${head}.${encode(claims({ repository: "acme/secrets" }))}.${signature}`, /signature/);
    const body = (await sign()).split(".")[1];
    await assertRefused(
      `${encode({ alg: "RS256", typ: "JWT", kid: "first", x: 1 })}.${body}.${signature}`,
      /signature/,
    );
    await assertRefused(`${head}.${body}.${encode("x")}`, /signature/);
  });

  test("a key of another issuer, by its own `kid` and by a `kid` that this issuer has too", async () => {
    const foreign = (kid: string) =>
      new SignJWT(claims()).setProtectedHeader({ alg: "RS256", typ: "JWT", kid }).sign(cluster.privateKey("first"));
    await assertRefused(foreign("first"), /signature/);
    await assertRefused(foreign("cluster-only"), /no applicable key/);
  });

  test("keys in a token's header are never used, and key addresses in it are never fetched", async () => {
    const evil = await startTokenIssuer();
    const before = evil.reads;
    const [jwk] = evil.keys;
    for (const header of [{ jku: evil.jwks }, { x5u: evil.jwks }, { jwk }, { jku: evil.jwks, kid: "evil" }]) {
      const forged = new SignJWT(claims())
        .setProtectedHeader({ alg: "RS256", typ: "JWT", kid: "first", ...header } as never)
        .sign(evil.privateKey("first"));
      await assertRefused(forged, /signature|no applicable key/);
    }
    assert.equal(evil.reads, before);
    await evil.close();
  });

  test("critical extensions, and an unencoded payload", async () => {
    await assertRefused(
      sign({}, { crit: ["exp"], exp: 1 }).catch(() => critical(["exp"])),
      /Extension Header|crit/,
    );
    await assertRefused(critical(["http://example.com/must"]), /Extension Header|crit/);
    const raw = await new CompactSign(Buffer.from(JSON.stringify(claims())))
      .setProtectedHeader({ alg: "RS256", typ: "JWT", kid: "first" })
      .sign(ci.privateKey("first"));
    assert.equal((await use(raw)).status, 200);
  });

  /** A header that a library refuses to sign. */
  async function critical(crit: string[]): Promise<string> {
    const [, body, signature] = (await sign()).split(".");
    return `${encode({ alg: "RS256", typ: "JWT", kid: "first", crit, [crit[0] as string]: true })}.${body}.${signature}`;
  }
});

describe("claims", () => {
  test("a token with a different issuer, audience, type or subject is rejected", async () => {
    const rows: [object, object, RegExp][] = [
      [{ iss: `${ISSUER}/` }, {}, /no issuer/],
      [{ iss: "https://evil.example.com" }, {}, /no issuer/],
      [{ iss: [ISSUER] }, {}, /no issuer/],
      [{ aud: "https://other.example.com" }, {}, /"aud"/],
      [{ aud: `${AUDIENCE}/` }, {}, /"aud"/],
      [{ aud: [] }, {}, /"aud"/],
      [{ aud: [AUDIENCE, "https://other.example.com"] }, {}, /`aud`/],
      [{}, { typ: "at+jwt" }, /type at\+jwt/],
      [{}, { typ: "oauth-id-jag+jwt" }, /type oauth-id-jag\+jwt/],
      [{}, { typ: undefined }, /type none/],
      [{ sub: "repo:evil/web:ref:refs/heads/main" }, {}, /no workload/],
      [{ sub: `${SUBJECT}:more` }, {}, /no workload/],
      [{ sub: "repo:acme/web/x:ref:refs/heads/main" }, {}, /no workload/],
      [{ sub: "repo:acme/:ref:refs/heads/main" }, {}, /no workload/],
      [{ sub: `evil ${SUBJECT}` }, {}, /no workload/],
      [{ sub: `${SUBJECT}\n` }, {}, /no workload/],
      [{ sub: "repo:acme/web:pull_request" }, {}, /no workload/],
      [{ sub: SUBJECT.toUpperCase() }, {}, /no workload/],
      [{ sub: 7 }, {}, /"sub"|`sub`/],
      [{ sub: "x".repeat(501) }, {}, /`sub`/],
      [{ cnf: { jkt: "x" } }, {}, /cnf/],
    ];
    for (const [over, header, reason] of rows)
      await assertRefused(sign(over, header), reason, JSON.stringify([over, header]));
    for (const name of ["iss", "sub", "aud", "exp"])
      await assertRefused(ci.sign(without(name), { typ: "JWT" }), /no issuer|missing/, name);
  });

  test("times: expired, not valid yet, issued in the future, valid for too long, and no numbers", async () => {
    const rows: [object, RegExp][] = [
      [{ iat: now() - 900, nbf: now() - 900, exp: now() - 301 }, /"exp"/],
      [{ nbf: now() + 360 }, /"nbf"/],
      [{ iat: now() + 360 }, /`iat`/],
      [{ exp: now() + 90_000 }, /longer than 86400/],
      [{ iat: now() - 86_000, exp: now() + 86_000 }, /longer than 86400/],
      [{ exp: String(now() + 300) }, /"exp"/],
      [{ exp: 1e300 }, /longer than|unsafe|not valid/],
    ];
    for (const [over, reason] of rows) await assertRefused(sign(over), reason, JSON.stringify(over));
  });

  test("clocks that are less than five minutes apart are accepted", async () => {
    assert.equal((await use(await sign({ iat: now() + 240, nbf: now() + 240 }))).status, 200);
    assert.equal((await use(await sign({ iat: now() - 600, exp: now() - 240 }))).status, 200);
  });

  test("a claim that cannot be recorded as it is", async () => {
    for (const list of [{ a: 1 }, "x".repeat(501), [1], Array.from({ length: 33 }, String), 0.5, null])
      await assertRefused(sign({ list }), /the claim "list"/, JSON.stringify(list).slice(0, 40));
    assert.equal((await use(await sign({ list: ["a", "b"] }))).status, 200);
  });

  test("an ID token, an incomplete ID-JAG and a complete one are no bearer tokens", async () => {
    const jag = { iss: COMPANY, sub: "ada", client_id: "desktop" };
    await assertRefused(sign(jag), /type jwt/);
    for (const missing of ["client_id", "jti", "iat"])
      await assertRefused(
        sign({ ...jag, [missing]: undefined }, { typ: "oauth-id-jag+jwt" }),
        /a token of id-jag needs/,
        missing,
      );
    await assertRefused(sign({ ...jag, jti: "" }, { typ: "oauth-id-jag+jwt" }), /a token of id-jag needs/);
    await assertRefused(sign(jag, { typ: "oauth-id-jag+jwt" }), /exchange it for an access token at \/oauth\/token/);
  });

  test("a JWT-SVID of a different trust domain, including one with the same prefix", async () => {
    for (const domain of ["spiffe://example.org.evil", "spiffe://evil.org", "SPIFFE://example.org"])
      await assertRefused(ci.sign({ ...without("iss"), sub: `${domain}/planner` }), /no issuer/, domain);
  });
});

describe("malformed tokens", () => {
  test("a duplicate member in header or payload", async () => {
    const head = encode('{"alg":"RS256","typ":"JWT","kid":"first","alg":"none"}');
    await assertRefused(`${head}.${encode(claims())}.AAAA`, /alg/);
    const text = JSON.stringify(claims());
    const twice = `${text.slice(0, -1)},"sub":"repo:acme/secrets:ref:refs/heads/main"}`;
    const signed = await new CompactSign(Buffer.from(twice))
      .setProtectedHeader({ alg: "RS256", typ: "JWT", kid: "first" })
      .sign(ci.privateKey("first"));
    await assertRefused(signed, /sub/);
  });

  test("an oversize, deep, binary or empty token", async () => {
    await assertRefused(sign({ pad: "x".repeat(8192) }), /more than 8192 bytes/);
    const nested = `${"[".repeat(100)}${"]".repeat(100)}`;
    await assertRefused(`${encode({ alg: "RS256" })}.${encode(`{"iss":${nested}}`)}.AAAA`, /not valid/);
    await assertRefused(`${encode({ alg: "RS256" })}.${Buffer.from([0xff, 0xfe]).toString("base64url")}.AAAA`, /UTF-8/);
    await assertRefused(`${encode({ alg: "RS256" })}.${encode("[]")}.AAAA`, /JSON object/);
    await assertRefused(`${encode({ alg: "RS256" })}.A.AAAA`, /base64url/);
  });

  test("what only looks like a token is treated as an API key", async () => {
    for (const value of ["a.b.c", "a.b.", `${encode("[]")}.e30.x`, `${encode('{"x":1}')}.e30.x`])
      await assertRefused(value, /the API key is not valid/, value);
    const { key } = await makeKey(service, { name: "by hand", agent_id: "planner", preset: "agent" });
    assert.equal((await use(key)).status, 200);
  });
});

describe("keys of an issuer", () => {
  test("a new key is found without a restart, and unknown keys cause one read in half a minute", async () => {
    service.clock.now += 60_000;
    await use(await sign());
    await ci.addKey("rotated");
    service.clock.now += 31_000;
    assert.equal((await use(await sign({}, { kid: "rotated" }))).status, 200);
    const before = ci.reads;
    for (const kid of ["a", "b", "c", "d"]) {
      const [, body, signature] = (await sign()).split(".");
      await assertRefused(`${encode({ alg: "RS256", typ: "JWT", kid })}.${body}.${signature}`, /no applicable key/);
    }
    assert.equal(ci.reads, before);
    service.clock.now += 31_000;
    const [, body, signature] = (await sign()).split(".");
    await assertRefused(`${encode({ alg: "RS256", typ: "JWT", kid: "e" })}.${body}.${signature}`, /no applicable key/);
    assert.equal(ci.reads, before + 1);
  });

  test("a key that the issuer withdraws is refused after ten minutes", async () => {
    await ci.addKey("leaked");
    service.clock.now += 31_000;
    assert.equal((await use(await sign({}, { kid: "leaked" }))).status, 200);
    ci.keys = ci.keys.filter(({ kid }) => kid !== "leaked");
    service.clock.now += 601_000;
    await assertRefused(sign({}, { kid: "leaked" }), /no applicable key/);
  });

  test("while keys cannot be read, known keys are used for an hour, and then all tokens are rejected", async () => {
    service.clock.now += 601_000;
    assert.equal((await use(await sign())).status, 200);
    ci.answer = { status: 500, body: "" };
    service.clock.now += 1_200_000;
    assert.equal((await use(await sign())).status, 200);
    service.clock.now += 2_500_000;
    const refused = await use(await sign());
    assert.equal(refused.status, 503);
    assert.equal(refused.body.code, "WORKLOAD_IDENTITY_KEYS_UNAVAILABLE");
    assert.match(refused.body.detail, /the issuer "ci" cannot be read/);
    ci.answer = null;
    service.clock.now += 31_000;
    assert.equal((await use(await sign())).status, 200);
  });

  test("a response that is not a key set, is too large, is a redirect, or has only secrets admits no token", async () => {
    const secret = { kty: "oct", k: encode("a secret that an attacker could know"), kid: "first", alg: "HS256" };
    const answers: NonNullable<TokenIssuer["answer"]>[] = [
      { body: "not json" },
      { body: "{}" },
      { body: JSON.stringify({ keys: "x" }) },
      { body: `{"keys":[],"keys":${JSON.stringify(ci.keys)}}` },
      { body: JSON.stringify({ keys: ci.keys, pad: "x".repeat(300_000) }) },
      { body: JSON.stringify({ keys: Array.from({ length: 101 }, () => ci.keys[0]) }) },
      { status: 302, body: "", headers: { location: ci.jwks } },
      { status: 404, body: JSON.stringify({ keys: ci.keys }) },
    ];
    for (const answer of answers) {
      ci.answer = answer;
      service.clock.now += 3_700_000;
      const { body } = await use(await sign());
      assert.equal(body.code, "WORKLOAD_IDENTITY_KEYS_UNAVAILABLE", answer.body.slice(0, 40));
    }
    ci.answer = { body: JSON.stringify({ keys: [secret] }) };
    service.clock.now += 3_700_000;
    await assertRefused(sign(), /no applicable key/);
    ci.answer = null;
    service.clock.now += 3_700_000;
    assert.equal((await use(await sign())).status, 200);
  });

  test("keys from a file work without a network, and without the file all tokens are rejected", async () => {
    const own = (): Promise<string> =>
      cluster.sign(claims({ iss: CLUSTER, sub: "system:serviceaccount:prod:planner" }), { typ: undefined });
    assert.equal((await use(await own())).status, 200);
    const options = configured().map((issuer) => ({ ...issuer, keys: `${keyFile}.gone` }));
    const other = await start(options);
    assert.equal((await use(await own(), other)).status, 503);
    await other.close();
  });
});

test("invalid tokens from one address are limited as invalid keys are", async () => {
  const limited = await startService({
    change(config) {
      config.rate_limits.bad_keys_per_minute = 3;
      config.server.public_url = AUDIENCE;
    },
    plugins: [
      {
        plugin: workloadIdentity as Plugin,
        options: { issuers: configured() },
        origin: "workload-identity",
        core: true,
      },
    ],
  });
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) statuses.push((await use(await sign({ aud: "other" }), limited)).status);
  assert.deepEqual(statuses, [401, 401, 401, 429, 429]);
  await limited.close();
});

test("options that no token could satisfy, or that could be read in two ways, stop the start with the reason", async () => {
  const [first = {}, , jag = {}, mesh = {}] = configured() as Record<string, any>[];
  const withWorkload = (issuer: Record<string, any>, over: object) => [
    { ...issuer, workloads: [{ ...issuer["workloads"][0], ...over }] },
  ];
  const rows: [object[], RegExp][] = [
    [[first, first], /two issuers have the id "ci"/],
    [[first, { ...first, id: "two" }], /two issuers have the issuer/],
    [[{ ...first, workloads: [...first["workloads"], ...first["workloads"]] }], /two workloads/],
    [[{ ...first, claims: { subject: "x" } }], /always recorded/],
    [withWorkload(first, { subject: undefined }), /needs a subject/],
    [withWorkload(first, { subject: "*" }), /matches everything/],
    [withWorkload(first, { subject: "repo:a*b*:x" }), /two `\*`/],
    [withWorkload(first, { where: { nothing: "x" } }), /the claim "nothing"/],
    [withWorkload(first, { owner: "Ada Lovelace" }), /"Ada Lovelace", which identifies no one/],
    [withWorkload(jag, { where: {} }), /client_id/],
    [withWorkload(jag, { owner: "user:x" }), /cannot have an owner/],
    [withWorkload(jag, { where: { client_id: "toString" } }), /the client "toString", which has no secret/],
    [[{ ...jag, clients: { desktop: "too short" } }], /clients/],
    [[{ ...jag, clients: { desktop: "changeme".repeat(5) } }], /the client "desktop" .* can be guessed: it repeats/],
    [[{ ...jag, audience: `${AUDIENCE}/` }], /must have the audience https:\/\/assent\.example\.com, .* got/],
    [[{ ...first, clients: jag["clients"] }], /which are for id-jag/],
    [withWorkload(mesh, { subject: "spiffe://other.org/planner" }), /must have a subject in/],
    [[{ ...first, algorithms: ["HS256"] }], /algorithms/],
    [[{ ...first, algorithms: ["none"] }], /algorithms/],
    [[{ ...first, algorithms: [] }], /algorithms/],
    [[{ ...first, keys: "http://ci.example.com/jwks" }], /keys/],
    [[{ ...first, keys: "jwks.json" }], /keys/],
  ];
  for (const [issuers, reason] of rows)
    await assert.rejects(start(issuers), reason, JSON.stringify(issuers).slice(0, 200));
});
