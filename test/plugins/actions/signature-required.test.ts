/**
 * `approval.signature: passkey` on every way to approve: key, session, link, message and grant.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import type { ApprovalMessage } from "../../../src/contract/notifier.ts";
import { testNotifier } from "../../support/notifier.ts";
import { addUser, invite, startPeople, type Person } from "../../support/people.ts";
import { makeKey, plainVotes, type Service, person } from "../../support/service.ts";
import { signVotes } from "../../support/signed-votes.ts";

const POLICY = `
policy: ask
rules:
  - { name: signed, tool: signed, effect: require_approval, approval: { signature: passkey, notify: [desk] } }
  - { name: grantable, tool: grantable, effect: require_approval, approval: { grants: { for: 1h, count: 5 } } }
`;
const STRICTER = {
  policy: "stricter",
  rules: [{ name: "signed", tool: "grantable", effect: "require_approval", approval: { signature: "passkey" } }],
};

const pigeon = testNotifier();
let service: Service;
let agent: string;
let grace: Person;
before(async () => {
  service = await startPeople({
    policy: POLICY,
    plugins: [pigeon.plugin],
    change(config) {
      plainVotes(config);
      config.channels = { desk: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }] } };
    },
  });
  agent = (await makeKey(service, { name: "bot", preset: "agent", agent_id: "bot" })).key;
  grace = await invite(service, { name: "Grace", roles: ["approver"] });
});
after(() => service.close());

const submit = async (tool: string): Promise<any> => {
  const body = { agent_id: "bot", tool, operation: "x", params: { n: Math.random() } };
  return (await service.call("POST", "/v1/actions", { key: agent, body })).body;
};

test("a link in a message shows the request and says that the link cannot vote", async () => {
  const { id } = await submit("signed");
  const message = (await pigeon.next(
    (one) => one.kind === "approval_requested" && one.action.id === id,
  )) as ApprovalMessage;
  const token = new URL(message.link).hash.slice(1);
  const seen = await service.call("POST", "/v1/approval-link", { key: null, body: { token } });
  assert.deepEqual([seen.status, seen.body.signature_required], [200, true]);
  for (const approve of [true, false]) {
    const body = { token, shown: seen.body.shown, approve };
    const { body: refused } = await service.call("POST", "/v1/approval-link/verdict", { key: null, body });
    assert.equal(refused.code, "VOTE_SIGNATURE_REQUIRED");
  }
  assert.equal((await signVotes(grace, [{ action_id: id, approve: true }])).body.results[0].status, "approved");
  const later = await service.call("POST", "/v1/approval-link", { key: null, body: { token } });
  assert.deepEqual([later.body.action.status, later.body.signature_required], ["approved", false]);
});

test("a rule cannot offer grants and require signatures", async () => {
  const approval = { signature: "passkey", grants: { for: "1h", count: 5 } };
  const body = { policy: "both", rules: [{ name: "both", tool: "x", effect: "require_approval", approval }] };
  const { status, body: refused } = await service.call("POST", "/v1/policies", { key: service.admin, body });
  assert.equal(status, 422);
  assert.match(JSON.stringify(refused.errors), /its own signature/);
});

test("a grant does not cover an action once a different policy requires a signature", needs("grants"), async () => {
  await addUser(service, { name: "bob" });
  const bob = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
  const { body: grant, status } = await service.call("POST", "/v1/grants", {
    key: bob,
    body: { agent_id: "bot", tool: "grantable", operation: "x", for: "1h", count: 5 },
  });
  assert.equal(status, 201, JSON.stringify(grant));
  const covered = await submit("grantable");
  assert.equal(covered.reason_code, "GRANTED");
  const { status: stored } = await service.call("POST", "/v1/policies?activate=true", {
    key: service.admin,
    body: STRICTER,
  });
  assert.equal(stored, 201);
  const { status: now } = await submit("grantable");
  assert.equal(now, "pending_approval");
  const started = await service.call("POST", `/v1/actions/${covered.id}/start`, { key: agent, body: {} });
  assert.notEqual(started.status, 200, "what the grant allowed is decided again");
});
