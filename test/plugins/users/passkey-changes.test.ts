/** Changes of a user's own passkeys and recovery codes: a session alone cannot make them. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { auditStore } from "../../../src/testing/index.ts";
import { createAuthenticator, type Authenticator } from "../../support/authenticator.ts";
import { createVisitor, startLyingProvider, type LyingProvider } from "../../support/lying-provider.ts";
import {
  addPasskey,
  addUser,
  confirmChange,
  enrol,
  invite,
  ORIGIN,
  PAGE,
  sessionOf,
  startPeople,
  enrolmentToken,
  type Person,
} from "../../support/people.ts";
import { ASKED, makeKey, type Answer, type Service } from "../../support/service.ts";
import { signature } from "../../support/signed-votes.ts";

const MINUTE = 60_000;
let service: Service;
let company: LyingProvider;
before(async () => {
  company = await startLyingProvider();
  const { issuer } = company;
  const provider = { id: "company", name: "Company", issuer, client_id: "assent", client_secret: "secret" };
  service = await startPeople({ users: { providers: [{ ...provider, everyone: ["viewer"] }] } });
});
after(async () => {
  await service.close();
  await company.close();
});

const pathOf = ({ id }: { id: string }, change: string): string => `/v1/users/${id}/${change}`;
const removal = ({ id }: Authenticator): string => `passkeys/${id}/remove`;
const start = async (person: Person, change: string): Promise<any> =>
  (await person.call("POST", `${pathOf(person, change)}/options`)).body;
const codeOf = async (answer: Promise<Answer>): Promise<string> => (await answer).body.code;

/** The ways to sign in, as the user's newest entry has them. */
async function stateOf({ id }: { id: string }): Promise<{ passkeys: string[]; codes: string[] }> {
  const { passkeys, recovery_codes } = (await entriesOf(id)).at(-1).user;
  return { passkeys: passkeys.map((passkey: { id: string }) => passkey.id), codes: recovery_codes };
}

async function entriesOf(id: string): Promise<any[]> {
  return (await service.storage.entries(0, 100_000))
    .map(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)))
    .filter(({ type, user }) => type === "user" && user.id === id);
}

/** A person with two passkeys. */
async function inviteWithTwo(name: string): Promise<Person & { second: Authenticator }> {
  const person = await invite(service, { name, roles: ["approver"] });
  const second = createAuthenticator(ORIGIN);
  const added = await addPasskey(person, second);
  assert.equal(added.status, 201, JSON.stringify(added.body));
  return Object.assign(person, { second });
}

test("a stolen session adds and removes no passkey and makes no recovery codes", async () => {
  const ada = await inviteWithTwo("Ada");
  const known = await stateOf(ada);
  const { options } = await start(ada, "passkeys");
  const response = createAuthenticator(ORIGIN).create(options);
  const { key } = await makeKey(service, { name: "ada's key", owner: "Ada", preset: "admin" });
  for (const [change, body] of [
    ["passkeys", { response }],
    [removal(ada.second), {}],
    ["recovery-codes", {}],
  ] as const) {
    assert.equal(await codeOf(ada.call("POST", pathOf(ada, change), body)), "USERS_PASSKEY_INVALID", change);
    assert.equal(
      await codeOf(service.call("POST", pathOf(ada, change), { key, body })),
      "USERS_SESSION_REQUIRED",
      change,
    );
    const started = service.call("POST", `${pathOf(ada, change)}/options`, { key });
    assert.equal(await codeOf(started), "USERS_SESSION_REQUIRED", change);
  }
  assert.equal((await ada.call("DELETE", pathOf(ada, `passkeys/${ada.second.id}`))).status, 404);
  assert.deepEqual(await stateOf(ada), known);
});

