/**
 * Votes signed with a passkey: what is recorded, what is rejected, and what the audit reports about altered ones.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { commitDigest, sha256Hex, utf8 } from "../../../src/core.ts";
import { addUser, invite, ORIGIN, startPeople, type Person } from "../../support/people.ts";
import { makeKey, plainVotes, type Service, person } from "../../support/service.ts";
import { signature, signVotes } from "../../support/signed-votes.ts";
import { auditUsers } from "../../support/user-audit.ts";

const POLICY = `
policy: ask
rules:
  - { name: signed, tool: signed, effect: require_approval, approval: { signature: passkey } }
  - { name: plain, tool: plain, effect: require_approval }
`;

let service: Service;
let agent: string;
let grace: Person;
before(async () => {
  service = await startPeople({ policy: POLICY, change: plainVotes });
  for (const name of ["ada", "bob"]) await addUser(service, { name });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  grace = await invite(service, { name: "Grace", roles: ["approver"] });
});
after(() => service.close());

const submit = async (tool = "signed"): Promise<string> => {
  const body = { agent_id: "bot", tool, operation: "x", params: { n: Math.random() } };
  return (await service.call("POST", "/v1/actions", { key: agent, body })).body.id as string;
};
const statusOf = async (id: string): Promise<string> =>
  (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body.status;
const approval = (action_id: string, reason?: string) => ({
  action_id,
  approve: true,
  ...(reason === undefined ? {} : { reason }),
});

test("a signed vote approves, and the entry contains the assertion", async () => {
  const id = await submit();
  const { body } = await signVotes(grace, [approval(id, "checked")]);
  assert.deepEqual(body, { results: [{ action_id: id, status: "approved", grant_id: null, error: null }] });
  const { body: events } = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
  const { gesture } = events.events[1].entry;
  assert.equal(gesture.credential_id, grace.passkey.id);
  assert.equal(gesture.decision, events.events[0].hash);
  assert.equal(gesture.votes.length, 1);
});

test("one signature covers a list of votes, and a rejected vote does not affect the others", async () => {
  const ids = [await submit(), await submit("plain"), await submit()];
  const signed = await signature(grace, [approval(ids[0]!), { action_id: ids[1]!, approve: false }, approval(ids[2]!)]);
  await service.call("POST", `/v1/actions/${ids[2]}/cancel`, { key: agent, body: {} });
  const { body } = await grace.call("POST", "/v1/votes", signed);
  assert.deepEqual(
    body.results.map((result: any) => [result.status, result.error?.code ?? null]),
    [
      ["approved", null],
      ["denied", null],
      [null, "ACTION_NOT_PENDING"],
    ],
  );
});

test("if the rule requires a signature, a vote without one is rejected with an explanation", async () => {
  const id = await submit();
  const key = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
  for (const approve of [true, false]) {
    const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key })).body;
    const { body } = await service.call("POST", `/v1/actions/${id}/approval`, { key, body: { token, approve } });
    assert.equal(body.code, "VOTE_SIGNATURE_REQUIRED");
    assert.match(body.detail, /sign in at \/sign-in/);
    const { approval_token: own } = (await grace.call("GET", `/v1/actions/${id}`)).body;
    const unsigned = await grace.call("POST", `/v1/actions/${id}/approval`, { token: own, approve });
    assert.equal(unsigned.body.code, "VOTE_SIGNATURE_REQUIRED");
  }
  assert.equal(await statusOf(id), "pending_approval");
});

test("a replayed assertion is rejected for a different action, vote or reason", async () => {
  const [id, other] = [await submit(), await submit()];
  const variants: Record<string, object> = {
    "another action": { votes: [approval(other, "checked")] },
    "the opposite vote": { votes: [{ ...approval(id, "checked"), approve: false }] },
    "another reason": { votes: [approval(id, "changed")] },
    "no reason": { votes: [approval(id)] },
    "one more action": { votes: [approval(id, "checked"), approval(other)] },
  };
  for (const [what, change] of Object.entries(variants)) {
    const signed = await signature(grace, [approval(id, "checked")]);
    const { body } = await grace.call("POST", "/v1/votes", { ...signed, ...change });
    assert.equal(body.code, "VOTE_SIGNATURE_INVALID", what);
  }
  const signed = await signature(grace, [approval(id, "checked")]);
  assert.equal((await grace.call("POST", "/v1/votes", signed)).status, 200);
  const replayed = await grace.call("POST", "/v1/votes", signed);
  assert.equal(replayed.body.code, "VOTE_SIGNATURE_INVALID");
  assert.match(replayed.body.detail, /used before/);
  assert.equal(await statusOf(other), "pending_approval");
});

test("an assertion with a different origin, relying party or type, from an unverified or absent user, or from a frame is rejected", async () => {
  const id = await submit();
  const changes: Record<string, object> = {
    "another port": { origin: ORIGIN.replace("8000", "9999") },
    "a name below": { origin: ORIGIN.replace("//", "//x.") },
    "another name of this machine": { origin: "http://localhost:8000" },
    "another scheme": { origin: ORIGIN.replace("http:", "https:") },
    "a site that looks alike": { origin: "http://assent.localhost.evil.example:8000" },
    "another relying party": { rpId: "evil.example" },
    "a registration's type": { type: "webauthn.create" },
    "a user who was not verified": { flags: 0x01 },
    "a user who was not present": { flags: 0x04 },
    "another challenge": { challenge: Buffer.alloc(32).toString("base64url") },
  };
  for (const [what, change] of Object.entries(changes)) {
    const { body } = await signVotes(grace, [approval(id)], change);
    assert.equal(body.code, "VOTE_SIGNATURE_INVALID", what);
  }
  assert.equal(await statusOf(id), "pending_approval");
});

test("another user's passkey, another user's challenge and an expired one are refused", async () => {
  const id = await submit();
  const eve = await invite(service, { name: "Eve", roles: ["approver"] });
  const { body } = await grace.call("POST", "/v1/votes/challenge", { votes: [approval(id)] });
  const { nonce } = body;
  const votes = [approval(id)];
  const borrowed = await grace.call("POST", "/v1/votes", { nonce, votes, response: eve.passkey.get(body.options) });
  assert.match(borrowed.body.detail, /not yours/);
  const stolen = await eve.call("POST", "/v1/votes", { nonce, votes, response: eve.passkey.get(body.options) });
  assert.equal(stolen.body.code, "VOTE_SIGNATURE_INVALID");
  const signed = await signature(grace, votes);
  service.clock.now += 11 * 60_000;
  const late = await grace.call("POST", "/v1/votes", signed);
  assert.match(late.body.detail, /expired/);
  assert.equal(await statusOf(id), "pending_approval");
});

test("a copied authenticator is rejected, and the rejection is recorded", async () => {
  const id = await submit();
  const mallory = await invite(service, { name: "Mallory", roles: ["approver"] });
  assert.equal((await signVotes(mallory, [approval(await submit())])).status, 200);
  // A copy that was made before that vote.
  mallory.passkey.counter = 1;
  const { body } = await signVotes(mallory, [approval(id)]);
  assert.equal(body.code, "VOTE_SIGNATURE_INVALID");
  assert.match(body.detail, /counter did not increase/);
  assert.equal(await statusOf(id), "pending_approval");
});

test("a list with a repeated or invisible action gets no challenge", async () => {
  const id = await submit();
  const twice = await grace.call("POST", "/v1/votes/challenge", { votes: [approval(id), approval(id)] });
  assert.equal(twice.status, 422);
  const unknown = await grace.call("POST", "/v1/votes/challenge", {
    votes: [approval("01900000-0000-7000-8000-000000000000")],
  });
  assert.equal(unknown.body.code, "ACTION_NOT_FOUND");
});

test("the audit finds every alteration of a signed vote", async () => {
  const id = await submit();
  const eve = await invite(service, { name: "Eve", roles: ["approver"] });
  await signVotes(grace, [approval(id, "checked")]);
  const { size } = await service.storage.head();
  const bodies = (await service.storage.entries(0, size)).map(
    ({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)) as Record<string, any>,
  );
  const origin = service.runtime.host.ledger.origin;
  const vote = bodies.findLast(({ type }) => type === "approval") ?? assert.fail("there is no vote");
  const users = bodies.filter(({ type }) => type === "user");
  const fold = (entries: Record<string, any>[], log = origin): void => auditUsers(entries, log);
  fold([...users, vote]);
  const { gesture, by } = vote;
  const flipped = Buffer.from(gesture.signature, "base64url");
  flipped[20] = (flipped[20] as number) ^ 1;
  const forged: Record<string, object> = {
    "another reason": { comment: "changed" },
    "no reason": { comment: null },
    "another request": { commitment: "0".repeat(64) },
    "another action": { action_id: "01900000-0000-7000-8000-000000000000" },
    "the opposite vote": { verdict: "deny" },
    "another user": { by: { ...by, principal: `user:${eve.id}` } },
    "another user's passkey": { gesture: { ...gesture, credential_id: eve.passkey.id } },
    "an API key": { by: { ...by, principal: person("bob") } },
    "another decision": { gesture: { ...gesture, decision: "0".repeat(64) } },
    "another signature": { gesture: { ...gesture, signature: flipped.toString("base64url") } },
    "another preview": { gesture: { ...gesture, preview: "0".repeat(64) } },
    "a grant": { grant: { id: "g", count: 1, ends_on_failure: false, for_ms: 1000, scope: null, sum: null } },
    "another list": { gesture: { ...gesture, votes: [...gesture.votes, "0".repeat(64)] } },
  };
  for (const [what, change] of Object.entries(forged))
    assert.throws(() => fold([...users, { ...vote, ...change }]), RangeError, what);
  assert.throws(() => fold([...users, vote], "another.log"), /something else/);
  const ofGrace = users.filter(({ user }) => user.id === grace.id);
  const enrolment = ofGrace.findIndex(({ change }) => change === "passkey_added");
  assert.throws(() => fold([...ofGrace.slice(0, enrolment), vote, ...ofGrace.slice(enrolment)]), /did not have/);
  const last = ofGrace.at(-1) ?? assert.fail("there is no user");
  const removal = {
    ...last,
    change: "passkey_removed",
    confirmed_by: grace.passkey.id,
    user: { ...last["user"], passkeys: [] },
  };
  assert.throws(() => fold([...ofGrace, removal, vote]), /did not have/);
});

test("the audit rejects a vote that was signed on a page of another origin", async () => {
  const id = await submit();
  const votes = [approval(id, "checked")];
  const { body } = await grace.call("POST", "/v1/votes/challenge", { votes });
  const response = grace.passkey.get(body.options);
  assert.equal((await grace.call("POST", "/v1/votes", { nonce: body.nonce, votes, response })).status, 200);
  const bodies = (await service.storage.entries(0, (await service.storage.head()).size)).map(
    ({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)) as Record<string, any>,
  );
  const vote = bodies.findLast(({ type }) => type === "approval") ?? assert.fail("there is no vote");
  const fold = (gesture: object): void => {
    const users = bodies.filter(({ type }) => type === "user");
    auditUsers([...users, { ...vote, gesture }], service.runtime.host.ledger.origin);
  };
  fold(vote["gesture"]);
  const name = new URL(ORIGIN).hostname;
  for (const origin of [
    "http://localhost:3000",
    `http://${name}:3000`,
    `http://${name}`,
    `https://${name}`,
    `http://x.${name}:8000`,
  ]) {
    const { response: forged } = grace.passkey.get(body.options, { origin }) as any;
    const gesture = {
      ...vote["gesture"],
      client_data_json: forged.clientDataJSON,
      authenticator_data: forged.authenticatorData,
      signature: forged.signature,
    };
    assert.throws(() => fold(gesture), new RegExp(`it comes from another origin: ${origin}$`), origin);
  }
});

test("the preview is signed, and a changed policy with another preview needs another signature", async () => {
  const policy = (preview: string): object => ({
    policy: "question",
    rules: [{ name: "asked", tool: "asked", effect: "require_approval", approval: { signature: "passkey", preview } }],
  });
  const admin = { key: service.admin };
  const created = await service.call("POST", "/v1/policies?activate=true", {
    ...admin,
    body: policy("Delete {params.table}"),
  });
  assert.equal(created.status, 201, JSON.stringify(created.body));
  const asked = async (): Promise<string> => {
    const body = { agent_id: "bot", tool: "asked", operation: "x", params: { table: "old", n: Math.random() } };
    return (await service.call("POST", "/v1/actions", { key: agent, body })).body.id as string;
  };
  const id = await asked();
  const signed = await signature(grace, [approval(id)]);
  assert.equal((await grace.call("POST", "/v1/votes", signed)).status, 200);
  const { body: events } = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
  const row = (await service.storage.action(id)) ?? assert.fail("there is no action");
  const preview = sha256Hex(utf8('Delete "old"'));
  assert.equal(events.events[1].entry.gesture.preview, commitDigest(row.salt, preview));

  const other = await asked();
  const stale = await signature(grace, [approval(other)]);
  const changed = await service.call("PUT", `/v1/policies/${created.body.id}?activate=true`, {
    ...admin,
    body: policy("Read {params.table}"),
    headers: { "if-match": created.headers.get("etag") ?? "" },
  });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  const { body } = await grace.call("POST", "/v1/votes", stale);
  assert.equal(body.code, "VOTE_SIGNATURE_INVALID", JSON.stringify(body));
  assert.equal(await statusOf(other), "pending_approval");
});
