/** Sign-in at OpenID Connect providers, honest and lying ones. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { readProfile } from "../../../plugins/users/claims.ts";
import { createVisitor, destinationOf, startLyingProvider, type LyingProvider } from "../../support/lying-provider.ts";
import { startPeople } from "../../support/people.ts";
import { ASKED, makeKey, type Answer, type Service } from "../../support/service.ts";

const MINUTE = 60_000;
let service: Service;
let company: LyingProvider;
let other: LyingProvider;

before(async () => {
  [company, other] = [await startLyingProvider(), await startLyingProvider()];
  service = await startPeople({
    users: {
      providers: [optionsFor("company", company), optionsFor("other", other)],
    },
    change(config) {
      config.groups["bills"] = { members: [], tools: ["billing.*"] };
    },
  });
});
after(async () => {
  await service.close();
  await company.close();
  await other.close();
});
afterEach(() => {
  for (const provider of [company, other])
    Object.assign(provider, {
      claims: { sub: "1", name: "Ada" },
      lie: (x: object) => x,
      forges: false,
      ahead: 0,
      status: 0,
    });
});

function optionsFor(id: string, { issuer }: LyingProvider): object {
  return {
    id,
    name: `The ${id}`,
    issuer,
    client_id: "assent",
    client_secret: "secret",
    groups: { fin: ["finance"], bill: ["bills"] },
    roles: { boss: ["admin"], fin: ["approver"], bill: ["approver"] },
  };
}

interface Attempt {
  visitor: ReturnType<typeof createVisitor>;
  provider?: LyingProvider;
  id?: string;
  returnTo?: string;
  /** Changes the parameters of the callback. */
  change?(parameters: URLSearchParams): void;
  headers?: Record<string, string>;
}

const queryOf = (parameters: object, change?: (parameters: URLSearchParams) => void): string => {
  const query = new URLSearchParams(parameters as Record<string, string>);
  change?.(query);
  return query.toString();
};

async function attempt({
  visitor,
  provider = company,
  id = "company",
  returnTo,
  change,
  headers,
}: Attempt): Promise<Answer> {
  const query = returnTo === undefined ? "" : `?return_to=${encodeURIComponent(returnTo)}`;
  const started = await visitor.get(`/v1/sign-in/${id}${query}`);
  assert.equal(started.status, 303, JSON.stringify(started.body));
  const answer = provider.authorize(started.headers.get("location") ?? "");
  return visitor.get(`/v1/sign-in/${id}/callback?${queryOf(answer, change)}`, headers);
}

async function signInAs(claims: object, id = "company", provider = company): Promise<ReturnType<typeof createVisitor>> {
  provider.claims = { sub: "1", ...claims };
  const visitor = createVisitor(service);
  const done = await attempt({ visitor, id, provider });
  assert.equal(done.status, 303, JSON.stringify(done.body));
  return visitor;
}

const me = async (visitor: ReturnType<typeof createVisitor>): Promise<Answer["body"]> =>
  (await visitor.get("/v1/session")).body;

const countUsers = async (): Promise<number> =>
  (await service.call("GET", "/v1/users?limit=200", { key: service.admin })).body.users.length;

test("the providers are listed with the path that starts the sign-in", async () => {
  const { body } = await service.call("GET", "/v1/sign-in-methods", { key: null });
  assert.deepEqual(body.providers, [
    { id: "company", name: "The company", url: "/v1/sign-in/company" },
    { id: "other", name: "The other", url: "/v1/sign-in/other" },
  ]);
});

test("the first sign-in creates a user with the mapped roles and groups, and redirects to the path", async () => {
  company.claims = { sub: "ada", name: "Ada", groups: ["fin", "unmapped"], email: "ada@example.com" };
  const visitor = createVisitor(service);
  const done = await attempt({ visitor, returnTo: "/actions?x=1#y" });
  assert.equal(done.status, 303, JSON.stringify(done.body));
  assert.equal(destinationOf(done), "/actions?x=1#y");
  assert.match(done.headers.getSetCookie().join(), /assent_session_8000=[^;]+; .*HttpOnly; SameSite=Strict/);
  const { user, session } = await me(visitor);
  assert.deepEqual([user.name, user.roles, user.groups], ["Ada", ["approver"], ["finance"]]);
  assert.deepEqual(user.identities, [{ issuer: company.issuer, subject: "ada" }]);
  assert.deepEqual([user.managed_by, session.method], ["oidc:company", "oidc:company"]);
});

