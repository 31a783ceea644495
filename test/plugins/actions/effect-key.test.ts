/**
 * Effect keys: the same business effect happens at most once, whoever requests it and with whatever other parameters.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { parsePolicies } from "../../../src/domain/policy/parse/parse.ts";
import { addUser, startPeople } from "../../support/people.ts";
import { makeKey, plainVotes, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const POLICY = `policy: refunds
rules:
  - name: small
    tool: stripe
    when: params.amount <= 100
    effect: allow
    effect_key: { key: "refund/{params.payment}/{params.part}", within: 1h }
  - name: probe
    tool: stripe
    when: params.amount == 777
    effect: allow
    effect_key: { key: "refund/{params.payment}/{params.part}", within: 1m }
  - name: large
    tool: stripe
    effect: require_approval
    approval: { expires_in: 30m, editable: [params.payment] }
    effect_key: { key: "refund/{params.payment}/{params.part}", within: 1h }
`;

let service: Service;
let other: string;
let bob: string;
before(async () => {
  service = await startPeople({ policy: POLICY, change: plainVotes });
  await addUser(service, { name: "bob" });
  ({ key: bob } = await makeKey(service, { name: "bob", owner: "bob", preset: "approver" }));
  ({ key: other } = await makeKey(service, { name: "other", scopes: ["actions:submit"], agent_id: "b" }));
});
// Audits the store, too.
after(() => service.close());

const submit = async (payment: unknown, { amount = 1, key = service.agent, part = "a" as unknown, agent = "a" } = {}) =>
  (
    await service.call("POST", "/v1/actions", {
      key,
      body: { agent_id: agent, tool: "stripe", operation: "refund", params: { payment, part, amount } },
    })
  ).body;
const post = async (id: string, path: string, body: object, key = service.agent) =>
  service.call("POST", `/v1/actions/${id}/${path}`, { key, body });
const vote = async (id: string, approve: boolean) => {
  const { body } = await service.call("GET", `/v1/actions/${id}`, { key: bob });
  return (await post(id, "approval", { approve, token: body.approval_token }, bob)).body;
};

test("of concurrent requests of two keys, one is allowed, and the denial names its action only to its own key", async () => {
  const actions = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      submit("pi_1", { amount: i, ...(i % 2 === 0 ? {} : { key: other, agent: "b" }) }),
    ),
  );
  const allowed = actions.filter(({ decision }) => decision === "allow");
  assert.equal(allowed.length, 1);
  for (const action of actions) {
    if (action === allowed[0]) continue;
    assert.deepEqual([action.reason_code, action.rule, action.denied_by], ["EFFECT_REPEATED", "small", "policy"]);
    assert.equal(action.reason.includes(allowed[0].id), action.agent_id === allowed[0].agent_id, action.reason);
    assert.doesNotMatch(action.reason, /pi_1/);
  }
  assert.equal((await submit("pi_2")).decision, "allow");
  const { body: replayed } = await service.call("POST", "/v1/replay", {
    key: service.admin,
    body: { action_id: actions.find((action) => action !== allowed[0]).id },
  });
  assert.equal(replayed.equal, true);
});

test("a failure, a rejection, an expiry and a cancellation free the effect; an unknown outcome does not", async () => {
  const first = await submit("pi_3");
  assert.equal((await post(first.id, "start", {})).status, 200);
  assert.match((await submit("pi_3")).reason, new RegExp(`the action ${first.id} of .* with this effect is executing`));
  await post(first.id, "result", { success: false });
  const second = await submit("pi_3");
  assert.equal(second.decision, "allow");
  assert.equal((await post(second.id, "start", {})).status, 200);
  service.clock.now += 2 * 3_600_000;
  await service.restart();
  const outcome = async () => (await service.call("GET", `/v1/actions/${second.id}`)).body.status;
  await until("the outcome is unknown", async () => (await outcome()) === "unknown");
  assert.match((await submit("pi_3")).reason, /its outcome is unknown; a person must settle it first/);
  service.clock.now += 40 * 86_400_000;
  assert.equal((await submit("pi_3")).reason_code, "EFFECT_REPEATED");
  await post(second.id, "result", { success: true });
  const third = await submit("pi_3", { amount: 500 });
  assert.equal(third.decision, "require_approval", "the success is longer ago than the period");
  assert.match((await submit("pi_3")).reason, /is pending; wait for its result/);
  assert.equal((await vote(third.id, false)).status, "denied");
  const fourth = await submit("pi_3", { amount: 501 });
  assert.equal(fourth.decision, "require_approval");
  service.clock.now += 31 * 60_000;
  const fifth = await submit("pi_3", { amount: 502 });
  assert.equal(fifth.decision, "require_approval", "the pending action has expired");
  await post(fifth.id, "cancel", {});
  assert.equal((await submit("pi_3")).decision, "allow");
});

test("a preview reports a blocked effect, and the check of a policy reports a key that names no parameter", async () => {
  const { id } = await submit("pi_9");
  const preview = async (payment: string) => {
    const params = { payment, part: "a", amount: 2 };
    const body = { agent_id: "a", tool: "stripe", operation: "refund", params };
    return (await service.call("POST", "/v1/gate/decide", { body })).body;
  };
  const blocked = await preview("pi_9");
  assert.deepEqual([blocked.decision, blocked.reason.includes(id)], ["deny", true]);
  // A gateway that runs what a preview allows would repeat the effect.
  assert.deepEqual(
    [(await preview("pi_10")).outcome, (await preview("pi_10")).reason_code],
    ["ABSTAIN", "LIMIT_APPLIES"],
  );
  const faultOf = (key: string): string =>
    parsePolicies(POLICY.replaceAll("refund/{params.payment}/{params.part}", key), "p")
      .faults.map(({ message }) => message)
      .join();
  assert.equal(faultOf("refund/{params.payment}"), "");
  assert.match(faultOf("refund"), /effect_key: .*names no value/);
  assert.match(faultOf("refund/{tool}"), /would be the same for all actions/);
  assert.match(faultOf("refund/{params.payment"), /a brace has no partner/);
  assert.match(faultOf("refund/{principal.name}"), /names no value/);
  assert.match(
    parsePolicies(POLICY.replace("1h", "1y"), "p")
      .faults.map(({ message }) => message)
      .join(),
    /"1y" is not a duration/,
  );
});

test("a success blocks for the period, and then no longer", async () => {
  const { id } = await submit("pi_4");
  await post(id, "start", {});
  await post(id, "result", { success: true });
  service.clock.now += 59 * 60_000;
  assert.match((await submit("pi_4")).reason, /already has this effect/);
  service.clock.now += 2 * 60_000;
  assert.equal((await submit("pi_4")).decision, "allow");
});

test("many failures of a rule with a shorter period cannot hide an earlier success", async () => {
  const refund = await submit("pi_8");
  await post(refund.id, "start", {});
  await post(refund.id, "result", { success: true });
  service.clock.now += 2 * 60_000;
  for (let i = 0; i < 99; i++) {
    const probe = await submit("pi_8", { amount: 777 });
    assert.equal(probe.decision, "allow", probe.reason);
    await post(probe.id, "start", {});
    await post(probe.id, "result", { success: false });
    if (i % 33 === 0) assert.equal((await submit("pi_8")).reason_code, "EFFECT_REPEATED");
  }
  const again = await submit("pi_8", { amount: 777 });
  assert.deepEqual([again.decision, again.reason_code], ["deny", "CONDITION_ERROR"]);
  assert.match(again.reason, /not known whether an earlier action has the same effect/);
  assert.equal((await submit("pi_8")).reason_code, "EFFECT_REPEATED");
  const { body: replayed } = await service.call("POST", "/v1/replay", {
    key: service.admin,
    body: { action_id: again.id },
  });
  assert.equal(replayed.equal, true);
});

test(
  "an approved action that holds its effect starts, and an edit cannot take the effect of another",
  needs("edits"),
  async () => {
    const approved = await submit("pi_5", { amount: 200 });
    assert.equal((await vote(approved.id, true)).status, "approved");
    assert.equal((await submit("pi_5")).reason_code, "EFFECT_REPEATED");
    const edited = await submit("pi_6", { amount: 200 });
    const { body } = await service.call("GET", `/v1/actions/${edited.id}`, { key: bob });
    const edit = (payment: string, token = body.approval_token) =>
      post(edited.id, "edit", { token, changes: { "params.payment": payment }, reason: "r" }, bob);
    assert.match((await edit("pi_5")).body.detail, /the action .* with this effect is approved/);
    assert.equal((await edit("pi_7")).status, 200);
    assert.equal((await submit("pi_6")).decision, "allow", "the edit freed the earlier effect");
    assert.equal((await submit("pi_7")).reason_code, "EFFECT_REPEATED");
    assert.equal((await post(approved.id, "start", {})).status, 200);
  },
);

test("values cannot imitate the separators of the key, and a value that is no text denies with a clear reason", async () => {
  assert.equal((await submit("x/y", { part: "z" })).decision, "allow");
  assert.equal((await submit("x", { part: "y/z" })).decision, "allow");
  assert.equal((await submit("x%2Fy", { part: "z" })).decision, "allow");
  assert.equal((await submit(7)).decision, "allow");
  for (const same of ["7", "\uff17", "7\u200b", "\u00ad7", "7\u0000", "7\u2800"])
    assert.equal((await submit(same)).reason_code, "EFFECT_REPEATED", JSON.stringify(same));
  assert.equal((await submit("e\u0301")).decision, "allow");
  for (const same of ["\u00e9", "e\u200b\u0301"])
    assert.equal((await submit(same)).reason_code, "EFFECT_REPEATED", JSON.stringify(same));
  for (const [payment, reason] of [
    [undefined, /effect key of rule "small" in policy "refunds": params\.payment is missing/],
    [null, /params\.payment is null/],
    [["pi_8"], /params\.payment is neither a string nor a number/],
    [true, /neither a string nor a number/],
    ["", /is empty, or begins or ends with white space/],
    [" pi_8", /is empty, or begins or ends with white space/],
    ["\u200b", /is empty, or begins or ends with white space/],
    ["x".repeat(513), /more than 512 characters/],
    ["/".repeat(200), /it has more than 512 characters/],
  ] as const) {
    const denied = await submit(payment);
    assert.deepEqual([denied.decision, denied.reason_code], ["deny", "CONDITION_ERROR"], String(payment));
    assert.match(denied.reason, reason);
  }
});
