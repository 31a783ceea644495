/** Sessions of users: cookies, limits, rotation, end, and what a session can do. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { ASKED, makeKey, type Service } from "../../support/service.ts";
import { addUser, enrol, invite, ORIGIN, PAGE, signIn, startPeople, enrolmentToken } from "../../support/people.ts";
import { createAuthenticator } from "../../support/authenticator.ts";

const MINUTE = 60_000;
let service: Service;
before(async () => {
  service = await startPeople();
});
after(() => service.close());

test("a user who enrols a passkey is signed in, and the session names user, roles and scopes", async () => {
  const ada = await invite(service, { name: "Ada", roles: ["approver"], groups: ["finance"] });
  assert.match(ada.session.cookie, /^assent_session_8000=/);
  const { status, body } = await ada.call("GET", "/v1/session");
  assert.equal(status, 200);
  assert.equal(body.user.id, ada.id);
  assert.equal(body.user.principal, `user:${ada.id}`);
  assert.deepEqual(body.user.groups, ["finance"]);
  assert.ok(body.scopes.includes("approvals:decide") && !body.scopes.includes("admin"));
  assert.equal(body.session.method, "link");
  const again = await ada.signIn();
  assert.equal(again.status, 201, JSON.stringify(again.body));
  assert.equal((await ada.call("GET", "/v1/me")).body.principal, `user:${ada.id}`);
});

test("the cookie is HttpOnly and SameSite=Strict, and over HTTPS Secure with the __Host- prefix", async () => {
  const plain = await invite(service, { name: "Plain" });
  const [cookie = ""] = (await signIn(service, plain.passkey)).headers.getSetCookie();
  for (const part of ["HttpOnly", "SameSite=Strict", "Path=/"]) assert.ok(cookie.includes(part), cookie);
  assert.ok(!cookie.includes("Secure") && !cookie.includes("Domain"), cookie);
  const secure = await startPeople({ change: (config) => void (config.server.public_url = "https://assent.example") });
  try {
    const eve = await invite(secure, { name: "Eve", roles: ["viewer"] }, "https://assent.example");
    assert.match(eve.session.cookie, /^__Host-assent_session=/);
    assert.equal((await eve.call("GET", "/v1/session")).status, 200);
  } finally {
    await secure.close();
  }
});

test("a request that changes something needs the origin of the service and the header of its pages", async () => {
  const ada = await invite(service, { name: "Ada", roles: ["admin"] });
  const body = { name: "Bob" };
  const cases: [Record<string, string>, number][] = [
    [{}, 201],
    [{ origin: "https://evil.example" }, 403],
    [{ origin: "null" }, 403],
    [{ origin: `${ORIGIN}.evil.example` }, 403],
    [{ origin: ORIGIN.replace("8000", "9000") }, 403],
    [{ origin: "http://localhost:8000" }, 403],
  ];
  for (const [headers, status] of cases)
    assert.equal((await ada.call("POST", "/v1/users", body, headers)).status, status, JSON.stringify(headers));
  const { host, origin } = PAGE;
  for (const headers of [
    { host, origin },
    { host, "assent-session": "1" },
  ] as Record<string, string>[]) {
    const answer = await service.call("POST", "/v1/users", {
      key: null,
      body,
      headers: { ...headers, cookie: ada.session.cookie },
    });
    assert.equal(answer.body.code, "USERS_CROSS_SITE", JSON.stringify(headers));
  }
});

test(
  "a cookie without the page token of its session is not a credential, and does the session no harm",
  needs("events"),
  async () => {
    const ada = await invite(service, { name: "Ada", roles: ["admin"] });
    const bob = await invite(service, { name: "Bob", roles: ["viewer"] });
    const earlier = ada.session;
    assert.equal((await ada.signIn()).status, 201);
    // What a program on another port of the host receives, because browsers send cookies to every port.
    const { cookie } = ada.session;
    const token = ada.session["assent-session"];
    const wrong = ["1", "", token.slice(1), `${token}x`, bob.session["assent-session"], earlier["assent-session"]];
    for (const [method, path, body] of [
      ["GET", "/v1/session"],
      ["GET", "/v1/actions"],
      ["GET", "/v1/events/page"],
      ["POST", "/v1/users", { name: "Eve" }],
      ["POST", `/v1/users/${ada.id}/passkeys/options`],
      ["DELETE", "/v1/session"],
    ] as const)
      for (const given of wrong) {
        const headers = { ...PAGE, cookie, "assent-session": given };
        const answer = await service.call(method, path, {
          key: null,
          ...(body === undefined ? {} : { body }),
          headers,
        });
        assert.equal(answer.body.code, "MISSING_CREDENTIAL", `${method} ${path} ${given}`);
        assert.deepEqual(answer.headers.getSetCookie(), [], "the browser keeps its cookie");
      }
    const { host, origin } = PAGE;
    const navigation = await service.call("GET", "/v1/session", { key: null, headers: { host, origin, cookie } });
    assert.equal(navigation.body.code, "MISSING_CREDENTIAL");
    assert.equal((await ada.call("GET", "/v1/session")).status, 200);
  },
);

test("other cookies with the session's name, which another program set, neither sign in nor sign out", async () => {
  const ada = await invite(service, { name: "Ada", roles: ["viewer"] });
  const mallory = await invite(service, { name: "Mallory", roles: ["viewer"] });
  const { cookie } = ada.session;
  const forged = cookie.slice(0, -43) + "x".repeat(43);
  for (const other of [mallory.session.cookie, forged, "assent_session_8000=x", "assent_session_8000"])
    for (const both of [`${other}; ${cookie}`, `${cookie}; ${other}`, `a=b; ${other}; ${cookie}; ${other}`]) {
      const { status, body } = await ada.call("GET", "/v1/session", undefined, { cookie: both });
      assert.deepEqual([status, body.user?.name], [200, "Ada"], both);
    }
});

test("a session has only the scopes of the user's roles, and a change of roles applies from its response on", async () => {
  const bob = await invite(service, { name: "Bob", roles: ["viewer"] });
  assert.equal((await bob.call("GET", "/v1/actions")).status, 200);
  assert.equal((await bob.call("POST", "/v1/users", { name: "Eve" })).body.code, "INSUFFICIENT_SCOPE");
  await service.call("PATCH", `/v1/users/${bob.id}`, { key: service.admin, body: { roles: [] } });
  assert.equal((await bob.call("GET", "/v1/actions")).body.code, "INSUFFICIENT_SCOPE");
  assert.deepEqual((await bob.call("GET", "/v1/session")).body.scopes, []);
});

test("a user who can manage users but not approve cannot create an approver or a link for one", async () => {
  const maker = await makeKey(service, { name: "user manager", scopes: ["users:manage"] });
  const create = await service.call("POST", "/v1/users", {
    key: maker.key,
    body: { name: "Mallory", roles: ["approver"] },
    headers: { host: PAGE.host },
  });
  assert.equal(create.body.code, "SCOPE_ESCALATION");
  const carol = await invite(service, { name: "Carol", roles: ["approver"] });
  for (const path of ["link", "end"]) {
    const answer = await service.call("POST", `/v1/users/${carol.id}/${path}`, {
      key: maker.key,
      headers: { host: PAGE.host },
      ...(path === "end" ? { body: {} } : {}),
    });
    assert.equal(answer.body.code, "SCOPE_ESCALATION", path);
  }
});

test("a vote in a session counts as the user's, and is recorded with the user's id", async () => {
  const submitted = await service.call("POST", "/v1/actions", { body: ASKED });
  const dan = await invite(service, { name: "Dan", roles: ["approver"] });
  const { body } = await dan.call("GET", `/v1/actions/${submitted.body.id}`);
  const vote = { approve: true, token: body.approval_token };
  const answer = await dan.call("POST", `/v1/actions/${submitted.body.id}/approval`, vote);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  const votes = await service.storage.approvals(submitted.body.id);
  assert.deepEqual(
    votes.map(({ principal, key_id }) => [principal, key_id]),
    [[`user:${dan.id}`, dan.id]],
  );
});

test("the header of pages is not accepted as a session token of an agent", async () => {
  const ada = await invite(service, { name: "Ada who submits", roles: ["admin"] });
  const { status, body } = await ada.call("POST", "/v1/gate/decide", ASKED);
  assert.equal(status, 200, JSON.stringify(body));
});

test("a session that was ended by the user or an admin is rejected from that response on", async () => {
  const eve = await invite(service, { name: "Eve", roles: ["viewer"] });
  const first = eve.session;
  await eve.signIn();
  const { body } = await eve.call("GET", `/v1/users/${eve.id}/sessions`);
  assert.equal(body.sessions.length, 2);
  const other = body.sessions.find(({ current }: { current: boolean }) => !current);
  assert.equal((await eve.call("DELETE", `/v1/users/${eve.id}/sessions/${other.id}`)).status, 204);
  const old = await service.call("GET", "/v1/actions", { key: null, headers: { ...PAGE, ...first } });
  assert.equal(old.body.code, "MISSING_CREDENTIAL");
  assert.equal((await eve.call("GET", "/v1/actions")).status, 200);
  assert.equal((await service.call("DELETE", `/v1/users/${eve.id}/sessions`, { key: service.admin })).status, 204);
  assert.equal((await eve.call("GET", "/v1/actions")).status, 401);
  const { body: user } = await service.call("GET", `/v1/users/${eve.id}`, { key: service.admin });
  const { user: unused } = await addUser(service, { name: "New" });
  const { users } = (await service.call("GET", "/v1/users?limit=1000", { key: service.admin })).body;
  const lastSignIn = (id: string): string | null =>
    users.find((each: { id: string }) => each.id === id).last_sign_in_at as string | null;
  assert.match(user.last_sign_in_at, /^20/, "the last sign-in outlasts its session");
  assert.equal(lastSignIn(eve.id), user.last_sign_in_at);
  assert.equal(lastSignIn(unused.id), null);
});

test("a user cannot see or end another user's sessions", async () => {
  const [ada, bob] = [
    await invite(service, { name: "A", roles: ["viewer"] }),
    await invite(service, { name: "B", roles: ["viewer"] }),
  ];
  assert.equal((await ada.call("GET", `/v1/users/${bob.id}/sessions`)).body.code, "INSUFFICIENT_SCOPE");
  assert.equal((await ada.call("DELETE", `/v1/users/${bob.id}/sessions`)).body.code, "INSUFFICIENT_SCOPE");
  assert.equal((await bob.call("GET", "/v1/session")).status, 200);
});

test("deactivating a user ends sessions, revokes the keys that they created, and their next vote is rejected", async () => {
  const boss = await invite(service, { name: "Boss", roles: ["admin"] });
  const made = await boss.call("POST", "/v1/api-keys", {
    name: "boss agent",
    preset: "agent",
    agent_id: "support-bot",
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const below = await boss.call("POST", "/v1/api-keys", {
    name: "boss manager",
    scopes: ["keys:manage", "actions:submit"],
  });
  const grandchild = await makeKey(service, { name: "made by a made key", scopes: ["actions:submit"] }, below.body.key);
  const waiting = await service.call("POST", "/v1/actions", { key: made.body.key, body: ASKED });
  assert.equal(waiting.body.status, "pending_approval");
  const done = await service.call("POST", `/v1/users/${boss.id}/end`, { key: service.admin, body: { reason: "left" } });
  assert.equal(done.status, 200, JSON.stringify(done.body));
  assert.deepEqual(done.body.revoked_keys.sort(), [made.body.id, below.body.id, grandchild.id].sort());
  for (const key of [made.body.key, grandchild.key])
    assert.equal((await service.call("GET", "/v1/me", { key })).body.code, "INVALID_CREDENTIAL");
  assert.equal((await boss.call("GET", "/v1/session")).status, 401);
  assert.equal((await boss.signIn()).body.code, "USERS_PASSKEY_UNKNOWN");
  const action = await service.call("GET", `/v1/actions/${waiting.body.id}`, { key: service.admin });
  assert.equal(action.body.status, "cancelled");
});

test("a key loses the rights that its creator lost", async () => {
  const kim = await invite(service, { name: "Kim", roles: ["admin"] });
  const made = await kim.call("POST", "/v1/api-keys", {
    name: "kim reader",
    scopes: ["policies:read", "actions:read"],
  });
  const read = (): Promise<number> =>
    service.call("GET", "/v1/policies", { key: made.body.key }).then(({ status }) => status);
  assert.equal(await read(), 200);
  await service.call("PATCH", `/v1/users/${kim.id}`, { key: service.admin, body: { roles: [] } });
  assert.equal(await read(), 403);
  await service.call("PATCH", `/v1/users/${kim.id}`, { key: service.admin, body: { roles: ["viewer"] } });
  assert.equal(await read(), 200);
});

test("a session ends after its idle limit and after its absolute limit", async () => {
  const own = await startPeople({ users: { session_idle_minutes: 30, session_hours: 1 } });
  try {
    const ada = await invite(own, { name: "Ada", roles: ["viewer"] });
    own.clock.now += 29 * MINUTE;
    assert.equal((await ada.call("GET", "/v1/session")).status, 200);
    own.clock.now += 29 * MINUTE;
    assert.equal((await ada.call("GET", "/v1/session")).status, 200);
    own.clock.now += 3 * MINUTE;
    assert.equal((await ada.call("GET", "/v1/session")).body.code, "MISSING_CREDENTIAL", "after an hour in all");
    await ada.signIn();
    own.clock.now += 31 * MINUTE;
    assert.equal((await ada.call("GET", "/v1/session")).status, 401, "after half an hour unused");
  } finally {
    await own.close();
  }
});

test("the cookie is replaced; the previous one is valid until the new one is used, and later ends the session", async () => {
  const own = await startPeople();
  try {
    const ada = await invite(own, { name: "Ada", roles: ["viewer"] });
    const first = ada.session;
    own.clock.now += 20 * MINUTE;
    const renewed = await own.call("GET", "/v1/session", { key: null, headers: { ...PAGE, ...first } });
    assert.equal(renewed.headers.getSetCookie().length, 1);
    // The response was lost: the browser still has the first cookie.
    const lost = await own.call("GET", "/v1/session", { key: null, headers: { ...PAGE, ...first } });
    assert.equal(lost.status, 200);
    own.clock.now += 10 * MINUTE;
    assert.equal((await ada.call("GET", "/v1/session")).status, 200);
    assert.notEqual(ada.session.cookie, first.cookie);
    assert.equal((await ada.call("GET", "/v1/session")).status, 200);
    const inFlight = await own.call("GET", "/v1/session", { key: null, headers: { ...PAGE, ...first } });
    assert.equal(inFlight.status, 200, "a request of another tab that was on its way");
    own.clock.now += 6 * MINUTE;
    const stolen = await own.call("GET", "/v1/session", { key: null, headers: { ...PAGE, ...first } });
    assert.equal(stolen.status, 401);
    assert.equal((await ada.call("GET", "/v1/session")).status, 401, "two parties had the cookie, so neither keeps it");
  } finally {
    await own.close();
  }
});

test("a session from before the sign-in is not used after it", async () => {
  const mallory = await invite(service, { name: "Mallory", roles: ["viewer"] });
  const victim = await invite(service, { name: "Victim", roles: ["viewer"] });
  const planted = mallory.session;
  const { body } = await service.call("POST", "/v1/session/passkey/options", {
    key: null,
    headers: { ...PAGE, ...planted },
  });
  const answer = await service.call("POST", "/v1/session/passkey", {
    key: null,
    body: { response: victim.passkey.get(body.options) },
    headers: { ...PAGE, ...planted },
  });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const after = await service.call("GET", "/v1/session", { key: null, headers: { ...PAGE, ...planted } });
  assert.equal(after.body.user.id, mallory.id, "the planted cookie still is only Mallory's");
});

test("a row that is inserted into the database admits no one", async () => {
  const ada = await invite(service, { name: "Ada", roles: ["viewer"] });
  const [, id] = (ada.session.cookie.split("=")[1] ?? "").split(".");
  const row = await service.storage.document("users", `session/${ada.id}/${id}`);
  assert.ok(row !== null);
  const admin = await invite(service, { name: "Admin", roles: ["admin"] });
  const forged = { ...JSON.parse(row.value), user_id: admin.id };
  const version = await service.storage.write((tx) =>
    tx.putDocument({ ...row, key: `session/${admin.id}/${id}`, value: JSON.stringify(forged) }, null),
  );
  const headers = { ...PAGE, ...ada.session, cookie: ada.session.cookie.replace(ada.id, admin.id) };
  const answer = await service.call("GET", "/v1/session", { key: null, headers });
  assert.equal(answer.body.code, "MISSING_CREDENTIAL", "the page token is of Ada's session");
  await service.storage.write((tx) => tx.deleteDocument("users", `session/${admin.id}/${id}`, version ?? 0));

  const changed = await service.storage.write((tx) =>
    tx.putDocument({ ...row, value: JSON.stringify(forged) }, row.version),
  );
  const altered = await ada.call("GET", "/v1/session");
  assert.deepEqual([altered.status, altered.body.code], [409, "STORE_ALTERED"]);
  await service.storage.write((tx) => tx.deleteDocument("users", `session/${ada.id}/${id}`, changed ?? 0));
});

test("malformed cookies are rejected, and do not affect other credentials", async () => {
  for (const cookie of [
    "assent_session_8000=",
    "assent_session_8000=a.b.c",
    `assent_session_8000=${"x".repeat(5000)}`,
    "assent_session_8000=%00; a=b",
  ]) {
    const answer = await service.call("GET", "/v1/actions", { key: null, headers: { ...PAGE, cookie } });
    assert.equal(answer.body.code, "MISSING_CREDENTIAL", cookie.slice(0, 40));
  }
  const cookie = "assent_session_8000=a.b.c";
  assert.equal(
    (await service.call("GET", "/v1/me", { headers: { ...PAGE, cookie } })).status,
    200,
    "a key wins over a cookie",
  );
});

test("the last admin who can sign in cannot be ended while no admin key remains", async () => {
  const own = await startPeople();
  try {
    const ada = await invite(own, { name: "Ada", roles: ["admin"] });
    const second = await ada.call("POST", "/v1/api-keys", { name: "ada", preset: "admin" });
    assert.equal(second.status, 201, JSON.stringify(second.body));
    const { body } = await own.call("GET", "/v1/me", { key: own.admin });
    assert.equal((await ada.call("DELETE", `/v1/api-keys/${body.key.id}`)).status, 200);
    const end = await ada.call("POST", `/v1/users/${ada.id}/end`, {});
    assert.equal(end.body.code, "USERS_LAST_ADMIN");
    assert.equal((await ada.call("PATCH", `/v1/users/${ada.id}`, { roles: [] })).body.code, "USERS_LAST_ADMIN");
    const bob = await invite(own, { name: "Bob", roles: ["admin"] }).catch(() => null);
    assert.equal(bob, null, "the first admin key is revoked");
  } finally {
    await own.close();
  }
});

test("an enrolment link works once, is replaced by the next one, and expires", async () => {
  const created = await service.call("POST", "/v1/users", {
    key: service.admin,
    body: { name: "Late" },
    headers: { host: PAGE.host },
  });
  const first = enrolmentToken(created.body.link.url);
  const next = await service.call("POST", `/v1/users/${created.body.user.id}/link`, {
    key: service.admin,
    headers: { host: PAGE.host },
  });
  const second = enrolmentToken(next.body.link.url);
  assert.equal((await enrol(service, first, createAuthenticator(ORIGIN))).body.code, "USERS_LINK_INVALID");
  assert.equal((await enrol(service, second, createAuthenticator(ORIGIN))).status, 201);
  assert.equal((await enrol(service, second, createAuthenticator(ORIGIN))).body.code, "USERS_LINK_INVALID");
  const later = await service.call("POST", `/v1/users/${created.body.user.id}/link`, {
    key: service.admin,
    headers: { host: PAGE.host },
  });
  service.clock.now += 25 * 60 * MINUTE;
  assert.match(
    (await enrol(service, enrolmentToken(later.body.link.url), createAuthenticator(ORIGIN))).body.detail,
    /expired/,
  );
  assert.ok(
    !service.logged.some((line) => [first, second].some((token) => line.includes(token))),
    "links are not logged",
  );
});

test("a recovery code adds a passkey once, in any spelling", async () => {
  const ada = await invite(service, { name: "Ada", roles: ["viewer"] });
  assert.equal(ada.recovery_codes.length, 10);
  const code = (ada.recovery_codes[0] as string).toLowerCase().replaceAll("-", " ");
  const done = await enrol(service, code, createAuthenticator(ORIGIN));
  assert.equal(done.status, 201, JSON.stringify(done.body));
  assert.equal(done.body.recovery_codes, null);
  assert.equal(done.body.user.recovery_codes, 9);
  assert.equal(done.body.user.passkeys.length, 2);
  assert.equal((await enrol(service, code, createAuthenticator(ORIGIN))).body.code, "USERS_LINK_INVALID");
});

test("the sign-in page and its script are served", async () => {
  const page = await service.call("GET", "/sign-in", { key: null, headers: PAGE });
  assert.equal(page.status, 200, String(page.body));
  const path = /src="([^"]+sign-in\.js)"/.exec(page.body as string)?.[1] ?? assert.fail("the page has no script");
  const script = await service.call("GET", path, { key: null });
  assert.equal(script.status, 200);
  assert.match(script.headers.get("content-type") ?? "", /^text\/javascript/);
  assert.match(String(script.body), /navigator\.credentials/);
});
