/**
 * `approval.mode: self_confirm`: the person behind the agent confirms, with a passkey gesture that no key can produce.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Storage } from "../../../src/contract/storage.ts";
import { utf8 } from "../../../src/domain/hash.ts";
import { hashLeaf } from "../../../src/domain/merkle.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs } from "../../support/features.ts";
import { signature, signVotes } from "../../support/signed-votes.ts";
import { createAuthenticator } from "../../support/authenticator.ts";
import { confirmChange, enrol, invite, ORIGIN, startPeople, type Person } from "../../support/people.ts";
import { makeKey, plainVotes, type Answer, type Service } from "../../support/service.ts";

const POLICY = `
policy: ask
rules:
  - { name: own, tool: own, effect: require_approval, approval: { mode: self_confirm } }
  - { name: other, tool: other, effect: require_approval }
  - { name: session, tool: session, effect: require_approval, approval: { mode: self_confirm, grants: { for: 8h, count: 2 } } }
---
policy: second
rules:
  - { name: four eyes, tool: session, when: has(params.strict), effect: require_approval, approval: { grants: { for: 8h, count: 2 } } }
`;

let service: Service;
let agent: string;
let ada: string;
let bob: string;
let person: Person;
before(async () => {
  service = await startPeople({ policy: POLICY, change: plainVotes });
  person = await invite(service, { name: "Ada", roles: ["approver"] });
  const owner = person.principal;
  agent = (await makeKey(service, { name: "adas agent", owner, preset: "agent", agent_id: "bot" })).key;
  ada = (await makeKey(service, { name: "ada", owner, preset: "approver" })).key;
  bob = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
});
after(() => service.close());

const submitted = async (tool: string, params: object = {}): Promise<Answer["body"]> => {
  const body = { agent_id: "bot", tool, operation: "x", params: { n: Math.random(), ...params } };
  return (await service.call("POST", "/v1/actions", { key: agent, body })).body;
};
const submit = async (tool: string): Promise<string> => (await submitted(tool)).id;
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

test(
  "the person behind the agent allows later requests with a signed confirmation, within its terms",
  needs("grants", "replay"),
  async () => {
    const grant = { for: "1h", count: 2, scope: "!has(params.wide)" };
    const { body } = await signVotes(person, [{ action_id: await submit("session"), approve: true, grant }]);
    const [{ status, grant_id }] = body.results;
    assert.equal(status, "approved", JSON.stringify(body));
    const of = async (params: object = {}): Promise<unknown[]> => {
      const action = await submitted("session", params);
      return [action.status, action.grant];
    };
    assert.deepEqual(await of({ wide: true }), ["pending_approval", null], "outside of the scope");
    assert.deepEqual(await of({ strict: true }), ["pending_approval", null], "a rule that asks another person");
    const first = await submitted("session");
    assert.deepEqual([first.status, first.reason_code, first.grant], ["allowed", "GRANTED", grant_id]);
    assert.equal((await service.call("POST", `/v1/actions/${first.id}/start`, { key: agent, body: {} })).status, 200);
    assert.deepEqual(await of(), ["allowed", grant_id]);
    assert.deepEqual(await of(), ["pending_approval", null], "used up");
    const { body: events } = await service.call("GET", `/v1/actions/${first.id}/events`, { key: service.admin });
    assert.equal(events.events[0].entry.facts.grant.self, true);
    const { body: replayed } = await service.call("POST", "/v1/replay", {
      key: service.admin,
      body: { action_id: first.id },
    });
    assert.equal(replayed.equal, true);
    const { body: read } = await service.call("GET", `/v1/grants/${grant_id}`, { key: service.admin });
    assert.deepEqual([read.signed, read.granted_by, read.status], [true, `user:${person.id}`, "used_up"]);
  },
);

test(
  "a self-confirmation grants only what its signature covers, and nothing without a signature",
  needs("grants"),
  async () => {
    const action_id = await submit("session");
    const grant = { for: "1h", count: 1 };
    const vote = { action_id, approve: true, grant };
    for (const other of [
      { action_id, approve: true },
      { ...vote, grant: { ...grant, count: 2 } },
      { ...vote, grant: { ...grant, for: "2h" } },
      { ...vote, grant: { ...grant, scope: "true" } },
      { ...vote, grant: { ...grant, sum: { of: "params.n", at_most: 1 } } },
      { ...vote, grant: { ...grant, ends_on_failure: true } },
      { ...vote, grant: { ...grant, task: "release" } },
    ]) {
      const signed = await signature(person, [vote]);
      const { body } = await person.call("POST", "/v1/votes", { ...signed, votes: [other] });
      assert.equal(body.code, "VOTE_SIGNATURE_INVALID", JSON.stringify(other));
    }
    const codeOf = async (votes: Parameters<typeof signVotes>[1]): Promise<string> =>
      (await signVotes(person, votes)).body.code;
    assert.equal(await codeOf([{ ...vote, grant: { ...grant, count: 3 } }]), "GRANT_NOT_ALLOWED");
    assert.equal(await codeOf([{ ...vote, approve: false }]), "VALIDATION_FAILED");
    const alone = { agent_id: "bot", tool: "session", operation: "x", ...grant };
    assert.equal((await person.call("POST", "/v1/grants", alone)).body.code, "SELF_APPROVAL");
    const { approval_token: token } = (await person.call("GET", `/v1/actions/${action_id}`)).body;
    const unsigned = await person.call("POST", `/v1/actions/${action_id}/approval`, { token, approve: true, grant });
    assert.equal(unsigned.body.code, "SELF_APPROVAL");
    assert.equal((await submitted("session")).status, "pending_approval");
  },
);

test("a grant for the grantor's own agent covers nothing after its passkey was removed", needs("grants"), async () => {
  const grant = { for: "1h", count: 2 };
  const { body } = await signVotes(person, [{ action_id: await submit("session"), approve: true, grant }]);
  const { grant_id } = body.results[0];
  const first = await submitted("session");
  assert.deepEqual([first.status, first.grant], ["allowed", grant_id]);
  const [code] = person.recovery_codes;
  assert.equal((await enrol(service, code as string, createAuthenticator(ORIGIN))).status, 201);
  const removed = await confirmChange(person, `passkeys/${person.passkey.id}/remove`);
  assert.equal(removed.status, 200, JSON.stringify(removed.body));
  assert.equal((await submitted("session")).status, "pending_approval");
  const start = await service.call("POST", `/v1/actions/${first.id}/start`, { key: agent, body: {} });
  assert.equal(start.body.code, "MORE_APPROVALS_NEEDED", JSON.stringify(start.body));
});

test(
  "the audit finds a signed grant that is for another tool than the action of its vote",
  needs("grants"),
  async () => {
    const entries: Storage["entries"] = async (...range) =>
      (await service.storage.entries(...range)).map((row) => {
        if ((row.type as string) !== "grant") return row;
        const bytes = utf8(new TextDecoder().decode(row.bytes).replace('"tool":"session"', '"tool":"own"'));
        return { ...row, bytes, leaf_hash: hashLeaf(bytes) };
      });
    const altered = new Proxy(service.storage, {
      get(target, name: keyof Storage) {
        const value: unknown = name === "entries" ? entries : target[name];
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    assert.match(
      (await auditStore(altered)).faults.join("\n"),
      /gives the grant .* for another agent, tool or operation/,
    );
  },
);