test("a later sign-in replaces name, groups and roles, and earlier sessions and records follow", async () => {
  const first = await signInAs({ sub: "eve", name: "Eve", groups: ["boss"] });
  const before = await me(first);
  assert.ok(before.scopes.includes("admin"));
  const second = await signInAs({ sub: "eve", name: "Eve Renamed", groups: ["fin"] });
  const { user } = await me(second);
  assert.equal(user.id, before.user.id);
  assert.deepEqual([user.name, user.roles, user.groups], ["Eve Renamed", ["approver"], ["finance"]]);
  assert.ok(!(await me(first)).scopes.includes("admin"), "the older session lost the role too");
  const unchanged = await service.storage.head();
  await signInAs({ sub: "eve", name: "Eve Renamed", groups: ["fin"] });
  assert.equal((await service.storage.head()).size, unchanged.size + 1, "only the session is recorded");
});

test("the same name, e-mail address or subject at another provider is another user", async () => {
  const claims = { sub: "same", name: "Same", email: "same@example.com" };
  const first = (await me(await signInAs(claims))).user.id;
  const renewed = (await me(await signInAs({ ...claims, sub: "recreated" }))).user.id;
  const elsewhere = (await me(await signInAs(claims, "other", other))).user.id;
  assert.equal(new Set([first, renewed, elsewhere]).size, 3);
});

test("groups of the sign-in count for votes, and their limits apply", async () => {
  const member = await signInAs({ sub: "limited", groups: ["bill"] });
  const submitted = await service.call("POST", "/v1/actions", { body: ASKED });
  assert.equal((await member.get(`/v1/actions/${submitted.body.id}`)).status, 404);
  const colleague = await signInAs({ sub: "unlimited", groups: ["fin"] });
  assert.equal((await colleague.get(`/v1/actions/${submitted.body.id}`)).status, 200);
});

test("a person whose groups the provider does not send has no rights, also with keys and earlier sessions", async () => {
  const claims = { sub: "contractor", name: "Con" };
  const first = await signInAs({ ...claims, groups: ["bill"] });
  const { id } = (await me(first)).user;
  const agent = { name: "con's agent", agent_id: "cons-agent", owner: `user:${id}`, preset: "agent" };
  const bot = await makeKey(service, agent);
  const hidden = await service.call("POST", "/v1/actions", {
    key: service.agent,
    body: { ...ASKED, agent_id: "cons-agent" },
  });
  const sees = async (key: string): Promise<number> =>
    (await service.call("GET", `/v1/actions/${hidden.body.id}`, { key })).status;
  assert.equal(await sees(bot.key), 404, "another tool than billing");
  // The person removed the scope `groups` from the address at the provider.
  for (const stripped of [{}, { groups: null }]) {
    const second = await signInAs({ ...claims, ...stripped });
    for (const session of [first, second]) {
      const { user, scopes } = await me(session);
      assert.deepEqual([user.id, user.roles, user.groups, scopes], [id, [], [], []]);
      assert.equal((await session.get("/v1/actions")).status, 403);
    }
    assert.equal(await sees(bot.key), 404, "the agent does not see more than before");
  }
  assert.ok(service.logged.some((line) => /did not send the groups/.test(line)));
  assert.deepEqual((await me(await signInAs({ ...claims, groups: ["bill"] }))).user.roles, ["approver"]);
  assert.deepEqual((await me(await signInAs({ ...claims, groups: [] }))).user.roles, []);
});

