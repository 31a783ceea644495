/** The comparison of a pending action with earlier actions of its agent, as approvers see it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApprovalMessage } from "../../../src/contract/notifier.ts";
import { needs } from "../../support/features.ts";
import { voteByLink } from "../../support/link-vote.ts";
import { testNotifier } from "../../support/notifier.ts";
import { startService, person } from "../../support/service.ts";

const POLICY = `policy: pay
rules:
  - { name: small, when: params.amount <= 100, effect: allow }
  - { name: large, effect: require_approval, approval: { notify: [finance] } }
`;

async function start() {
  const pigeon = testNotifier();
  const service = await startService({
    policy: POLICY,
    plugins: [pigeon.plugin],
    change: (config) =>
      (config.channels = { finance: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }] } }),
  });
  const submit = async (params: object, agent_id = "payer"): Promise<string> =>
    (await service.call("POST", "/v1/actions", { body: { agent_id, tool: "bank", operation: "pay", params } })).body
      .id as string;
  return { pigeon, service, submit };
}

test("an approver, and the page of a link, see what is unusual, what differs, and earlier votes", async () => {
  const { pigeon, service, submit } = await start();
  try {
    for (let i = 0; i < 6; i++) await submit({ amount: 10 + i, to: "cus_1" });
    await submit({ amount: 1, to: "cus_2" }, "another");
    const earlier = await submit({ amount: 500, to: "cus_1" });
    const first = (await pigeon.next((one) => one.kind === "approval_requested")) as ApprovalMessage;
    const token = new URL(first.link).hash.slice(1);
    assert.equal((await voteByLink(service, token, false, "too much")).status, 200);
    const id = await submit({ amount: 900, to: "cus_2" });
    const read = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
    const expected = {
      compared_with: 7,
      unusual: [
        '"params.amount" 900 is above 500, the 99th percentile of 7 earlier values.',
        '"params.to" "cus_2" is new among 7 earlier values.',
      ],
      differs_from: {
        action_id: earlier,
        members: [
          { pointer: "/params/amount", before: 500, after: 900 },
          { pointer: "/params/to", before: "cus_1", after: "cus_2" },
        ],
      },
    };
    const pick = ({ compared_with, unusual, differs_from }: typeof expected) => ({
      compared_with,
      unusual,
      differs_from,
    });
    assert.deepEqual(pick(read), expected);
    const [{ created_at, ...known }] = read.earlier_votes;
    assert.ok(Date.parse(created_at) > 0);
    assert.deepEqual(known, { action_id: earlier, approver: person("anna"), approve: false, reason: "too much" });
    assert.equal(read.earlier_votes.length, 1);
    const second = (await pigeon.next(
      (one) => one.kind === "approval_requested" && (one as ApprovalMessage).action.id === id,
    )) as ApprovalMessage;
    const linked = await service.call("POST", "/v1/approval-link", {
      body: { token: new URL(second.link).hash.slice(1) },
    });
    assert.deepEqual(pick(linked.body.action), expected);
    // Lists, the response to a submission, and records that the submitter reads do not contain the comparison.
    const body = { agent_id: "payer", tool: "bank", operation: "pay", params: { amount: 901, to: "cus_2" } };
    const submitted = (await service.call("POST", "/v1/actions", { key: service.admin, body })).body;
    assert.ok(submitted.approval_terms);
    assert.equal(submitted.unusual, undefined);
    assert.equal((await service.call("GET", `/v1/actions/${id}`)).body.unusual, undefined);
    const { actions } = (await service.call("GET", "/v1/approvals", { key: service.admin })).body;
    assert.equal(actions[0].unusual, undefined);
  } finally {
    await service.close();
  }
});

test("erased values are neither compared nor displayed", needs("retention"), async () => {
  const { service, submit } = await start();
  try {
    const erased = await submit({ amount: 10, to: "secret" });
    const body = { reason: "asked to" };
    assert.equal(
      (await service.call("POST", `/v1/actions/${erased}/cancel`, { key: service.admin, body })).status,
      200,
    );
    assert.equal((await service.call("POST", `/v1/actions/${erased}/erase`, { key: service.admin, body })).status, 200);
    const id = await submit({ amount: 900, to: "cus_2" });
    const read = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
    assert.deepEqual([read.compared_with, read.differs_from], [0, null]);
    assert.doesNotMatch(JSON.stringify(read), /secret/);
  } finally {
    await service.close();
  }
});

test("a request is compared with at most the newest 300 actions of its agent", async () => {
  const { service, submit } = await start();
  try {
    for (let i = 0; i < 10; i++) await submit({ amount: 90, to: `cus_${i}` });
    await Promise.all(Array.from({ length: 300 }, (_, i) => submit({ amount: 5, to: `cus_${i}` })));
    const id = await submit({ amount: 900 });
    const read = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
    assert.equal(read.compared_with, 300);
    assert.deepEqual(read.unusual, ['"params.amount" 900 is above 5, the 99th percentile of 300 earlier values.']);
  } finally {
    await service.close();
  }
});