test("each change is made with a passkey's confirmation, and its entry names the passkey", async () => {
  const ada = await inviteWithTwo("Grace");
  const before = await stateOf(ada);
  const replaced = await confirmChange(ada, "recovery-codes", ada.second);
  assert.equal(replaced.status, 201, JSON.stringify(replaced.body));
  assert.equal(
    (await enrol(service, ada.recovery_codes[0] ?? "", createAuthenticator(ORIGIN))).status,
    403,
    "replaced",
  );
  const removed = await confirmChange(ada, removal(ada.second));
  assert.equal(removed.status, 200, JSON.stringify(removed.body));
  const now = await stateOf(ada);
  assert.deepEqual(now.passkeys, [ada.passkey.id]);
  assert.equal(now.codes.filter((hash) => before.codes.includes(hash)).length, 0);
  assert.deepEqual(
    (await entriesOf(ada.id)).map(({ change, confirmed_by }) => [change, confirmed_by]),
    [
      ["created", null],
      ["passkey_added", null],
      ["passkey_added", ada.passkey.id],
      ["recovery_codes_created", ada.second.id],
      ["passkey_removed", ada.passkey.id],
    ],
  );
  assert.deepEqual((await auditStore(service.storage)).faults, []);
});

test("a confirmation is valid for one change, in one session, of one user", async () => {
  const ada = await inviteWithTwo("Ada");
  const bob = await inviteWithTwo("Bob");
  const known = await stateOf(ada);
  const submitted = await service.call("POST", "/v1/actions", { body: ASKED });
  const sign = await service.call("POST", "/v1/session/passkey/options", { key: null, headers: PAGE });
  const addition = await start(ada, "passkeys");
  const otherSession = await start(ada, removal(ada.second));
  await ada.signIn();
  const answers: Record<string, [object, string]> = {
    "the removal of another passkey": [ada.passkey.get((await start(ada, removal(ada.passkey))).options), "CHALLENGE"],
    "new recovery codes": [ada.passkey.get((await start(ada, "recovery-codes")).options), "CHALLENGE"],
    "a passkey's addition": [ada.passkey.get(addition.confirmation), "CHALLENGE"],
    "another session of the user": [ada.passkey.get(otherSession.options), "CHALLENGE"],
    "a sign-in": [ada.passkey.get(sign.body.options), "CHALLENGE"],
    "a vote": [(await signature(ada, [{ action_id: submitted.body.id, approve: true }])).response, "CHALLENGE"],
    "another user": [bob.passkey.get((await start(bob, removal(bob.second))).options), "PASSKEY"],
    "this removal, by another user": [bob.passkey.get((await start(ada, removal(ada.second))).options), "PASSKEY"],
  };
  for (const [what, [confirmation, part]] of Object.entries(answers)) {
    const answer = await ada.call("POST", pathOf(ada, removal(ada.second)), { confirmation });
    assert.equal(answer.body.code, `USERS_${part}_INVALID`, `${what}: ${JSON.stringify(answer.body)}`);
  }
  const unverified = await confirmChange(ada, removal(ada.second), ada.passkey, { flags: 0x01 });
  assert.equal(unverified.body.code, "USERS_PASSKEY_INVALID", "the person was not verified");
  const late = ada.passkey.get((await start(ada, removal(ada.second))).options);
  service.clock.now += 11 * MINUTE;
  const expired = await ada.call("POST", pathOf(ada, removal(ada.second)), { confirmation: late });
  assert.match(expired.body.detail, /expired/);
  const codes = ada.passkey.get((await start(ada, removal(ada.second))).options);
  const forCodes = await ada.call("POST", pathOf(ada, "recovery-codes"), { confirmation: codes });
  assert.equal(forCodes.body.code, "USERS_CHALLENGE_INVALID");
  assert.deepEqual(await stateOf(ada), known);
});