test("the admin of one provider becomes no user of another, whatever subject, address, issuer or name they send", async () => {
  const options = [
    { ...optionsFor("company", company), email_domains: ["example.com"] },
    { ...optionsFor("other", other), email_domains: ["other.example"] },
  ];
  const mine = await startPeople({
    users: { providers: options },
    change: (config) => (config.groups["bills"] = { members: ["ada@example.com", `${company.issuer}#ada`] }),
  });
  const arrive = async (provider: LyingProvider, id: string, claims: Record<string, unknown>): Promise<Answer> => {
    provider.claims = claims as LyingProvider["claims"];
    const visitor = createVisitor(mine);
    const started = await visitor.get(`/v1/sign-in/${id}`);
    const query = queryOf(provider.authorize(started.headers.get("location") ?? ""));
    const done = await visitor.get(`/v1/sign-in/${id}/callback?${query}`);
    return done.status === 303 ? visitor.get("/v1/session") : done;
  };
  try {
    const address = { email: "ada@example.com", email_verified: true };
    const before = await arrive(other, "other", { sub: "ada", name: "Ada", groups: ["boss"], ...address });
    assert.equal(before.body.code, "USERS_EMAIL_UNVERIFIED", "before Ada signs in for the first time");
    const { body: ada } = await arrive(company, "company", { sub: "ada", name: "Ada", groups: ["fin"], ...address });
    const mole = { email: "mole@other.example", email_verified: true };
    for (const claims of [
      { sub: "ada", ...mole, name: "Ada" },
      { sub: `${company.issuer}#ada`, ...mole, name: `user:${ada.user.id}` },
      { sub: ada.user.id, oid: "ada", ...mole, name: "ada@example.com" },
    ]) {
      const { status, body } = await arrive(other, "other", { ...claims, groups: ["fin"] });
      assert.equal(
        status === 200 ? body.user.managed_by : body.code,
        status === 200 ? "oidc:other" : "USERS_EMAIL_TAKEN",
      );
      if (status !== 200) continue;
      assert.notEqual(body.user.id, ada.user.id);
      const rights = await mine.call("GET", `/v1/users/${body.user.id}/rights`, { key: mine.admin });
      assert.deepEqual(rights.body.groups, ["finance"], "not in the group of Ada");
    }
    for (const email of [
      "ada@EXAMPLE.com",
      "ada@example.com.",
      "ada@sub.other.example",
      '"ada@example.com"@other.example@x',
      "ada@example.com\u0000@other.example",
      "ada@ｅxample.com",
    ])
      assert.equal(
        (await arrive(other, "other", { sub: "new", name: "Ada", groups: [], email, email_verified: true })).body.code,
        "USERS_EMAIL_UNVERIFIED",
        email,
      );
    for (const email_verified of [undefined, false, "false", 1, [true]])
      assert.equal(
        (await arrive(other, "other", { sub: "new", name: "N", groups: [], email: "n@other.example", email_verified }))
          .body.code,
        "USERS_EMAIL_UNVERIFIED",
      );
    const forged = { sub: "ada", name: "Ada", iss: company.issuer, groups: ["boss"], ...mole };
    assert.equal((await arrive(other, "other", forged)).body.code, "USERS_PROVIDER_INVALID");
    const rights = await mine.call("GET", `/v1/users/${ada.user.id}/rights`, { key: mine.admin });
    assert.deepEqual(rights.body.groups, ["bills", "finance"]);
  } finally {
    await mine.close();
  }
});

test("an answer for another provider, another browser or no browser is refused", async () => {
  const count = await countUsers();
  const visitor = createVisitor(service);
  const started = await visitor.get("/v1/sign-in/company");
  const answer = queryOf(company.authorize(started.headers.get("location") ?? ""));
  const elsewhere = await visitor.get(`/v1/sign-in/other/callback?${answer}`);
  assert.equal(elsewhere.body.code, "USERS_CHALLENGE_INVALID", "mixed-up provider");
  const victim = createVisitor(service);
  assert.equal((await victim.get(`/v1/sign-in/company/callback?${answer}`)).body.code, "USERS_CHALLENGE_INVALID");
  await victim.get("/v1/sign-in/company");
  assert.equal((await victim.get(`/v1/sign-in/company/callback?${answer}`)).body.code, "USERS_CHALLENGE_INVALID");
  assert.equal(await countUsers(), count);
});

test("a wrong or missing iss parameter is refused", async () => {
  for (const change of [
    (parameters: URLSearchParams) => parameters.set("iss", other.issuer),
    (parameters: URLSearchParams) => parameters.delete("iss"),
  ]) {
    const { body } = await attempt({ visitor: createVisitor(service), change });
    assert.equal(body.code, "USERS_PROVIDER_INVALID", JSON.stringify(body));
  }
});

function without(claims: Record<string, unknown>, name: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(claims).filter(([each]) => each !== name));
}

