/** The access review: rights, votes and use of users and keys, as JSON, CSV and in the command. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { addUser, invite, startPeople, type Person } from "../../support/people.ts";
import { ASKED, makeKey, type Answer, type Service, person } from "../../support/service.ts";

const DAY = 24 * 3_600_000;
let service: Service;
let ada: Person;
let auditor: string;
/** A key from before the first user enrolled. */
let early: { id: string; key: string };

before(async () => {
  service = await startPeople({
    change(config) {
      config.groups["near"] = { members: [], tools: ["billing.*"] };
      config.groups["robins"] = { members: [person("Robin")], agents: ["bot", "other-*"] };
      config.approvals.trust_key_makers = true;
    },
  });
  early = await makeKey(service, { name: "old key", preset: "approver" });
  ada = await invite(service, { name: "Ada", roles: ["approver"], groups: ["finance"] });
  auditor = (await makeKey(service, { name: "auditor", preset: "auditor" })).key;
});
after(() => service.close());

const review = async (query = "", key = auditor): Promise<Answer> =>
  service.call("GET", `/v1/access-review${query}`, { key });
async function rowOf(name: string, query = ""): Promise<Answer["body"]> {
  const { body } = await review(query);
  const rows = body.rows.filter((row: { name: string }) => row.name === name);
  assert.equal(rows.length, 1, JSON.stringify(body.rows));
  return rows[0];
}
async function vote(person: Person, verdict: "approve" | "deny", waitMs: number): Promise<void> {
  const body = { ...ASKED, params: { ...ASKED.params, wait: `${verdict} ${waitMs} ${crypto.randomUUID()}` } };
  const submitted = await service.call("POST", "/v1/actions", { body });
  assert.equal(submitted.body.status, "pending_approval", JSON.stringify(submitted.body));
  service.clock.now += waitMs;
  const { body: action } = await person.call("GET", `/v1/actions/${submitted.body.id}`);
  const path = `/v1/actions/${submitted.body.id}/approval`;
  const voted = await person.call("POST", path, {
    token: action.approval_token,
    approve: verdict === "approve",
  });
  assert.equal(voted.status, 200, JSON.stringify(voted.body));
}

test("votes, approval rate and median time are counted for each person", async () => {
  for (const [verdict, seconds] of [
    ["approve", 60],
    ["approve", 120],
    ["deny", 300],
  ] as const)
    await vote(ada, verdict, seconds * 1000);
  const row = await rowOf("Ada");
  assert.deepEqual([row.approvals, row.rejections, row.approval_rate], [2, 1, 0.667]);
  assert.ok(Math.abs(row.median_seconds - 120) <= 60, `${row.median_seconds}`);
  assert.deepEqual(
    [row.kind, row.principal, row.roles, row.groups],
    ["user", `user:${ada.id}`, ["approver"], ["finance"]],
  );
  assert.deepEqual([row.may_approve, row.limits, row.unused], [true, null, false]);
});

test("limits of groups and keys bound to an agent are shown, and users and keys that cannot approve", async () => {
  const near = await invite(service, { name: "Near", roles: ["approver"], groups: ["near"] });
  await invite(service, { name: "Viewer", roles: ["viewer"] });
  const { user } = await addUser(service, { name: "Bo", roles: ["approver"] });
  await makeKey(service, { name: "bound", preset: "approver", agent_id: "bot", owner: user.principal });
  assert.deepEqual((await rowOf("Near")).limits, [{ agents: null, tools: ["billing.*"], also: [] }]);
  assert.equal((await rowOf("Viewer")).may_approve, false);
  const bound = await rowOf("bound");
  assert.deepEqual([bound.agent_id, bound.limits], ["bot", [{ agents: ["bot"], tools: null, also: [] }]]);
  await service.call("POST", `/v1/users/${near.id}/end`, { key: service.admin, body: {} });
  const ended = await rowOf("Near");
  assert.deepEqual([ended.may_approve, ended.unused], [false, false]);
  assert.notEqual(ended.ended_at, null);
});

test("a key can approve no more than its agent, its owner and the user who made it, and every limit is shown", async () => {
  const maker = await invite(service, { name: "Lim", roles: ["approver", "key_manager"], groups: ["near"] });
  const body = { name: "of Lim", owner: person("Robin"), preset: "approver", agent_id: "bot" };
  const made = await maker.call("POST", "/v1/api-keys", body);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const read = async (tool: string): Promise<number> => {
    const { id } = (await service.call("POST", "/v1/actions", { body: { ...ASKED, agent_id: "bot", tool } })).body;
    return (await service.call("GET", `/v1/actions/${id}`, { key: made.body.key })).status;
  };
  assert.deepEqual([await read("billing.send"), await read("stripe")], [200, 404]);
  const also = [
    { agents: ["bot", "other-*"], tools: null },
    { agents: null, tools: ["billing.*"] },
  ];
  assert.deepEqual((await rowOf("of Lim")).limits, [{ agents: ["bot"], tools: null, also }]);
});

