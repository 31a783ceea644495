/** `approval.mode: self_confirm`: the person behind the agent confirms, with a passkey gesture that no key can produce. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { voteOn } from "../../../plugins/actions/vote.ts";
import { gestureDigest } from "../../../src/core.ts";
import { makeKey, plainVotes, startService, type Service } from "../../support/service.ts";

const POLICY = `
policy: ask
rules:
  - { name: own, tool: own, effect: require_approval, approval: { mode: self_confirm } }
  - { name: other, tool: other, effect: require_approval }
`;

let service: Service;
let agent: string;
let ada: string;
let bob: string;
before(async () => {
  service = await startService({ policy: POLICY, change: plainVotes });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  ada = (await makeKey(service, { name: "ada", owner: "ada", preset: "approver" })).key;
  bob = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
});
after(() => service.close());

const submit = async (tool: string): Promise<string> => {
  const body = { agent_id: "bot", tool, operation: "x", params: { n: Math.random() } };
  return (await service.call("POST", "/v1/actions", { key: agent, body })).body.id as string;
};
const record = async (id: string, key: string) => (await service.call("GET", `/v1/actions/${id}`, { key })).body;

/** Votes as a session would, with the gesture on the credential of this request. */
async function voteWithGesture(id: string, key: string, subject: { approve?: boolean; action_id?: string } = {}) {
  const { host } = service.runtime;
  const { request_hash, approval_token: token } = await record(id, key);
  const credential = (await host.keys.authenticate(key)) ?? assert.fail("the key is not live");
  const origin = host.ledger.origin;
  const digest = gestureDigest({ origin, request_hash, approve: true, action_id: id, ...subject });
  const gesture = { kind: "passkey", credential_id: "passkey-1", digest } as const;
  return voteOn(host, { credential: { ...credential, gesture }, id }, { token: token ?? "", approve: true });
}

test("the person behind the agent confirms with a passkey, and the record says so", async () => {
  const id = await submit("own");
  const { row } = await voteWithGesture(id, ada);
  assert.equal(row.status, "approved");
  const { body } = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
  const [decision, vote] = body.events.map(({ entry }: { entry: unknown }) => entry);
  assert.equal(decision.decision.approval.mode, "self_confirm");
  assert.deepEqual([vote.self_approval, vote.gesture.kind, vote.gesture.credential_id], [true, "passkey", "passkey-1"]);
});

test("no key, link or body can produce the gesture", async () => {
  const id = await submit("own");
  const { approval_token: token } = await record(id, ada);
  const path = `/v1/actions/${id}/approval`;
  const refused = await service.call("POST", path, { key: ada, body: { token, approve: true } });
  assert.deepEqual([refused.status, refused.body.code], [403, "SELF_APPROVAL"]);
  const gesture = { kind: "passkey", credential_id: "x", digest: "0".repeat(64) };
  const claimed = await service.call("POST", path, { key: ada, body: { token, approve: true, gesture } });
  assert.equal(claimed.body.code, "VALIDATION_FAILED");
  for (const key of [ada, agent, service.admin])
    assert.equal((await service.runtime.host.keys.authenticate(key))?.gesture, null);
  assert.equal((await record(id, ada)).status, "pending_approval");
});

test("a gesture confirms one vote: not another action, not the opposite vote", async () => {
  const id = await submit("own");
  await assert.rejects(voteWithGesture(id, ada, { action_id: await submit("own") }), { code: "SELF_APPROVAL" });
  await assert.rejects(voteWithGesture(id, ada, { approve: false }), { code: "SELF_APPROVAL" });
});

test("the agent's own key cannot confirm, even with a gesture", async () => {
  const id = await submit("own");
  await assert.rejects(voteWithGesture(id, agent), { code: "INSUFFICIENT_SCOPE" });
  const scopes = ["approvals:decide", "actions:read"];
  const bound = (await makeKey(service, { name: "b", owner: "ada", scopes, agent_id: "bot" })).key;
  await assert.rejects(voteWithGesture(id, bound), { code: "SELF_APPROVAL" });
});

test("where the mode is maker_checker a gesture changes nothing", async () => {
  await assert.rejects(voteWithGesture(await submit("other"), ada), { code: "SELF_APPROVAL" });
});

test("another person can answer a self_confirm request without a gesture", async () => {
  const id = await submit("own");
  const { approval_token: token } = await record(id, bob);
  const answer = await service.call("POST", `/v1/actions/${id}/approval`, { key: bob, body: { token, approve: true } });
  assert.equal(answer.body.status, "approved");
  assert.equal(answer.body.approvals[0].self_approval, false);
});