test("an ID token with a wrong nonce, issuer, audience, signature or age is refused", async () => {
  const hour = 3600;
  const lies: [string, (claims: Record<string, unknown>) => object][] = [
    ["nonce", (claims) => ({ ...claims, nonce: "tampered" })],
    ["no nonce", (claims) => without(claims, "nonce")],
    ["issuer", (claims) => ({ ...claims, iss: other.issuer })],
    ["audience", (claims) => ({ ...claims, aud: "somebody-else" })],
    ["expired", (claims) => ({ ...claims, exp: Math.floor(Date.now() / 1000) - hour })],
    ["no subject", (claims) => without(claims, "sub")],
    ["groups", (claims) => ({ ...claims, groups: [{ name: "boss" }] })],
    ["reference", (claims) => ({ ...without(claims, "groups"), _claim_names: { groups: "src1" } })],
  ];
  const count = await countUsers();
  for (const [what, lie] of lies) {
    company.lie = lie as LyingProvider["lie"];
    const visitor = createVisitor(service);
    const { body } = await attempt({ visitor });
    assert.equal(body.code, "USERS_PROVIDER_INVALID", `${what}: ${JSON.stringify(body)}`);
    assert.ok(!visitor.cookies.has("assent_session_8000"), what);
  }
  company.lie = (claims) => claims;
  company.forges = true;
  assert.equal((await attempt({ visitor: createVisitor(service) })).body.code, "USERS_PROVIDER_INVALID", "signature");
  assert.equal(await countUsers(), count);
});

test("a replayed callback is rejected, even if the provider accepts the code twice", async () => {
  const visitor = createVisitor(service);
  const started = await visitor.get("/v1/sign-in/company");
  const location = started.headers.get("location") ?? "";
  const answer = company.authorize(location);
  const path = `/v1/sign-in/company/callback?${queryOf(answer)}`;
  assert.equal((await visitor.get(path)).status, 303);
  assert.equal((await visitor.get(path)).body.code, "USERS_PROVIDER_REFUSED", "the code is spent");
  company.codes.set(answer.code, new URL(location).searchParams);
  assert.equal((await visitor.get(path)).body.code, "USERS_CHALLENGE_INVALID", "the state is spent");
});

test("the client secret is sent in the way that the provider accepts, also for checks of the session", async () => {
  const cases: [string[] | undefined, LyingProvider["secretMethod"], LyingProvider["wrongMethod"]?][] = [
    [undefined, "client_secret_basic"],
    [["client_secret_basic"], "client_secret_basic"],
    [["client_secret_post"], "client_secret_post"],
    [["private_key_jwt", "client_secret_post", "client_secret_basic"], "client_secret_basic"],
    [["client_secret_basic", "client_secret_post"], "client_secret_post"],
    // Keycloak names the client unauthorized, and some providers send only a status.
    [["client_secret_basic", "client_secret_post"], "client_secret_post", [401, { error: "unauthorized_client" }]],
    [["client_secret_basic", "client_secret_post"], "client_secret_post", [400, { error: "unauthorized_client" }]],
    [["client_secret_basic", "client_secret_post"], "client_secret_post", [401, "no"]],
  ];
  for (const [announced, accepted, wrongMethod] of cases) {
    const provider = await startLyingProvider();
    Object.assign(provider, {
      metadata: { token_endpoint_auth_methods_supported: announced },
      secretMethod: accepted,
      ...(wrongMethod === undefined ? {} : { wrongMethod }),
      offline: true,
    });
    const options = { ...optionsFor("company", provider), refresh_minutes: 1 };
    const mine = await startPeople({ users: { providers: [options] } });
    try {
      const visitor = createVisitor(mine);
      const done = await attempt({ visitor, provider });
      assert.equal(done.status, 303, `${String(announced)} ${JSON.stringify(done.body)}`);
      mine.clock.now += 2 * MINUTE;
      const [token] = provider.refreshTokens;
      assert.equal((await visitor.get("/v1/session")).status, 200);
      assert.ok(!provider.refreshTokens.has(token as string), "the session was checked");
    } finally {
      await mine.close();
      await provider.close();
    }
  }
});

test("a provider that accepts no client secret is named", async () => {
  const provider = await startLyingProvider();
  provider.metadata = { token_endpoint_auth_methods_supported: ["private_key_jwt", "none"] };
  const mine = await startPeople({ users: { providers: [optionsFor("company", provider)] } });
  try {
    const { body } = await createVisitor(mine).get("/v1/sign-in/company");
    assert.equal(body.code, "USERS_PROVIDER_INVALID");
    assert.match(body.detail, /accepts no client secret, only private_key_jwt, none/);
  } finally {
    await mine.close();
    await provider.close();
  }
});

