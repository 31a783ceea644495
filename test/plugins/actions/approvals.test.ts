import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
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
  addPerson,
} from "../../support/service.ts";

let service: Service;
before(async () => {
  // Keys that create keys are tested in voting-capacity.test.ts.
  service = await startService({ change: plainVotes });
});
after(() => service.close());

const makeKey = (body: { name: string; [field: string]: unknown }): ReturnType<typeof makeKeyOn> =>
  makeKeyOn(service, { owner: body.name, ...body });

async function pending(action: object = ASKED, key = service.agent): Promise<string> {
  const answer = await service.call("POST", "/v1/actions", { key, body: action });
  assert.equal(answer.status, 202);
  return answer.body.id as string;
}

async function tokenOf(id: string, key: string): Promise<string | undefined> {
  return (await service.call("GET", `/v1/actions/${id}`, { key })).body.approval_token as string | undefined;
}

function vote(id: string, key: string, token: string | undefined, approve = true, more: object = {}): Promise<Answer> {
  return service.call("POST", `/v1/actions/${id}/approval`, { key, body: { token, approve, ...more } });
}

/** Counts entries without those of the background task, which can expire another action at any time. */
async function countEntries(id: string): Promise<number> {
  const rows = await service.storage.entries(0, (await service.storage.head()).size);
  return rows.filter(
    ({ action_id, bytes }) => action_id === id || !new TextDecoder().decode(bytes).includes('"expired"'),
  ).length;
}

async function assertUnchanged(id: string, work: () => Promise<Answer>, status: number, code: string): Promise<void> {
  const before = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
  const count = await countEntries(id);
  const answer = await work();
  assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(answer.body));
  const afterwards = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
  assert.deepEqual(afterwards.body, before.body, "a refused verdict must change nothing");
  assert.equal(await countEntries(id), count, "a refused verdict must record nothing");
}

describe("who sees a token", () => {
  test("the submitting key never receives an approval token, in any response", async () => {
    const submitted = await service.call("POST", "/v1/actions", { body: ASKED });
    const id = submitted.body.id as string;
    const seen = [
      submitted,
      await service.call("GET", `/v1/actions/${id}`),
      await service.call("GET", `/v1/actions`),
      await service.call("GET", `/v1/actions/${id}/events`),
    ];
    const token = await tokenOf(id, service.admin);
    assert.ok(token?.startsWith("apt1_"));
    for (const { body } of seen) {
      assert.ok(!JSON.stringify(body).includes("apt1_"), "an answer to the submitter holds a token");
    }
    const events = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
    assert.ok(!JSON.stringify(events.body).includes("apt1_"), "the ledger holds a token");
    assert.ok(!service.logged.join("\n").includes("apt1_"), "the log holds a token");
  });

  test("a key that can approve receives no token for its own submission, and cannot use another key's token", async () => {
    const both = await makeKey({ name: "both", scopes: ["actions:submit", "actions:read", "approvals:decide"] });
    const id = await pending(ASKED, both.key);
    assert.equal(await tokenOf(id, both.key), undefined);
    await assertUnchanged(id, async () => vote(id, both.key, await tokenOf(id, service.admin)), 403, "SELF_APPROVAL");
  });

  test("a key of the submitter's owner, and a key bound to the acting agent, count as the submitter", async () => {
    const submitter = await makeKey({ name: "ada-submits", preset: "agent", owner: "ada" });
    const sister = await makeKey({ name: "ada-approves", preset: "approver", owner: "ada" });
    const id = await pending(ASKED, submitter.key);
    assert.equal(await tokenOf(id, sister.key), undefined);
    await assertUnchanged(id, async () => vote(id, sister.key, await tokenOf(id, service.admin)), 403, "SELF_APPROVAL");
    const bound = await makeKey({
      name: "bound",
      scopes: ["approvals:decide", "actions:read"],
      agent_id: "support-bot",
    });
    const other = await pending();
    assert.equal(await tokenOf(other, bound.key), undefined);
    await assertUnchanged(
      other,
      async () => vote(other, bound.key, await tokenOf(other, service.admin)),
      403,
      "SELF_APPROVAL",
    );
  });

  test("a key without approvals:decide receives no token and cannot vote", async () => {
    const auditor = await makeKey({ name: "auditor", preset: "auditor" });
    const id = await pending();
    assert.equal(await tokenOf(id, auditor.key), undefined);
    await assertUnchanged(
      id,
      async () => vote(id, auditor.key, await tokenOf(id, service.admin)),
      403,
      "INSUFFICIENT_SCOPE",
    );
  });
});

