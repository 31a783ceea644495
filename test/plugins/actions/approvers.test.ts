/** Rules that name approvers: groups, stages, people outside the requester's groups. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { makeKey, plainVotes, startService, type Answer, type Service, person } from "../../support/service.ts";

const rule = (tool: string, approval: string): string =>
  `  - { name: ${tool}, tool: ${tool}, effect: require_approval, approval: ${approval} }\n`;
const POLICY = `
policy: ask
rules:
${rule("both", "{ approvers: [{ group: finance }, { group: security }] }")}
${rule("staged", "{ stages: [{ approvers: [{ group: finance }] }, { approvers: [{ group: security }] }] }")}
${rule("escalated", "{ expires_in: 4h, stages: [{ approvers: [{ group: finance }] }, { after: 30m, approvers: [{ group: security }] }] }")}
${rule("outside", "{ exclude_requester_groups: true }")}
${rule("one", "{ quorum: 1 }")}
${rule("oncall", "{ approvers: [{ group: oncall }] }")}
`;
const PEOPLE = ["fay", "sam", "both", "nora", "rita"];

let service: Service;
const keys: Record<string, string> = {};
before(async () => {
  service = await startService({
    policy: POLICY,
    change(config) {
      plainVotes(config);
      config.groups = {
        finance: { members: [person("fay"), person("both"), person("rita")] },
        security: { members: [person("sam"), person("both")] },
        clerks: { members: [person("linus")], tools: ["one"] },
      };
      const start = new Date().toISOString().slice(0, 16);
      config.rota = { oncall: { members: [person("fay"), person("sam")], every: "24h", start, time_zone: "UTC" } };
    },
  });
  for (const owner of PEOPLE) keys[owner] = (await makeKey(service, { name: owner, owner, preset: "approver" })).key;
  keys["agent"] = (
    await makeKey(service, { name: "ritas agent", owner: "rita", preset: "agent", agent_id: "bot" })
  ).key;
});
after(() => service.close());

const submit = async (tool: string, key = service.agent): Promise<string> => {
  const body = { agent_id: "bot", tool, operation: "x", params: { n: Math.random() } };
  return (await service.call("POST", "/v1/actions", { key, body })).body.id as string;
};
const read = (id: string, who: string) => service.call("GET", `/v1/actions/${id}`, { key: keys[who] ?? who });
async function vote(id: string, who: string, approve = true): Promise<Answer> {
  const { body } = await read(id, who);
  const sent = { token: body.approval_token as string, approve };
  return service.call("POST", `/v1/actions/${id}/approval`, { key: keys[who] ?? who, body: sent });
}
const said = ({ status, body }: Answer): unknown[] => [status, body.code ?? body.status];

test("each vote satisfies one requirement, and a person in both groups counts once", async () => {
  const id = await submit("both");
  assert.deepEqual(said(await vote(id, "both")), [200, "pending_approval"]);
  assert.deepEqual((await read(id, "fay")).body.approval_terms.open_groups, ["finance", "security"]);
  assert.deepEqual(said(await vote(id, "fay")), [200, "approved"]);
  const other = await submit("both");
  assert.deepEqual(said(await vote(other, "fay")), [200, "pending_approval"]);
  assert.deepEqual(said(await vote(other, "both")), [200, "approved"]);
});

test("a person who cannot approve sees why and who can, and can still reject", async () => {
  const id = await submit("both");
  await vote(id, "fay");
  const size = (await service.runtime.host.ledger.head()).size;
  const { approval_terms: terms } = (await read(id, "nora")).body;
  assert.deepEqual([terms.blocked.code, terms.blocked.groups], ["APPROVER_NOT_ELIGIBLE", ["security"]]);
  const refused = await vote(id, "nora");
  assert.deepEqual(said(refused), [403, "APPROVER_NOT_ELIGIBLE"]);
  assert.match(refused.body.detail as string, /"security" can approve/);
  assert.deepEqual(said(await vote(id, "rita")), [403, "APPROVER_NOT_ELIGIBLE"], "finance has voted");
  assert.equal((await service.runtime.host.ledger.head()).size, size, "a refused vote records nothing");
  assert.deepEqual(said(await vote(id, "nora", false)), [200, "denied"]);
});

test("stages are met in order", async () => {
  const id = await submit("staged");
  assert.deepEqual(said(await vote(id, "sam")), [403, "APPROVER_NOT_ELIGIBLE"]);
  assert.deepEqual(said(await vote(id, "fay")), [200, "pending_approval"]);
  assert.deepEqual(said(await vote(id, "rita")), [403, "APPROVER_NOT_ELIGIBLE"]);
  assert.deepEqual(said(await vote(id, "sam")), [200, "approved"]);
});

test("a stage that is not met in time opens the next stage", async () => {
  const id = await submit("escalated");
  assert.deepEqual(said(await vote(id, "sam")), [403, "APPROVER_NOT_ELIGIBLE"]);
  service.clock.now += 30 * 60_000;
  assert.deepEqual(said(await vote(id, "sam")), [200, "approved"]);
});

test("members of the requester's groups cannot approve, and no one can if the requester is unknown", async () => {
  const id = await submit("outside", keys["agent"]);
  assert.deepEqual(said(await vote(id, "fay")), [403, "APPROVER_NOT_ELIGIBLE"]);
  assert.deepEqual(said(await vote(id, "sam")), [200, "approved"]);
  const ownerless = (await makeKey(service, { name: "x", preset: "agent", agent_id: "bot" })).key;
  assert.deepEqual(said(await vote(await submit("outside", ownerless), "sam")), [403, "APPROVER_NOT_ELIGIBLE"]);
});

test("the entries record the requirement and the groups of each vote, and replay agrees", needs("replay"), async () => {
  const id = await submit("both");
  await vote(id, "both");
  await vote(id, "sam");
  const { body } = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
  const [decision, first, second] = body.events.map(({ entry }: { entry: unknown }) => entry);
  assert.deepEqual(decision.decision.approval.approvers[0].stages[0].approvers, [
    { count: 1, group: "finance" },
    { count: 1, group: "security" },
  ]);
  assert.deepEqual([first.groups, second.groups, second.status], [["finance", "security"], ["security"], "approved"]);
  const replay = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: id } });
  assert.equal(replay.body.equal, true, JSON.stringify(replay.body));
});

test("an approved action returns to the approvers if the policies now require another group", async () => {
  const id = await submit("one", keys["agent"]);
  assert.deepEqual(said(await vote(id, "fay")), [200, "approved"]);
  const definition = {
    policy: "stricter",
    rules: [{ name: "one", tool: "one", effect: "require_approval", approval: { approvers: [{ group: "security" }] } }],
  };
  const stored = await service.call("POST", "/v1/policies?activate=true", {
    key: service.admin,
    body: definition,
  });
  assert.equal(stored.status, 201, JSON.stringify(stored.body));
  const start = await service.call("POST", `/v1/actions/${id}/start`, { key: keys["agent"] ?? "", body: {} });
  assert.deepEqual(said(start), [409, "MORE_APPROVALS_NEEDED"]);
  assert.deepEqual((await read(id, "sam")).body.approval_terms.open_groups, ["security"]);
  assert.deepEqual(said(await vote(id, "nora")), [403, "APPROVER_NOT_ELIGIBLE"]);
  assert.deepEqual(said(await vote(id, "sam")), [200, "approved"]);
});

test("the rotas say who is on call now and next", needs("groups"), async () => {
  const { body } = await service.call("GET", "/v1/rotas", { key: keys["nora"] ?? "" });
  const [{ name, on_call: now, next }] = body.rotas;
  assert.deepEqual([name, now.member, next.member, next.from], ["oncall", person("fay"), person("sam"), now.until]);
});

test("of a rota only the person on call can approve, as of the vote, and the entry records it", async () => {
  const first = await submit("oncall");
  const refused = await vote(first, "sam");
  assert.deepEqual(said(refused), [403, "APPROVER_NOT_ELIGIBLE"]);
  assert.match(refused.body.detail as string, /"oncall" can approve/);
  assert.deepEqual(said(await vote(first, "fay")), [200, "approved"]);
  const { body } = await service.call("GET", `/v1/actions/${first}/events`, { key: service.admin });
  assert.deepEqual(body.events[1].entry.groups, ["oncall"]);
  service.clock.now += 24 * 3_600_000;
  const second = await submit("oncall");
  assert.deepEqual(said(await vote(second, "fay")), [403, "APPROVER_NOT_ELIGIBLE"]);
  assert.deepEqual(said(await vote(second, "sam")), [200, "approved"]);
});
