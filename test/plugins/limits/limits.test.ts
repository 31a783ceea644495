/** The list of limits: their use for each agent, the actions that used them, and what is not told. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { makeKey, person, plainVotes, startService, type Service } from "../../support/service.ts";

const POLICY = `policy: spending
applies_to: { tools: [bank] }
rules:
  - { name: pay, effect: allow }
  - { name: secret, operation: secret, effect: allow, obligations: { redact: [params.card] } }
limits:
  - { name: payments a day, operation: pay, per: agent, count: 3, window: 24h }
  - { name: money a day, operation: pay, sum: params.amount, at_most: 100, window: 24h, effect: require_approval }
  - { name: per customer, operation: pay, per: params.customer, count: 9, window: day }
  - { name: hidden, operation: pay, sum: "has(params.card) ? 1 : 0", at_most: 9, window: 1h }
`;

let service: Service;
before(async () => {
  service = await startService({
    policy: POLICY,
    change(config) {
      plainVotes(config);
      config.groups = { support: { members: [person("Linus")], agents: ["support-*"] } };
    },
  });
});
after(() => service.close());

test("limits are listed with their use, and each use with its actions, for keys that see all actions", async () => {
  const ids: string[] = [];
  for (const [agent_id, amount] of [
    ["Support-Bot", 20],
    ["support-bot", 30.5],
    ["other", 1],
  ] as const) {
    const body = { agent_id, tool: "bank", operation: "pay", params: { amount, customer: "c" } };
    const answer = await service.call("POST", "/v1/actions", { body });
    assert.equal(answer.body.status, "allowed", JSON.stringify(answer.body));
    ids.push(answer.body.id);
  }
  const read = async (key: string) => (await service.call("GET", "/v1/limits", { key })).body.limits;
  const limits = await read(service.admin);
  assert.deepEqual(
    limits.map(({ limit, use }: Record<string, unknown>) => [limit, use]),
    [
      [
        "payments a day",
        [
          { subject: "support-bot", used: 2 },
          { subject: "other", used: 1 },
        ],
      ],
      ["money a day", [{ subject: "", used: 51.5 }]],
      ["per customer", null],
      ["hidden", null],
    ],
  );
  const { policy, managed_by, count, per, window, effect, tools, shadow } = limits[0];
  assert.deepEqual(
    [policy, managed_by, count, per, window, effect, tools, shadow],
    ["spending", "policy-files", 3, "agent", "24h", "deny", ["bank"], false],
  );
  const uses = async (limit: string, subject: string, key = service.admin) =>
    service.call("GET", `/v1/limits/uses?${new URLSearchParams({ policy: "spending", limit, subject }).toString()}`, {
      key,
    });
  assert.deepEqual(
    (await uses("payments a day", "support-bot")).body.uses.map((use: { action_id: string }) => use.action_id),
    [ids[1], ids[0]],
  );
  assert.deepEqual(
    (await uses("money a day", "")).body.uses.map((use: { amount: number }) => use.amount),
    [1, 30.5, 20],
  );
  assert.deepEqual((await uses("payments a day", "nobody")).body.uses, []);
  for (const [limit, key] of [
    ["hidden", service.admin],
    ["nothing", service.admin],
    ["money a day", (await makeKey(service, { name: "linus", owner: person("Linus"), scopes: ["actions:read"] })).key],
  ] as const)
    assert.equal((await uses(limit, "", key)).body.code, "LIMIT_NOT_FOUND", limit);
  const limited = await makeKey(service, {
    name: "l",
    owner: person("Linus"),
    scopes: ["actions:read", "policies:read"],
  });
  assert.ok(
    (await read(limited.key)).every(({ use }: { use: unknown }) => use === null),
    "a sum would tell about others",
  );
});
