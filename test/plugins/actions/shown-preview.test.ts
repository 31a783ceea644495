/** Every vote records the preview that the approver was shown, and counts only for that one. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { digestShownQuestions } from "../../../plugins/actions/action-record.ts";
import { readVerifiedHistory } from "../../../plugins/actions/verify-record.ts";
import { questionsDigest } from "../../../src/domain/questions.ts";
import { decodeEntry, type ApprovalEntry } from "../../../src/domain/entries.ts";
import { makeToken } from "../../../src/domain/tokens.ts";
import { voteByLink } from "../../support/link-vote.ts";
import { testNotifier } from "../../support/notifier.ts";
import { makeKey, startService, type Answer, type Service, person } from "../../support/service.ts";

const policy = (preview: string | null): string => `policy: pay
rules:
  - name: pay
    tool: bank
    effect: require_approval
    approval: { quorum: 2, notify: [finance]${preview === null ? "" : `, preview: "${preview}"`} }
`;

let service: Service;
let approver: string;
before(async () => {
  service = await startService({
    plugins: [testNotifier().plugin],
    change(config) {
      config.approvals.trust_key_makers = true;
      config.channels = { finance: { notifier: "pigeon", people: [{ owner: person("dana"), to: "dana" }] } };
    },
  });
  approver = (await makeKey(service, { name: "ann", preset: "approver", owner: "ann" })).key;
});
after(() => service.close());

const call = (method: string, path: string, body?: object, key: string | null = service.admin): Promise<Answer> =>
  service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
const show = async (preview: string | null): Promise<void> => {
  const stored = await call("POST", "/v1/policies/import-yaml?activate=true", { yaml: policy(preview) });
  assert.equal(stored.status, 200, JSON.stringify(stored.body));
};
const submit = async (amount: number): Promise<string> =>
  (
    await call(
      "POST",
      "/v1/actions",
      { agent_id: "bot", tool: "bank", operation: "pay", params: { amount } },
      service.agent,
    )
  ).body.id as string;
const tokenOf = async (id: string): Promise<string> =>
  (await call("GET", `/v1/actions/${id}`, undefined, approver)).body.approval_token as string;
const vote = (id: string, token: string): Promise<Answer> =>
  call("POST", `/v1/actions/${id}/approval`, { token, approve: true }, approver);
async function linkOf(id: string): Promise<string> {
  const row = await service.storage.action(id);
  assert.ok(row !== null);
  const { request_hash, expires_at } = row;
  const claims = { action_id: id, request_hash, approver: person("dana"), expires_at: expires_at ?? 0 };
  return makeToken("link", claims, (message) => service.runtime.host.vault.mac("approval-link", message));
}
async function recordedPreviews(id: string): Promise<(string | null)[]> {
  const entries = await service.storage.entriesOfAction(id);
  return entries
    .filter(({ type }) => type === "approval")
    .map(({ bytes }) => decodeEntry<ApprovalEntry>(bytes).preview);
}
/** The commitment as docs/record.md defines it. */
async function commitmentTo(id: string, text: string): Promise<string> {
  const row = await service.storage.action(id);
  const inner = createHash("sha256").update(text).digest();
  return createHash("sha256")
    .update(Buffer.concat([Buffer.from(row?.salt ?? "", "hex"), inner]))
    .digest("hex");
}

test("votes by key and by link record the preview that was shown", async () => {
  await show("Pay {params.amount}");
  const id = await submit(5);
  assert.equal((await vote(id, await tokenOf(id))).status, 200);
  const token = await linkOf(id);
  const voted = await voteByLink(service, token, true);
  assert.equal(voted.body.action.status, "approved", JSON.stringify(voted.body));
  const commitment = await commitmentTo(id, "Pay 5");
  assert.deepEqual(await recordedPreviews(id), [commitment, commitment]);
});

test("a vote on an outdated preview is rejected, and a vote by link that does not contain the digest of the preview is rejected, too", async () => {
  await show("Pay {params.amount}");
  const id = await submit(6);
  const [token, link] = [await tokenOf(id), await linkOf(id)];
  const { shown } = (await call("POST", "/v1/approval-link", { token: link }, null)).body;
  await show("Give away {params.amount}");
  assert.equal((await vote(id, token)).body.code, "TOKEN_INVALID");
  const byLink = (more: object): Promise<Answer> =>
    call("POST", "/v1/approval-link/verdict", { token: link, approve: true, ...more }, null);
  assert.equal((await byLink({ shown })).body.code, "TOKEN_INVALID");
  for (const missing of [{}, { shown: null }]) assert.equal((await byLink(missing)).body.code, "VALIDATION_FAILED");
  assert.deepEqual(await recordedPreviews(id), [], "nothing is recorded");
  assert.equal((await voteByLink(service, link, true)).status, 200);
  assert.deepEqual(await recordedPreviews(id), [await commitmentTo(id, "Give away 6")]);
});

test("a vote by link counts only for the questions and answers that its page showed", needs("questions"), async () => {
  const id = await submit(8);
  const token = await linkOf(id);
  const { shown } = (await call("POST", "/v1/approval-link", { token }, null)).body;
  assert.equal((await call("POST", `/v1/actions/${id}/questions`, { question: "Why?" }, approver)).status, 200);
  const stale = await call("POST", "/v1/approval-link/verdict", { token, shown, approve: false }, null);
  assert.equal(stale.body.code, "TOKEN_INVALID");
  assert.equal((await voteByLink(service, token, false)).body.action.status, "denied");
});

test(
  "a page whose row was read before a question, and its history after, names no question",
  needs("questions"),
  async () => {
    const { storage } = service;
    const id = await submit(9);
    const before = (await storage.action(id)) ?? assert.fail();
    assert.equal((await call("POST", `/v1/actions/${id}/questions`, { question: "Why?" }, approver)).status, 200);
    const after = (await storage.action(id)) ?? assert.fail();
    const history = (await readVerifiedHistory(storage, after)) ?? assert.fail();
    assert.equal(digestShownQuestions(before, history), null);
    assert.equal(digestShownQuestions(after, history), questionsDigest(history.questions));
  },
);

test("without a preview none is recorded", async () => {
  await show(null);
  const id = await submit(7);
  assert.equal((await vote(id, await tokenOf(id))).status, 200);
  const token = await linkOf(id);
  const voted = await voteByLink(service, token, true);
  assert.equal(voted.status, 200, JSON.stringify(voted.body));
  assert.deepEqual(await recordedPreviews(id), [null, null]);
});