test("redirects go only to paths of this service", async () => {
  for (const returnTo of [
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/.//evil.example",
    "/x/..//evil.example",
    "javascript:alert(1)",
    "",
  ]) {
    const done = await attempt({ visitor: createVisitor(service), returnTo });
    assert.equal(destinationOf(done), "/", returnTo);
  }
  const visitor = createVisitor(service);
  const started = await visitor.get("/v1/sign-in/company?return_to=/a");
  const answer = queryOf(company.authorize(started.headers.get("location") ?? ""));
  const [secret = ""] = (visitor.cookies.get("assent_sign_in_8000") ?? "").split(".");
  visitor.cookies.set("assent_sign_in_8000", `${secret}.${Buffer.from("//evil.example").toString("base64url")}`);
  assert.equal((await visitor.get(`/v1/sign-in/company/callback?${answer}`)).body.code, "USERS_CHALLENGE_INVALID");
});

test("a session cookie from before the sign-in is not reused", async () => {
  const mallory = await signInAs({ sub: "mallory" });
  const planted = mallory.cookies.get("assent_session_8000") ?? "";
  const visitor = createVisitor(service);
  visitor.cookies.set("assent_session_8000", planted);
  company.claims = { sub: "victim" };
  assert.equal((await attempt({ visitor })).status, 303);
  assert.notEqual(visitor.cookies.get("assent_session_8000"), planted);
  const mine = (await me(visitor)).user;
  assert.equal(mine.identities[0].subject, "victim");
  assert.equal((await me(mallory)).user.identities[0].subject, "mallory");
});

test("while the provider is down, sessions continue and new sign-ins say why they fail", async () => {
  const eve = await signInAs({ sub: "early" }, "other", other);
  const visitor = createVisitor(service);
  const started = await visitor.get("/v1/sign-in/other");
  const answer = queryOf(other.authorize(started.headers.get("location") ?? ""));
  other.status = 503;
  const path = `/v1/sign-in/other/callback?${answer}`;
  const refused = await visitor.get(path);
  assert.equal(refused.status, 503, JSON.stringify(refused.body));
  assert.equal(refused.body.code, "USERS_PROVIDER_UNAVAILABLE");
  assert.match(refused.body.detail, /^The other does not respond, so no one can sign in there now/);
  assert.equal((await eve.get("/v1/session")).status, 200);
  other.status = 0;
  assert.equal((await visitor.get(path)).status, 303, "the same answer works once the provider is back");
});

test("sign-ins fail until a provider responds for the first time", async () => {
  const late = await startLyingProvider();
  const mine = await startPeople({ users: { providers: [optionsFor("late", late)] } });
  try {
    late.status = 502;
    const visitor = createVisitor(mine);
    assert.equal((await visitor.get("/v1/sign-in/late")).body.code, "USERS_PROVIDER_UNAVAILABLE");
    const page = await visitor.get("/v1/sign-in/late", { accept: "text/html" });
    assert.deepEqual([page.status, page.headers.get("location")], [303, "/sign-in?failed=USERS_PROVIDER_UNAVAILABLE"]);
    late.status = 0;
    assert.equal((await visitor.get("/v1/sign-in/late")).status, 303);
    await late.close();
    const started = await visitor.get("/v1/sign-in/late");
    const answer = queryOf(late.authorize(started.headers.get("location") ?? ""));
    const gone = await visitor.get(`/v1/sign-in/late/callback?${answer}`);
    assert.equal(gone.body.code, "USERS_PROVIDER_UNAVAILABLE", "refused connection");
  } finally {
    await mine.close();
  }
});

test("clocks can be four minutes apart, but not an hour", async () => {
  for (const [seconds, status] of [
    [240, 303],
    [-240, 303],
    [-3600, 403],
  ] as const) {
    company.ahead = seconds;
    assert.equal((await attempt({ visitor: createVisitor(service) })).status, status, `${seconds} s`);
  }
});

test("a callback after more than ten minutes is rejected", async () => {
  const visitor = createVisitor(service);
  const started = await visitor.get("/v1/sign-in/company");
  const answer = queryOf(company.authorize(started.headers.get("location") ?? ""));
  service.clock.now += 11 * MINUTE;
  const late = await visitor.get(`/v1/sign-in/company/callback?${answer}`);
  assert.equal(late.body.code, "USERS_CHALLENGE_INVALID");
});

