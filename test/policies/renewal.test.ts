/** What an earlier version of Assent made active: renewed at the start, and what it decided comes out the same. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { canonicalText } from "../../src/domain/canonical.ts";
import type { JsonValue } from "../../src/domain/json.ts";
import { compilePolicySet } from "../../src/domain/policy/compile.ts";
import type { PolicyDocument, PolicySetDocument } from "../../src/domain/policy/types.ts";
import { startService, type Service } from "../support/service.ts";

const LARGE = "double(params.amount) > 1000.0";
const definition = (tool: string): PolicyDocument => ({
  policy: "payments",
  rules: [
    { name: "large", tool, when: LARGE, effect: "deny" },
    { name: "rest", tool, effect: "allow" },
  ],
});

/** A service whose active set is as an earlier version wrote it. */
async function withOldSet(t: TestContext, document: PolicyDocument): Promise<Service> {
  const service = await startService({ policy: "policy: other\nrules: [{ name: r, tool: other, effect: allow }]\n" });
  t.after(() => service.close());
  const made = await service.call("POST", "/v1/policies", { key: service.admin, body: document });
  const activated = await service.call("POST", `/v1/policies/${made.body.id}/activate`, {
    key: service.admin,
    body: {},
  });
  assert.equal(activated.status, 200, JSON.stringify(activated.body));
  const { host } = service.runtime;
  const set: PolicySetDocument = {
    ...(await host.policies.current()).compiled.document,
    format: "assent-policy-set/1",
  };
  const text = canonicalText(set as unknown as JsonValue);
  const { digest } = compilePolicySet(set);
  await host.ledger.transact(async (tx) => {
    await host.policies.commit(tx, { digest, document: set, text }, { source: "api" }, null, []);
  });
  return service;
}

const submit = (service: Service, tool: string, amount: unknown) =>
  service.call("POST", "/v1/actions", {
    body: { agent_id: "support-bot", tool, operation: "refund", params: { amount } },
  });

test("an old set is renewed at the start, and its decisions replay as they were", async (t) => {
  const service = await withOldSet(t, definition("stripe"));
  const before = await submit(service, "stripe", "5,000");
  assert.equal(before.body.decision, "allow");
  await service.restart();
  const after = await submit(service, "stripe", "5,000");
  assert.deepEqual([after.body.decision, after.body.reason_code], ["deny", "CONDITION_ERROR"]);
  assert.notEqual(after.body.policy_hash, before.body.policy_hash);
  for (const { body } of [before, after]) {
    const replayed = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: body.id } });
    assert.equal(replayed.status, 200);
    assert.equal(replayed.body.equal, true, JSON.stringify(replayed.body));
  }
  const now = after.body.policy_hash;
  await service.restart();
  assert.equal((await submit(service, "stripe", 5)).body.policy_hash, now, "renewed once");
});

test("an old set that cannot be read anew stays as it was, and the service says so", async (t) => {
  const service = await startService({
    policy: "policy: other\nrules: [{ name: r, tool: other, effect: allow }]\n",
    broken: true,
  });
  t.after(() => service.close());
  const { host } = service.runtime;
  const set: PolicySetDocument = {
    format: "assent-policy-set/1",
    policies: [{ policy: "payments", version: 1, definition: definition("str\u200bipe") }],
  };
  const { digest } = compilePolicySet(set);
  const text = canonicalText(set as unknown as JsonValue);
  await host.ledger.transact((tx) =>
    host.policies.commit(tx, { digest, document: set, text }, { source: "api" }, null, []),
  );
  await service.restart();
  const state = await service.runtime.host.policies.state();
  assert.equal(state.digest, digest, "the set that was active");
  assert.ok(
    state.faults.some(({ message }) => message.includes("[U+200B]")),
    JSON.stringify(state.faults),
  );
  assert.equal((await submit(service, "str\u200bipe", 5)).status, 422);
});
