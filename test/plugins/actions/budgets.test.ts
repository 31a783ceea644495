/** Budgets: limits that sum what results report. Reports that are missing, repeated or wrong do not open them. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { govern } from "../../../clients/typescript/index.ts";
import { parsePolicies } from "../../../src/domain/policy/parse/parse.ts";
import { clientOf } from "../../support/assent-client.ts";
import { startService, type Service } from "../../support/service.ts";

const POLICY = `policy: models
rules:
  - { name: calls, tool: model, effect: allow }
limits:
  - { name: cost, tool: model, per: params.team, sum: usage.cost_usd, reserve: 2, at_most: 10, window: 24h, effect: require_approval }
  - { name: tokens, tool: model, per: agent, sum: usage.tokens, reserve: 100, at_most: 100000, window: day }
`;

let service: Service;
before(async () => {
  service = await startService({ policy: POLICY });
});
// Audits the store, too: each use of a limit has the reported amount.
after(() => service.close());

let next = 0;
const submit = async (team: string) => {
  const params = { team, call: next++ };
  const body = { agent_id: "a", tool: "model", operation: "complete", params };
  return (await service.call("POST", "/v1/actions", { body })).body;
};
const post = (id: string, path: string, body: object) => service.call("POST", `/v1/actions/${id}/${path}`, { body });
const run = async (team: string, result: object, attempt = `attempt-${next}-of-this-run`) => {
  const { id } = await submit(team);
  assert.equal((await post(id, "start", { attempt })).status, 200);
  return { id, attempt, reply: await post(id, "result", { success: true, attempt, ...result }) };
};
/** Returns the number of calls that the budget of the team still allows, if each reserves 2. */
const remaining = async (team: string): Promise<number> => {
  for (let count = 0; ; count++) if ((await submit(team)).decision !== "allow") return count;
};

test("a reported amount replaces the reserve, and a reached budget asks", async () => {
  assert.equal(await remaining("untouched"), 5);
  assert.equal((await run("cheap", { usage: { cost_usd: 0.5, tokens: 10 } })).reply.status, 200);
  assert.equal(await remaining("cheap"), 4, "0.5 + 4 × 2");
  await run("dear", { usage: { cost_usd: 9.5 } });
  const asked = await submit("dear");
  assert.deepEqual([asked.decision, asked.reason_code], ["require_approval", "LIMIT_EXCEEDED"]);
});

test("a report that never comes, has no such amount, or is of a failure keeps the reserve or counts", async () => {
  const { id } = await submit("silent");
  await post(id, "start", {});
  assert.equal(await remaining("silent"), 4);
  await run("other", { usage: { tokens: 5 } });
  assert.equal(await remaining("other"), 4);
  await run("failing", { success: false, usage: { cost_usd: 9 } });
  assert.equal(await remaining("failing"), 0);
});

test("a second, a negative and an unbounded report are refused and change nothing; an enormous one closes the budget", async () => {
  const { id, attempt, reply } = await run("twice", { usage: { cost_usd: 6 } });
  assert.equal(reply.status, 200);
  assert.equal((await post(id, "result", { success: true, attempt, usage: { cost_usd: 6 } })).status, 200);
  assert.equal((await post(id, "result", { success: true, attempt, usage: { cost_usd: 0 } })).status, 409);
  assert.equal((await post(id, "result", { success: true, attempt })).status, 409);
  assert.equal(await remaining("twice"), 2, "6 + 2 × 2");
  for (const cost_usd of [-5, 1e10, "1", null])
    assert.equal((await run("wrong", { usage: { cost_usd } })).reply.status, 422);
  assert.equal(await remaining("wrong"), 1, "four reserves, and one more call");
  await run("enormous", { usage: { cost_usd: 1e9 } });
  assert.equal(await remaining("enormous"), 0);
});

test("concurrent calls cannot exceed the budget by more than what they report above their reserve", async () => {
  const decisions = await Promise.all(Array.from({ length: 12 }, () => submit("rush")));
  assert.equal(decisions.filter(({ decision }) => decision === "allow").length, 5);
});

test("a report counts in the window in which it arrives", async () => {
  const { id } = await submit("late");
  assert.equal((await post(id, "start", {})).status, 200);
  service.clock.now += 25 * 3_600_000;
  assert.equal((await post(id, "result", { success: true, usage: { cost_usd: 9 } })).status, 200);
  assert.equal(await remaining("late"), 0);
});

test("a budget that is used up stops an action that was allowed and has not started; a full reserve does not", async () => {
  const { id } = await submit("spent");
  await run("spent", { usage: { cost_usd: 9 } });
  assert.equal((await post(id, "start", {})).body.code, "MORE_APPROVALS_NEEDED");
  const full = await Promise.all(Array.from({ length: 5 }, () => submit("full")));
  assert.equal((await submit("full")).decision, "require_approval");
  for (const action of full) assert.equal((await post(action.id, "start", {})).status, 200);
});

test("a report whose policies cannot be read keeps the reserve, and the log says so", async () => {
  const { id } = await submit("unread");
  assert.equal((await post(id, "start", {})).status, 200);
  const changed = await service.call("POST", "/v1/policies?activate=true", {
    key: service.admin,
    body: { policy: "others", rules: [{ name: "nothing", tool: "nothing", effect: "deny" }] },
  });
  assert.equal(changed.status, 201, JSON.stringify(changed.body));
  const { policies } = service.runtime.host;
  const { byDigest } = policies;
  policies.byDigest = () => Promise.resolve(null);
  const reply = await post(id, "result", { success: true, usage: { cost_usd: 0 } });
  policies.byDigest = byDigest;
  assert.equal(reply.status, 200);
  assert.match(service.logged.join("\n"), /the usage of a result does not count/);
});

test("govern reports a result whose usage the service would reject, without the usage", async () => {
  const usages = [{ cost_usd: NaN }, { cost_usd: -1 }, { cost_usd: Infinity }, { cost_usd: 1e10 }, { "cost-usd": 1 }];
  for (const amounts of [...usages, Promise.resolve({ cost_usd: 1 }) as never, null as never]) {
    const unreported: unknown[] = [];
    let id = "";
    const governed = govern((_: object, { action }) => void (id = action.id), {
      tool: "model",
      operation: "complete",
      agent: "a",
      assent: clientOf(service),
      usage: () => amounts,
      onUnreported: (error) => void unreported.push(error),
    });
    const team = `odd-${next}`;
    await governed({ team, call: next++ });
    assert.match(String(unreported), /^TypeError: usage/);
    assert.equal((await service.storage.action(id))?.status, "succeeded");
    assert.equal(await remaining(team), 4, "its reserve counts");
  }
});

test("the amounts survive a restart", async () => {
  await run("kept", { usage: { cost_usd: 7 } });
  await service.restart();
  assert.equal(await remaining("kept"), 1);
});

test("a budget without a reserve, and a reserve without a budget, are refused", () => {
  const faults = (limit: string): string =>
    parsePolicies(
      `policy: p\nrules: [{ name: a, effect: allow }]\nlimits: [{ name: l, window: 1h, ${limit} }]\n`,
      "p.yaml",
    )
      .faults.map(({ message }) => message)
      .join("\n");
  assert.equal(faults("sum: usage.cost_usd, reserve: 1, at_most: 5"), "");
  assert.match(faults("sum: usage.cost_usd, at_most: 5"), /add reserve/);
  assert.match(faults("sum: params.amount, reserve: 1, at_most: 5"), /reserve belongs to a sum of usage/);
  assert.match(faults("sum: usage.cost_usd + 1.0, at_most: 5"), /usage/);
});
