/** Hostile and broken passkey responses: replays, other origins, copied authenticators, ended and re-created users. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createAuthenticator } from "../../support/authenticator.ts";
import { cookieOf, enrol, invite, ORIGIN, PAGE, signIn, startPeople, enrolmentToken } from "../../support/people.ts";
import { ASKED, ASKED_TWO, makeKey, type Service } from "../../support/service.ts";

const MINUTE = 60_000;
let service: Service;
before(async () => {
  service = await startPeople();
});
after(() => service.close());

const options = async (): Promise<any> =>
  (await service.call("POST", "/v1/session/passkey/options", { key: null, headers: PAGE })).body.options;
const answer = (response: object) =>
  service.call("POST", "/v1/session/passkey", { key: null, body: { response }, headers: PAGE });
const newLink = async (name: string): Promise<{ id: string; token: string }> => {
  const { body } = await service.call("POST", "/v1/users", {
    key: service.admin,
    body: { name },
    headers: { host: PAGE.host },
  });
  return { id: body.user.id, token: enrolmentToken(body.link.url) };
};

test("a replayed assertion signs no one in", async () => {
  const ada = await invite(service, { name: "Ada" });
  const response = ada.passkey.get(await options());
  assert.equal((await answer(response)).status, 201);
  const replayed = await answer(response);
  assert.equal(replayed.body.code, "USERS_CHALLENGE_INVALID", JSON.stringify(replayed.body));
  assert.match(replayed.body.detail, /used before/);
});

test("two assertions for one challenge sign in once", async () => {
  const ada = await invite(service, { name: "Ada" });
  const challenge = await options();
  const both = await Promise.all([answer(ada.passkey.get(challenge)), answer(ada.passkey.get(challenge))]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [201, 403]);
});

test("an assertion for another origin, relying party, ceremony or user is refused", async () => {
  const ada = await invite(service, { name: "Ada" });
  const bob = await invite(service, { name: "Bob" });
  const changes: Record<string, object> = {
    "another port": { origin: ORIGIN.replace("8000", "9999") },
    "a name below": { origin: ORIGIN.replace("//", "//x.") },
    "another name of this machine": { origin: "http://localhost:8000" },
    "another scheme": { origin: ORIGIN.replace("http:", "https:") },
    "a site that looks alike": { origin: "http://assent.localhost.evil.example:8000" },
    "another relying party": { rpId: "evil.example" },
    "a registration's type": { type: "webauthn.create" },
    "a user who was not verified": { flags: 0x01 },
    "a user who was not present": { flags: 0x04 },
    "another user's handle": { userHandle: Buffer.from(bob.id).toString("base64url") },
  };
  for (const [what, change] of Object.entries(changes)) {
    const { body, status } = await signIn(service, ada.passkey, PAGE, change);
    assert.equal(status, 403, what);
    assert.equal(body.code, "USERS_PASSKEY_INVALID", what);
  }
});

test("a challenge that the service did not issue, issued for something else, or has expired is refused", async () => {
  const ada = await invite(service, { name: "Ada" });
  const { token } = await newLink("Eve");
  const other = await service.call("POST", "/v1/enrolment/options", { key: null, body: { token }, headers: PAGE });
  const issued = await options();
  const flipped = Buffer.from(issued.challenge, "base64url");
  flipped[17] = (flipped[17] as number) ^ 0xff;
  const challenges = [
    Buffer.alloc(54).toString("base64url"),
    "",
    "!!",
    flipped.toString("base64url"),
    other.body.options.challenge,
  ];
  for (const challenge of challenges)
    assert.equal((await answer(ada.passkey.get({ challenge }))).body.code, "USERS_CHALLENGE_INVALID", challenge);
  const late = ada.passkey.get(issued);
  service.clock.now += 11 * MINUTE;
  assert.match((await answer(late)).body.detail, /expired/);
});

test("a challenge is valid in a process whose clock is minutes ahead or behind", async () => {
  const ada = await invite(service, { name: "Ada" });
  for (const skew of [4 * MINUTE, -4 * MINUTE]) {
    const response = ada.passkey.get(await options());
    service.clock.now += skew;
    assert.equal((await answer(response)).status, 201, `${skew}`);
  }
});

test("a passkey whose counter decreases is rejected and recorded, and the original is rejected until its counter is ahead", async () => {
  const ada = await invite(service, { name: "Ada" });
  ada.passkey.counter = 10;
  assert.equal((await ada.signIn()).status, 201);
  ada.passkey.counter = 4;
  const cloned = await ada.signIn();
  assert.equal(cloned.body.code, "USERS_PASSKEY_CLONED");
  assert.equal(cookieOf(cloned), "");
  ada.passkey.counter = 0;
  assert.equal((await ada.signIn()).body.code, "USERS_PASSKEY_CLONED", "a counter that disappeared");
  ada.passkey.counter = 50;
  assert.equal((await ada.signIn()).status, 201);
  const entries = await service.storage.entries(0, 10_000);
  const refused = entries
    .map(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)))
    .filter(({ type, data }) => type === "users:session" && data.change === "refused");
  assert.equal(refused.length, 2);
});

test("a registration for another origin, with another challenge, or of an enrolled passkey is refused", async () => {
  const { token } = await newLink("Eve");
  for (const change of [
    { origin: "https://evil.example" },
    { rpId: "evil.example" },
    { flags: 0x01 },
    { type: "webauthn.get" },
  ])
    assert.equal(
      (await enrol(service, token, createAuthenticator(ORIGIN), PAGE, change)).body.code,
      "USERS_PASSKEY_INVALID",
    );
  const mine = await newLink("Mallory");
  const foreign = await service.call("POST", "/v1/enrolment/options", {
    key: null,
    body: { token: mine.token },
    headers: PAGE,
  });
  const crossed = await service.call("POST", "/v1/enrolment", {
    key: null,
    body: { token, response: createAuthenticator(ORIGIN).create(foreign.body.options) },
    headers: PAGE,
  });
  assert.equal(crossed.body.code, "USERS_CHALLENGE_INVALID", "a challenge of another link");
  const ada = await invite(service, { name: "Ada" });
  assert.match((await enrol(service, token, ada.passkey)).body.detail, /already enrolled/);
  assert.equal((await enrol(service, token, createAuthenticator(ORIGIN))).status, 201, "the link was not used up");
});

test("a passkey with a key for which anyone can sign is not enrolled", async () => {
  const { token } = await newLink("Weak");
  // {1: 3, 3: -257, -1: 256 bytes, -2: 1} in CBOR: RS256 with the exponent 1.
  const rsa = Buffer.concat([
    Buffer.from([0xa4, 0x01, 0x03, 0x03, 0x39, 0x01, 0x00, 0x20, 0x59, 0x01, 0x00]),
    Buffer.alloc(256, 0xff),
    Buffer.from([0x21, 0x41, 0x01]),
  ]);
  const { status, body } = await enrol(service, token, createAuthenticator(ORIGIN), PAGE, { publicKey: rsa });
  assert.deepEqual([status, body.code], [403, "USERS_PASSKEY_INVALID"], JSON.stringify(body));
  assert.match(body.detail, /exponent/);
  assert.equal((await enrol(service, token, createAuthenticator(ORIGIN))).status, 201, "the link was not used up");
});

test("a deactivated user who is created again is a new user, and their old passkey stays rejected", async () => {
  const first = await invite(service, { name: "Ada Again", roles: ["approver"] });
  await service.call("POST", `/v1/users/${first.id}/end`, { key: service.admin, body: {} });
  const second = await invite(service, { name: "Ada Again", roles: ["viewer"] });
  assert.notEqual(second.id, first.id);
  assert.equal((await first.signIn()).body.code, "USERS_PASSKEY_UNKNOWN");
  assert.deepEqual((await second.call("GET", "/v1/session")).body.user.roles, ["viewer"]);
});

test("malformed responses are rejected with a problem document, not an error of the service", async () => {
  const ada = await invite(service, { name: "Ada" });
  const good = ada.passkey.get(await options()) as any;
  const { token } = await newLink("Eve");
  const bad = [
    { ...good, response: { ...good.response, clientDataJSON: "AAAA" } },
    { ...good, response: { ...good.response, clientDataJSON: Buffer.from("[]").toString("base64url") } },
    { ...good, response: { ...good.response, clientDataJSON: Buffer.from("null").toString("base64url") } },
    { ...good, response: { ...good.response, authenticatorData: "AAAA" } },
    { ...good, response: { ...good.response, signature: "" } },
    { ...good, response: { ...good.response, userHandle: { a: 1 } } },
    { ...good, id: "x".repeat(20_001) },
    { ...good, type: "password" },
  ];
  for (const response of bad) assert.ok([403, 422].includes((await answer(response)).status), JSON.stringify(response));
  const registration = createAuthenticator(ORIGIN).create({ user: { id: "" }, challenge: "" }) as any;
  for (const attestationObject of ["", "AAAA", "_____w"]) {
    const response = { ...registration, response: { ...registration.response, attestationObject } };
    const { status } = await service.call("POST", "/v1/enrolment", {
      key: null,
      body: { token, response },
      headers: PAGE,
    });
    assert.equal(status, 403);
  }
});

test("sign-in is refused with a reason if public_url has no HTTPS and is not a name of this machine", async () => {
  for (const public_url of ["http://assent.example", "http://192.168.1.5:8000", "http://localhost.evil.example"]) {
    const plain = await startPeople({ change: (config) => void (config.server.public_url = public_url) });
    try {
      const page = { ...PAGE, host: new URL(public_url).host, origin: public_url };
      const refused = await plain.call("POST", "/v1/session/passkey/options", { key: null, headers: page });
      assert.equal(refused.body.code, "USERS_INSECURE", public_url);
      assert.ok(refused.body.detail.includes(`only over HTTPS, and server.public_url is at ${public_url}`));
      const { body } = await plain.call("GET", "/v1/sign-in-methods", { key: null });
      assert.deepEqual([body.origin, body.passkey.available], [null, false]);
    } finally {
      await plain.close();
    }
  }
});

test("a renamed user cannot approve what their own key submitted, nor count as two people", async () => {
  const ada = await invite(service, { name: "Ada Byron", roles: ["approver", "viewer"] });
  const bot = await makeKey(service, {
    name: "adas bot",
    owner: ada.principal,
    preset: "agent",
    agent_id: "support-bot",
  });
  const desk = await makeKey(service, { name: "adas desk", owner: ada.principal, preset: "approver" });
  const submit = async (key: string, body: object): Promise<string> =>
    (await service.call("POST", "/v1/actions", { key, body })).body.id as string;
  const own = await submit(bot.key, ASKED);
  const two = await submit(service.agent, ASKED_TWO);
  const renamed = await service.call("PATCH", `/v1/users/${ada.id}`, {
    key: service.admin,
    body: { name: "Ada King" },
  });
  assert.equal(renamed.status, 200, JSON.stringify(renamed.body));

  const seen = (await ada.call("GET", `/v1/actions/${own}`)).body;
  assert.equal(seen.approval_terms.blocked?.code, "SELF_APPROVAL");
  assert.equal(seen.approval_token, undefined);

  const later = await makeKey(service, {
    name: "adas later bot",
    owner: ada.principal,
    preset: "agent",
    agent_id: "support-bot",
  });
  const underNewName = await submit(later.key, { ...ASKED, params: { ...ASKED.params, amount: 501 } });
  const byOldKey = (await service.call("GET", `/v1/actions/${underNewName}`, { key: desk.key })).body;
  assert.equal(byOldKey.approval_terms.blocked?.code, "SELF_APPROVAL");

  const read = (await ada.call("GET", `/v1/actions/${two}`)).body;
  const first = await ada.call("POST", `/v1/actions/${two}/approval`, { approve: true, token: read.approval_token });
  assert.equal(first.body.status, "pending_approval", JSON.stringify(first.body));
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${two}`, { key: desk.key })).body;
  const second = await service.call("POST", `/v1/actions/${two}/approval`, {
    key: desk.key,
    body: { approve: true, token },
  });
  assert.notEqual(second.body.status, "approved", "one person voted twice");
});
