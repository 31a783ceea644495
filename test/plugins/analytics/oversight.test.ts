/**
 * How people approve, by approver and rule. The expected figures are computed from the votes that the test generates.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { addPerson, startService, type Answer, type Service, person } from "../../support/service.ts";

const POLICY = `policy: pay
rules:
  - { name: refunds, operation: refund, effect: require_approval }
  - { name: payouts, operation: payout, effect: require_approval }
  - { name: others, effect: allow }
`;
const DAY = 24 * 3_600_000;

/** One generated vote: approver, action, vote, and milliseconds after submission on the service's clock. */
interface GeneratedVote {
  approver: string;
  operation: string;
  approve: boolean;
  wait: number;
}

/** Ada approves nearly everything immediately; Ben is slow. */
const VOTES: GeneratedVote[] = [
  ...Array.from({ length: 9 }, (_, i) => ({ approver: "ada", operation: "refund", approve: i !== 0, wait: 0 })),
  { approver: "ada", operation: "refund", approve: true, wait: 600_000 },
  ...Array.from({ length: 4 }, (_, i) => ({
    approver: "ben",
    operation: "payout",
    approve: i % 2 === 0,
    wait: (i + 1) * 60_000,
  })),
];

describe("measured oversight", () => {
  let service: Service;
  let since: number;
  const keys = new Map<string, string>();
  /** Milliseconds from submission to vote, computed from the actions' records, by approver. */
  const waits = new Map<string, number[]>([
    ["ada", []],
    ["ben", []],
  ]);
  before(async () => {
    service = await startService({ policy: POLICY, change: (config) => (config.approvals.trust_key_makers = true) });
    for (const owner of ["ada", "ben"]) {
      const body = { name: owner, preset: "approver", owner: await addPerson(service, owner) };
      keys.set(owner, (await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body.key as string);
    }
    since = Date.now();
    for (const [i, vote] of VOTES.entries()) await castVote(vote, i);
    for (let i = 0; i < 3; i++) await submit("refund", 100 + i);
    await submit("read", 0);
  });
  after(() => service.close());

  const submit = async (operation: string, n: number): Promise<string> =>
    (
      await service.call("POST", "/v1/actions", {
        body: { agent_id: "payer", tool: "bank", operation, params: { n } },
      })
    ).body.id as string;

  async function castVote({ approver, operation, approve, wait }: GeneratedVote, n: number): Promise<void> {
    const id = await submit(operation, n);
    service.clock.now += wait;
    const key = keys.get(approver) as string;
    const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key })).body;
    const answer = await service.call("POST", `/v1/actions/${id}/approval`, { key, body: { token, approve } });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const { approvals, created_at } = answer.body;
    waits.get(approver)?.push(Date.parse(approvals[0].created_at) - Date.parse(created_at));
  }

  /** Both approvers have an even number of votes. */
  function timesOf(approver: string): { median_ms: number; fast_rate: number } {
    const sorted = (waits.get(approver) ?? []).toSorted((a, b) => a - b);
    const middle = sorted.slice(sorted.length / 2 - 1, sorted.length / 2 + 1);
    const fast = sorted.filter((wait) => wait < 3000).length;
    return { median_ms: Math.round((middle[0]! + middle[1]!) / 2), fast_rate: fast / sorted.length };
  }

  const read = (query: string, key = service.admin): Promise<Answer> =>
    service.call("GET", `/v1/analytics/oversight${query}`, { key });
  const at = (time: number): string => new Date(time).toISOString();

  it("counts requests, votes, approval rate, median time and fast votes by approver and rule", async () => {
    const { status, body } = await read(`?since=${at(since)}&until=${at(since + 2 * DAY)}`);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(body.rules, [
      { policy: "pay", rule: "refunds", requests: 13, requests_per_day: 6.5 },
      { policy: "pay", rule: "payouts", requests: 4, requests_per_day: 2 },
    ]);
    const [ada, ben] = body.approvers;
    assert.deepEqual(ada, {
      approver: person("ada"),
      policy: "pay",
      rule: "refunds",
      votes: 10,
      approvals: 9,
      votes_per_day: 5,
      approval_rate: 0.9,
      ...timesOf("ada"),
    });
    assert.deepEqual(ben, {
      approver: person("ben"),
      policy: "pay",
      rule: "payouts",
      votes: 4,
      approvals: 2,
      votes_per_day: 2,
      approval_rate: 0.5,
      ...timesOf("ben"),
    });
    assert.equal(ben.fast_rate, 0);
    assert.equal(body.approvers.length, 2);
  });

  it("reads only the range", async () => {
    const { body } = await read(`?since=${at(since - DAY)}&until=${at(since - 1)}`);
    assert.deepEqual([body.rules, body.approvers], [[], []]);
  });

  it("rejects an empty range, and keys without the scope", async () => {
    const { status, body } = await read(`?since=${at(since)}&until=${at(since)}`);
    assert.deepEqual([status, body.code], [422, "INVALID_RANGE"]);
    assert.equal((await read("", service.agent)).status, 403);
  });

  it("counts only actions that the key can see", async () => {
    const scopes = ["actions:submit", "analytics:read"];
    const body = { name: "bound", scopes, agent_id: "other" };
    const { key } = (await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body;
    const { rules, approvers } = (await read(`?since=${at(since)}`, key as string)).body;
    assert.deepEqual([rules, approvers], [[], []]);
  });
});
