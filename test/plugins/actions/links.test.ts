/** Callers without a key: what a link token permits, and how much it costs the service to reject one. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { makeToken } from "../../../src/domain/tokens.ts";
import { withFaults } from "../../../src/testing/faults.ts";
import { deliveryRow } from "../../../src/testing/suite/rows.ts";
import { needs } from "../../support/features.ts";
import { UNKNOWN_DIGEST, voteByLink } from "../../support/link-vote.ts";
import { testNotifier } from "../../support/notifier.ts";
import { ASKED, waitForSignature, startService, person } from "../../support/service.ts";

test("a request without a valid link token never reaches the lock that decisions need", async () => {
  let calls: (operation: string) => number = () => 0;
  const service = await startService({
    storage(folder) {
      const storage = withFaults(sqliteStorage({ path: join(folder, "assent.db") }));
      calls = (operation) => storage.faults.calls(operation);
      return storage;
    },
  });
  try {
    const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body as { id: string };
    const row = await service.storage.action(id);
    assert.ok(row !== null);
    const claims = {
      action_id: id,
      request_hash: row.request_hash,
      approver: person("anna"),
      expires_at: row.expires_at ?? 0,
    };
    const real = makeToken("link", claims, (message) => service.runtime.host.vault.mac("approval-link", message));
    const wrongKey = makeToken("link", claims, (message) => service.runtime.host.vault.mac("approval", message));
    await waitForSignature(service);
    const before = calls("begin");
    for (const [token, code] of [
      ["apl1_x", "TOKEN_MALFORMED"],
      [wrongKey, "TOKEN_INVALID"],
      [real, "TOKEN_INVALID"],
    ]) {
      const { status, body } = await service.call("POST", "/v1/approval-link/verdict", {
        key: null,
        body: { token, shown: UNKNOWN_DIGEST, approve: true },
      });
      // The last token is valid, but its person is in no channel.
      assert.deepEqual([status, body.code], [403, code]);
    }
    assert.equal(calls("begin"), before);
    // An invented id does not reveal whether an action exists.
    const unknown = "01a1fed6-2db8-7270-860c-9c48ddd9e990";
    const told = new Set<string>();
    for (const action_id of [id, unknown]) {
      const token = makeToken("link", { ...claims, action_id }, () => new Uint8Array(32));
      for (const [path, body] of [
        ["/v1/approval-link/verdict", { token, shown: UNKNOWN_DIGEST, approve: true }],
        ["/v1/approval-link", { token }],
      ] as const) {
        const { status, body: refusal } = await service.call("POST", path, { key: null, body });
        told.add(`${status} ${refusal.code} ${refusal.detail}`);
      }
    }
    assert.equal(told.size, 1, [...told].join("\n"));
  } finally {
    await service.close();
  }
});

test("calls without a key are rate-limited by address, with or without a link", async () => {
  const service = await startService({
    change: (config) => (config.rate_limits.per_address = { requests: 3, seconds: 60 }),
  });
  try {
    const codes: string[] = [];
    for (let i = 0; i < 3; i++)
      codes.push((await service.call("POST", "/v1/approval-link", { key: null, body: { token: "apl1_x" } })).body.code);
    const body = { token: "apl1_x", shown: UNKNOWN_DIGEST, approve: true };
    codes.push((await service.call("POST", "/v1/approval-link/verdict", { key: null, body })).body.code);
    assert.deepEqual(codes, ["TOKEN_MALFORMED", "TOKEN_MALFORMED", "TOKEN_MALFORMED", "RATE_LIMITED"]);
    assert.equal(
      (await service.call("POST", "/v1/actions", { body: ASKED })).status,
      202,
      "whoever has a key is not concerned",
    );
  } finally {
    await service.close();
  }
});

test(
  "a key that is bound to an agent sees no delivery, whatever its scopes; a retry lasts three more days",
  needs("deliveries"),
  async () => {
    // The message belongs to no entry, which an audit would report.
    const service = await startService({ broken: true });
    try {
      await service.storage.write((tx) => {
        const { position: _, ...row } = deliveryRow(1, { state: "dead" });
        return tx.insertDelivery(row);
      });
      const make = async (more: object): Promise<string> => {
        const { status, body } = await service.call("POST", "/v1/api-keys", {
          key: service.admin,
          body: { scopes: ["deliveries:read", "deliveries:retry"], ...more },
        });
        assert.equal(status, 201, JSON.stringify(body));
        return body.key as string;
      };
      const [bound, free] = [await make({ name: "bound", agent_id: "bot" }), await make({ name: "free" })];
      for (const [method, path] of [
        ["GET", "/v1/deliveries"],
        ["GET", "/v1/deliveries/delivery-1"],
        ["POST", "/v1/deliveries/delivery-1/retry"],
      ] as const) {
        const { status, body } = await service.call(method, path, { key: bound });
        assert.deepEqual([status, body.code], [403, "INSUFFICIENT_SCOPE"], path);
        assert.match(body.detail, /is bound to an agent/);
      }
      const before = Date.now();
      const { status, body } = await service.call("POST", "/v1/deliveries/delivery-1/retry", { key: free });
      assert.deepEqual([status, body.state], [200, "waiting"], JSON.stringify(body));
      assert.ok(Date.parse(body.give_up_at) >= before + 3 * 86_400_000);
    } finally {
      await service.close();
    }
  },
);

test("a link cannot break the glass, and works for every approver in the current policies, even for actions that were allowed or approved before", async () => {
  const notifier = testNotifier();
  const service = await startService({
    policy: `policy: open
rules:
  - { name: go, operation: go, effect: allow }
  - { name: ask, operation: ask, effect: require_approval, approval: { notify: [first] } }
`,
    plugins: [notifier.plugin],
    change: (config) => {
      const people = (name: string) => ({ notifier: "pigeon", people: [{ owner: person(name), to: name }] });
      config.channels = { first: people("ada"), auditors: people("ben"), others: people("cleo") };
    },
  });
  try {
    const linkTo = async (id: string, owner: string): Promise<string> => {
      const asked = await notifier.next(
        (message) => message.kind === "approval_requested" && message.action.id === id && message.to === owner,
      );
      return "link" in asked ? (asked.link.split("#")[1] as string) : "";
    };
    const verdict = async (token: string) => {
      const answer = await voteByLink(service, token, true);
      return [answer.status, answer.body.code ?? answer.body.action.status];
    };
    const ids: string[] = [];
    for (const operation of ["go", "ask"]) {
      const { body } = await service.call("POST", "/v1/actions", { body: { agent_id: "b", tool: "t", operation } });
      ids.push(body.id as string);
    }
    const [allowed, asked] = ids as [string, string];
    const first = await linkTo(asked, "ada");
    const alone = { token: first, approve: true, reason: "the shop is down", break_glass: true };
    const glass = await service.call("POST", "/v1/approval-link/verdict", { key: null, body: alone });
    assert.deepEqual([glass.status, glass.body.code], [422, "VALIDATION_FAILED"]);
    assert.deepEqual(await verdict(first), [200, "approved"]);
    const yaml = `policy: audit
rules:
  - { name: audit, effect: require_approval, approval: { quorum: 2, notify: [auditors] } }
`;
    const made = await service.call("POST", "/v1/policies/import-yaml?activate=true", {
      key: service.admin,
      body: { yaml },
    });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    for (const id of ids)
      assert.equal((await service.call("POST", `/v1/actions/${id}/permit`, { body: {} })).status, 202);
    assert.deepEqual(await verdict(await linkTo(allowed, "ben")), [200, "pending_approval"]);
    assert.deepEqual(await verdict(first), [403, "TOKEN_INVALID"], "the link from before was for less");
    assert.deepEqual(await verdict(await linkTo(asked, "ben")), [200, "approved"]);
    // No one asked cleo for approval.
    const row = await service.storage.action(allowed);
    const claims = {
      action_id: allowed,
      request_hash: row?.request_hash ?? "",
      approver: person("cleo"),
      expires_at: row?.expires_at ?? 0,
    };
    const token = makeToken("link", claims, (message) => service.runtime.host.vault.mac("approval-link", message));
    assert.deepEqual(await verdict(token), [403, "TOKEN_INVALID"]);
  } finally {
    await service.close();
  }
});
