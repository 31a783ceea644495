/** SCIM: what a provider can create, change and end here, and what a hostile or broken client cannot. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { createVisitor, startLyingProvider, type LyingProvider } from "../../support/lying-provider.ts";
import { invite, PAGE, startPeople } from "../../support/people.ts";
import { rawSqlite } from "../../support/raw-store.ts";
import { ASKED, makeKey, type Answer, type Service } from "../../support/service.ts";

let service: Service;
let company: LyingProvider;
let key: string;
let otherKey: string;
let limitedKey: string;
let staff = "";
let store = "";
let n = 0;

before(async () => {
  company = await startLyingProvider();
  const [own, other] = [optionsFor("company", company.issuer), optionsFor("other", "https://other.example")];
  const groups = { near: { members: [] as string[], tools: ["near"] } };
  service = await startPeople({
    users: { providers: [own, other] },
    change: (config) => (config.groups = groups),
    storage(folder) {
      store = join(folder, "assent.db");
      return sqliteStorage({ path: store });
    },
  });
  const made = await makeKey(service, { name: "scim", scopes: ["users:provision"] });
  const madeForOther = await makeKey(service, { name: "other scim", scopes: ["users:provision"] });
  const limited = await makeKey(service, { name: "limited", scopes: ["users:provision"] });
  [key, otherKey, limitedKey] = [made.key, madeForOther.key, limited.key];
  groups.near.members.push(`key:${limited.id}`);
  own.scim_keys = [made.id, limited.id];
  other.scim_keys = [madeForOther.id];
  await service.restart();
  staff = await group("staff");
});
after(async () => {
  await service.close();
  await company.close();
});

function optionsFor(id: string, issuer: string): { scim_keys?: string[] } & Record<string, unknown> {
  return {
    id,
    name: id,
    issuer,
    client_id: "assent",
    client_secret: "secret",
    scim: true,
    groups: { fin: ["finance"] },
    roles: { boss: ["admin"], fin: ["approver"] },
    everyone: ["viewer"],
  };
}

const scim = (method: string, path: string, body?: unknown, as: string | null = key): Promise<Answer> =>
  service.call(method, `/scim/v2/company${path}`, {
    key: as,
    ...(body === undefined ? {} : { raw: JSON.stringify(body), headers: { "content-type": "application/scim+json" } }),
  });

const json = (answer: Answer): Answer["body"] => {
  if (typeof answer.body !== "string") return answer.body;
  return answer.body === "" ? null : JSON.parse(answer.body);
};

interface Leaver {
  id: string;
  subject: string;
  userName: string;
}

/** Creates a user who is in no group of the configuration. */
async function create(about: object = {}): Promise<Leaver> {
  const created = await createWithoutGroups(about);
  const joined = await patch(`/Groups/${staff}`, { op: "add", path: "members", value: [{ value: created.id }] });
  assert.equal(joined.status, 200, JSON.stringify(joined.body));
  return created;
}

async function createWithoutGroups(about: object = {}): Promise<Leaver> {
  const subject = `subject-${++n}`;
  const userName = `user-${n}@example.com`;
  const answer = await scim("POST", "/Users", { userName, externalId: subject, displayName: `Person ${n}`, ...about });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return { id: json(answer).id, subject, userName };
}

async function group(displayName: string): Promise<string> {
  const answer = await scim("POST", "/Groups", { displayName });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return json(answer).id;
}

const patch = (path: string, ...Operations: object[]): Promise<Answer> => scim("PATCH", path, { Operations });
const setActive = (id: string, value: unknown): Promise<Answer> =>
  patch(`/Users/${id}`, { op: "replace", value: { active: value } });
