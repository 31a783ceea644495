/**
 * Policy limits through the API: exact under concurrency, also on two processes with one Postgres, and replayed
 * exactly.
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import { plainVotes, startService, type Service } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const POLICY = `policy: spending
rules:
  - { name: pay, tool: pay, effect: allow }
  - { name: ask, tool: ask, effect: require_approval, approval: { expires_in: 1h } }
limits:
  - { name: ten, tool: pay, operation: count, per: agent, count: 10, window: 1h }
  - { name: hundred, tool: pay, operation: sum, per: params.customer, sum: params.amount, at_most: 100, window: day, effect: require_approval }
  - { name: two, tool: ask, count: 2, window: 1h }
`;

describe("limits", () => {
  let folder: string;
  let service: Service;
  before(async () => {
    folder = temporaryFolder("assent-limits-");
    writeFileSync(join(folder, "spending.yaml"), POLICY);
    service = await startService({
      policies: folder,
      change: plainVotes,
    });
  });
  after(async () => {
    await service.close();
    rmSync(folder, { recursive: true });
  });

  const submit = async (body: object, headers: Record<string, string> = {}) =>
    (await service.call("POST", "/v1/actions", { key: service.admin, body: { agent_id: "a", ...body }, headers })).body;

  test("limits admit exactly their maximum under concurrent submissions", async () => {
    const actions = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        submit({ agent_id: i % 2 === 0 ? "even" : "odd", tool: "pay", operation: "count" }),
      ),
    );
    for (const agent of ["even", "odd"]) {
      const own = actions.filter((action) => action.agent_id === agent);
      assert.deepEqual(
        [
          own.filter(({ decision }) => decision === "allow").length,
          own.filter(({ reason_code, rule }) => reason_code === "LIMIT_EXCEEDED" && rule === "ten").length,
        ],
        [10, 5],
      );
    }
  });

  test(
    "the entry commits to the limit usage, a caller who sees everything can read it, and replay agrees",
    needs("replay"),
    async () => {
      const first = await submit({ tool: "pay", operation: "sum", params: { customer: "customer-1", amount: 60.5 } });
      const second = await submit({ tool: "pay", operation: "sum", params: { customer: "customer-1", amount: 39.6 } });
      assert.deepEqual([first.decision, second.decision, second.rule], ["allow", "require_approval", "hundred"]);
      assert.equal(
        (await submit({ tool: "pay", operation: "sum", params: { customer: "c-2", amount: 100 } })).decision,
        "allow",
      );
      const { body } = await service.call("GET", `/v1/actions/${second.id}/events`, { key: service.admin });
      const { facts, v } = body.events[0].entry;
      assert.deepEqual([v, facts.limits], [1, undefined]);
      assert.match(facts.past, /^[0-9a-f]{64}$/);
      // The limit's key and the amount come from the parameters. The ledger contains only commitments of them.
      assert.ok(!/customer-1|"used"|60500000/.test(JSON.stringify(body.events)));
      const row = await service.storage.action(second.id);
      assert.ok(row?.past != null && !row.past.includes(row.salt), "the salt of the request opens nothing else");
      const replayed = (
        await service.call("POST", "/v1/replay", {
          key: service.admin,
          body: { action_id: second.id, policy_set: "current" },
        })
      ).body;
      assert.deepEqual([replayed.equal, replayed.now.changed], [true, false]);
      const [{ basis, ...used }, ...more] = replayed.limits;
      assert.deepEqual([used, more], [{ policy: "spending", limit: "hundred", used: 60_500_000 }, []]);
      assert.match(basis, /^[0-9a-f]{16}$/);
      const bound = (
        await service.call("POST", "/v1/api-keys", {
          key: service.admin,
          body: { name: "bound", scopes: ["actions:read", "replay:run"], agent_id: "a" },
        })
      ).body.key as string;
      const own = (await service.call("POST", "/v1/replay", { key: bound, body: { action_id: second.id } })).body;
      assert.deepEqual([own.equal, own.limits], [true, null], "what others used is not for one agent's key");
      const backtest = (
        await service.call("POST", "/v1/replay", { key: service.admin, body: { policy_set: "current", limit: 1000 } })
      ).body;
      assert.equal(backtest.flipped, 0);
    },
  );

  test("denied, cancelled and expired actions, and retries of one request, do not count", async () => {
    const ask = () => submit({ tool: "ask", operation: "x" });
    const [one, two] = [await ask(), await ask()];
    assert.deepEqual([one.status, two.status, (await ask()).rule], ["pending_approval", "pending_approval", "two"]);
    await service.call("POST", `/v1/actions/${one.id}/cancel`, { key: service.admin });
    const three = await ask();
    assert.equal(three.status, "pending_approval");
    assert.equal((await ask()).rule, "two");
    const approver = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "approver", preset: "approver" },
      })
    ).body.key as string;
    const token = (await service.call("GET", `/v1/actions/${three.id}`, { key: approver })).body
      .approval_token as string;
    assert.equal(
      (
        await service.call("POST", `/v1/actions/${three.id}/approval`, {
          key: approver,
          body: { token, approve: false },
        })
      ).body.status,
      "denied",
    );
    const headers = { "idempotency-key": "same" };
    const four = await submit({ tool: "ask", operation: "y" }, headers);
    assert.equal(four.status, "pending_approval", "the denied one does not count");
    assert.equal((await submit({ tool: "ask", operation: "y" }, headers)).id, four.id);
    assert.equal((await ask()).rule, "two");
    service.clock.now += 3_600_001;
    await service.call("GET", `/v1/actions/${four.id}`, { key: service.admin });
    assert.equal((await ask()).status, "pending_approval");
  });

  test("the decide-only route reads the usage and does not add to it", async () => {
    const body = { agent_id: "gate", tool: "pay", operation: "count" };
    for (let i = 0; i < 12; i++) {
      const { body: answer } = await service.call("POST", "/v1/gate/decide", { key: service.admin, body });
      const { is_permission, outcome, decision, reason_code, action_id } = answer;
      assert.deepEqual(
        { is_permission, outcome, decision, reason_code, action_id },
        { is_permission: false, outcome: "ABSTAIN", decision: null, reason_code: "LIMIT_APPLIES", action_id: null },
      );
    }
    for (let i = 0; i < 10; i++) await submit(body);
    assert.equal(
      (await service.call("POST", "/v1/gate/decide", { key: service.admin, body })).body.reason_code,
      "LIMIT_EXCEEDED",
    );
  });

  test("gate/decide with recording counts each call, including concurrent ones", async () => {
    const body = { agent_id: "gate-recorded", tool: "pay", operation: "count" };
    const answers = await Promise.all(
      Array.from({ length: 12 }, () =>
        service.call("POST", "/v1/gate/decide?record=true", { key: service.admin, body }),
      ),
    );
    const allowed = answers.filter(({ body: answer }) => answer.outcome === "EXECUTE");
    assert.equal(allowed.length, 10);
    for (const { body: answer } of answers) {
      assert.equal(answer.is_permission, false);
      const { body: action } = await service.call("GET", `/v1/actions/${answer.action_id}`, { key: service.admin });
      assert.equal(action.decision, answer.decision);
    }
  });

  test(
    "a policy in shadow mode counts the actions that it would have allowed, and keeps the count when it is enforced",
    needs("replay"),
    async () => {
      const policy = (mode: string) => ({
        policy: "trial",
        mode,
        rules: [{ name: "all", effect: "allow" }],
        limits: [{ name: "three", tool: "pay", operation: "trial", count: 3, window: "1h" }],
      });
      const made = (
        await service.call("POST", "/v1/policies?activate=true", { key: service.admin, body: policy("shadow") })
      ).body;
      const said: string[] = [];
      for (let i = 0; i < 5; i++) {
        const { id, decision } = await submit({ tool: "pay", operation: "trial" });
        assert.equal(decision, "allow");
        const { body } = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: id } });
        said.push(`${body.recorded.decision.shadow[0].effect} ${body.limits[0].used}`);
      }
      assert.deepEqual(said, ["allow 0", "allow 1", "allow 2", "deny 3", "deny 3"]);
      await service.call("PUT", `/v1/policies/${made.id}?activate=true`, {
        key: service.admin,
        body: policy("enforce"),
      });
      assert.equal((await submit({ tool: "pay", operation: "trial" })).rule, "three");
      await service.call("POST", `/v1/policies/${made.id}/deactivate`, { key: service.admin });
    },
  );

  test("limit counts survive a restart", async () => {
    const body = { agent_id: "lasting", tool: "pay", operation: "count" };
    for (let i = 0; i < 10; i++) assert.equal((await submit(body)).decision, "allow");
    await service.restart();
    assert.equal((await submit(body)).rule, "ten");
  });
});

test("uses are stored for the limit's window, and removed a day later", async () => {
  const folder = temporaryFolder("assent-limits-");
  writeFileSync(join(folder, "spending.yaml"), POLICY);
  const service = await startService({ policies: folder });
  try {
    const pay = () => service.call("POST", "/v1/actions", { body: { agent_id: "a", tool: "pay", operation: "count" } });
    const kept = async () => (await service.storage.limitUsed("spending", "ten", "a", 0)).count;
    for (let i = 0; i < 3; i++) await pay();
    service.clock.now += 3_600_000 + 86_400_000 - 60_000;
    await pay();
    assert.equal(await kept(), 4);
    service.clock.now += 120_000;
    await pay();
    assert.equal(await kept(), 2);
  } finally {
    await service.close();
    rmSync(folder, { recursive: true });
  }
});