describe("invalid tokens", () => {
  test("tokens that are malformed, altered, of another action or of another approver each have their own error and change nothing", async () => {
    const approver = await makeKey({ name: "approver-1", preset: "approver" });
    const id = await pending();
    const token = (await tokenOf(id, service.admin)) as string;
    for (const wrong of [
      "x",
      "apt1_",
      "apt1_.",
      `${token}.x`,
      token.slice(5),
      "apt1_AAAA.AAAA",
      `apt1_${"A".repeat(3000)}`,
    ]) {
      await assertUnchanged(id, () => vote(id, service.admin, wrong), 403, "TOKEN_MALFORMED");
    }
    const [payload, mac] = token.slice(5).split(".") as [string, string];
    for (const odd of [`["${id}","\\ud800",1]`, `["${id}","user:ada",1e400]`]) {
      await assertUnchanged(
        id,
        () => vote(id, service.admin, `apt1_${Buffer.from(odd).toString("base64url")}.${mac}`),
        403,
        "TOKEN_MALFORMED",
      );
    }
    const flipped = `apt1_${payload}.${mac.slice(0, -2)}${mac.at(-2) === "A" ? "B" : "A"}${mac.at(-1)}`;
    await assertUnchanged(id, () => vote(id, service.admin, flipped), 403, "TOKEN_INVALID");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as [string, string, number];
    const longer = Buffer.from(JSON.stringify([claims[0], claims[1], claims[2] + 3_600_000])).toString("base64url");
    await assertUnchanged(id, () => vote(id, service.admin, `apt1_${longer}.${mac}`), 403, "TOKEN_INVALID");
    const elsewhere = await tokenOf(await pending(), service.admin);
    await assertUnchanged(id, () => vote(id, service.admin, elsewhere), 403, "TOKEN_OTHER_ACTION");
    await assertUnchanged(
      id,
      async () => vote(id, service.admin, await tokenOf(id, approver.key)),
      403,
      "TOKEN_OTHER_APPROVER",
    );
    assert.equal((await vote(id, service.admin, token)).body.status, "approved", "the right token still works");
  });

  test("a used token is rejected", async () => {
    const id = await pending(ASKED_TWO);
    const token = await tokenOf(id, service.admin);
    assert.equal((await vote(id, service.admin, token)).body.status, "pending_approval");
    await assertUnchanged(id, () => vote(id, service.admin, token), 409, "ALREADY_VOTED");
    await assertUnchanged(id, () => vote(id, service.admin, token, false), 409, "ALREADY_VOTED");
  });

  test("an expired token is rejected, even before the sweep has marked the action", async () => {
    const id = await pending();
    const token = await tokenOf(id, service.admin);
    service.clock.now += 9 * 3_600_000;
    const late = await vote(id, service.admin, token);
    assert.deepEqual([late.status, late.body.code], [410, "APPROVAL_EXPIRED"]);
    const row = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
    assert.equal(row.body.status, "expired");
    assert.equal(row.body.decision, "require_approval", "a timeout is not a denial");
    assert.equal(row.body.approval_token, undefined);
    await assertUnchanged(id, () => vote(id, service.admin, token), 410, "APPROVAL_EXPIRED");
    const events = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
    const last = events.body.events.at(-1).entry;
    assert.deepEqual([last.verdict, last.by, last.status], ["expired", null, "expired"]);
  });

  test("a late vote marks the action expired, and setting the clock back does not reopen it", async () => {
    const late: Record<string, (id: string, token: string | undefined) => Promise<Answer>> = {
      approve: (id, token) => vote(id, service.admin, token),
      deny: (id, token) => vote(id, service.admin, token, false),
      cancel: (id) => service.call("POST", `/v1/actions/${id}/cancel`, { body: {} }),
    };
    for (const [name, send] of Object.entries(late)) {
      const id = await pending();
      const token = await tokenOf(id, service.admin);
      const before = service.clock.now;
      service.clock.now += 9 * 3_600_000;
      try {
        assert.equal((await send(id, token)).body.code, "APPROVAL_EXPIRED", name);
        assert.equal(
          (await service.storage.action(id))?.status,
          "expired",
          `${name}: the answer is recorded before it is given`,
        );
        service.clock.now = before;
        await assertUnchanged(id, () => vote(id, service.admin, token), 410, "APPROVAL_EXPIRED");
      } finally {
        // The ledger still works.
        service.clock.now = before + 9 * 3_600_000;
      }
    }
  });

  test("a token is rejected after another approver has decided the action", async () => {
    const approver = await makeKey({ name: "approver-2", preset: "approver" });
    const id = await pending();
    const mine = await tokenOf(id, approver.key);
    assert.equal((await vote(id, service.admin, await tokenOf(id, service.admin))).body.status, "approved");
    await assertUnchanged(id, () => vote(id, approver.key, mine), 409, "ACTION_NOT_PENDING");
  });

  test("a key that is revoked after it read its token cannot vote", async () => {
    const approver = await makeKey({ name: "approver-3", preset: "approver" });
    const id = await pending();
    const token = await tokenOf(id, approver.key);
    assert.equal((await service.call("DELETE", `/v1/api-keys/${approver.id}`, { key: service.admin })).status, 200);
    await assertUnchanged(id, () => vote(id, approver.key, token), 401, "INVALID_CREDENTIAL");
  });
});