const read = async (id: string): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/users/${id}`, { key: service.admin })).body;

async function signIn(
  sub: string,
  claims: object = {},
): Promise<{ answer: Answer; visitor: ReturnType<typeof createVisitor> }> {
  company.claims = { sub, name: "From the claims", ...claims };
  const visitor = createVisitor(service);
  const started = await visitor.get("/v1/sign-in/company");
  const query = new URLSearchParams({ ...company.authorize(started.headers.get("location") ?? "") });
  return { answer: await visitor.get(`/v1/sign-in/company/callback?${query.toString()}`), visitor };
}

test("a key with limits changes neither users nor groups", async () => {
  const { id } = await create();
  for (const [method, path, body] of [
    ["POST", "/Users", { userName: "eve@example.com", externalId: "eve" }],
    ["DELETE", `/Users/${id}`, undefined],
    ["POST", "/Groups", { displayName: "boss" }],
    ["DELETE", `/Groups/${staff}`, undefined],
  ] as const) {
    const answer = await scim(method, path, body, limitedKey);
    assert.deepEqual([answer.status, /limits/.test(json(answer).detail)], [403, true], `${method} ${path}`);
  }
});

test("a created user signs in with the name and roles of SCIM, whatever the claims say", async () => {
  const { id, subject, userName } = await create({ displayName: "Ada" });
  const { answer, visitor } = await signIn(subject, { groups: ["boss"] });
  assert.equal(answer.status, 303, JSON.stringify(answer.body));
  const { user } = (await visitor.get("/v1/session")).body;
  assert.deepEqual([user.id, user.name, user.roles, user.managed_by], [id, "Ada", ["viewer"], "scim:company"]);
  const reference = { _claim_names: { groups: "src1" }, _claim_sources: { src1: {} } };
  for (const claims of [reference, { groups: 5 }, { groups: [["boss"]] }])
    assert.equal((await signIn(subject, claims)).answer.status, 303, JSON.stringify(claims));
  const entries = await service.storage.entries(0, 10_000);
  const recorded = entries.map(({ bytes }) => new TextDecoder().decode(bytes)).join("\n");
  assert.ok(!recorded.includes(userName), "the user name is not in the ledger");
});

test("a person is not signed in if the provider has not created them, or created them again with another subject", async () => {
  const first = await create({ displayName: "Same" });
  const before = (await signIn("nobody")).answer;
  assert.deepEqual([before.status, before.body.code], [403, "USERS_NOT_PROVISIONED"]);
  await scim("DELETE", `/Users/${first.id}`);
  const again = await scim("POST", "/Users", {
    userName: first.userName,
    externalId: "recreated",
    displayName: "Same",
  });
  assert.equal(again.status, 201, JSON.stringify(again.body));
  assert.notEqual(json(again).id, first.id);
  assert.equal((await signIn(first.subject)).answer.body.code, "USERS_SIGN_IN_ENDED");
});

test("users are found by userName in any case, externalId and id, in pages", async () => {
  const { id, subject, userName } = await create();
  const find = async (filter: string): Promise<string[]> =>
    json(await scim("GET", `/Users?filter=${encodeURIComponent(filter)}`)).Resources.map(
      (user: { id: string }) => user.id,
    );
  assert.deepEqual(await find(`userName eq "${userName.toUpperCase()}"`), [id]);
  assert.deepEqual(await find(`externalId EQ "${subject}"`), [id]);
  assert.deepEqual(await find(`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "${userName}"`), [id]);
  assert.deepEqual(await find(`externalId eq "${subject.toUpperCase()}"`), []);
  const page = json(await scim("GET", "/Users?startIndex=2&count=1"));
  assert.deepEqual([page.startIndex, page.itemsPerPage, page.Resources.length], [2, 1, 1]);
  assert.ok(page.totalResults >= 2);
  assert.equal(json(await scim("GET", "/Users?count=100000")).itemsPerPage, page.totalResults);
  assert.equal(json(await scim("GET", "/Users?count=-1")).itemsPerPage, 0);
  assert.deepEqual(await find(`userName eq "${userName}" and id eq "${id}" AND active eq true`), [id]);
  assert.deepEqual(await find(`userName eq "${userName}" and externalId eq "someone else"`), []);
  assert.deepEqual(await find(`userName eq "${userName}" and active eq False`), []);
  assert.deepEqual(await find('userName eq "a\\" and id eq \\"b"'), [], "a quotation mark in the value");
  for (const filter of [
    'userName co "a"',
    "userName eq ada",
    'password eq "x"',
    'userName eq "a" or id eq "b"',
    'userName eq "a" and password eq "b"',
    'userName eq "a" and',
    'and userName eq "a"',
    'userName eq "a" id eq "b"',
    'userName eq "a"and id eq "b"',
    'not (userName eq "a")',
    "",
  ])
    assert.deepEqual(
      [filter, (await scim("GET", `/Users?filter=${encodeURIComponent(filter)}`)).status],
      [filter, 400],
    );
});

test("a leaver loses sessions, keys, grants and roles immediately, and their open actions are cancelled", async () => {
  for (const leave of [
    (id: string) => setActive(id, false),
    (id: string) => patch(`/Users/${id}`, { op: "Replace", path: "active", value: "False" }),
    (id: string) =>
      patch(`/Users/${id}`, { op: "replace", path: "urn:ietf:params:scim:schemas:core:2.0:User:ACTIVE", value: false }),
    (id: string) => scim("PUT", `/Users/${id}`, { userName: `put-${id}`, active: false }),
    (id: string) => scim("DELETE", `/Users/${id}`),
  ]) {
    const { id, subject } = await create();
    const boss =
      json(await scim("GET", '/Groups?filter=displayName eq "boss"')).Resources[0]?.id ?? (await group("boss"));
    assert.equal((await patch(`/Groups/${boss}`, { op: "add", path: "members", value: [{ value: id }] })).status, 200);
    const { visitor } = await signIn(subject);
    assert.equal((await visitor.get("/v1/users")).status, 200, "an admin");
    const headers = { ...PAGE, ...visitor.session() };
    const made = await service.call("POST", "/v1/api-keys", {
      key: null,
      headers,
      body: { name: `bot ${id}`, preset: "agent" },
    });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const open = await service.call("POST", "/v1/actions", { key: made.body.key, body: ASKED });
    assert.equal(open.body.status, "pending_approval", JSON.stringify(open.body));
    const done = await leave(id);
    assert.ok([200, 204].includes(done.status), JSON.stringify(done.body));
    assert.equal((await visitor.get("/v1/session")).status, 401);
    assert.equal((await service.call("GET", "/v1/me", { key: made.body.key })).status, 401);
    const action = await service.call("GET", `/v1/actions/${open.body.id}`, { key: service.admin });
    assert.equal(action.body.status, "cancelled");
    const user = await read(id);
    assert.deepEqual([user.roles, user.groups], [[], []]);
    assert.notEqual(user.ended_at, null);
    assert.equal((await signIn(subject)).answer.body.code, "USERS_SIGN_IN_ENDED");
  }
});

test("a leaver whose name changes in the same request loses their keys, and the keys made with those", async () => {
  const { id } = await create({ displayName: "Old Name" });
  const boss = json(await scim("GET", '/Groups?filter=displayName eq "boss"')).Resources[0]?.id;
  assert.equal((await patch(`/Groups/${boss}`, { op: "add", path: "members", value: [{ value: id }] })).status, 200);
  const scopes = ["keys:manage", "actions:submit"];
  const owned = await makeKey(service, { name: "owned", owner: `user:${id}`, scopes });
  const made = await makeKey(service, { name: "made with it", owner: null, scopes: ["actions:submit"] }, owned.key);
  const done = await patch(`/Users/${id}`, { op: "replace", value: { displayName: "New Name", active: false } });
  assert.equal(done.status, 200, JSON.stringify(done.body));
  for (const each of [owned, made]) assert.equal((await service.call("GET", "/v1/me", { key: each.key })).status, 401);
});

test("a user whom SCIM ended returns with the groups that the provider has then, and one whom an admin ended stays ended", async () => {
  const { id, subject, userName } = await create();
  const fin = await group("fin");
  await patch(`/Groups/${fin}`, { op: "add", path: "members", value: [{ value: id }] });
  assert.deepEqual((await read(id)).groups, ["finance"]);
  await setActive(id, false);
  assert.equal((await patch(`/Groups/${fin}`, { op: "remove", path: `members[value eq "${id}"]` })).status, 200);
  assert.equal((await setActive(id, true)).status, 200);
  assert.deepEqual([(await read(id)).groups, (await read(id)).roles], [[], ["viewer"]]);
  await setActive(id, false);
  assert.equal((await patch(`/Groups/${fin}`, { op: "add", path: "members", value: [{ value: id }] })).status, 200);
  assert.deepEqual(json(await scim("GET", `/Groups/${fin}`)).members, [
    { value: id, display: json(await scim("GET", `/Users/${id}`)).displayName },
  ]);
  assert.deepEqual([(await read(id)).groups, (await read(id)).roles], [[], []], "not while deactivated");
  await setActive(id, true);
  assert.deepEqual((await read(id)).groups, ["finance"]);
  await scim("DELETE", `/Users/${id}`);
  assert.equal((await scim("GET", `/Users/${id}`)).status, 404);
  const again = await scim("POST", "/Users", { userName, externalId: subject });
  assert.deepEqual([again.status, json(again).id], [201, id], "the same account");
  await service.call("POST", `/v1/users/${id}/end`, { key: service.admin, body: {} });
  for (const attempt of [
    () => setActive(id, true),
    () => scim("PUT", `/Users/${id}`, { userName, active: true }),
    () => scim("POST", "/Users", { userName, externalId: subject }),
  ])
    assert.equal((await attempt()).status, 409);
  await scim("DELETE", `/Users/${id}`);
  assert.equal((await scim("POST", "/Users", { userName, externalId: subject })).status, 409);
  assert.notEqual((await read(id)).ended_at, null);
});

test("a new user has no rights until the provider sends the groups, which may limit them", async () => {
  const { id, subject } = await createWithoutGroups();
  assert.deepEqual([(await read(id)).groups, (await read(id)).roles], [[], []]);
  const { visitor } = await signIn(subject);
  assert.deepEqual((await visitor.get("/v1/session")).body.scopes, []);
  const joined = (op: string) => patch(`/Groups/${staff}`, { op, path: "members", value: [{ value: id }] });
  await joined("add");
  assert.deepEqual((await read(id)).roles, ["viewer"]);
  await joined("remove");
  assert.deepEqual((await read(id)).roles, []);
  await setActive(id, false);
  await setActive(id, true);
  assert.deepEqual((await read(id)).roles, [], "also after a reactivation");
});

test("a key of one provider can neither read nor change the users of another", async () => {
  const { id } = await create({ displayName: "Victim" });
  const call = (method: string, path: string, body?: object): Promise<Answer> => scim(method, path, body, otherKey);
  const operation = { op: "replace", value: { active: false } };
  for (const done of [
    await call("GET", "/Users"),
    await call("GET", `/Users/${id}`),
    await call("GET", "/Groups"),
    await call("GET", "/Schemas"),
    await call("POST", "/Users", { userName: "mole", externalId: "mole" }),
    await call("PATCH", `/Users/${id}`, { Operations: [operation] }),
    await call("PUT", `/Users/${id}`, { userName: "x", active: false }),
    await call("DELETE", `/Users/${id}`),
    await call("POST", "/Groups", { displayName: "boss", members: [{ value: id }] }),
    await call("DELETE", `/Groups/${staff}`),
    await scim("GET", "/Users", undefined, service.admin),
  ])
    assert.deepEqual([done.status, /scim_keys/.test(json(done).detail)], [403, true], JSON.stringify(done.body));
  assert.deepEqual([(await read(id)).ended_at, (await read(id)).roles], [null, ["viewer"]]);
});

test("groups grant only the configured mapping, and membership follows every form of change", async () => {
  const [a, b] = [await create(), await create()];
  const id = await group("unmapped");
  const members = async (): Promise<string[]> =>
    json(await scim("GET", `/Groups/${id}`)).members.map((each: { value: string }) => each.value);
  await patch(`/Groups/${id}`, { op: "Add", path: "members", value: [{ value: a.id }, { value: b.id }] });
  assert.deepEqual((await members()).sort(), [a.id, b.id].sort());
  assert.deepEqual([(await read(a.id)).groups, (await read(a.id)).roles], [[], ["viewer"]]);
  await patch(`/Groups/${id}`, { op: "Remove", path: "members", value: [{ value: a.id }] });
  assert.deepEqual(await members(), [b.id]);
  await patch(`/Groups/${id}`, { op: "replace", value: { id, displayName: "unmapped", members: [{ value: a.id }] } });
  assert.deepEqual(await members(), [a.id]);
  await scim("PUT", `/Groups/${id}`, { displayName: "unmapped", members: [{ value: b.id }] });
  assert.deepEqual(await members(), [b.id]);
  assert.equal(
    (await patch(`/Groups/${id}`, { op: "replace", path: "displayName", value: "boss" })).status,
    400,
    "renamed",
  );
  assert.equal((await scim("POST", "/Groups", { displayName: "unmapped" })).status, 409);
  assert.equal(json(await scim("GET", `/Groups/${id}?excludedAttributes=members`)).members, undefined);
  assert.equal((await scim("DELETE", `/Groups/${id}`)).status, 204);
  assert.equal((await scim("GET", `/Groups/${id}`)).status, 404);
  assert.deepEqual(json(await scim("GET", `/Users/${b.id}`)).groups, [{ display: "staff" }]);
});

test("changes of groups that could mean two things are refused", async () => {
  const [a, b] = [await create(), await create()];
  const id = await group("strict");
  await patch(`/Groups/${id}`, { op: "add", path: "members", value: [{ value: a.id }, { value: b.id }] });
  const before = await service.storage.head();
  for (const operation of [
    { op: "add", path: "members" },
    { op: "add", path: "members", value: [] },
    { op: "remove", path: "members", value: [] },
    { op: "replace", path: "members" },
    { op: "replace", path: "members", value: [{}] },
    // Neither a group nor an unknown user can be a member. Clients would read 404 as if there were no group.
    { op: "add", path: "members", value: [{ value: id, type: "Group" }] },
    { op: "add", path: "members", value: [{ value: a.id }, { value: "unknown" }] },
    { op: "replace", path: "member", value: [] },
    { op: "replace", path: ["members"], value: [] },
    { op: "remove", path: `members[value ne "${a.id}"]` },
    { op: "remove", path: "displayName" },
    { op: "replace", path: "displayName", value: {} },
    { op: "replace", value: { id: "other" } },
  ])
    assert.equal((await patch(`/Groups/${id}`, operation)).status, 400, JSON.stringify(operation));
  assert.equal((await scim("PUT", `/Groups/${id}`, { displayName: "strict" })).status, 400);
  for (const operation of [
    { op: "replace", path: "activ", value: false },
    { op: "replace", value: { actve: false } },
    { op: "replace", path: 1, value: { active: false } },
    { op: "replace", path: "groups", value: [] },
    { op: "replace", value: { [`${SCHEMA}User`]: { active: false } } },
  ])
    assert.equal((await patch(`/Users/${a.id}`, operation)).status, 400, JSON.stringify(operation));
  for (const body of [{ [`${SCHEMA}User`]: { active: false } }, { active: true, [`${SCHEMA}User:active`]: false }])
    assert.equal((await scim("PUT", `/Users/${a.id}`, body)).status, 400, JSON.stringify(body));
  assert.equal((await service.storage.head()).size, before.size, "nothing was recorded");
  assert.equal((await scim("PUT", `/Users/${b.id}`, { [`${SCHEMA}User:active`]: "False" })).status, 200);
  assert.notEqual((await read(b.id)).ended_at, null, "the name of the attribute with its schema");
  assert.equal((await patch(`/Groups/${id}`, { op: "Replace", path: "externalId", value: "g-1" })).status, 200);
  assert.equal(json(await scim("GET", `/Groups/${id}`)).externalId, "g-1");
});

/** The requests of a client for one joiner, mover and leaver, as its documentation shows them. */
interface ClientShape {
  /** Finds the user before it is created. */
  lookup: string;
  user: object;
  rename: object;
  leave: object;
  group: object;
  /** Adds a member to a group, and checks or removes the membership. */
  join(id: string): object;
  check?(group: string, id: string): string;
  part(id: string): object;
}

const SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:";
const PATCH_SCHEMA = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"];
const CLIENTS: Record<string, ClientShape> = {
  okta: {
    lookup: 'userName eq "okta@example.com"',
    user: {
      schemas: [`${SCHEMA}User`],
      userName: "okta@example.com",
      name: { givenName: "Olga", familyName: "Okta" },
      emails: [{ primary: true, value: "okta@example.com", type: "work" }],
      displayName: "Olga Okta",
      locale: "en-US",
      externalId: "00u1okta",
      groups: [],
      password: "not used",
      active: true,
    },
    rename: { schemas: PATCH_SCHEMA, Operations: [{ op: "replace", value: { displayName: "Olga New" } }] },
    leave: { schemas: PATCH_SCHEMA, Operations: [{ op: "replace", value: { active: false } }] },
    group: { schemas: [`${SCHEMA}Group`], displayName: "okta staff", members: [] },
    join: (value) => ({
      schemas: PATCH_SCHEMA,
      Operations: [{ op: "add", path: "members", value: [{ value, display: "okta@example.com" }] }],
    }),
    part: (id) => ({ schemas: PATCH_SCHEMA, Operations: [{ op: "remove", path: `members[value eq "${id}"]` }] }),
  },
  entra: {
    lookup: 'externalId eq "3f2504e0-4f89-11d3-9a0c-0305e82c3301"',
    user: {
      schemas: [`${SCHEMA}User`, "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
      externalId: "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
      userName: "entra@example.onmicrosoft.com",
      active: true,
      displayName: "Emil Entra",
      emails: [{ primary: true, type: "work", value: "entra@example.com" }],
      meta: { resourceType: "User" },
      name: { formatted: "Emil Entra", familyName: "Entra", givenName: "Emil" },
      roles: [],
      "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { department: "Finance" },
    },
    rename: {
      schemas: PATCH_SCHEMA,
      Operations: [
        { op: "Replace", path: "displayName", value: "Emil New" },
        { op: "Add", path: 'emails[type eq "work"].value', value: "new@example.com" },
        { op: "Add", path: "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department", value: "Tax" },
      ],
    },
    leave: { schemas: PATCH_SCHEMA, Operations: [{ op: "Replace", path: "active", value: "False" }] },
    group: { schemas: [`${SCHEMA}Group`], externalId: "8aa1a0c0-c4c3", displayName: "entra staff", meta: {} },
    join: (value) => ({ schemas: PATCH_SCHEMA, Operations: [{ op: "Add", path: "members", value: [{ value }] }] }),
    check: (group, id) => `id eq "${group}" and members eq "${id}"`,
    part: (value) => ({ schemas: PATCH_SCHEMA, Operations: [{ op: "Remove", path: "members", value: [{ value }] }] }),
  },
  authentik: {
    lookup: 'userName eq "authentik"',
    user: {
      schemas: [`${SCHEMA}User`],
      userName: "authentik",
      name: { formatted: "Aki Authentik", givenName: "Aki", familyName: "Authentik" },
      displayName: "Aki Authentik",
      photos: [],
      active: true,
      emails: [{ value: "aki@example.com", type: "other", primary: true }],
      externalId: "b1946ac92492d2347c6235b4d2611184",
    },
    rename: { schemas: [`${SCHEMA}User`], userName: "authentik", displayName: "Aki New", active: true },
    leave: { schemas: [`${SCHEMA}User`], userName: "authentik", displayName: "Aki New", active: false },
    group: { schemas: [`${SCHEMA}Group`], externalId: "e5b7f2aa", displayName: "authentik staff" },
    join: (value) => ({ schemas: PATCH_SCHEMA, Operations: [{ op: "add", path: "members", value: [{ value }] }] }),
    part: (value) => ({ schemas: PATCH_SCHEMA, Operations: [{ op: "remove", path: "members", value: [{ value }] }] }),
  },
};

for (const [name, client] of Object.entries(CLIENTS))
  test(`requests in the form of ${name} create, rename, group and deactivate a user`, async () => {
    const find = async (path: string, filter: string): Promise<{ id: string }[]> => {
      const found = await scim("GET", `${path}?filter=${encodeURIComponent(filter)}&excludedAttributes=members`);
      assert.equal(found.status, 200, JSON.stringify(found.body));
      return json(found).Resources;
    };
    const send = async (method: string, path: string, body: object): Promise<Answer["body"]> => {
      const done = await scim(method, path, body);
      assert.ok([200, 201].includes(done.status), JSON.stringify(done.body));
      return json(done);
    };
    assert.deepEqual(await find("/Users", client.lookup), []);
    const { id } = await send("POST", "/Users", client.user);
    assert.deepEqual(
      (await find("/Users", client.lookup)).map((each) => each.id),
      [id],
    );
    const made = await send("POST", "/Groups", client.group);
    await send("PATCH", `/Groups/${made.id}`, client.join(id));
    assert.deepEqual((await read(id)).roles, ["viewer"]);
    const { check } = client;
    if (check !== undefined) assert.equal((await find("/Groups", check(made.id, id))).length, 1);
    await send("Operations" in client.rename ? "PATCH" : "PUT", `/Users/${id}`, client.rename);
    assert.match((await read(id)).name, / New$/);
    await send("PATCH", `/Groups/${made.id}`, client.part(id));
    if (check !== undefined) assert.equal((await find("/Groups", check(made.id, id))).length, 0);
    assert.deepEqual((await read(id)).roles, []);
    await send("Operations" in client.leave ? "PATCH" : "PUT", `/Users/${id}`, client.leave);
    assert.notEqual((await read(id)).ended_at, null);
  });

test("schemas and resource types are described", async () => {
  const types = json(await scim("GET", "/ResourceTypes"));
  assert.deepEqual(
    types.Resources.map((each: { endpoint: string }) => each.endpoint),
    ["/Users", "/Groups"],
  );
  const schemas = json(await scim("GET", "/Schemas"));
  assert.equal(schemas.totalResults, 2);
  for (const { id, schema } of types.Resources as { id: string; schema: string }[]) {
    assert.equal(json(await scim("GET", `/ResourceTypes/${id}`)).schema, schema);
    const { attributes } = json(await scim("GET", `/Schemas/${schema}`));
    assert.ok(attributes.some((each: { name: string }) => each.name === (id === "User" ? "userName" : "members")));
  }
  assert.equal((await scim("GET", "/Schemas/urn:unknown")).status, 404);
});

test("keys without the scope cannot provision", async () => {
  const { id } = await create();
  for (const as of [
    service.agent,
    (await makeKey(service, { name: "manager", scopes: ["users:manage", "users:read"] })).key,
  ])
    assert.equal(
      (await scim("PATCH", `/Users/${id}`, { Operations: [{ op: "replace", value: { active: false } }] }, as)).status,
      403,
    );
  assert.equal((await scim("GET", "/Users", undefined, null)).status, 401);
});

test("a provider's client cannot see users of this service or of other providers", async () => {
  const local = await invite(service, { name: "Local", roles: ["approver"] });
  const elsewhere = json(
    await service.call("POST", "/scim/v2/other/Users", {
      key: otherKey,
      raw: JSON.stringify({ userName: "x", externalId: "x" }),
      headers: { "content-type": "application/scim+json" },
    }),
  ).id;
  const fin = await group("none");
  for (const id of [local.id, elsewhere, "none", "../x"]) {
    assert.equal((await scim("GET", `/Users/${encodeURIComponent(id)}`)).status, 404);
    assert.equal((await setActive(encodeURIComponent(id), false)).status, 404);
    assert.equal((await scim("DELETE", `/Users/${encodeURIComponent(id)}`)).status, 404);
    assert.equal((await patch(`/Groups/${fin}`, { op: "add", path: "members", value: [{ value: id }] })).status, 400);
  }
  assert.equal((await local.call("GET", "/v1/session")).status, 200);
  assert.equal((await service.call("GET", "/scim/v2/unknown/Users", { key })).status, 404);
});

test("broken and hostile requests change nothing", async () => {
  const { id, subject, userName } = await create();
  const other = await create();
  const before = await service.storage.head();
  const url = `/Users/${id}`;
  const attempts: [string, string, unknown, number][] = [
    ["active that could mean anything", url, { Operations: [{ op: "replace", path: "active", value: "no" }] }, 400],
    ["active as a list", url, { Operations: [{ op: "replace", path: "active", value: [false] }] }, 400],
    ["active twice", url, { Operations: [{ op: "replace", value: { active: false, Active: true } }] }, 400],
    ["active removed", url, { Operations: [{ op: "remove", path: "active" }] }, 400],
    [
      "active with a filter",
      url,
      { Operations: [{ op: "replace", path: "active[value eq true]", value: false }] },
      400,
    ],
    ["another subject", url, { Operations: [{ op: "replace", path: "externalId", value: "someone-else" }] }, 400],
    [
      "a userName that is taken",
      url,
      { Operations: [{ op: "replace", path: "userName", value: other.userName }] },
      409,
    ],
    ["no operations", url, { Operations: [] }, 400],
    ["an unknown operation", url, { Operations: [{ op: "move", path: "active", value: false }] }, 400],
    ["an operation that is no object", url, { Operations: ["x"] }, 400],
    ["a remove without a path", url, { Operations: [{ op: "remove", value: { active: false } }] }, 400],
    [
      "a good operation before a broken one",
      url,
      {
        Operations: [
          { op: "replace", path: "displayName", value: "New" },
          { op: "replace", path: "active", value: 0 },
        ],
      },
      400,
    ],
  ];
  for (const [what, path, body, status] of attempts) {
    const answer = await scim("PATCH", path, body);
    assert.deepEqual([what, answer.status], [what, status], JSON.stringify(answer.body));
    assert.equal(json(answer).schemas[0], "urn:ietf:params:scim:api:messages:2.0:Error");
    assert.equal(json(answer).status, String(status));
  }
  for (const body of [
    { userName: "a" },
    { externalId: "b" },
    { userName, externalId: "c" },
    { userName: "d", externalId: subject },
    { userName: {}, externalId: [] },
  ])
    assert.ok([400, 409].includes((await scim("POST", "/Users", body)).status), JSON.stringify(body));
  const raw = (text: string): Promise<Answer> =>
    service.call("POST", "/scim/v2/company/Users", { key, raw: text, headers: { "content-type": "application/json" } });
  for (const text of [
    "",
    "[]",
    "{",
    '{"userName":"x","userName":"y","externalId":"z"}',
    `{"a":${"[".repeat(200)}${"]".repeat(200)}}`,
  ])
    assert.equal((await raw(text)).status, 400, text);
  assert.equal((await service.storage.head()).size, before.size, "nothing was recorded");
});

test("a record that was changed in the store does not swap two people", async () => {
  const [alice, bob] = [await create(), await create()];
  const raw = await rawSqlite(store);
  try {
    const table = raw.tables.find(({ name }) => name === "documents");
    assert.ok(table !== undefined);
    const row = (await raw.rows(table)).find(({ key }) => String(key).endsWith(`/user/${alice.id}`));
    assert.ok(row !== undefined);
    const value = String(row["value"]);
    await raw.set(table, row, "value", value.replace(alice.userName, bob.userName));
    const found = json(await scim("GET", `/Users?filter=${encodeURIComponent(`userName eq "${bob.userName}"`)}`));
    assert.deepEqual(
      found.Resources.map(({ id }: { id: string }) => id),
      [bob.id],
    );
    assert.equal((await scim("GET", `/Users/${alice.id}`)).status, 409);
    await raw.set(table, row, "value", value);
    assert.equal((await scim("GET", `/Users/${alice.id}`)).status, 200);
  } finally {
    await raw.close();
  }
});