test("a person whom the provider rejects, and a deactivated user, are not signed in", async () => {
  const { body } = await attempt({
    visitor: createVisitor(service),
    change(parameters) {
      parameters.delete("code");
      parameters.set("error", "access_denied");
    },
  });
  assert.equal(body.code, "USERS_PROVIDER_REFUSED");
  assert.match(body.detail, /The company refused the sign-in \(access_denied\)/);
  const gone = await signInAs({ sub: "gone", groups: ["fin"] });
  const { user } = await me(gone);
  await service.call("POST", `/v1/users/${user.id}/end`, { key: service.admin, body: {} });
  assert.equal((await gone.get("/v1/session")).status, 401);
  company.claims = { sub: "gone", groups: ["fin"] };
  assert.equal((await attempt({ visitor: createVisitor(service) })).body.code, "USERS_SIGN_IN_ENDED");
});

test("name, roles and links of a provider's user cannot be changed here", async () => {
  const { user } = await me(await signInAs({ sub: "managed" }));
  const change = await service.call("PATCH", `/v1/users/${user.id}`, {
    key: service.admin,
    body: { roles: ["admin"] },
  });
  const link = await service.call("POST", `/v1/users/${user.id}/link`, { key: service.admin });
  assert.deepEqual([change.body.code, link.body.code], ["USERS_MANAGED", "USERS_MANAGED"]);
});

test("an unknown provider, and two providers with one issuer, are refused", async () => {
  assert.equal((await createVisitor(service).get("/v1/sign-in/nobody")).body.code, "USERS_PROVIDER_UNKNOWN");
  await assert.rejects(
    startPeople({ users: { providers: [optionsFor("a", company), optionsFor("b", company)] } }),
    /two providers have the issuer/,
  );
  const [mine, theirs] = [
    { ...optionsFor("a", company), email_domains: ["example.com"] },
    { ...optionsFor("b", other), email_domains: ["example.org", "EXAMPLE.com"] },
  ];
  await assert.rejects(startPeople({ users: { providers: [mine, theirs] } }), /two providers have the e-mail domain/);
  const plain = { ...optionsFor("a", company), issuer: "http://login.example.com" };
  await assert.rejects(startPeople({ users: { providers: [plain] } }), /issuer/);
});

/** A provider as its documentation describes it: its issuer, its discovery document, and the claims of one person. */
interface ProviderShape {
  path: string;
  metadata: Record<string, unknown>;
  secretMethod: LyingProvider["secretMethod"];
  /** Options in addition to those of `optionsFor`. */
  options: object;
  claims: Record<string, unknown>;
  userinfo?: Record<string, unknown>;
  /** The name, groups and roles of the user. */
  expected: [name: string, groups: string[], roles: string[]];
  /** The claims without the person's groups, which give no rights. */
  stripped: string[];
}