describe("quorum", () => {
  test("a quorum counts distinct people, however many keys they have", async () => {
    const first = await makeKey({ name: "grace-1", preset: "approver", owner: "grace" });
    const second = await makeKey({ name: "grace-2", preset: "approver", owner: "grace" });
    const id = await pending(ASKED_TWO);
    const token = await tokenOf(id, second.key);
    assert.equal((await vote(id, first.key, await tokenOf(id, first.key))).body.status, "pending_approval");
    await assertUnchanged(id, () => vote(id, second.key, token), 409, "ALREADY_VOTED");
    assert.equal(await tokenOf(id, second.key), undefined);
    const done = await vote(id, service.admin, await tokenOf(id, service.admin), true, {
      reason: "checked with the customer",
    });
    assert.equal(done.body.status, "approved");
    assert.deepEqual(done.body.approvals.map((a: { approver: string }) => a.approver)[0], person("grace"));
    assert.equal(done.body.approvals[1].reason, "checked with the customer");
  });

  test("people with the same name are different people", async () => {
    const twins = ["grace-3", "grace-4"];
    const keys: string[] = [];
    for (const name of twins) {
      await addPerson(service, name, { name: "Grace Hopper" });
      keys.push((await makeKey({ name, preset: "approver" })).key);
    }
    const id = await pending(ASKED_TWO);
    const [first, second] = keys as [string, string];
    assert.equal((await vote(id, first, await tokenOf(id, first))).body.status, "pending_approval");
    const done = await vote(id, second, await tokenOf(id, second));
    assert.equal(done.body.status, "approved");
    assert.deepEqual(
      done.body.approvals.map((a: { approver: string }) => a.approver),
      twins.map(person),
    );
  });

  test("one rejection ends the request", async () => {
    const approver = await makeKey({ name: "approver-4", preset: "approver" });
    const id = await pending(ASKED_TWO);
    const mine = await tokenOf(id, approver.key);
    assert.equal(
      (await vote(id, service.admin, await tokenOf(id, service.admin), false, { reason: "no" })).body.status,
      "denied",
    );
    await assertUnchanged(id, () => vote(id, approver.key, mine), 409, "ACTION_NOT_PENDING");
  });

  test("concurrent votes are counted one by one", async () => {
    const keys = [service.admin];
    for (let i = 0; i < 5; i++) keys.push((await makeKey({ name: `racer-${i}`, preset: "approver" })).key);
    const id = await pending(ASKED_TWO);
    const tokens = await Promise.all(keys.map((key) => tokenOf(id, key)));
    const answers = await Promise.all(keys.map((key, i) => vote(id, key, tokens[i])));
    assert.equal(answers.filter(({ status }) => status === 200).length, 2);
    assert.equal(answers.filter(({ body }) => body.code === "ACTION_NOT_PENDING").length, 4);
    assert.equal(answers.filter(({ body }) => body.status === "approved").length, 1);
  });
});

