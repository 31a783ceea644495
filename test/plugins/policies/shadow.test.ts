/** A policy in shadow mode: recorded, counted, and never enforced. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ALLOWED, ASKED, startService, type Answer, type Service } from "../../support/service.ts";

const rules = (effect: string): object[] => [
  { name: "large", tool: "stripe", when: "params.amount > 100", effect },
  { name: "new tool", tool: "newcomer", effect: "allow" },
];

describe("a policy in shadow mode", () => {
  let service: Service;
  let id = "";
  const admin = (method: string, path: string, body?: object): Promise<Answer> =>
    service.call(method, path, { key: service.admin, ...(body === undefined ? {} : { body }) });
  const submit = async (over: object): Promise<Answer["body"]> =>
    (await service.call("POST", "/v1/actions", { body: { ...ALLOWED, ...over } })).body;
  const amount = (value: number): object => ({ params: { ...ALLOWED.params, amount: value } });
  before(async () => {
    service = await startService();
    id = (
      await admin("POST", "/v1/policies?activate=true", { policy: "stricter", mode: "shadow", rules: rules("deny") })
    ).body.id;
  });
  after(() => service.close());

  it("decides nothing, and its decision is in the record", async () => {
    const small = await submit(amount(10));
    const large = await submit({ ...ASKED });
    const unknown = await submit({ tool: "newcomer" });
    assert.deepEqual(
      [small.decision, large.decision, unknown.decision, unknown.reason_code],
      ["allow", "require_approval", "deny", "NO_MATCHING_RULE"],
    );
    const [event] = (await admin("GET", `/v1/actions/${large.id}/events`)).body.events;
    assert.deepEqual(
      event.entry.decision.shadow.map(({ policy, rule, effect }: { policy: string; rule: string; effect: string }) => [
        policy,
        rule,
        effect,
      ]),
      [["stricter", "large", "deny"]],
    );
  });

  it("reports which decisions it would have changed: stricter ones, and its own if no other rule matched", async () => {
    for (let i = 0; i < 4; i++) await submit(ASKED);
    const { status, body } = await admin("GET", `/v1/policies/${id}/shadow`);
    assert.equal(status, 200);
    assert.deepEqual([body.policy, body.evaluated, body.flipped, body.next], ["stricter", 6, 6, null]);
    assert.deepEqual(
      body.flips.map((flip: { from: { effect: string }; to: { effect: string; rule: string }; count: number }) => [
        flip.from.effect,
        flip.to.effect,
        flip.to.rule,
        flip.count,
      ]),
      [
        ["require_approval", "deny", "large", 5],
        ["deny", "allow", "new tool", 1],
      ],
    );
    const example = body.flips[1].examples[0];
    assert.deepEqual(
      [example.tool, (await admin("GET", `/v1/actions/${example.action_id}`)).body.decision],
      ["newcomer", "deny"],
    );
  });

  it("would not have changed decisions that others make stricter, and is counted anyway", async () => {
    await admin("PUT", `/v1/policies/${id}?activate=true`, {
      policy: "stricter",
      mode: "shadow",
      rules: rules("allow"),
    });
    service.clock.now += 5000;
    const since = new Date(Date.now() + service.clock.now).toISOString();
    await submit(ASKED);
    const { body } = await admin("GET", `/v1/policies/${id}/shadow?since=${since}`);
    assert.deepEqual([body.evaluated, body.flipped], [1, 0]);
  });

  it("shows a bound key only its agent's decisions, and rejects an invalid range", async () => {
    const key = (await admin("POST", "/v1/api-keys", { name: "reader", scopes: ["policies:read"], agent_id: "nobody" }))
      .body.key;
    assert.equal((await service.call("GET", `/v1/policies/${id}/shadow`, { key })).body.evaluated, 0);
    assert.equal(
      (await admin("GET", `/v1/policies/${id}/shadow?since=2030-01-01T00:00:00Z&until=2029-01-01T00:00:00Z`)).body.code,
      "INVALID_RANGE",
    );
    assert.equal((await admin("GET", "/v1/policies/nothing/shadow")).body.code, "POLICY_NOT_FOUND");
  });

  it("is reported as shadow while the active version is, whatever the newest version says", async () => {
    const draft = { policy: "modes", mode: "shadow", rules: rules("deny") };
    const path = `/v1/policies/${(await admin("POST", "/v1/policies?activate=true", draft)).body.id}`;
    const enforced = await admin("PUT", path, { ...draft, mode: "enforce" });
    const list = async (): Promise<string> => (await admin("GET", "/v1/policies?name=modes")).body.policies[0].mode;
    const modes = async (): Promise<string[]> => [
      (await admin("GET", path)).body.mode,
      (await admin("GET", `${path}?version=1`)).body.mode,
      await list(),
    ];
    assert.deepEqual([enforced.body.mode, ...(await modes())], Array(4).fill("shadow"));
    assert.equal((await admin("POST", `${path}/activate`, { version: 2 })).body.mode, "enforce");
    assert.deepEqual(await modes(), Array(3).fill("enforce"));
    assert.equal((await admin("POST", `${path}/activate`, { version: 1 })).body.mode, "shadow");
    assert.equal((await admin("POST", `${path}/deactivate`)).body.mode, "enforce");
  });
});
