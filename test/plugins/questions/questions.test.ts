/**
 * Questions that an approver asks the agent about a pending action: who may ask and answer, their limits, and the record.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { auditStore } from "../../../src/testing/index.ts";
import { needs } from "../../support/features.ts";
import { addUser, invite, startPeople, type Person } from "../../support/people.ts";
import { makeKey, plainVotes, type Answer, type Service, person } from "../../support/service.ts";
import { signature } from "../../support/signed-votes.ts";

const POLICY = `
policy: ask
rules:
  - { name: ask, tool: x, effect: require_approval, approval: { quorum: 2 } }
`;
/** A text that hides a character and tries to add a line. */
const HOSTILE = "fine\u202e\nApprovals: 2 of 2";

let service: Service;
let agent: string;
let approver: string;
let grace: Person;
before(async () => {
  service = await startPeople({ policy: POLICY, change: plainVotes });
  for (const name of ["ada", "bob", "eve"]) await addUser(service, { name });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  approver = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
  grace = await invite(service, { name: "Grace", roles: ["approver"] });
});
after(() => service.close());

const post = (path: string, key: string, body: object): Promise<Answer> => service.call("POST", path, { key, body });
const read = async (id: string, key = approver): Promise<any> =>
  (await service.call("GET", `/v1/actions/${id}`, { key })).body;
const submit = async (): Promise<string> => {
  const body = { agent_id: "bot", tool: "x", operation: "y", params: { n: Math.random() } };
  return (await post("/v1/actions", agent, body)).body.id as string;
};
const ask = (id: string, question: string, key = approver): Promise<Answer> =>
  post(`/v1/actions/${id}/questions`, key, { question });
const answer = (id: string, body: object, key = agent): Promise<Answer> => post(`/v1/actions/${id}/answers`, key, body);

test("a question reaches the agent, its answer the approvers, and the ledger has commitments to both", async () => {
  const id = await submit();
  assert.equal((await ask(id, "Which customer?")).status, 200);
  assert.equal((await ask(id, "Which customer?")).body.questions.length, 1, "repeating it changes nothing");
  const [question] = (await read(id, agent)).questions;
  assert.deepEqual(
    [question.number, question.asked_by, question.question, question.answer],
    [1, person("bob"), "Which customer?", null],
  );
  assert.equal((await answer(id, { answer: HOSTILE })).status, 200);
  assert.equal((await answer(id, { answer: HOSTILE })).status, 200, "repeating it changes nothing");
  assert.equal((await answer(id, { number: 1, answer: "another" })).body.code, "QUESTION_NOT_OPEN");
  assert.equal((await read(id)).questions[0].answer, HOSTILE);
  const { events } = (await service.call("GET", `/v1/actions/${id}/events`, { key: approver })).body;
  assert.deepEqual(events.map((event: any) => [event.type, event.entry.phase]).slice(1), [
    ["question", "ask"],
    ["question", "answer"],
  ]);
  assert.doesNotMatch(JSON.stringify(events), /Which customer|fine/);
});

test("only approvers ask, only the agent answers, and only while the action is pending", async () => {
  const id = await submit();
  assert.equal((await ask(id, "why?", agent)).status, 403);
  const admin = (
    await makeKey(service, {
      name: "own",
      owner: "ada",
      scopes: ["actions:submit", "approvals:decide", "actions:read"],
      agent_id: "bot",
    })
  ).key;
  assert.equal((await ask(id, "why?", admin)).body.code, "SELF_APPROVAL");
  await ask(id, "why?");
  const other = (
    await makeKey(service, { name: "other", owner: "eve", scopes: ["actions:submit", "actions:read"], agent_id: "eve" })
  ).key;
  assert.equal((await answer(id, { answer: "because" }, other)).body.code, "ACTION_NOT_FOUND");
  assert.equal((await answer(id, { answer: "because" }, service.admin)).body.code, "NOT_THE_SUBMITTER");
  assert.equal((await answer(id, { number: 2, answer: "because" })).body.code, "QUESTION_NOT_OPEN");
  await post(`/v1/actions/${id}/cancel`, agent, {});
  assert.equal((await answer(id, { answer: "because" })).body.code, "ACTION_NOT_PENDING");
  assert.equal((await ask(id, "and now?")).body.code, "ACTION_NOT_PENDING");
});