describe("permits and execution", () => {
  test("a permit starts its own action once, and only the starter reports the result", async () => {
    const tool = await makeKey({ name: "tool", scopes: ["actions:execute"] });
    const headers = { prefer: "permit" };
    const one = (await service.call("POST", "/v1/actions", { body: ALLOWED, headers })).body;
    const two = (await service.call("POST", "/v1/actions", { body: ALLOWED, headers })).body;
    const start = (id: string, permit: string, key: string) =>
      service.call("POST", `/v1/actions/${id}/start`, { key, body: { permit } });
    const result = (id: string, key: string) =>
      service.call("POST", `/v1/actions/${id}/result`, {
        key,
        body: { success: false, error: "card declined", meta: { code: 402 } },
      });
    assert.equal((await result(one.id, service.agent)).body.code, "ACTION_NOT_STARTED");
    assert.equal((await start(one.id, two.permit, service.agent)).body.code, "PERMIT_INVALID");
    assert.equal(
      (await start(one.id, two.permit, tool.key)).body.code,
      "ACTION_NOT_FOUND",
      "a wrong permit must not tell a tool that the action exists",
    );
    assert.equal((await start(one.id, `${one.permit.slice(0, -4)}AAAA`, service.agent)).body.code, "PERMIT_INVALID");
    const racing = await Promise.all([start(one.id, one.permit, tool.key), start(one.id, one.permit, service.agent)]);
    assert.deepEqual(racing.map(({ status }) => status).sort(), [200, 409]);
    const winner = racing[0]?.status === 200 ? tool.key : service.agent;
    const loser = winner === tool.key ? service.agent : tool.key;
    assert.ok(["NOT_THE_EXECUTOR", "ACTION_NOT_FOUND"].includes((await result(one.id, loser)).body.code));
    const reported = await result(one.id, winner);
    assert.equal(reported.body.status, "failed");
    assert.deepEqual(reported.body.result, { success: false, error: "card declined", meta: { code: 402 } });
    assert.equal((await result(one.id, winner)).body.code, "ACTION_NOT_STARTED");
  });

  test("an action starts only within its time limit, and a pending action has no permit", async () => {
    const headers = { prefer: "permit" };
    const allowed = (await service.call("POST", "/v1/actions", { body: ALLOWED, headers })).body;
    service.clock.now += 301_000;
    const late = await service.call("POST", `/v1/actions/${allowed.id}/start`, { body: { permit: allowed.permit } });
    assert.deepEqual([late.status, late.body.code], [410, "START_EXPIRED"]);
    assert.equal((await service.call("GET", `/v1/actions/${allowed.id}`)).body.permit, null);
    const id = await pending();
    const waiting = await service.call("GET", `/v1/actions/${id}`);
    assert.equal(waiting.body.permit, null);
    const forced = await service.call("POST", `/v1/actions/${id}/start`, { body: { permit: allowed.permit } });
    assert.equal(forced.body.code, "ACTION_NOT_STARTABLE");
  });

  test("the submitter cancels a pending action, and other keys cannot", async () => {
    const stranger = await makeKey({ name: "stranger", scopes: ["actions:submit", "actions:read"] });
    const id = await pending();
    assert.equal(
      (await service.call("POST", `/v1/actions/${id}/cancel`, { key: stranger.key, body: {} })).body.code,
      "NOT_THE_SUBMITTER",
    );
    assert.equal(
      (await service.call("POST", `/v1/actions/${id}/cancel`, { body: { reason: "customer withdrew" } })).body.status,
      "cancelled",
    );
    assert.equal((await service.call("POST", `/v1/actions/${id}/cancel`, { raw: "" })).body.code, "ACTION_NOT_PENDING");
  });
});

test("a response never shows a vote together with the status from before that vote", async () => {
  let beforeVotes: (() => Promise<void>) | null = null;
  const racing = await startService({
    change: (config) => (config.approvals.trust_key_makers = true),
    storage(folder) {
      const storage = sqliteStorage({ path: join(folder, "assent.db") });
      return {
        ...storage,
        async approvals(id) {
          const between = beforeVotes;
          beforeVotes = null;
          await between?.();
          return storage.approvals(id);
        },
      };
    },
  });
  try {
    const { id } = (await racing.call("POST", "/v1/actions", { body: ASKED })).body;
    const token = (await racing.call("GET", `/v1/actions/${id}`, { key: racing.admin })).body.approval_token;
    let status = 0;
    beforeVotes = async () => {
      const answer = await racing.call("POST", `/v1/actions/${id}/approval`, {
        key: racing.admin,
        body: { token, approve: true },
      });
      status = answer.status;
    };
    const { body } = await racing.call("GET", `/v1/actions/${id}`, { key: racing.admin });
    assert.equal(status, 200);
    assert.deepEqual([body.status, body.approvals.length, body.approvals_needed], ["approved", 1, 1]);
  } finally {
    await racing.close();
  }
});
