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