test("the confirmation of an addition covers one ceremony, and neither signs a vote nor another addition", async () => {
  const ada = await invite(service, { name: "Ada", roles: ["approver"] });
  const path = pathOf(ada, "passkeys");
  const [one, other] = [await start(ada, "passkeys"), await start(ada, "passkeys")];
  const confirmation = ada.passkey.get(one.confirmation);
  const swapped = { response: createAuthenticator(ORIGIN).create(other.options), confirmation };
  assert.equal(await codeOf(ada.call("POST", path, swapped)), "USERS_CHALLENGE_INVALID");
  const submitted = await service.call("POST", "/v1/actions", { body: ASKED });
  const vote = await signature(ada, [{ action_id: submitted.body.id, approve: true }]);
  const { body } = await ada.call("POST", "/v1/votes", { ...vote, response: confirmation });
  assert.equal(body.code, "VOTE_SIGNATURE_INVALID", JSON.stringify(body));
  const good = { response: createAuthenticator(ORIGIN).create(one.options), confirmation };
  assert.equal((await ada.call("POST", path, good)).status, 201);
  const again = { response: createAuthenticator(ORIGIN).create(one.options), confirmation };
  assert.equal(await codeOf(ada.call("POST", path, again)), "USERS_CHALLENGE_INVALID", "replayed");
  assert.equal((await stateOf(ada)).passkeys.length, 2);
});

test("a confirmation that is sent twice counts once", async () => {
  const ada = await invite(service, { name: "Ada", roles: ["viewer"] });
  const { options } = await start(ada, "recovery-codes");
  const confirmation = ada.passkey.get(options);
  const send = () => ada.call("POST", pathOf(ada, "recovery-codes"), { confirmation });
  const both = await Promise.all([send(), send()]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [201, 403]);
  assert.equal(await codeOf(send()), "USERS_CHALLENGE_INVALID");
  const created = (await entriesOf(ada.id)).filter(({ change }) => change === "recovery_codes_created");
  assert.equal(created.length, 1);
});

test("a copied or removed passkey confirms nothing", async () => {
  const ada = await inviteWithTwo("Ada");
  const { options } = await start(ada, "recovery-codes");
  const confirmation = ada.second.get(options);
  assert.equal((await confirmChange(ada, removal(ada.second))).status, 200);
  const bySecond = await ada.call("POST", pathOf(ada, "recovery-codes"), { confirmation });
  assert.equal(bySecond.body.code, "USERS_PASSKEY_INVALID", "removed since it answered");
  const known = await stateOf(ada);
  ada.passkey.counter = 1;
  assert.equal(await codeOf(confirmChange(ada, "recovery-codes")), "USERS_PASSKEY_CLONED");
  ada.passkey.counter = 1;
  const added = createAuthenticator(ORIGIN);
  assert.equal(await codeOf(addPasskey(ada, added)), "USERS_PASSKEY_CLONED");
  assert.deepEqual(await stateOf(ada), known);
});

test("the last passkey cannot be removed, and two removals at once leave one", async () => {
  const ada = await inviteWithTwo("Ada");
  const remove = async (passkey: Authenticator): Promise<() => Promise<Answer>> => {
    const confirmation = passkey.get((await start(ada, removal(passkey))).options);
    return () => ada.call("POST", pathOf(ada, removal(passkey)), { confirmation });
  };
  const both = [await remove(ada.passkey), await remove(ada.second)];
  const answers = await Promise.all(both.map((send) => send()));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409], JSON.stringify(answers));
  const [left = ""] = (await stateOf(ada)).passkeys;
  const last = await ada.call("POST", `${pathOf(ada, `passkeys/${left}/remove`)}/options`);
  assert.equal(last.body.code, "USERS_LAST_PASSKEY");
  assert.equal((await stateOf(ada)).passkeys.length, 1);
});

test("who lost a passkey removes it with the one that a recovery code or an admin's link added", async () => {
  for (const way of ["code", "link"]) {
    const ada = await invite(service, { name: "Ada", roles: ["viewer"] });
    const link = { key: service.admin, headers: { host: PAGE.host } };
    const token =
      way === "code"
        ? (ada.recovery_codes[0] ?? "")
        : enrolmentToken((await service.call("POST", `/v1/users/${ada.id}/link`, link)).body.link.url);
    const found = createAuthenticator(ORIGIN);
    const enrolled = await enrol(service, token, found);
    assert.equal(enrolled.status, 201, JSON.stringify(enrolled.body));
    ada.session = sessionOf(enrolled);
    assert.equal((await confirmChange(ada, removal(ada.passkey), found)).status, 200, way);
    assert.deepEqual((await stateOf(ada)).passkeys, [found.id]);
  }
});

