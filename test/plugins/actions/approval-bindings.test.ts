/** Votes and starts are bound to the credential, to one action and to one request. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { cancelAction, castVoteOnAction } from "../../../plugins/actions/cast-vote.ts";
import { startAction } from "../../../plugins/actions/execute.ts";
import { Refusal } from "../../../src/contract/errors.ts";
import type { Credential } from "../../../src/contract/host.ts";
import { canonicalText } from "../../../src/domain/canonical.ts";
import { makeToken } from "../../../src/domain/tokens.ts";
import {
  plainVotes,
  ALLOWED,
  ASKED,
  ASKED_TWO,
  startService,
  type Answer,
  type Service,
  makeKey as makeKeyOn,
  person,
} from "../../support/service.ts";

let service: Service;
before(async () => {
  service = await startService({ change: plainVotes });
});
after(() => service.close());

let counter = 0;
function makeKey(body: object): ReturnType<typeof makeKeyOn> {
  counter += 1;
  return makeKeyOn(service, { name: `key ${counter}`, owner: `owner ${counter}`, ...body });
}

const submit = async (action: object, key = service.agent) =>
  (await service.call("POST", "/v1/actions", { key, body: action, headers: { prefer: "permit" } })).body;
const look = (id: string, key = service.admin): Promise<Answer> => service.call("GET", `/v1/actions/${id}`, { key });
const post = (id: string, verb: string, key: string, body: object): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/${verb}`, { key, body });
const lastEntry = async (id: string) =>
  (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body.events.at(-1).entry;

describe("a vote", () => {
  test("the credential identifies the approver: the body cannot name one, and the entry names the key, its owner and the comment", async () => {
    const approver = await makeKey({ preset: "approver", owner: "ada" });
    const { id } = await submit(ASKED);
    const token = (await look(id, approver.key)).body.approval_token as string;
    for (const claim of [
      { approver: person("bob") },
      { by: person("bob") },
      { principal: person("bob") },
      { key_id: service.admin },
    ]) {
      const refused = await post(id, "approval", approver.key, { token, approve: true, ...claim });
      assert.deepEqual([refused.status, refused.body.code], [422, "VALIDATION_FAILED"]);
    }
    const done = await post(id, "approval", approver.key, { token, approve: false, reason: "not this customer" });
    assert.deepEqual([done.body.status, done.body.decision], ["denied", "require_approval"]);
    const entry = await lastEntry(id);
    assert.deepEqual(entry.by, { key_id: approver.id, principal: person("ada"), agent_id: null, owner: person("ada") });
    assert.deepEqual([entry.verdict, entry.comment, entry.self_approval], ["deny", "not this customer", false]);
  });

  test("a key without actions:read cannot vote and learns of no action", async () => {
    const blind = await makeKey({ scopes: ["approvals:decide", "actions:submit"] });
    const { id } = await submit(ASKED);
    const token = (await look(id)).body.approval_token as string;
    assert.equal((await post(id, "approval", blind.key, { token, approve: true })).body.code, "ACTION_NOT_FOUND");
    assert.equal((await post(id, "cancel", blind.key, {})).body.code, "ACTION_NOT_FOUND");
  });

  test("a vote is rejected if its key is revoked between the arrival of the request and the ledger's lock", async () => {
    const approver = await makeKey({ preset: "approver" });
    const executor = await makeKey({ scopes: ["actions:execute", "actions:read", "actions:submit"] });
    const { id } = await submit(ASKED);
    const mine = await submit(ASKED, executor.key);
    const allowed = await submit(ALLOWED);
    const token = (await look(id, approver.key)).body.approval_token as string;
    const { host } = service.runtime;
    const arrived = (await host.keys.authenticate(approver.key)) as Credential;
    const arrivedExecutor = (await host.keys.authenticate(executor.key)) as Credential;
    for (const key of [approver, executor])
      assert.equal((await service.call("DELETE", `/v1/api-keys/${key.id}`, { key: service.admin })).status, 200);
    const gone = (error: unknown) => error instanceof Refusal && error.code === "INVALID_CREDENTIAL";
    await assert.rejects(
      castVoteOnAction(host, { credential: arrived, id, proof: { token } }, { approve: true }),
      gone,
    );
    await assert.rejects(cancelAction(host, arrivedExecutor, mine.id as string, null), gone);
    await assert.rejects(
      startAction(
        host,
        arrivedExecutor,
        allowed.id as string,
        { permit: allowed.permit as string },
        { factHost: () => host, releaseQueueSlot: () => undefined },
      ),
      gone,
    );
    for (const [action, status] of [
      [id, "pending_approval"],
      // The revocation also cancelled the key's own actions.
      [mine.id, "cancelled"],
      [allowed.id, "allowed"],
    ]) {
      assert.equal((await look(action as string)).body.status, status);
    }
  });

  test("a vote is rejected if its key expires between the arrival of the request and the ledger's lock", async () => {
    const approver = await makeKey({ preset: "approver", expires_at: new Date(Date.now() + 3_600_000).toISOString() });
    const { id } = await submit(ASKED);
    const token = (await look(id, approver.key)).body.approval_token as string;
    const arrived = (await service.runtime.host.keys.authenticate(approver.key)) as Credential;
    service.clock.now += 3_600_001;
    try {
      await assert.rejects(
        castVoteOnAction(service.runtime.host, { credential: arrived, id, proof: { token } }, { approve: true }),
        (error) => error instanceof Refusal && error.code === "INVALID_CREDENTIAL",
      );
    } finally {
      service.clock.now = 0;
    }
    assert.equal((await look(id)).body.status, "pending_approval");
  });

  test("an approval token is valid only for the request hash of its own action", async () => {
    const { id } = await submit(ASKED);
    const shown = (await look(id)).body;
    const key = (await service.runtime.host.keys.authenticate(service.admin)) as Credential;
    const mac = (message: Uint8Array) => service.runtime.host.vault.mac("approval", message);
    const claims = {
      action_id: id as string,
      request_hash: shown.request_hash as string,
      approver: key.principal,
      expires_at: Date.parse(shown.expires_at as string),
    };
    assert.equal(shown.approval_token, makeToken("approval", claims, mac));
    const elsewhere = makeToken("approval", claims, (message) => service.runtime.host.vault.mac("cursor", message));
    assert.equal(
      (await post(id, "approval", service.admin, { token: elsewhere, approve: true })).body.code,
      "TOKEN_INVALID",
      "a MAC for another purpose",
    );
    const list = await service.call("GET", "/v1/actions?status=pending_approval", { key: service.admin });
    assert.ok(list.body.actions.length > 0 && !JSON.stringify(list.body).includes("apt1_"));
  });

  test("concurrent approval, rejection and withdrawal have one outcome", async () => {
    const [yes, no] = [await makeKey({ preset: "approver" }), await makeKey({ preset: "approver" })];
    for (let round = 0; round < 6; round++) {
      const { id } = await submit(ASKED);
      const [forYes, forNo] = [
        (await look(id, yes.key)).body.approval_token,
        (await look(id, no.key)).body.approval_token,
      ];
      const racers = [
        () => post(id, "approval", yes.key, { token: forYes, approve: true }),
        () => post(id, "approval", no.key, { token: forNo, approve: false }),
        () => post(id, "cancel", service.agent, {}),
      ];
      const first = racers.splice(round % 3, 1);
      const answers = await Promise.all([...first, ...racers].map((send) => send()));
      assert.deepEqual(answers.map(({ status, body }) => (status === 200 ? "done" : (body.code as string))).sort(), [
        "ACTION_NOT_PENDING",
        "ACTION_NOT_PENDING",
        "done",
      ]);
      const { events } = (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body;
      assert.deepEqual(
        events.map((event: { type: string }) => event.type),
        ["decision", "approval"],
      );
      assert.equal((await look(id)).body.status, answers.find(({ status }) => status === 200)?.body.status);
    }
  });

  test("a vote stays valid when its key is revoked later, and cancelling the action withdraws it", async () => {
    const [leaving, staying] = [await makeKey({ preset: "approver" }), await makeKey({ preset: "approver" })];
    const vote = async (id: string, key: string) =>
      post(id, "approval", key, { token: (await look(id, key)).body.approval_token, approve: true });
    const [kept, dropped] = [(await submit(ASKED_TWO)).id as string, (await submit(ASKED_TWO)).id as string];
    for (const id of [kept, dropped]) assert.equal((await vote(id, leaving.key)).body.status, "pending_approval");
    assert.equal((await service.call("DELETE", `/v1/api-keys/${leaving.id}`, { key: service.admin })).status, 200);
    assert.equal((await post(dropped, "cancel", service.admin, {})).body.status, "cancelled");
    const done = await vote(kept, staying.key);
    assert.deepEqual(
      [done.body.status, done.body.approvals.map((a: { key_id: string }) => a.key_id)],
      ["approved", [leaving.id, staying.id]],
    );
  });

  test("an admin can also withdraw an approval, and is recorded as that admin", async () => {
    const { id } = await submit(ASKED);
    assert.equal((await post(id, "cancel", service.admin, { reason: "shift ended" })).body.status, "cancelled");
    const entry = await lastEntry(id);
    const admin = (await service.runtime.host.keys.authenticate(service.admin)) as Credential;
    assert.deepEqual([entry.verdict, entry.by.key_id, entry.comment], ["cancelled", admin.key.id, "shift ended"]);
  });
});

describe("a permit", () => {
  const payloadOf = (permit: string) =>
    JSON.parse(Buffer.from(permit.split(".")[1] as string, "base64url").toString()) as Record<string, unknown>;

  test("a permit names the action, the request and the decision, and has its own id", async () => {
    const made = await submit(ALLOWED);
    const { sub, jti, action_digest, request_hash, decision_hash, agent_id, aud, operation } = payloadOf(
      made.permit as string,
    );
    assert.deepEqual(
      [sub, request_hash, decision_hash, agent_id, aud, operation],
      [made.id, made.request_hash, made.decision_hash, made.agent_id, made.tool, made.operation],
    );
    const { agent_id: agent, operation: what, params, tool } = ALLOWED;
    const text = canonicalText({ agent_id: agent, operation: what, params, tool });
    assert.equal(action_digest, createHash("sha256").update(text).digest("hex"));
    assert.notEqual(payloadOf((await post(made.id as string, "permit", service.agent, {})).body.permit).jti, jti);
  });

  test("a permit is neither valid nor displayed after the result", async () => {
    const { id, permit } = await submit(ALLOWED);
    const started = await post(id, "start", service.agent, { permit });
    assert.deepEqual([started.body.status, started.body.permit], ["executing", null]);
    const entry = await lastEntry(id);
    assert.equal(
      entry.permit,
      createHash("sha256")
        .update(permit as string)
        .digest("hex"),
      "the entry tells which permit was used",
    );
    assert.deepEqual(
      [entry.phase, entry.by.key_id, entry.by.principal],
      ["start", started.body.submitted_by, `key:${started.body.submitted_by}`],
    );
    assert.equal((await post(id, "start", service.agent, { permit })).body.code, "ACTION_NOT_STARTABLE");
    assert.equal((await post(id, "result", service.agent, { success: true })).body.status, "succeeded");
    assert.equal((await post(id, "start", service.agent, { permit })).body.code, "ACTION_NOT_STARTABLE");
    assert.deepEqual([(await look(id)).body.status, (await look(id)).body.permit], ["succeeded", null]);
  });

  test("a permit is useless to a key of another agent, and hidden from keys that cannot execute", async () => {
    const bound = await makeKey({ scopes: ["actions:execute"], agent_id: "billing-bot" });
    const auditor = await makeKey({ preset: "auditor" });
    const { id, permit } = await submit(ALLOWED);
    assert.equal((await post(id, "start", bound.key, { permit })).body.code, "ACTION_NOT_FOUND");
    assert.equal((await look(id, auditor.key)).body.permit, null);
    assert.equal((await post(id, "start", service.agent, { permit })).status, 200);
    assert.equal((await post(id, "result", bound.key, { success: true })).body.code, "ACTION_NOT_FOUND");
  });
});

describe("a binding", () => {
  test("a binding applies to gate/decide, and to keys that a bound key creates", async () => {
    const bound = await makeKey({
      scopes: ["actions:submit", "approvals:decide", "actions:read", "keys:manage"],
      agent_id: "billing-bot",
    });
    const gate = await service.call("POST", "/v1/gate/decide", { key: bound.key, body: ALLOWED });
    assert.deepEqual([gate.status, gate.body.code], [403, "AGENT_MISMATCH"]);
    for (const agent_id of [undefined, null, "support-bot", "Billing-bot"]) {
      const refused = await service.call("POST", "/v1/api-keys", {
        key: bound.key,
        body: { name: "way out", scopes: ["approvals:decide", "actions:read"], agent_id },
      });
      assert.deepEqual([refused.status, refused.body.code], [403, "SCOPE_ESCALATION"], String(agent_id));
    }
  });
});
