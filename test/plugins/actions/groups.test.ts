/** Members of a limited group see and approve only the actions of its agents and tools. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { makeKey, plainVotes, startService, type Service, person } from "../../support/service.ts";

const POLICY = `
policy: ask
rules: [{ name: all, effect: require_approval }]
`;

let service: Service;
let limited: string;
before(async () => {
  service = await startService({
    policy: POLICY,
    change(config) {
      plainVotes(config);
      config.groups = {
        leads: { members: [person("Linus")], agents: ["support-*"], tools: ["crm"] },
        everyone: { members: [person("linus"), person("ada")] },
      };
    },
  });
  const scopes = ["approvals:decide", "actions:read", "events:read", "analytics:read", "provenance:read", "replay:run"];
  limited = (await makeKey(service, { name: "linus", owner: "linus", scopes })).key;
});
after(() => service.close());

const submit = async (agent_id: string, tool: string): Promise<string> => {
  const answer = await service.call("POST", "/v1/actions", { body: { agent_id, tool, operation: "x" } });
  assert.equal(answer.status, 202);
  return answer.body.id as string;
};
const read = (path: string, key = limited) => service.call("GET", path, { key });

test(
  "lists, single reads, counts, analytics, events and proofs show only the group's actions",
  needs("analytics", "events", "provenance", "replay"),
  async () => {
    const mine = await submit("Support-1", "CRM");
    const others = [await submit("support-1", "stripe"), await submit("billing-1", "crm")];
    const ids = (body: { actions: { id: string }[] }): string[] => body.actions.map(({ id }) => id);
    assert.deepEqual(ids((await read("/v1/actions")).body), [mine]);
    assert.deepEqual(ids((await read("/v1/actions?offset=1")).body), []);
    const pending = await read("/v1/approvals");
    assert.deepEqual([ids(pending.body), pending.body.total], [[mine], 1]);
    assert.equal((await read(`/v1/actions/${mine}`)).status, 200);
    for (const id of others) {
      assert.equal((await read(`/v1/actions/${id}`)).body.code, "ACTION_NOT_FOUND");
      const { body } = await read(`/v1/actions/${id}`, service.admin);
      const vote = { token: body.approval_token, approve: true };
      const answer = await service.call("POST", `/v1/actions/${id}/approval`, { key: limited, body: vote });
      assert.equal(answer.body.code, "ACTION_NOT_FOUND");
      assert.equal((await read(`/v1/provenance/${body.decision_hash}`)).body.code, "ENTRY_NOT_FOUND");
    }
    const { body: own } = await read(`/v1/actions/${mine}`);
    assert.equal((await read(`/v1/provenance/${own.decision_hash}`)).status, 200);
    assert.equal((await read("/v1/analytics")).body.total, 1);
    const events = (await read("/v1/events/page?after=-1")).body.events as { action_id: string | null }[];
    assert.deepEqual(
      events.map(({ action_id }) => action_id),
      [mine],
    );
    const backtest = await service.call("POST", "/v1/replay", {
      key: limited,
      body: { since: "2026-01-01T00:00:00Z", yaml: POLICY },
    });
    assert.equal(backtest.body.evaluated, 1, JSON.stringify(backtest.body));
  },
);

test("a limited member gets pages of full length, to the last visible action", async () => {
  for (let i = 0; i < 30; i++) await submit(i % 3 === 0 ? "support-2" : "billing-2", "crm");
  const seen: string[] = [];
  let path: string | null = "/v1/actions?agent_id=support-2&limit=4";
  for (let pages = 0; path !== null; pages++) {
    assert.ok(pages < 10);
    const { body }: { body: { actions: { id: string; agent_id: string }[]; next_cursor: string | null } } =
      await read(path);
    seen.push(...body.actions.map(({ agent_id }) => agent_id));
    path = body.next_cursor === null ? null : `/v1/actions?agent_id=support-2&limit=4&cursor=${body.next_cursor}`;
  }
  assert.deepEqual(seen, Array(10).fill("support-2"));
});

test("an approver's key that is bound to an agent sees and approves only what its owner's group may", async () => {
  const scope = { owner: "linus", preset: "approver", agent_id: "support-1" };
  const { key } = await makeKey(service, { name: "bound", ...scope });
  const mine = await submit("support-1", "crm");
  const tool = await submit("support-1", "stripe");
  const agent = await submit("support-2", "crm");
  const status = async (id: string): Promise<number> => (await read(`/v1/actions/${id}`, key)).status;
  assert.deepEqual([await status(mine), await status(tool), await status(agent)], [200, 404, 404]);
  const { actions } = (await read("/v1/actions?limit=1000", key)).body;
  assert.ok(actions.every((row: any) => row.agent_id === "support-1" && row.tool === "crm"));
  const { approval_token: token } = (await read(`/v1/actions/${tool}`, service.admin)).body;
  const vote = await service.call("POST", `/v1/actions/${tool}/approval`, { key, body: { token, approve: true } });
  assert.equal(vote.status, 404, JSON.stringify(vote.body));
});

test("a key that is bound to an agent keeps its own visibility", async () => {
  const bound = await makeKey(service, { name: "b", owner: "linus", preset: "agent", agent_id: "billing-9" });
  const { body } = await service.call("POST", "/v1/actions", {
    key: bound.key,
    body: { agent_id: "billing-9", tool: "stripe", operation: "x" },
  });
  assert.equal((await read(`/v1/actions/${body.id as string}`, bound.key)).status, 200);
});
