/** The parameters that the policy names come first wherever a pending action is displayed, and in notifications. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { needs } from "../../support/features.ts";
import type { ApprovalMessage } from "../../../src/contract/notifier.ts";
import { listMessageFacts } from "../../../src/messages/approval-message-text.ts";
import { testNotifier } from "../../support/notifier.ts";
import { approve, makeKey, startService, person } from "../../support/service.ts";

const POLICY = `policy: pay
rules:
  - { name: small, when: params.amount <= 100, effect: allow }
  - { name: large, effect: require_approval, approval: { preview: "Pay {params.amount} to {params.to}", show: [params.destination], notify: [finance] } }
`;
const FIRST = ["/params/destination", "/params/amount", "/params/to"];
const PREVIEW = "Pay 500 to (not given)";

test(
  "a pending action lists the parameters to display first, in every response and in messages",
  needs("questions"),
  async () => {
    const pigeon = testNotifier();
    const service = await startService({
      policy: POLICY,
      plugins: [pigeon.plugin],
      change: (config) =>
        (config.channels = { finance: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }] } }),
    });
    try {
      const submit = async (amount: number): Promise<Record<string, unknown>> =>
        (
          await service.call("POST", "/v1/actions", {
            body: { agent_id: "b", tool: "t", operation: "o", params: { amount } },
          })
        ).body;
      const submitted = await submit(500);
      const [id, small] = [submitted.id as string, (await submit(5)).id];
      const key = service.admin;
      const ask = { key, body: { question: "Why?" } };
      const [asked, read, waited] = [
        (await service.call("POST", `/v1/actions/${id}/questions`, ask)).body,
        (await service.call("GET", `/v1/actions/${id}`, { key })).body,
        (await service.call("GET", `/v1/actions/${id}?wait=1`, { key })).body,
      ];
      // The token is bound to the preview, so a response with one also has the other.
      for (const withToken of [asked, read, waited]) assert.ok(withToken.approval_token);
      for (const shown of [
        submitted,
        asked,
        read,
        waited,
        (await service.call("GET", "/v1/approvals", { key })).body.actions[0],
      ])
        assert.deepEqual([shown.preview, shown.shown_first], [PREVIEW, FIRST]);
      const { actions } = (await service.call("GET", "/v1/actions", { key })).body;
      assert.deepEqual(
        actions.map((action: { id: string; shown_first?: string[] }) => [action.id, action.shown_first]),
        [
          [small, ["/params/amount"]],
          [id, FIRST],
        ],
      );
      const { link, action } = (await pigeon.next((one) => one.kind === "approval_requested")) as ApprovalMessage;
      assert.deepEqual([action.preview, action.shown_first], [PREVIEW, FIRST]);
      assert.deepEqual(listMessageFacts(action)[0], ["Request", PREVIEW]);
      const linked = await service.call("POST", "/v1/approval-link", { body: { token: new URL(link).hash.slice(1) } });
      assert.deepEqual([linked.body.action.preview, linked.body.action.shown_first], [PREVIEW, FIRST]);
    } finally {
      await service.close();
    }
  },
);

test("a settled action keeps its preview in lists, and does not take that of a newer version of the policy", async () => {
  const service = await startService({ policy: "policy: other\nrules: [{ name: r, tool: other, effect: deny }]\n" });
  const key = service.admin;
  const store = (text: string) =>
    service.call("POST", "/v1/policies/import-yaml?activate=true", { key, body: { yaml: text } });
  const listed = async (): Promise<unknown[]> =>
    (await service.call("GET", "/v1/actions", { key })).body.actions.map(({ preview, shown_first }: any) => [
      preview,
      shown_first,
    ]);
  try {
    await store(POLICY.replace(", notify: [finance]", ""));
    const body = { agent_id: "b", tool: "t", operation: "o", params: { amount: 500 } };
    await approve(service, (await service.call("POST", "/v1/actions", { body })).body.id);
    assert.deepEqual(await listed(), [[PREVIEW, FIRST]]);
    await store(POLICY.replace(", notify: [finance]", "").replace("Pay {", "Refund {"));
    assert.deepEqual(await listed(), [[undefined, undefined]]);
  } finally {
    await service.close();
  }
});

test(
  "an action that a grant allowed keeps its sentence under a newer version of the policy",
  needs("grants"),
  async () => {
    const service = await startService({ policy: "policy: other\nrules: [{ name: r, tool: other, effect: deny }]\n" });
    const key = service.admin;
    const store = (verb: string) =>
      service.call("POST", "/v1/policies/import-yaml?activate=true", {
        key,
        body: {
          yaml: `policy: deploys
rules: [{ name: r, tool: ci, effect: require_approval, approval: { preview: "${verb} {params.app}", grants: { for: 8h, count: 5 } } }]
`,
        },
      });
    try {
      await store("Deploy");
      const alice = await makeKey(service, { name: "alice", preset: "approver", owner: "Alice" });
      const terms = { agent_id: "bot", tool: "ci", operation: "deploy", for: "1h", count: 5 };
      assert.equal((await service.call("POST", "/v1/grants", { key: alice.key, body: terms })).status, 201);
      const body = { agent_id: "bot", tool: "ci", operation: "deploy", params: { app: "web" } };
      const { id, status } = (await service.call("POST", "/v1/actions", { body })).body;
      assert.equal(status, "allowed");
      await store("Release");
      assert.equal((await service.call("GET", `/v1/actions/${id}`, { key })).body.preview, 'Deploy "web"');
    } finally {
      await service.close();
    }
  },
);