test("an admin's session creates no enrolment link for the admin, and does for others", async () => {
  const ada = await invite(service, { name: "Ada", roles: ["admin"] });
  assert.equal(await codeOf(ada.call("POST", `/v1/users/${ada.id}/link`)), "USERS_OWN_LINK");
  const { body: made } = await ada.call("POST", "/v1/api-keys", {
    name: "made in the session",
    scopes: ["admin"],
    owner: `user:${ada.id}`,
  });
  const withKey = await service.call("POST", `/v1/users/${ada.id}/link`, { key: made.key, headers: PAGE });
  assert.equal(withKey.body.code, "USERS_OWN_LINK", JSON.stringify([made, withKey.body]));
  const { user } = await addUser(service, { name: "Bob" });
  assert.equal((await ada.call("POST", `/v1/users/${user.id}/link`)).status, 201);
});

/** Signs in at the provider in a new browser. */
async function signInAtProvider(sub: string): Promise<Pick<Person, "id" | "call">> {
  company.claims = { sub, name: sub };
  const visitor = createVisitor(service);
  const started = await visitor.get("/v1/sign-in/company");
  const query = new URLSearchParams(company.authorize(started.headers.get("location") ?? ""));
  await visitor.get(`/v1/sign-in/company/callback?${query.toString()}`);
  const { user } = (await visitor.get("/v1/session")).body;
  return {
    id: user.id,
    call(method, path, body) {
      const headers = { ...PAGE, ...visitor.session() };
      return service.call(method, path, { key: null, headers, ...(body === undefined ? {} : { body }) });
    },
  };
}

test("a provider's user adds a first passkey soon after a sign-in there, and later ones with the first", async () => {
  const old = await signInAtProvider("eve");
  const path = pathOf(old, "passkeys");
  const prepared = (await old.call("POST", `${path}/options`)).body;
  assert.equal(prepared.confirmation, null);
  service.clock.now += 6 * MINUTE;
  assert.equal(await codeOf(old.call("POST", `${path}/options`)), "USERS_SIGN_IN_TOO_OLD");
  const stolen = { response: createAuthenticator(ORIGIN).create(prepared.options) };
  assert.equal(await codeOf(old.call("POST", path, stolen)), "USERS_SIGN_IN_TOO_OLD", "started in time, sent late");

  const recent = await signInAtProvider("eve");
  assert.equal(recent.id, old.id);
  assert.equal(await codeOf(old.call("POST", path, stolen)), "USERS_SIGN_IN_TOO_OLD", "another session of the user");
  const { options } = (await recent.call("POST", `${path}/options`)).body;
  const devices = [createAuthenticator(ORIGIN), createAuthenticator(ORIGIN)] as const;
  const [one, two] = await Promise.all(
    devices.map((each) => recent.call("POST", path, { response: each.create(options) })),
  );
  assert.deepEqual([one?.status, two?.status].sort(), [201, 403], "only one passkey needs no confirmation");
  const first = one?.status === 201 ? devices[0] : devices[1];

  const eve = Object.assign(recent, { passkey: first }) as Person;
  const started = await start(eve, "passkeys");
  const second = createAuthenticator(ORIGIN);
  const response = second.create(started.options);
  assert.equal(await codeOf(eve.call("POST", path, { response })), "USERS_PASSKEY_INVALID");
  const confirmed = await eve.call("POST", path, { response, confirmation: first.get(started.confirmation) });
  assert.equal(confirmed.status, 201, JSON.stringify(confirmed.body));
  assert.equal(await codeOf(confirmChange(eve, "recovery-codes")), "USERS_MANAGED");
  service.clock.now += 6 * MINUTE;
  assert.equal((await confirmChange(eve, removal(second))).status, 200);
  assert.equal((await confirmChange(eve, removal(first))).status, 200, "the provider still signs the user in");
  assert.equal(await codeOf(eve.call("POST", `${path}/options`)), "USERS_SIGN_IN_TOO_OLD");
  assert.deepEqual((await auditStore(service.storage)).faults, []);
});