test("the number of questions and the length of their text are limited", async () => {
  const id = await submit();
  for (let n = 1; n <= 5; n++) assert.equal((await ask(id, `question ${n}`)).status, 200);
  assert.equal((await ask(id, "question 6")).body.code, "TOO_MANY_QUESTIONS");
  assert.equal((await ask(id, "x".repeat(1001))).body.code, "VALIDATION_FAILED");
  assert.equal((await answer(id, { answer: "x".repeat(2001) })).body.code, "VALIDATION_FAILED");
  assert.equal((await answer(id, { number: 5, answer: "x".repeat(2000) })).status, 200);
  assert.equal((await answer(id, { answer: "first" })).body.questions[0].answer, "first");
});

test("the person behind the agent cannot use up the questions of other approvers, however many keys they create", async () => {
  const id = await submit();
  const scopes = ["approvals:decide", "actions:read"];
  const own = await makeKey(service, { name: "adas own", owner: "ada", scopes });
  const shop = await makeKey(service, { name: "adas shop", owner: "ada", scopes });
  assert.equal((await ask(id, "one?", own.key)).status, 200);
  assert.equal((await ask(id, "two?", shop.key)).status, 200);
  for (const key of [own.key, shop.key]) assert.equal((await ask(id, "three?", key)).body.code, "TOO_MANY_QUESTIONS");
  for (const question of ["a?", "b?", "c?"]) assert.equal((await ask(id, question)).status, 200);
  assert.equal((await ask(id, "d?")).body.code, "TOO_MANY_QUESTIONS");
});

test("a vote counts only for the questions and answers that the approver was shown", async () => {
  const id = await submit();
  const before = (await read(id)).approval_token as string;
  const statement = await signature(grace, [{ action_id: id, approve: true }]);
  await ask(id, "why?");
  const asked = (await read(id)).approval_token as string;
  await answer(id, { answer: "because" });
  for (const token of [before, asked])
    assert.equal(
      (await post(`/v1/actions/${id}/approval`, approver, { token, approve: true })).body.code,
      "TOKEN_INVALID",
    );
  assert.equal((await grace.call("POST", "/v1/votes", statement)).body.code, "VOTE_SIGNATURE_INVALID");
  const { approval_token: token } = await read(id);
  assert.equal((await post(`/v1/actions/${id}/approval`, approver, { token, approve: true })).status, 200);
  const signed = await grace.call("POST", "/v1/votes", await signature(grace, [{ action_id: id, approve: true }]));
  assert.equal(signed.body.results[0].status, "approved");
  const { events } = (await service.call("GET", `/v1/actions/${id}/events`, { key: approver })).body;
  const votes = events.filter((event: any) => event.type === "approval");
  assert.match(votes[0].entry.questions, /^[0-9a-f]{64}$/);
  assert.equal(votes[0].entry.questions, votes[1].entry.questions);
});

test("an agent that waits receives a question immediately", async () => {
  const id = await submit();
  const waiting = service.call("GET", `/v1/actions/${id}?wait=600`, { key: agent });
  await ask(id, "why?");
  const { body } = await waiting;
  assert.deepEqual([body.status, body.questions.length], ["pending_approval", 1]);
});

test("an altered question stops the vote, and the audit reports it", async () => {
  const id = await submit();
  await ask(id, "why?");
  const { approval_token: token } = await read(id);
  const row = await service.storage.action(id);
  const alter = (questions: string | null): Promise<unknown> =>
    service.storage.write((tx) =>
      tx.updateAction(
        id,
        { status: "pending_approval" },
        { status: "pending_approval", questions, updated_at: row!.updated_at },
      ),
    );
  await alter(row!.questions!.replace("why?", "why not?"));
  assert.equal(
    (await post(`/v1/actions/${id}/approval`, approver, { token, approve: true })).body.code,
    "RECORD_ALTERED",
  );
  assert.match((await auditStore(service.storage)).faults.join(), /its questions and answers do not match/);
  await alter(row!.questions);
});

test("an erasure removes questions and answers, and the store still passes the audit", needs("retention"), async () => {
  const id = await submit();
  await ask(id, "why?");
  await answer(id, { answer: "because" });
  await post(`/v1/actions/${id}/cancel`, agent, {});
  await post(`/v1/actions/${id}/erase`, service.admin, { reason: "request" });
  assert.equal((await service.storage.action(id))?.questions, null);
  assert.deepEqual((await read(id)).questions, []);
});
