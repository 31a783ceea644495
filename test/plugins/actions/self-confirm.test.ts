/** `approval.mode: self_confirm`: the person behind the agent confirms, with a passkey gesture that no key can produce. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { signVotes } from "../../support/signed-votes.ts";
import { addUser, invite, startPeople, type Person } from "../../support/people.ts";
import { makeKey, plainVotes, type Service } from "../../support/service.ts";

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
let person: Person;
before(async () => {
  service = await startPeople({ policy: POLICY, change: plainVotes });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  ada = (await makeKey(service, { name: "ada", owner: "ada", preset: "approver" })).key;
  person = await invite(service, { name: "Ada", roles: ["approver"] });
  await addUser(service, { name: "bob" });
  bob = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
});
after(() => service.close());

const submit = async (tool: string): Promise<string> => {
  const body = { agent_id: "bot", tool, operation: "x", params: { n: Math.random() } };
  return (await service.call("POST", "/v1/actions", { key: agent, body })).body.id as string;
};
const record = async (id: string, key: string) => (await service.call("GET", `/v1/actions/${id}`, { key })).body;

test("the person behind the agent confirms with a passkey, and the record says so", async () => {
  const id = await submit("own");
  const { body: voted } = await signVotes(person, [{ action_id: id, approve: true }]);
  assert.equal(voted.results[0].status, "approved", JSON.stringify(voted));
  const { body } = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
  const [decision, vote] = body.events.map(({ entry }: { entry: unknown }) => entry);
  assert.equal(decision.decision.approval.mode, "self_confirm");
  assert.deepEqual(
    [vote.self_approval, vote.gesture.kind, vote.gesture.credential_id, vote.by.principal],
    [true, "passkey", person.passkey.id, `user:${person.id}`],
  );
});

test("no key, link, session or body can confirm without the gesture", async () => {
  const id = await submit("own");
  const path = `/v1/actions/${id}/approval`;
  const { approval_token: token } = await record(id, ada);
  const refused = await service.call("POST", path, { key: ada, body: { token, approve: true } });
  assert.deepEqual([refused.status, refused.body.code], [403, "SELF_APPROVAL"]);
  const own = (await person.call("GET", `/v1/actions/${id}`)).body.approval_token;
  assert.equal((await person.call("POST", path, { token: own, approve: true })).body.code, "SELF_APPROVAL");
  const gesture = { kind: "passkey", credential_id: "x", votes: [] };
  const claimed = await service.call("POST", path, { key: ada, body: { token, approve: true, gesture } });
  assert.equal(claimed.body.code, "VALIDATION_FAILED");
  const votes = [{ action_id: id, approve: true }];
  for (const key of [ada, service.admin])
    assert.equal(
      (await service.call("POST", "/v1/votes/challenge", { key, body: { votes } })).body.code,
      "VOTE_SIGNATURE_REQUIRED",
    );
  assert.equal((await record(id, ada)).status, "pending_approval");
});

test("the agent's own key cannot request a challenge", async () => {
  const votes = [{ action_id: await submit("own"), approve: true }];
  const { body } = await service.call("POST", "/v1/votes/challenge", { key: agent, body: { votes } });
  assert.equal(body.code, "INSUFFICIENT_SCOPE");
});

test("a gesture changes nothing if the mode is maker_checker", async () => {
  const { body } = await signVotes(person, [{ action_id: await submit("other"), approve: true }]);
  assert.equal(body.code, "SELF_APPROVAL");
});

test("another person can approve a self_confirm request without a gesture", async () => {
  const id = await submit("own");
  const { approval_token: token } = await record(id, bob);
  const answer = await service.call("POST", `/v1/actions/${id}/approval`, { key: bob, body: { token, approve: true } });
  assert.equal(answer.body.status, "approved");
  assert.equal(answer.body.approvals[0].self_approval, false);
});
