/**
 * Owners of keys: who can be one, and that neither a name nor an unknown owner makes one person count as two.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { digestEmail } from "../../../src/domain/person-reference.ts";
import { makeToken } from "../../../src/domain/tokens.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs, hasFeature } from "../../support/features.ts";
import { voteByLink } from "../../support/link-vote.ts";
import { testNotifier } from "../../support/notifier.ts";
import { addUser, invite, startPeople, type Person } from "../../support/people.ts";
import { addPerson, type Answer, makeKey, person, type Service, setSection } from "../../support/service.ts";

const POLICY = `
policy: ask
rules:
  - { name: two, tool: two, effect: require_approval, approval: { quorum: 2 } }
  - { name: groups, tool: groups, effect: require_approval, approval: { approvers: [{ group: finance }, { group: security }] } }
  - { name: apart, tool: apart, effect: require_approval, approval: { exclude_requester_groups: true } }
  - { name: ask, effect: require_approval, approval: { notify: [desk] } }
`;
const UNKNOWN = "user:019346a0-0000-7000-8000-000000000000";
const ISSUER = "https://login.example.com";

let service: Service;
let ada: Person;
let bob: Person;
let n = 0;
/** Keys from before the first user enrolled. The old approver key is in the group `security`. */
const early = { agent: "", approver: "", manager: "" };

before(async () => {
  service = await startPeople({
    policy: POLICY,
    plugins: [testNotifier().plugin],
    change(config) {
      // One admin key creates all keys. What is tested here is who owns them.
      config.approvals.trust_key_makers = true;
      if (hasFeature("stop")) setSection(config, "stop", { lift_approvals: 2 });
      if (hasFeature("retention")) setSection(config, "retention", { release_approvals: 2 });
      config.channels = { desk: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }] } };
      config.groups = {
        near: { members: [person("Carl")], tools: ["near"] },
        bots: { members: ["nobody@example.com"], agents: ["near-*"] },
        finance: { members: [person("Bea")] },
        security: { members: ["eve@example.com", `${ISSUER}#eve`] },
      };
    },
  });
});
after(() => service.close());

const create = (body: object, key = service.admin): Promise<Answer> =>
  service.call("POST", "/v1/api-keys", { key, body: { name: `key ${++n}`, preset: "approver", ...body } });
async function made(body: object): Promise<{ id: string; key: string; owner: string | null }> {
  const answer = await create(body);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body;
}
const ownerOf = async (body: object): Promise<string | null> => (await made(body)).owner;
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
const said = ({ status, body }: Answer): unknown[] => [status, body.code ?? body.status];
async function voteAsRecipient(id: string, approver: string): Promise<unknown[]> {
  const row = await service.storage.action(id);
  const claims = { action_id: id, request_hash: row?.request_hash ?? "", approver, expires_at: row?.expires_at ?? 0 };
  const token = makeToken("link", claims, (message) => service.runtime.host.vault.mac("approval-link", message));
  return said(await voteByLink(service, token, true));
}
async function blockedFor(id: string, key: string): Promise<string | undefined> {
  const { body } = await service.call("GET", `/v1/actions/${id}`, { key });
  return body.approval_terms.blocked?.code as string | undefined;
}
const changeUser = async (id: string, body: object): Promise<void> => {
  const { status, body: problem } = await service.call("PATCH", `/v1/users/${id}`, { key: service.admin, body });
  assert.equal(status, 200, JSON.stringify(problem));
};
const end = (id: string): Promise<Answer> =>
  service.call("POST", `/v1/users/${id}/end`, { key: service.admin, body: {} });
const statusOf = async (key: string): Promise<number> => (await service.call("GET", "/v1/me", { key })).status;