const BOTH = ["client_secret_basic", "client_secret_post"];
const PROVIDERS: Record<string, ProviderShape> = {
  okta: {
    path: "/oauth2/default",
    metadata: {
      token_endpoint_auth_methods_supported: [...BOTH, "client_secret_jwt", "private_key_jwt", "none"],
      authorization_response_iss_parameter_supported: undefined,
    },
    secretMethod: "client_secret_basic",
    options: { scopes: ["openid", "profile", "email", "groups"], email_domains: ["example.com"] },
    claims: {
      sub: "00uid4BxXw6I6TV4m0g3",
      ver: 1,
      amr: ["mfa", "otp", "pwd"],
      idp: "00ok1u7AsAkrwdZL3z0g3",
      auth_time: 1311280969,
      at_hash: "preview_at_hash",
      name: "Saml Jackit",
      email: "saml@example.com",
      email_verified: true,
      groups: ["Everyone", "fin"],
    },
    expected: ["Saml Jackit", ["finance"], ["approver"]],
    stripped: ["groups"],
  },
  entra: {
    path: "/8eaef023-2b34-4da1-9baa-8bc8c9d6a490/v2.0",
    metadata: {
      token_endpoint_auth_methods_supported: ["client_secret_post", "private_key_jwt", "client_secret_basic"],
      response_modes_supported: ["query", "fragment", "form_post"],
      authorization_response_iss_parameter_supported: undefined,
    },
    secretMethod: "client_secret_post",
    options: { groups_claim: "roles", subject_claim: "oid" },
    claims: {
      sub: "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ",
      oid: "690222be-ff1a-4d56-abd1-7e4f7d38e474",
      tid: "8eaef023-2b34-4da1-9baa-8bc8c9d6a490",
      ver: "2.0",
      uti: "kiGnM6wHBUuKVpKFtUYWAA",
      rh: "0.AXoA",
      name: "Abe Lincoln",
      preferred_username: "AbeLi@microsoft.com",
      roles: ["fin"],
    },
    expected: ["Abe Lincoln", ["finance"], ["approver"]],
    stripped: ["roles"],
  },
  google: {
    path: "",
    metadata: {
      token_endpoint_auth_methods_supported: ["client_secret_post", "client_secret_basic"],
      authorization_response_iss_parameter_supported: undefined,
    },
    secretMethod: null,
    options: { groups_claim: "hd", groups: { "example.com": ["finance"] }, roles: { "example.com": ["approver"] } },
    claims: {
      azp: "assent",
      sub: "10769150350006150715113082367",
      at_hash: "HK6E_P6Dh8Y93mRNtsDB1Q",
      hd: "example.com",
      email: "jsmith@example.com",
      email_verified: true,
      name: "Jane Smith",
      given_name: "Jane",
      picture: "https://lh3.googleusercontent.com/a",
    },
    expected: ["Jane Smith", ["finance"], ["approver"]],
    stripped: ["hd"],
  },
  keycloak: {
    path: "/realms/company",
    metadata: {
      token_endpoint_auth_methods_supported: ["private_key_jwt", ...BOTH, "tls_client_auth", "client_secret_jwt"],
    },
    secretMethod: "client_secret_basic",
    options: { groups_claim: "/realm_access/roles" },
    claims: {
      auth_time: 1711280969,
      jti: "a1",
      sub: "f:550e8400-e29b:ada",
      typ: "ID",
      azp: "assent",
      sid: "6b1f6f7e",
      acr: "1",
      realm_access: { roles: ["default-roles-company", "offline_access", "fin"] },
      resource_access: { account: { roles: ["boss"] } },
      email_verified: false,
      name: "Kay Cloak",
      preferred_username: "kay",
    },
    expected: ["Kay Cloak", ["finance"], ["approver"]],
    stripped: ["realm_access"],
  },
  "keycloak with roles of the client in userinfo": {
    path: "/realms/company",
    metadata: { token_endpoint_auth_methods_supported: BOTH, userinfo_endpoint: "/userinfo" },
    secretMethod: "client_secret_basic",
    options: { groups_claim: "/resource_access/assent/roles" },
    claims: { sub: "kim", azp: "assent", name: "Kim Client", resource_access: { account: { roles: ["boss"] } } },
    userinfo: { name: "Someone else", resource_access: { account: { roles: ["boss"] }, assent: { roles: ["fin"] } } },
    expected: ["Kim Client", ["finance"], ["approver"]],
    stripped: ["resource_access"],
  },
  auth0: {
    path: "/",
    metadata: {
      token_endpoint_auth_methods_supported: [...BOTH, "private_key_jwt", "tls_client_auth"],
      authorization_response_iss_parameter_supported: undefined,
    },
    secretMethod: "client_secret_post",
    options: { groups_claim: "https://example.com/roles" },
    claims: {
      sub: "auth0|507f1f77bcf86cd799439011",
      nickname: "john",
      name: "John Doe",
      updated_at: "2026-01-01T00:00:00.000Z",
      sid: "s",
      "https://example.com/roles": ["fin"],
    },
    expected: ["John Doe", ["finance"], ["approver"]],
    stripped: ["https://example.com/roles"],
  },
  authentik: {
    path: "/application/o/assent/",
    metadata: {
      token_endpoint_auth_methods_supported: ["client_secret_post", "client_secret_basic"],
      userinfo_endpoint: "/userinfo",
    },
    secretMethod: "client_secret_basic",
    options: {},
    claims: { sub: "b1946ac92492d2347c6235b4d2611184", acr: "goauthentik.io/providers/oauth2/default" },
    userinfo: {
      name: "Aki Authentik",
      nickname: "aki",
      groups: ["authentik Admins", "fin"],
      entitlements: [],
      roles: [],
    },
    expected: ["Aki Authentik", ["finance"], ["approver"]],
    stripped: ["groups"],
  },
  zitadel: {
    path: "",
    metadata: { token_endpoint_auth_methods_supported: ["none", ...BOTH, "private_key_jwt"] },
    secretMethod: "client_secret_basic",
    options: { groups_claim: "urn:zitadel:iam:org:project:roles" },
    claims: {
      sub: "165617389845094785",
      aud: ["assent", "161363190463799809@company", "161363190463799810"],
      azp: "assent",
      client_id: "assent",
      amr: ["password", "pwd", "mfa", "otp"],
      name: "Road Runner",
      "urn:zitadel:iam:org:project:roles": { fin: { "165617389845094786": "company.zitadel.cloud" } },
    },
    expected: ["Road Runner", ["finance"], ["approver"]],
    stripped: ["urn:zitadel:iam:org:project:roles"],
  },
};