test("a user's delegators are those on whose behalf they can approve now", async () => {
  const [from, to] = [
    await invite(service, { name: "Fay", roles: ["approver"], groups: ["finance"] }),
    await invite(service, { name: "Tom", roles: ["approver"] }),
  ];
  const until = new Date(service.runtime.host.clock() + DAY).toISOString();
  const body = { to: to.id, until, groups: ["finance"] };
  const created = await from.call("POST", `/v1/users/${from.id}/delegations`, body);
  assert.equal(created.status, 201, JSON.stringify(created.body));
  const delegators = async (): Promise<string[]> => (await rowOf("Tom")).delegators;
  const change = async (who: Person, more: object): Promise<void> => {
    const { status } = await service.call("PATCH", `/v1/users/${who.id}`, { key: service.admin, body: more });
    assert.equal(status, 200);
  };
  assert.deepEqual(await delegators(), [`user:${from.id}`]);
  for (const [who, without, again] of [
    [from, { groups: [] }, { groups: ["finance"] }],
    [from, { roles: ["viewer"] }, { roles: ["approver"] }],
    [to, { roles: ["viewer"] }, { roles: ["approver"] }],
  ] as const) {
    await change(who, without);
    assert.deepEqual(await delegators(), [], JSON.stringify(without));
    await change(who, again);
    assert.equal((await delegators()).length, 1);
  }
  await from.call("POST", `/v1/delegations/${created.body.id}/revoke`, {});
  assert.deepEqual(await delegators(), []);
});

test("what one user can approve, and what is pending for them, is for that user and for readers of users", async () => {
  const una = await invite(service, { name: "Una", roles: ["approver"] });
  const near = await invite(service, { name: "Nea", roles: ["approver"], groups: ["near"] });
  const body = { ...ASKED, params: { ...ASKED.params, una: true } };
  const { id } = (await service.call("POST", "/v1/actions", { body })).body;
  const reader = (path: string): Promise<Answer> => service.call("GET", path, { key: auditor });
  const ids = ({ body: page }: Answer): string[] => page.actions.map((action: { id: string }) => action.id);
  const rights = {
    groups: ["near"],
    may_approve: true,
    limits: [{ agents: null, tools: ["billing.*"], also: [] }],
    delegators: [],
  };
  assert.deepEqual((await reader(`/v1/users/${near.id}/rights`)).body, rights);
  assert.deepEqual((await near.call("GET", `/v1/users/${near.id}/rights`)).body, rights);
  const pending = `/v1/approvals?view=mine&q=una&user_id=`;
  assert.deepEqual(ids(await reader(pending + una.id)), [id]);
  assert.deepEqual(ids(await una.call("GET", pending + una.id)), [id]);
  assert.deepEqual(ids(await reader(pending + near.id)), [], "stripe is not among the tools of the group");
  assert.equal((await ada.call("GET", pending + una.id)).status, 403);
  assert.equal((await ada.call("GET", `/v1/users/${una.id}/rights`)).status, 403);
  for (const query of [`user_id=${una.id}`, "view=mine&user_id=nobody"])
    assert.equal((await reader(`/v1/approvals?${query}`)).status, 422, query);
  await service.call("POST", `/v1/users/${una.id}/end`, { key: service.admin, body: {} });
  assert.equal((await reader(`/v1/users/${una.id}/rights`)).body.may_approve, false);
  assert.equal((await reader(pending + una.id)).status, 422, "an ended user");
});

test("a voter whose key was revoked is still listed, and the revoked key is not", async () => {
  const { id, key } = early;
  const submitted = await service.call("POST", "/v1/actions", {
    body: { ...ASKED, params: { ...ASKED.params, by: "olga" } },
  });
  const { body } = await service.call("GET", `/v1/actions/${submitted.body.id}`, { key });
  const path = `/v1/actions/${submitted.body.id}/approval`;
  const voted = await service.call("POST", path, { key, body: { token: body.approval_token, approve: false } });
  assert.equal(voted.status, 200, JSON.stringify(voted.body));
  await service.call("DELETE", `/v1/api-keys/${id}`, { key: service.admin });
  const row = await rowOf("old key");
  assert.deepEqual([row.kind, row.rejections, row.may_approve], ["voter", 1, false]);
});

test("the CSV has the same rows, and no cell that a spreadsheet runs", async () => {
  await invite(service, { name: '=HYPERLINK("http://evil.example","x")', roles: ["approver"] });
  const answer = await review("?format=csv");
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/csv/);
  const lines = String(answer.body).trimEnd().split("\r\n");
  assert.equal(lines.length - 1, (await review()).body.rows.length);
  assert.match(lines[0] ?? "", /^kind,id,name,principal,/);
  assert.ok(
    lines.some((line) => line.includes(`,"'=HYPERLINK(""http://evil.example"",""x"")",`)),
    lines.join("\n"),
  );
});