test("until the first user has enrolled, a key needs no owner, and a name is none", async () => {
  early.agent = (await makeKey(service, { name: "early bot", agent_id: "bot" })).key;
  early.approver = (await makeKey(service, { name: "early hand", preset: "approver" })).key;
  const scopes = ["stop:write", "holds:write", "actions:read", "approvals:decide"];
  early.manager = (await makeKey(service, { name: "early manager", scopes })).key;
  for (const owner of ["Hand", "owner:hand", "hand@", "user:", "key:1"])
    await refused({ owner }, /identifies no one; give `user:<id>`/);
  await refused({ owner: UNKNOWN }, /no user is "user:/);
  assert.equal(await blockedFor(await submit(early.agent), early.approver), undefined);
});

test("once people sign in, the owner of a new key is an active user, by id, verified address or account, and by no name", async () => {
  ada = await invite(service, { name: "Ada", roles: ["approver", "key_manager"] });
  bob = await invite(service, { name: "Bob", roles: ["approver"], groups: ["finance"] });
  const eve = await addPerson(service, "Eve", {
    email: digestEmail("eve@example.com"),
    identities: [{ issuer: ISSUER, subject: "eve" }],
  });
  assert.equal(await ownerOf({ owner: `user:${ada.id}` }), `user:${ada.id}`);
  assert.equal(await ownerOf({ owner: "EVE@Example.com" }), eve);
  assert.equal(await ownerOf({ owner: `${ISSUER}#eve` }), eve);
  await refused({ owner: "Ada" }, /"Ada" identifies no one/);
  await refused({ owner: "mallory@example.com" }, /no user is "mallory@example.com"/);
  for (const account of [`${ISSUER}#EVE`, `${ISSUER}/#eve`]) await refused({ owner: account }, /no user is/);
  await refused({ owner: UNKNOWN }, /no user is "user:/);
  await addPerson(service, "Evan", { email: digestEmail("shared@example.com") });
  await addPerson(service, "Evelyn", { email: digestEmail("shared@example.com") });
  await refused(
    { owner: "shared@example.com" },
    /is the address of 2 users \(user:.*, user:.*\); refer to one as user/,
  );
  const { user } = await addUser(service, { name: "Gone", roles: ["approver"] });
  await end(user.id);
  await refused({ owner: `user:${user.id}` }, /was deactivated/);
  for (const preset of ["approver", "admin"]) await refused({ preset, owner: null }, /needs an owner/);
});

test("a key has at most the rights of its owner, also after the owner loses a role", async () => {
  const { user } = await addUser(service, { name: "Vic", roles: ["viewer"] });
  const owner = `user:${user.id}`;
  await refused({ owner }, /the roles of "Vic" \(user:.*\) do not include approvals:decide/);
  await refused({ owner, preset: "admin" }, /do not include admin/);
  assert.equal(await ownerOf({ owner, preset: "agent", agent_id: "bot" }), owner);
  await changeUser(user.id, { roles: ["approver"] });
  const id = await submit(service.agent);
  for (const more of [{}, { agent_id: "bot" }]) {
    await changeUser(user.id, { roles: ["approver"] });
    const { key } = await made({ owner, ...more });
    if (!("agent_id" in more)) assert.equal(await blockedFor(id, key), undefined);
    await changeUser(user.id, { roles: ["viewer"] });
    const { body } = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
    const vote = { approve: true, token: body.approval_token };
    assert.deepEqual(said(await service.call("POST", `/v1/actions/${id}/approval`, { key, body: vote })), [
      403,
      "INSUFFICIENT_SCOPE",
    ]);
  }
});

test("a key that a user creates belongs to that user, who cannot approve what it submits", async () => {
  const body = { name: "adas bot", preset: "agent", agent_id: "bot" };
  const ofAda = await ada.call("POST", "/v1/api-keys", body);
  assert.deepEqual([ofAda.status, ofAda.body.owner], [201, `user:${ada.id}`]);
  const id = await submit(ofAda.body.key);
  assert.equal((await ada.call("GET", `/v1/actions/${id}`)).body.approval_terms.blocked.code, "SELF_APPROVAL");
  const shared = await ada.call("POST", "/v1/api-keys", { ...body, name: "no one's bot", owner: null });
  assert.deepEqual([shared.status, shared.body.owner], [201, null]);
  const manager = await made({
    name: "adas manager",
    owner: `user:${ada.id}`,
    preset: undefined,
    scopes: ["keys:manage", "actions:submit"],
  });
  const terms = { preset: undefined, scopes: ["actions:submit"], agent_id: "bot" };
  for (const [more, wanted] of [
    [{}, `user:${ada.id}`],
    [{ owner: null }, null],
  ] as const)
    assert.equal((await create({ ...terms, ...more }, manager.key)).body.owner, wanted);
});

test("a guest who took the names of others is neither of them, and shares nothing with them", async () => {
  const guest = await invite(service, { name: "Ada" });
  await changeUser(guest.id, { name: "Bob" });
  await changeUser(guest.id, { name: "Anna" });
  const ofAda = await made({ owner: `user:${ada.id}` });
  const bot = await makeKey(service, { name: "guests bot", agent_id: "bot", owner: `user:${guest.id}` });
  const id = await submit(bot.key, "two");
  assert.deepEqual(said(await voteAs(ada, id)), [200, "pending_approval"], "Ada is not behind the guest's agent");
  assert.deepEqual(said(await voteAs(bob, id)), [200, "approved"], "Ada and Bob are two people");
  const asked = await submit(bot.key);
  assert.deepEqual(await recipientsOf(asked), ["anna"], "Anna is still notified");
  const { body } = await end(guest.id);
  assert.deepEqual(body.revoked_keys, [bot.id]);
  assert.equal(await statusOf(ofAda.key), 200);
});

test("the name of a guest that looks like another person or an id is shown with the guest's own id", async () => {
  const victim = await addUser(service, { name: "Grace Hopper" });
  const { id } = victim.user;
  const nameOf = async (of: string): Promise<string> =>
    (await service.call("GET", `/v1/api-keys/names?ids=${of}`, { key: service.admin })).body.keys[0].name;
  assert.equal(await nameOf(id), "Grace Hopper");
  for (const name of [
    "Grace Hopper",
    "GRACE  hopper",
    "Ｇrace Hopper",
    "Grace\u00a0Hopper",
    "Gr\u0430ce Hopper",
    "Grace H0pper",
    `Grace Hopper (user:${id})`,
    `user:${id}`,
    "the key laptop",
    "reviewer:triage",
  ]) {
    const guest = await addUser(service, { name });
    assert.match(await nameOf(guest.user.id), new RegExp(`\\(user:${guest.user.id}\\)$`), name);
    await service.call("POST", `/v1/users/${guest.user.id}/end`, { key: service.admin, body: {} });
  }
  assert.equal(await nameOf(id), "Grace Hopper");
});

test(
  "a person and their older key without an owner are one person in quorums, groups, lifts and releases",
  needs("stop"),
  async () => {
    for (const [first, second] of [
      [early.approver, ada],
      [ada, early.approver],
    ] as const) {
      const id = await submit(service.agent, "two");
      const vote = (voter: string | Person): Promise<Answer> =>
        typeof voter === "string" ? voteWithKey(id, voter) : voteAs(voter, id);
      assert.equal((await vote(first)).body.status, "pending_approval");
      const late = await vote(second);
      assert.notEqual(late.body.status, "approved");
      assert.equal((await voteAs(bob, id)).body.status, "approved");
    }
    await changeUser(ada.id, { groups: ["finance"] });
    const eve = (await made({ owner: person("Eve") })).key;
    const both = await submit(service.agent, "groups");
    assert.equal((await voteAs(ada, both)).body.status, "pending_approval");
    assert.deepEqual(said(await voteWithKey(both, early.approver)), [409, "ALREADY_VOTED"]);
    assert.equal((await voteWithKey(both, eve)).body.status, "approved", "by the address in the group");
    await changeUser(ada.id, { groups: [], roles: ["admin"] });

    if (hasFeature("stop")) {
      const stop = await ada.call("POST", "/v1/stop", { reason: "a test", tool: "nothing" });
      const lift = `/v1/stop/${stop.body.id as string}/lift`;
      await ada.call("POST", lift, { reason: "mine" });
      assert.deepEqual(said(await service.call("POST", lift, { key: early.manager, body: { reason: "mine" } })), [
        409,
        "ALREADY_VOTED",
      ]);
    }
    if (hasFeature("retention")) {
      const hold = await ada.call("POST", "/v1/holds", { reason: "a test", agent: "bot" });
      const release = `/v1/holds/${hold.body.id as string}/release`;
      const first = await service.call("POST", release, { key: early.manager, body: { reason: "mine" } });
      assert.equal(first.status, 202, JSON.stringify(first.body));
      const second = await ada.call("POST", release, { reason: "mine" });
      assert.equal(second.status, 202, JSON.stringify(second.body));
    }
    await changeUser(ada.id, { roles: ["approver", "key_manager"] });
  },
);

test("once people sign in, a key without an owner cannot approve a person's actions, and does not add to a quorum", async () => {
  const { key } = await made({ preset: "agent", agent_id: "bot", owner: `user:${ada.id}` });
  for (const voter of [service.admin, early.approver])
    assert.equal(await blockedFor(await submit(key), voter), "SELF_APPROVAL");
  const other = await submit(service.agent, "two");
  await voteAs(ada, other);
  assert.equal(await blockedFor(other, service.admin), "ALREADY_VOTED");
});

test("a key whose owner is the name of a person, as in an earlier store, has no rights and is reported", async () => {
  const { key, value } = service.runtime.host.keys.mint({
    name: "of the past",
    scopes: ["approvals:decide", "actions:read", "actions:submit"],
    owner: "ada",
  });
  await service.runtime.host.ledger.transact(async (tx) => tx.recordKey("created", key, null));
  const id = await submit(service.agent, "two");
  assert.deepEqual(said(await service.call("GET", `/v1/actions/${id}`, { key: value })), [403, "INSUFFICIENT_SCOPE"]);
  const { warnings } = await auditStore(service.storage);
  assert.ok(
    warnings.some((warning) => warning.includes('has the owner "ada", who is not a user')),
    warnings.join("\n"),
  );
});

test("a key that another key created is only in groups of its creator, and sees only what the creator sees", async () => {
  const scopes = ["keys:manage", "approvals:decide", "actions:read", "actions:submit", "actions:read_own"];
  const maker = await makeKey(service, { name: "carls manager", owner: "Carl", scopes });
  const ofBea = await makeKey(service, { name: "beas key", owner: "Bea", scopes: scopes.slice(1, 3) }, maker.key);
  const far = await submit(service.agent, "far");
  const near = await submit(service.agent, "near");
  const seen = async (id: string): Promise<number> =>
    (await service.call("GET", `/v1/actions/${id}`, { key: ofBea.key })).status;
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

test("the end of a user revokes the keys that they own, and those that were made with them", async () => {
  const rae = await invite(service, { name: "Rae", roles: ["admin"] });
  const own = await made({ owner: `user:${rae.id}`, preset: "admin" });
  const below = await create({ preset: "agent", owner: null, agent_id: "bot" }, own.key);
  await changeUser(rae.id, { name: "Rae Smith" });
  for (const key of [own.key, below.body.key as string]) assert.equal(await statusOf(key), 200);
  await end(rae.id);
  for (const key of [own.key, below.body.key as string]) assert.equal(await statusOf(key), 401);
});

test("a key sees only what its owner sees, whoever created it", async () => {
  const { user } = await addUser(service, { name: "Nell", groups: ["near"], roles: ["approver"] });
  const { key } = await made({ owner: `user:${user.id}` });
  for (const [tool, status] of [
    ["near", 200],
    ["far", 404],
  ] as const) {
    const id = await submit(service.agent, tool);
    assert.equal((await service.call("GET", `/v1/actions/${id}`, { key })).status, status, tool);
  }
});

test("an admin with limits cannot remove them: by managing users, with a key of another, or with a key of no one", async () => {
  const nia = await invite(service, { name: "Nia", roles: ["admin"], groups: ["near"] });
  for (const [method, path, body] of [
    ["PATCH", `/v1/users/${nia.id}`, { groups: [] }],
    ["PATCH", `/v1/users/${ada.id}`, { name: "Ada Byron" }],
    ["POST", "/v1/users", { name: "Nia's friend", roles: ["approver"] }],
    ["POST", `/v1/users/${ada.id}/link`, undefined],
    ["POST", `/v1/users/${ada.id}/end`, {}],
  ] as const)
    assert.deepEqual(said(await nia.call(method, path, body)), [403, "SCOPE_ESCALATION"], `${method} ${path}`);
  const far = await submit(service.agent, "far");
  for (const owner of [null, `user:${ada.id}`]) {
    const { body } = await nia.call("POST", "/v1/api-keys", { name: `key ${++n}`, scopes: ["actions:read"], owner });
    assert.equal((await service.call("GET", `/v1/actions/${far}`, { key: body.key })).status, 404, String(owner));
  }
  const bound = await makeKey(service, { name: "bound", agent_id: "bot", owner: null, scopes: ["users:manage"] });
  const friend = await service.call("POST", "/v1/users", { key: bound.key, body: { name: "friend" } });
  assert.deepEqual(said(friend), [403, "SCOPE_ESCALATION"]);
});

test("neither a delegation nor a key without actions:read lifts the limits of an admin", async () => {
  const una = await invite(service, { name: "Una", roles: ["approver"] });
  const nora = await invite(service, { name: "Nora", roles: ["admin"], groups: ["bots"] });
  const until = new Date(service.runtime.host.clock() + 3_600_000).toISOString();
  const delegate = async (to: Person): Promise<string> =>
    (await una.call("POST", `/v1/users/${una.id}/delegations`, { to: to.id, until })).body.id;
  await delegate(nora);
  const other = await delegate(bob);
  const far = await submit(service.agent);
  assert.equal((await nora.call("GET", `/v1/actions/${far}`)).status, 200, "the delegation shows its actions");
  const asAdmin = async (path: string, body: object): Promise<Answer["body"]> =>
    (await service.call("POST", path, { key: service.admin, body })).body;
  await asAdmin("/v1/agents", { id: "bot" });
  const foreign = await made({ owner: ada.principal });
  const scopes = ["users:manage", "agents:read", "agents:write", "keys:manage", "holds:write", "deliveries:read"];
  const more = ["actions:erase", "approvals:decide"];
  const asked = { name: `key ${++n}`, preset: "agent", scopes: [...scopes, ...more] };
  const { status, body: manager } = await nora.call("POST", "/v1/api-keys", asked);
  assert.equal(status, 201, JSON.stringify(manager));
  const asKey = (method: string, path: string, body?: object): Promise<Answer> =>
    service.call(method, path, { key: manager.key, ...(body === undefined ? {} : { body }) });
  assert.equal((await asKey("POST", "/v1/agents", { id: "near-1" })).status, 201);
  const [tooFar, beyond] = [404, 403] as const;
  const attempts: [method: string, path: string, body: object | undefined, answer: [number, string]][] = [
    ["PATCH", `/v1/users/${nora.id}`, { groups: [] }, [beyond, "SCOPE_ESCALATION"]],
    ["DELETE", `/v1/users/${ada.id}/sessions`, undefined, [beyond, "SCOPE_ESCALATION"]],
    ["POST", `/v1/delegations/${other}/revoke`, {}, [beyond, "SCOPE_ESCALATION"]],
    ["POST", "/v1/api-keys", { name: "far", preset: "agent", agent_id: "bot" }, [beyond, "SCOPE_ESCALATION"]],
    ["DELETE", `/v1/api-keys/${foreign.id}`, undefined, [beyond, "SCOPE_ESCALATION"]],
    ["POST", "/v1/agents", { id: "far" }, [beyond, "AGENT_MISMATCH"]],
    ["POST", "/v1/agents/bot/suspend", { reason: "no" }, [tooFar, "AGENT_NOT_FOUND"]],
    ["POST", "/v1/actions", { agent_id: "bot", tool: "x", operation: "y" }, [beyond, "AGENT_MISMATCH"]],
    ["POST", `/v1/actions/${far}/cancel`, {}, [tooFar, "ACTION_NOT_FOUND"]],
    ["POST", `/v1/actions/${far}/permit`, undefined, [tooFar, "ACTION_NOT_FOUND"]],
  ];
  if (hasFeature("retention")) {
    const hold = await asAdmin("/v1/holds", { action: far, reason: "case 7" });
    attempts.push(
      ["POST", "/v1/holds", { agent: "bot", reason: "x" }, [tooFar, "AGENT_NOT_FOUND"]],
      ["POST", "/v1/holds", { action: far, reason: "x" }, [tooFar, "ACTION_NOT_FOUND"]],
      ["POST", "/v1/holds", { subject: "una@example.com", reason: "x" }, [beyond, "SCOPE_ESCALATION"]],
      ["POST", `/v1/holds/${hold.id}/release`, { reason: "done" }, [tooFar, "HOLD_NOT_FOUND"]],
      ["POST", `/v1/actions/${far}/erase`, { reason: "x" }, [tooFar, "ACTION_NOT_FOUND"]],
    );
  }
  if (hasFeature("authority"))
    attempts.push(["GET", "/v1/authority?agent_id=bot", undefined, [beyond, "AGENT_MISMATCH"]]);
  if (hasFeature("deliveries")) attempts.push(["GET", "/v1/deliveries", undefined, [beyond, "INSUFFICIENT_SCOPE"]]);
  for (const [name, call] of [
    ["session", nora.call],
    ["key", asKey],
  ] as const)
    for (const [method, path, body, answer] of attempts)
      assert.deepEqual(said(await call(method, path, body)), answer, `${name}: ${method} ${path}`);
  const forAda = { name: `key ${++n}`, preset: "agent", scopes: ["keys:manage"], owner: ada.principal };
  const { body: posing } = await nora.call("POST", "/v1/api-keys", forAda);
  const revoked = await service.call("DELETE", `/v1/api-keys/${foreign.id}`, { key: posing.key });
  assert.match(revoked.body.detail, /your groups limit your rights/, "a key that she made for the owner");
  assert.equal((await asKey("GET", "/v1/agents/bot")).status, 404);
  assert.deepEqual(
    (await asKey("GET", "/v1/agents?limit=1")).body.agents.map(({ id }: { id: string }) => id),
    ["near-1"],
  );
  const own = await nora.call("POST", "/v1/api-keys", { name: `key ${++n}`, scopes: ["agents:read"] });
  assert.equal((await nora.call("DELETE", `/v1/api-keys/${own.body.id}`)).status, 200, "her own key");
});

test("a delegation shows a user with limits actions, but no entries without one", async () => {
  const uma = await invite(service, { name: "Uma", roles: ["approver"] });
  const nell = await invite(service, { name: "Nell", roles: ["admin"], groups: ["bots"] });
  const until = new Date(service.runtime.host.clock() + 3_600_000).toISOString();
  await uma.call("POST", `/v1/users/${uma.id}/delegations`, { to: nell.id, until });
  const far = (await nell.call("GET", `/v1/actions/${await submit(service.agent)}`)).body;
  const statusOfEntry = async (who: Person, hash: string) => (await who.call("GET", `/v1/provenance/${hash}`)).status;
  assert.equal(await statusOfEntry(nell, far.decision_hash), 200);
  const rows = await service.storage.entries(0, 50);
  const user = rows.find(({ type }) => type === "user")!;
  const hash = Buffer.from(user.leaf_hash).toString("hex");
  assert.equal((await service.call("GET", `/v1/provenance/${hash}`, { key: service.admin })).status, 200);
  assert.equal(await statusOfEntry(nell, hash), 404);
  assert.equal((await nell.call("GET", "/tile/entries/000.p/1")).status, 403);
});

test(
  "a delegate beyond their own limits does not do what the delegator must not do",
  needs("break-glass"),
  async () => {
    const pia = await invite(service, { name: "Pia", roles: ["approver", "break_glass"] });
    const nils = await invite(service, { name: "Nils", roles: ["approver"], groups: ["bots"] });
    const until = new Date(service.runtime.host.clock() + 3_600_000).toISOString();
    await pia.call("POST", `/v1/users/${pia.id}/delegations`, { to: nils.id, until });
    const id = await submit(service.agent);
    const { approval_token: token } = (await pia.call("GET", `/v1/actions/${id}`)).body;
    const emergency = { approve: true, token, break_glass: true, reason: "down" };
    assert.equal((await pia.call("POST", `/v1/actions/${id}/approval`, emergency)).body.status, "approved");
    const { break_glass } = (await pia.call("GET", "/v1/break-glass?status=open")).body;
    const review = `/v1/break-glass/${break_glass[0].id}/review`;
    assert.deepEqual(said(await nils.call("POST", review, { comment: "fine" })), [404, "BREAK_GLASS_NOT_FOUND"]);
    const { key } = await made({ preset: "agent", agent_id: "bot", owner: pia.principal });
    const rejected = await submit(key);
    const { approval_token: other } = (await bob.call("GET", `/v1/actions/${rejected}`)).body;
    await bob.call("POST", `/v1/actions/${rejected}/approval`, { approve: false, token: other, reason: "no" });
    const lift = `/v1/actions/${rejected}/lift-rejection`;
    assert.deepEqual(said(await pia.call("POST", lift, {})), [403, "SELF_APPROVAL"]);
    assert.deepEqual(said(await nils.call("POST", lift, {})), [404, "ACTION_NOT_FOUND"]);
  },
);

test("an admin key in a group with limits creates no key without them", async () => {
  const owner = await invite(service, { name: "Nick", roles: ["admin"], groups: ["near"] });
  const { key } = await made({ preset: "admin", owner: owner.principal });
  const child = await create({ preset: undefined, scopes: ["actions:read"], owner: null }, key);
  assert.equal(child.status, 201, JSON.stringify(child.body));
  const far = await submit(service.agent, "far");
  assert.equal((await service.call("GET", `/v1/actions/${far}`, { key: child.body.key })).status, 404);
});

test("a person who was renamed stays the requester, with their groups, for links and keys", async () => {
  const { user: gil } = await addUser(service, { name: "Gil", groups: ["ledgers"] });
  const bot = await makeKey(service, { name: "gils bot", agent_id: "bot", owner: `user:${gil.id}` });
  await changeUser(gil.id, { name: "Gil Smith" });
  const colleague = await invite(service, { name: "Cleo", roles: ["approver"], groups: ["ledgers"] });
  const { body } = await colleague.call("GET", `/v1/actions/${await submit(bot.key, "apart")}`);
  assert.equal(body.approval_terms.blocked?.code, "APPROVER_NOT_ELIGIBLE");

  await changeUser(person("Anna").slice("user:".length), { name: "Anna Smith" });
  const late = await makeKey(service, { name: "annas bot", agent_id: "bot", owner: person("Anna") });
  const own = await submit(late.key);
  assert.deepEqual(await voteAsRecipient(own, person("Anna")), [403, "SELF_APPROVAL"]);
  assert.deepEqual(await recipientsOf(own), []);
});

test("a link has the rights of its user: limits, a lost role and the deactivation apply, and it shows nothing then", async () => {
  const id = await submit(service.agent);
  const anna = person("Anna").slice("user:".length);
  assert.deepEqual(await recipientsOf(id), ["anna"]);
  for (const change of [{ groups: ["near"] }, { groups: [], roles: ["viewer"] }]) {
    await changeUser(anna, change);
    assert.deepEqual(await voteAsRecipient(id, person("Anna")), [403, "APPROVER_NOT_ELIGIBLE"], JSON.stringify(change));
    assert.deepEqual(await recipientsOf(await submit(service.agent)), []);
  }
  await changeUser(anna, { roles: ["approver"] });
  assert.deepEqual(await recipientsOf(await submit(service.agent)), ["anna"]);
  await end(anna);
  assert.deepEqual(await voteAsRecipient(id, person("Anna")), [403, "TOKEN_INVALID"]);
  assert.deepEqual(await recipientsOf(await submit(service.agent)), []);
});

async function recipientsOf(id: string): Promise<string[]> {
  const rows = await service.storage.deliveries({ limit: 100 });
  return rows.filter(({ action_id }) => action_id === id).map(({ recipient }) => recipient);
}