test("people sign in at providers in the forms of common products, and have no rights without their groups", async () => {
  const shapes = Object.entries(PROVIDERS).map(([name, shape], i) => ({ id: `p${i}`, name, shape }));
  const started = await Promise.all(
    shapes.map(async ({ id, name, shape }) => {
      const { userinfo_endpoint: endpoint, ...metadata } = shape.metadata;
      const provider = await startLyingProvider(shape.path);
      const { origin } = new URL(provider.issuer);
      provider.metadata = {
        ...metadata,
        ...(endpoint === undefined ? {} : { userinfo_endpoint: `${origin}/userinfo` }),
      };
      provider.secretMethod = shape.secretMethod;
      return { id, name, shape, provider, options: { ...optionsFor(id, provider), ...shape.options } };
    }),
  );
  const mine = await startPeople({ users: { providers: started.map(({ options }) => options) } });
  try {
    for (const { id, name, shape, provider } of started) {
      const without = (claims: object): object =>
        Object.fromEntries(Object.entries(claims).filter(([claim]) => !shape.stripped.includes(claim)));
      for (const [change, [displayed, groups, roles]] of [
        [(claims: object) => claims, shape.expected],
        [without, [shape.expected[0], [], []]],
      ] as [(claims: object) => object, ProviderShape["expected"]][]) {
        provider.claims = change(shape.claims) as LyingProvider["claims"];
        provider.userinfo = change(shape.userinfo ?? {}) as LyingProvider["userinfo"];
        const visitor = createVisitor(mine);
        const begun = await visitor.get(`/v1/sign-in/${id}`);
        const { iss, ...answered } = provider.authorize(begun.headers.get("location") ?? "");
        const sendsIssuer = !("authorization_response_iss_parameter_supported" in provider.metadata);
        const query = queryOf({ ...answered, ...(sendsIssuer ? { iss } : {}) });
        const done = await visitor.get(`/v1/sign-in/${id}/callback?${query}`);
        assert.equal(done.status, 303, `${name} ${JSON.stringify(done.body)}`);
        const { user } = await me(visitor);
        assert.deepEqual([user.name, user.groups, user.roles], [displayed, groups, roles], name);
        const { sub, oid = sub } = shape.claims;
        assert.deepEqual(user.identities, [{ issuer: provider.issuer, subject: oid }], name);
      }
    }
  } finally {
    await mine.close();
    for (const { provider } of started) await provider.close();
  }
});

test("a groups claim with empty names only counts as absent, so it does not give the roles of everyone", () => {
  const options = { ...optionsFor("company", company), name_claim: "name", groups_claim: "groups", email_domains: [] };
  const provider = { ...options, everyone: ["viewer"] } as unknown as Parameters<typeof readProfile>[0];
  for (const groups of [undefined, null, "", " ", [""], ["", "\t"]])
    assert.deepEqual(readProfile(provider, { sub: "1", groups }).roles, [], JSON.stringify(groups));
  for (const groups of [[], {}, ["", "other"]])
    assert.deepEqual(readProfile(provider, { sub: "1", groups }).roles, ["viewer"], JSON.stringify(groups));
});

test("a groups claim in another form is refused instead of read as no groups", async () => {
  const joined = ["fin,bill", "other bill", " bill", "bill;", "fin|bill", '["bill","fin"]', "[bill, fin]"];
  for (const groups of [5, true, [5], [["fin"]], { fin: "x" }, { fin: { a: "b" }, bill: null }, ...joined]) {
    company.claims = { sub: "odd", name: "Odd", groups };
    const { body } = await attempt({ visitor: createVisitor(service) });
    assert.equal(body.code, "USERS_PROVIDER_INVALID", JSON.stringify(groups));
  }
  for (const [groups, expected] of [
    ["bill", ["bills"]],
    ["billing, invoices", []],
    [["a bill", "fin"], ["finance"]],
  ] as const)
    assert.deepEqual((await me(await signInAs({ sub: "plain", groups }))).user.groups, expected);
  company.claims = { sub: "odd", name: "Odd", _claim_names: { groups: "src1" }, _claim_sources: { src1: {} } };
  const answer = await attempt({ visitor: createVisitor(service) });
  assert.match(answer.body.detail, /too many groups/);
});
