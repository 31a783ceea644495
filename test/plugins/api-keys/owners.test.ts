/** Owners of keys: who can be one, and that an unknown owner makes no self-approval possible. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { makeToken } from "../../../src/domain/tokens.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { voteByLink } from "../../support/link-vote.ts";
import { testNotifier } from "../../support/notifier.ts";
import { addUser, invite, startPeople, type Person } from "../../support/people.ts";
import { makeKey, type Answer, type Service } from "../../support/service.ts";

const POLICY = `
policy: ask
rules:
  - { name: two, tool: two, effect: require_approval, approval: { quorum: 2 } }
  - { name: apart, tool: apart, effect: require_approval, approval: { exclude_requester_groups: true } }
  - { name: ask, effect: require_approval, approval: { notify: [desk] } }
`;
const UNKNOWN = "user:019346a0-0000-7000-8000-000000000000";

let service: Service;
let ada: Person;
let n = 0;
/** Keys from before the first user enrolled. */
const early = { agent: "", approver: "" };

before(async () => {
  const notifier = testNotifier();
  service = await startPeople({
    policy: POLICY,
    plugins: [notifier.plugin],
    change(config) {
      config.channels = { desk: { notifier: "pigeon", people: [{ owner: "Anna", to: "anna" }] } };
      config.groups = { near: { members: ["Carl"], tools: ["near"] }, finance: { members: ["Bea"] } };
    },
  });
});
after(() => service.close());

const create = (body: object): Promise<Answer> =>
  service.call("POST", "/v1/api-keys", {
    key: service.admin,
    body: { name: `key ${++n}`, preset: "approver", ...body },
  });
const owner = async (body: object): Promise<string> => {
  const made = await create(body);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body.owner as string;
};
async function refused(body: object, message: RegExp): Promise<void> {
  const { status, body: problem } = await create({ name: "never made", ...body });
  assert.deepEqual([status, problem.code, problem.errors?.[0]?.pointer], [422, "VALIDATION_FAILED", "/owner"]);
  assert.match(problem.detail, message);
  const { api_keys } = (await service.call("GET", "/v1/api-keys", { key: service.admin })).body;
  assert.ok(!api_keys.some(({ name }: { name: string }) => name === "never made"));
}
const submit = async (key: string, tool = "x"): Promise<string> =>
  (
    await service.call("POST", "/v1/actions", {
      key,
      body: { agent_id: "bot", tool, operation: "y", params: { n: ++n } },
    })
  ).body.id as string;
async function voteWithKey(id: string, key: string): Promise<Answer> {
  const { body } = await service.call("GET", `/v1/actions/${id}`, { key });
  const vote = { approve: true, token: body.approval_token };
  return service.call("POST", `/v1/actions/${id}/approval`, { key, body: vote });
}
async function voteAs(person: Person, id: string): Promise<Answer> {
  const { body } = await person.call("GET", `/v1/actions/${id}`);
  return person.call("POST", `/v1/actions/${id}/approval`, { approve: true, token: body.approval_token });
}
async function voteAsRecipient(id: string, owner: string): Promise<unknown[]> {
  const row = await service.storage.action(id);
  const claims = {
    action_id: id,
    request_hash: row?.request_hash ?? "",
    approver: `owner:${owner}`,
    expires_at: row?.expires_at ?? 0,
  };
  const token = makeToken("link", claims, (message) => service.runtime.host.vault.mac("approval-link", message));
  const voted = await voteByLink(service, token, true);
  return [voted.status, voted.body.code];
}
async function blockedFor(id: string, key: string): Promise<string | undefined> {
  const { body } = await service.call("GET", `/v1/actions/${id}`, { key });
  return body.approval_terms.blocked?.code as string | undefined;
}