test("users and keys that were not used in the period are marked, and new ones are not", async () => {
  await invite(service, { name: "Idle", roles: ["viewer"] });
  await makeKey(service, { name: "idle key", preset: "agent" });
  assert.deepEqual([(await rowOf("Idle")).unused, (await rowOf("idle key")).unused], [false, false]);
  service.clock.now += 91 * DAY;
  await ada.signIn();
  const { body } = await review();
  const unused = (name: string): boolean => body.rows.find((row: { name: string }) => row.name === name).unused;
  assert.deepEqual([unused("Idle"), unused("idle key"), unused("Ada")], [true, true, false]);
  assert.equal((await rowOf("Ada")).approvals, 0, "the votes are older than the period");
  assert.equal((await rowOf("Ada", "?days=120")).approvals, 2);
});

test("only callers who can read users can review, and invalid parameters are rejected", async () => {
  assert.equal((await review("", service.agent)).status, 403);
  assert.equal((await ada.call("GET", "/v1/access-review")).status, 403);
  for (const query of ["?days=0", "?days=367", "?days=x", "?format=xml", "?since=2026-01-01"])
    assert.equal((await review(query)).status, 422, query);
});

test(
  "an auditor with limits learns nothing about what is outside them: votes, reviews, keys, holds, agents and names",
  needs("agents", "retention"),
  async () => {
    const limited = await invite(service, { name: "Lim", roles: ["auditor"], groups: ["robins"] });
    const secret = { ...ASKED, agent_id: "secret", params: { ...ASKED.params, note: "secret" } };
    await service.call("POST", "/v1/agents", { key: service.admin, body: { id: "secret" } });
    await service.call("POST", "/v1/agents", { key: service.admin, body: { id: "bot" } });
    const bound = await makeKey(service, { name: "of secret", agent_id: "secret", preset: "agent" });
    const { body: hidden } = await service.call("POST", "/v1/actions", { body: secret });
    await vote(ada, "approve", 1000);
    const holds = [{ action: hidden.id }, { agent: "secret" }, { subject: "ada@example.com" }, { agent: "bot" }];
    for (const each of holds)
      assert.equal(
        (await service.call("POST", "/v1/holds", { key: service.admin, body: { reason: "case", ...each } })).status,
        201,
      );
    const seen = (await limited.call("GET", "/v1/access-review")).body.rows;
    const row = seen.find(({ id }: { id: string }) => id === ada.id);
    assert.deepEqual([row.approvals, row.rejections, row.median_seconds], [0, 0, null]);
    assert.ok(!seen.some(({ agent_id }: { agent_id: string }) => agent_id === "secret"));
    const { body } = await limited.call("GET", "/v1/holds");
    assert.deepEqual(
      body.holds.map(({ agent }: { agent: string }) => agent),
      ["bot"],
    );
    const all = (await service.call("GET", "/v1/holds", { key: service.admin })).body.holds;
    for (const { id, agent } of all)
      assert.equal((await limited.call("GET", `/v1/holds/${id}`)).status, agent === "bot" ? 200 : 404);
    const names = await limited.call("GET", `/v1/api-keys/names?ids=${bound.id},${early.id}`);
    assert.deepEqual(
      names.body.keys.map(({ id }: { id: string }) => id),
      [early.id],
    );
    const agents = (await limited.call("GET", "/v1/agents?limit=1")).body.agents.map(({ id }: { id: string }) => id);
    assert.deepEqual(agents, ["bot"]);
    assert.deepEqual((await limited.call("GET", "/v1/agents?offset=1")).body.agents, []);
    assert.equal((await limited.call("GET", "/v1/agents/secret")).status, 404);
    const stop = await service.call("POST", "/v1/stop", { key: service.admin, body: { reason: "x", agent: "secret" } });
    if (stop.status === 201) assert.equal((await limited.call("GET", `/v1/stop/${stop.body.id}`)).status, 404);
    // An admin with limits cannot change what is outside them.
    const admin = await invite(service, { name: "Lia", roles: ["admin"], groups: ["robins"] });
    for (const [method, path, sent] of [
      ["PATCH", "/v1/agents/secret", { name: "x" }],
      ["POST", "/v1/agents/secret/suspend", {}],
      ["POST", "/v1/agents/secret/resume", undefined],
      ["POST", `/v1/stop/${stop.body.id}/lift`, { reason: "over" }],
      ["DELETE", `/v1/api-keys/${bound.id}`, undefined],
    ] as const)
      assert.equal((await admin.call(method, path, sent)).status, 404, path);
    assert.equal((await admin.call("POST", "/v1/agents", { id: "another" })).body.code, "AGENT_MISMATCH");
    // No other page without parameters names the agent, its key or its action.
    const { paths } = service.runtime.host.openapi({ description: "", tags: {} }) as { paths: Record<string, object> };
    for (const path of Object.keys(paths).filter(
      (each) =>
        "get" in (paths[each] as object) && each.startsWith("/v1/") && each !== "/v1/events" && !each.includes("{"),
    )) {
      const text = JSON.stringify((await limited.call("GET", path)).body);
      for (const word of ['"secret', hidden.id, bound.id]) assert.ok(!text.includes(word), `${path} has ${word}`);
    }
    await service.call("POST", `/v1/stop/${stop.body.id}/lift`, { key: service.admin, body: { reason: "over" } });
    for (const { id } of all)
      await service.call("POST", `/v1/holds/${id}/release`, { key: service.admin, body: { reason: "over" } });
  },
);
