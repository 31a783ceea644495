/**
 * Lists groups with their members and limits.
 * @needs groups, users
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { invite, startPeople } from "../../support/people.ts";
import { makeKey, person } from "../../support/service.ts";

test("groups name their members, where these are managed, and their limits", async () => {
  const service = await startPeople({
    change(config) {
      config.groups = {
        support: { members: [person("Ada"), "key:desk", "nobody@example.com"], agents: ["support-*"] },
        empty: { members: [] },
      };
      config.rota = { night: { members: [person("Ada")], every: "7d", start: "2026-01-05T09:00", time_zone: "UTC" } };
    },
  });
  try {
    const ben = await invite(service, { name: "Ben", roles: ["approver"], groups: ["finance", "support", "night"] });
    const { key } = await makeKey(service, { name: "reader", scopes: ["users:read"] });
    const { status, body } = await service.call("GET", "/v1/groups", { key });
    assert.equal(status, 200);
    assert.deepEqual(body.groups, [
      { name: "empty", limits: null, members: [] },
      { name: "finance", limits: null, members: [{ member: ben.principal, managed_by: "user" }] },
      {
        name: "support",
        limits: { agents: ["support-*"], tools: null },
        members: [
          { member: person("Ada"), managed_by: "configuration" },
          { member: "key:desk", managed_by: "configuration" },
          { member: "nobody@example.com", managed_by: "configuration" },
          { member: ben.principal, managed_by: "user" },
        ],
      },
    ]);
    assert.equal((await service.call("GET", "/v1/groups")).status, 403);
  } finally {
    await service.close();
  }
});

test("limits of groups hide requests of a rule from a rota, a group and a quorum, and the list says how many are left", async () => {
  const service = await startPeople({
    policy: `policy: work
rules:
  - { name: pay, tool: bank, effect: require_approval, approval: { approvers: [{ group: night }] } }
  - { name: ticket, tool: crm, agent: support-bot, effect: require_approval, approval: { approvers: [{ group: night }] } }
  - { name: all, effect: require_approval, approval: { quorum: 2 } }
  - { name: desk, tool: "*", effect: require_approval, approval: { approvers: [{ group: desk }] } }
`,
    change(config) {
      config.groups = {
        support: { members: [person("Ada")], agents: ["support-*"], tools: ["crm"] },
        desk: { members: [person("Grace")], tools: ["mail"] },
      };
      config.rota = { night: { members: [person("Ada")], every: "7d", start: "2026-01-05T09:00", time_zone: "UTC" } };
    },
  });
  try {
    const { status, body } = await service.call("GET", "/v1/groups/required", { key: service.admin });
    assert.equal(status, 200, JSON.stringify(body));
    const found = (body.required as any[]).map(({ rule, group, needed, members, able, hidden_from }) => [
      rule,
      group,
      [needed, members, able],
      hidden_from.map(({ member, hides }: any) => [member, hides]),
    ]);
    const [ada, grace] = [person("Ada"), person("Grace")];
    assert.deepEqual(
      found.find(([rule]) => rule === "pay"),
      ["pay", "night", [1, 1, 0], [[ada, "all"]]],
    );
    assert.deepEqual(
      found.find(([rule]) => rule === "desk"),
      ["desk", "desk", [1, 1, 1], [[grace, "some"]]],
    );
    const [, group, [needed, , able], hidden] = found.find(([rule]) => rule === "all") as any;
    assert.deepEqual([group, needed, able >= 2], [null, 2, true]);
    assert.deepEqual(Object.fromEntries(hidden), { [ada]: "some", [grace]: "some" });
    assert.deepEqual(found.find(([rule]) => rule === "ticket")?.[3], [], "Ada sees all of them");
    const { key } = await makeKey(service, { name: "reader", scopes: ["users:read"] });
    assert.equal((await service.call("GET", "/v1/groups/required", { key })).body.code, "INSUFFICIENT_SCOPE");
  } finally {
    await service.close();
  }
});