test("until the first user has enrolled, any name can own a key, but no unknown user", async () => {
  early.agent = (await makeKey(service, { name: "early bot", agent_id: "bot", owner: "Team" })).key;
  early.approver = (await makeKey(service, { name: "early hand", preset: "approver", owner: "Hand" })).key;
  await refused({ owner: UNKNOWN }, /no user is "user:/);
  const id = await submit(early.agent);
  assert.equal(await blockedFor(id, early.approver), undefined);
});

test("once people sign in, the owner of a new key must be an active user, by name or id", async () => {
  ada = await invite(service, { name: "Ada", roles: ["approver", "key_manager"] });
  assert.equal(await owner({ owner: " ADA " }), "Ada");
  assert.equal(await owner({ owner: `user:${ada.id}` }), "Ada");
  for (const preset of ["approver", "admin", "agent"])
    await refused({ owner: "Nobody", preset }, /no user is named "Nobody"/);
  await refused({ owner: UNKNOWN }, /no user is "user:/);
  const twins = [await addUser(service, { name: "Twin" }), await addUser(service, { name: "Twin" })];
  await refused({ owner: "twin" }, /2 users are named "twin"/);
  assert.equal(await owner({ owner: `user:${twins[0].user.id}` }), "Twin");
  const { user } = await addUser(service, { name: "Gone" });
  await service.call("POST", `/v1/users/${user.id}/end`, { key: service.admin, body: {} });
  for (const ended of ["Gone", `user:${user.id}`]) await refused({ owner: ended }, /was deactivated/);
});

test("a key that a user creates belongs to that user, who cannot approve what it submits", async () => {
  const body = { name: "adas bot", preset: "agent", agent_id: "bot" };
  const made = await ada.call("POST", "/v1/api-keys", body);
  assert.deepEqual([made.status, made.body.owner], [201, "Ada"]);
  const id = await submit(made.body.key);
  assert.equal((await ada.call("GET", `/v1/actions/${id}`)).body.approval_terms.blocked.code, "SELF_APPROVAL");
  const shared = await ada.call("POST", "/v1/api-keys", { ...body, name: "no one's bot", owner: null });
  assert.deepEqual([shared.status, shared.body.owner], [201, null]);
  const manager = await makeKey(service, {
    name: "adas manager",
    owner: "Ada",
    scopes: ["keys:manage", "actions:submit"],
  });
  const terms = { scopes: ["actions:submit"], agent_id: "bot" };
  for (const [name, more, wanted] of [
    ["made by her key", {}, "Ada"],
    ["no one's second bot", { owner: null }, null],
  ] as const)
    assert.equal(
      (await service.call("POST", "/v1/api-keys", { key: manager.key, body: { name, ...terms, ...more } })).body.owner,
      wanted,
    );
});

test("once people sign in, a key without an owner cannot approve a person's actions, and does not add to a quorum", async () => {
  const { key } = await makeKey(service, { name: "adas third bot", agent_id: "bot", owner: "Ada" });
  assert.equal(await blockedFor(await submit(key), service.admin), "SELF_APPROVAL");
  const bob = await invite(service, { name: "Bob", roles: ["approver"] });
  const id = await submit(service.agent, "two");
  assert.equal((await voteWithKey(id, service.admin)).body.status, "pending_approval");
  assert.equal((await voteAs(ada, id)).body.status, "pending_approval", "Ada might hold the admin key");
  assert.equal((await voteAs(bob, id)).body.status, "approved");
  const other = await submit(service.agent, "two");
  await voteAs(ada, other);
  assert.equal(await blockedFor(other, service.admin), "ALREADY_VOTED");
});

test("if only one of the two owners is a user, no session, key or link approves", async () => {
  const ofTeam = await submit(early.agent);
  const read = (await ada.call("GET", `/v1/actions/${ofTeam}`)).body;
  assert.deepEqual([read.approval_terms.blocked.code, read.approval_token], ["SELF_APPROVAL", undefined]);
  assert.match(read.approval_terms.blocked.detail, /is not a user/);
  const { key } = await makeKey(service, { name: "adas second bot", agent_id: "bot", owner: "Ada" });
  const ofAda = await submit(key);
  assert.equal(await blockedFor(ofAda, early.approver), "SELF_APPROVAL");
  assert.deepEqual(await voteAsRecipient(ofAda, "anna"), [403, "SELF_APPROVAL"]);
  const { warnings } = await auditStore(service.storage);
  for (const name of ["Team", "Hand"])
    assert.ok(
      warnings.some((warning) => warning.includes(`has the owner "${name}", who is not a user`)),
      warnings.join("\n"),
    );
});

test("a key that another key created is only in groups of its creator, and sees only what the creator sees", async () => {
  for (const name of ["Carl", "Bea"]) await addUser(service, { name });
  const scopes = ["keys:manage", "approvals:decide", "actions:read", "actions:submit", "actions:read_own"];
  const maker = await makeKey(service, { name: "carls manager", owner: "Carl", scopes });
  const made = await makeKey(service, { name: "beas key", owner: "Bea", scopes: scopes.slice(1, 3) }, maker.key);
  const far = await submit(service.agent, "far");
  const near = await submit(service.agent, "near");
  const seen = async (id: string): Promise<number> =>
    (await service.call("GET", `/v1/actions/${id}`, { key: made.key })).status;
  assert.deepEqual([await seen(near), await seen(far)], [200, 404]);
  const { rows } = (await service.call("GET", "/v1/access-review", { key: service.admin })).body;
  const bot = await makeKey(
    service,
    { name: "carls bot", owner: null, agent_id: "bot", scopes: scopes.slice(3) },
    maker.key,
  );
  const ofBot = await submit(bot.key, "far");
  for (const [id, status] of [
    [ofBot, 200],
    [far, 404],
  ] as const)
    assert.equal((await service.call("GET", `/v1/actions/${id}`, { key: bot.key })).status, status, "of its agent");
  const row = rows.find(({ name }: { name: string }) => name === "beas key");
  assert.deepEqual([row.groups, row.limits], [[], [{ agents: null, tools: ["near"], also: [] }]]);
});

test("the end of a renamed user revokes the keys that they own under the earlier name", async () => {
  const rae = await invite(service, { name: "Rae", roles: ["approver"] });
  const { key } = await makeKey(service, { name: "raes key", preset: "approver", owner: "Rae" });
  await service.call("PATCH", `/v1/users/${rae.id}`, { key: service.admin, body: { name: "Rae Smith" } });
  assert.equal((await service.call("GET", "/v1/me", { key })).status, 200);
  await service.call("POST", `/v1/users/${rae.id}/end`, { key: service.admin, body: {} });
  assert.equal((await service.call("GET", "/v1/me", { key })).status, 401);
});

test("a key sees only what its owner sees, whoever created it", async () => {
  await addUser(service, { name: "Nell", groups: ["near"] });
  const { key } = await makeKey(service, { name: "nells key", preset: "approver", owner: "Nell" });
  for (const [tool, status] of [
    ["near", 200],
    ["far", 404],
  ] as const) {
    const id = await submit(service.agent, tool);
    assert.equal((await service.call("GET", `/v1/actions/${id}`, { key })).status, status, tool);
  }
});

test("a person who was renamed stays the requester, with their groups, for links and keys under any of the names", async () => {
  const rename = (id: string, name: string) =>
    service.call("PATCH", `/v1/users/${id}`, { key: service.admin, body: { name } });
  const { user: gil } = await addUser(service, { name: "Gil", groups: ["ledgers"] });
  const bot = await makeKey(service, { name: "gils bot", agent_id: "bot", owner: "Gil" });
  await rename(gil.id, "Gil Smith");
  const colleague = await invite(service, { name: "Cleo", roles: ["approver"], groups: ["ledgers"] });
  const { body } = await colleague.call("GET", `/v1/actions/${await submit(bot.key, "apart")}`);
  assert.equal(body.approval_terms.blocked?.code, "APPROVER_NOT_ELIGIBLE");

  const { user: anna } = await addUser(service, { name: "Anna" });
  await rename(anna.id, "Anna Smith");
  const late = await makeKey(service, { name: "annas bot", agent_id: "bot", owner: "Anna Smith" });
  const own = await submit(late.key);
  assert.deepEqual(await voteAsRecipient(own, "anna"), [403, "SELF_APPROVAL"]);
  assert.deepEqual(await recipientsOf(own), []);
});

test("the link of a deactivated user cannot vote, and the user receives no notifications", async () => {
  const id = await submit(service.agent);
  assert.deepEqual(await recipientsOf(id), ["anna"]);
  const { users } = (await service.call("GET", "/v1/users", { key: service.admin })).body;
  const anna = users.find(({ name }: { name: string }) => name === "Anna Smith");
  await service.call("POST", `/v1/users/${anna.id}/end`, { key: service.admin, body: {} });
  assert.deepEqual(await voteAsRecipient(id, "anna"), [403, "TOKEN_INVALID"]);
  assert.deepEqual(await recipientsOf(await submit(service.agent)), []);
});

async function recipientsOf(id: string): Promise<string[]> {
  const rows = await service.storage.deliveries({ limit: 100 });
  return rows.filter(({ action_id }) => action_id === id).map(({ recipient }) => recipient);
}
