/** Sessions that the provider ends: back-channel logout and the refresh check. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { createVisitor, startLyingProvider, type LyingProvider } from "../../support/lying-provider.ts";
import { startPeople } from "../../support/people.ts";
import type { Answer, Service } from "../../support/service.ts";

const MINUTE = 60_000;
type Visitor = ReturnType<typeof createVisitor>;
let service: Service;
let company: LyingProvider;
let other: LyingProvider;
let n = 0;

before(async () => {
  [company, other] = [await startLyingProvider(), await startLyingProvider()];
  const options = (id: string, { issuer }: LyingProvider): object => ({
    id,
    name: `The ${id}`,
    issuer,
    client_id: "assent",
    client_secret: "secret",
  });
  service = await startPeople({ users: { providers: [options("company", company), options("other", other)] } });
});
after(async () => {
  await service.close();
  await company.close();
  await other.close();
});
afterEach(() => {
  for (const provider of [company, other]) {
    Object.assign(provider, { forges: false, status: 0, offline: false });
    provider.refreshTokens.clear();
  }
});

async function signIn(claims: { sub: string; sid?: string }, id = "company", provider = company): Promise<Visitor> {
  provider.claims = { name: "Ada", ...claims };
  const visitor = createVisitor(service);
  const started = await visitor.get(`/v1/sign-in/${id}`);
  const query = new URLSearchParams({ ...provider.authorize(started.headers.get("location") ?? "") });
  const done = await visitor.get(`/v1/sign-in/${id}/callback?${query.toString()}`);
  assert.equal(done.status, 303, JSON.stringify(done.body));
  return visitor;
}

const statusOf = async (visitor: Visitor): Promise<number> => (await visitor.get("/v1/session")).status;
const send = (token: string, id = "company"): Promise<Answer> =>
  service.call("POST", `/v1/sign-in/${id}/logout`, {
    key: null,
    raw: new URLSearchParams({ logout_token: token }).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
const newSub = (): string => `person-${++n}`;

test("a logout token ends the sessions of its sub, or only the one of its sid, and no one else's", async () => {
  const sub = newSub();
  const [one, two, none] = [await signIn({ sub, sid: "s1" }), await signIn({ sub, sid: "s2" }), await signIn({ sub })];
  const elsewhere = await signIn({ sub, sid: "s1" }, "other", other);
  const colleague = await signIn({ sub: newSub(), sid: "s3" });
  const all = [one, two, none, elsewhere, colleague];
  const statuses = (): Promise<number[]> => Promise.all(all.map(statusOf));
  assert.equal((await send(await company.logoutToken({ sid: "s1" }))).status, 200);
  assert.deepEqual(await statuses(), [401, 200, 200, 200, 200]);
  assert.equal((await send(await company.logoutToken({ sub, sid: "s2" }))).status, 200);
  assert.deepEqual(await statuses(), [401, 401, 401, 200, 200], "a session without a sid follows its sub");
  const [three, four] = [await signIn({ sub, sid: "s4" }), await signIn({ sub })];
  assert.equal((await send(await company.logoutToken({ sub }))).status, 200);
  assert.deepEqual([await statusOf(three), await statusOf(four), await statusOf(elsewhere)], [401, 401, 200]);
  const entries = await service.storage.entries(0, 10_000);
  const ends = entries
    .map(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)))
    .filter(({ type, data }) => type === "users:session" && data.reason === "the provider ended the login");
  assert.equal(ends.length, 5);
});

test("a forged, foreign, old, incomplete or ambiguous logout token ends nothing", async () => {
  const sub = newSub();
  const visitor = await signIn({ sub, sid: "kept" });
  const seconds = Math.floor(Date.now() / 1000);
  const lies: [string, Record<string, unknown>, Record<string, unknown>?][] = [
    ["another issuer", { iss: other.issuer }],
    ["another audience", { aud: "somebody-else" }],
    ["no audience", { aud: undefined }],
    ["expired", { exp: seconds - 3600 }],
    ["old", { iat: seconds - 3600 }],
    ["no iat", { iat: undefined }],
    ["no jti", { jti: undefined }],
    ["a jti that is no text", { jti: 7 }],
    ["no events", { events: undefined }],
    ["another event", { events: { "http://schemas.openid.net/event/other": {} } }],
    ["an event that is no object", { events: { "http://schemas.openid.net/event/backchannel-logout": true } }],
    ["events as a text", { events: "http://schemas.openid.net/event/backchannel-logout" }],
    ["a nonce, as an ID token has", { nonce: "n" }],
    ["a nonce that is null", { nonce: null }],
    ["neither sub nor sid", { sub: undefined }],
    ["a sub that is a list", { sub: [sub] }],
    ["an empty sub", { sub: "" }],
    ["another type", {}, { typ: "at+jwt" }],
  ];
  for (const [what, change, header] of lies) {
    const answer = await send(await company.logoutToken({ sub, ...change }, header));
    assert.deepEqual([what, answer.status, answer.body.code], [what, 400, "USERS_LOGOUT_INVALID"], answer.body.detail);
  }
  company.forges = true;
  assert.equal((await send(await company.logoutToken({ sub }))).status, 400, "signature");
  company.forges = false;
  const [, payload = ""] = (await company.logoutToken({ sub })).split(".");
  const none = Buffer.from(JSON.stringify({ alg: "none", typ: "logout+jwt" })).toString("base64url");
  assert.equal((await send(`${none}.${payload}.`)).status, 400, "no signature");
  for (const raw of ["", "logout_token=", "logout_token=a&logout_token=b", "other=1"]) {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const answer = await service.call("POST", "/v1/sign-in/company/logout", { key: null, raw, headers });
    assert.equal(answer.status, 400, raw);
  }
  const asJson = await service.call("POST", "/v1/sign-in/company/logout", {
    key: null,
    body: { logout_token: await company.logoutToken({ sub }) },
  });
  assert.equal(asJson.status, 415, "a body of JSON, which no schema checks");
  assert.equal((await send(await other.logoutToken({ sub }))).status, 400, "of another provider");
  assert.equal((await send(await company.logoutToken({ sub }), "nowhere")).status, 404);
  assert.equal(await statusOf(visitor), 200);
});

test("a replayed logout token does not end later sessions", async () => {
  const sub = newSub();
  const first = await signIn({ sub });
  const token = await company.logoutToken({ sub });
  const both = await Promise.all([send(token), send(token)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 400]);
  assert.equal(await statusOf(first), 401);
  const second = await signIn({ sub });
  assert.match((await send(token)).body.detail, /used before/);
  assert.equal(await statusOf(second), 200);
});

test("a session is checked at its provider, and ends when the provider rejects it", async () => {
  company.offline = true;
  const visitor = await signIn({ sub: newSub() });
  const [first = ""] = company.refreshTokens;
  const documents = await service.storage.documents({ plugin: "users", prefix: "session/", limit: 1000 });
  assert.ok(!JSON.stringify(documents).includes(first), "the token is stored encrypted");
  assert.equal(await statusOf(visitor), 200);
  assert.ok(company.refreshTokens.has(first), "not yet due");
  service.clock.now += 16 * MINUTE;
  assert.deepEqual(await Promise.all([statusOf(visitor), statusOf(visitor), statusOf(visitor)]), [200, 200, 200]);
  assert.ok(!company.refreshTokens.has(first) && company.refreshTokens.size === 1, "used once, and replaced");
  service.clock.now += 16 * MINUTE;
  assert.equal(await statusOf(visitor), 200, "with the replaced token");
  company.refreshTokens.clear();
  service.clock.now += 16 * MINUTE;
  assert.equal(await statusOf(visitor), 401);
  assert.equal(await statusOf(visitor), 401);
});

test("requests during a check that the provider refuses are refused, too", async () => {
  company.offline = true;
  const visitor = await signIn({ sub: newSub() });
  const { beforeRefresh } = company;
  let answer: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    company.beforeRefresh = () => {
      resolve();
      return new Promise((done) => (answer = done));
    };
  });
  company.refreshTokens.clear();
  service.clock.now += 16 * MINUTE;
  const first = statusOf(visitor);
  await asked;
  const others = [statusOf(visitor), statusOf(visitor)];
  // Without the wait, these requests are answered before the provider answers.
  for (let i = 0; i < 20; i++) await service.call("GET", "/v1/me", { key: service.admin });
  answer();
  assert.deepEqual(await Promise.all([first, ...others]), [401, 401, 401]);
  company.beforeRefresh = beforeRefresh;
});

test("while the provider is down a session continues, is checked again, and ends at its absolute limit", async () => {
  company.offline = true;
  const visitor = await signIn({ sub: newSub() });
  company.status = 503;
  for (let hours = 0; hours < 160; hours += 8) {
    service.clock.now += 8 * 60 * MINUTE;
    assert.equal(await statusOf(visitor), 200, `${hours} hours`);
  }
  service.clock.now += 9 * 60 * MINUTE;
  assert.equal(await statusOf(visitor), 401, "the absolute limit");
  company.status = 0;
  // With 429, the provider has too many requests, and says nothing about the person.
  for (const status of [503, 429, 408]) {
    const leaver = await signIn({ sub: newSub() });
    company.status = status;
    service.clock.now += 16 * MINUTE;
    assert.equal(await statusOf(leaver), 200, `status ${status}`);
    company.status = 0;
    company.refreshTokens.clear();
    service.clock.now += 2 * MINUTE;
    assert.equal(await statusOf(leaver), 401, "refused as soon as the provider answers again");
  }
});

test("a session without a refresh token is not checked", async () => {
  const visitor = await signIn({ sub: newSub() });
  company.status = 503;
  service.clock.now += 60 * MINUTE;
  assert.equal(await statusOf(visitor), 200);
});
