/** Approvals and permits have separate lifetimes: a permit is issued on request, for a new decision. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import {
  person,
  plainVotes,
  startService,
  type Answer,
  type Service,
  makeKey as makeKeyOn,
} from "../../support/service.ts";

const OPEN = `policy: open
rules:
  - { name: ask, operation: ask, effect: require_approval, approval: { expires_in: 2h, valid_for: 3h } }
  - { name: ask briefly, operation: brief, effect: require_approval, approval: { valid_for: 20s } }
  - { name: ask two, operation: two, effect: require_approval, approval: { quorum: 2 } }
  - { name: ask plainly, operation: plain, effect: require_approval }
  - { name: go, operation: go, effect: allow }
`;
const HOUR = 3_600_000;

let service: Service;
let agent: { id: string; key: string };
let approvers: string[];
let n = 0;
before(async () => {
  service = await startService({ policy: OPEN, change: plainVotes });
  approvers = await Promise.all(
    ["ada", "ben", "cleo"].map(async (owner) => (await makeKey({ name: owner, preset: "approver", owner })).key),
  );
});
after(() => service.close());

const makeKey = (body: object): ReturnType<typeof makeKeyOn> => makeKeyOn(service, body);

let bot = "";
beforeEach(async () => {
  service.clock.now = Math.max(service.clock.now, 0);
  bot = `bot-${++n}`;
  agent = await makeKey({ name: bot, preset: "agent" });
});

async function submit(operation: string, headers: Record<string, string> = {}, more: object = {}): Promise<Answer> {
  const body = { agent_id: bot, tool: "t", operation, ...more };
  return service.call("POST", "/v1/actions", { key: agent.key, body, headers });
}
async function vote(id: string, key = approvers[0] as string, approve = true): Promise<Answer> {
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key })).body;
  return service.call("POST", `/v1/actions/${id}/approval`, { key, body: { token, approve } });
}
async function approved(operation = "ask"): Promise<string> {
  const { id } = (await submit(operation)).body;
  assert.equal((await vote(id)).body.status, "approved");
  return id;
}
const post = (id: string, verb: string, body: object = {}, key = agent.key): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/${verb}`, { key, body });
const look = async (id: string): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
const entriesOf = async (id: string): Promise<Answer["body"][]> =>
  (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body.events.map(
    ({ entry, hash }: Answer["body"]) => ({ ...entry, hash }),
  );
const said = ({ status, body }: Answer): unknown[] => [status, body.code];
const claimsOf = (permit: string) =>
  JSON.parse(Buffer.from(permit.split(".")[1] as string, "base64url").toString()) as Record<string, unknown>;
const replayed = async (id: string): Promise<Answer["body"]> =>
  (await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: id } })).body;

/** Lets the agent continue. */
async function suspend(id: string): Promise<void> {
  const { agent_id } = await look(id);
  const key = service.admin;
  await service.call("POST", "/v1/agents", { key, body: { id: agent_id } });
  for (const [verb, body] of [["suspend", { reason: "drill" }], ["resume"]] as const)
    assert.equal((await service.call("POST", `/v1/agents/${agent_id}/${verb}`, { key, body })).status, 200);
}

async function withPolicy(yaml: string, work: () => Promise<void>): Promise<void> {
  const made = await service.call("POST", "/v1/policies/import-yaml?activate=true", {
    key: service.admin,
    body: { yaml },
  });
  assert.ok(made.status < 300, JSON.stringify(made.body));
  try {
    await work();
  } finally {
    const gone = await service.call("DELETE", `/v1/policies/${made.body.policies[0].id}`, { key: service.admin });
    assert.ok(gone.status < 300, JSON.stringify(gone.body));
  }
}
const MORE = (quorum: number, operation: string) =>
  `policy: more\nrules:\n  - { name: more, operation: ${operation}, effect: require_approval, reason: the auditors are here, approval: { quorum: ${quorum}, expires_in: 1h } }\n`;
const DENY = "policy: closed\nrules:\n  - { name: shut, effect: deny, reason: the shop is closed }\n";

describe("an approval", () => {
  test("an approval is valid as long as its policy says, and its agent comes back for a permit", async () => {
    const id = await approved();
    const { approved_until, updated_at, permit } = await look(id);
    assert.equal(Date.parse(approved_until) - Date.parse(updated_at), 3 * HOUR);
    assert.equal(permit, null, "nobody is shown a permit who does not ask for one");
    assert.equal((await submit("plain")).body.approved_until, null, "what waits has no time to start");
    service.clock.now += 2 * HOUR;
    const given = await post(id, "permit");
    assert.deepEqual([given.status, given.body.status], [200, "approved"]);
    const { iat, exp, sub, decision_hash } = claimsOf(given.body.permit);
    assert.deepEqual([sub, (exp as number) - (iat as number)], [id, 300]);
    assert.equal(Date.parse(given.body.permit_expires_at) / 1000, exp);
    const entry = (await entriesOf(id)).at(-1);
    assert.deepEqual(
      [entry.type, entry.v, entry.occasion, entry.status, entry.by.key_id, entry.hash],
      ["redecision", 1, "permit", "approved", agent.id, decision_hash],
    );
    assert.equal((await post(id, "start", { permit: given.body.permit })).body.status, "executing");
  });

  test("an approval without a configured time is valid for an hour, for permits and for starts", async () => {
    const id = await approved("plain");
    const { permit } = (await post(id, "permit")).body;
    const { approved_until, updated_at } = await look(id);
    assert.ok(Date.parse(approved_until) - Date.parse(updated_at) <= HOUR);
    service.clock.now += HOUR;
    for (const answer of [await post(id, "permit"), await post(id, "start"), await post(id, "start", { permit })])
      assert.deepEqual(said(answer), [410, "START_EXPIRED"]);
  });

  test("an unused approval expires, including in the ledger, and the action still counts", async () => {
    const text =
      "policy: two\nrules: []\nlimits:\n  - { name: two, operation: plain, per: agent, count: 2, window: 24h }\n";
    await withPolicy(text, async () => {
      const [id, started] = [await approved("plain"), await approved("plain")];
      assert.equal((await post(started, "start")).status, 200);
      service.clock.now += HOUR;
      await service.restart();
      const { status, approved_until } = await look(id);
      assert.deepEqual([status, (await look(started)).status], ["expired", "executing"]);
      const entry = (await entriesOf(id)).at(-1);
      assert.deepEqual(
        [entry.type, entry.v, entry.verdict, entry.by, entry.approved_until],
        ["approval", 1, "expired", null, approved_until],
      );
      for (const verb of ["permit", "start"]) assert.deepEqual(said(await post(id, verb)), [410, "START_EXPIRED"]);
      assert.equal((await submit("plain")).body.reason_code, "LIMIT_EXCEEDED", "a permit may have been used elsewhere");
    });
  });

  test("an approver withdraws an approval until the action starts or a permit exists, and no one else can", async () => {
    const withdraw = (id: string, at: number) => post(id, "withdraw", { reason: "wrong order" }, approvers[at]);
    const id = await approved();
    assert.deepEqual(said(await withdraw(id, 1)), [409, "APPROVAL_NOT_WITHDRAWN"]);
    assert.deepEqual(said(await post(id, "withdraw")), [403, "INSUFFICIENT_SCOPE"]);
    assert.equal((await withdraw(id, 0)).body.status, "cancelled");
    for (const verb of ["start", "permit"])
      assert.deepEqual(said(await post(id, verb)), [409, "ACTION_NOT_STARTABLE"], verb);
    const { verdict, by, comment } = (await entriesOf(id)).at(-1);
    assert.deepEqual([verdict, by.principal, comment], ["cancelled", person("ada"), "wrong order"]);
    assert.deepEqual(said(await withdraw(id, 0)), [409, "APPROVAL_NOT_WITHDRAWN"]);

    const permitted = await approved();
    assert.equal((await post(permitted, "permit")).status, 200);
    assert.deepEqual(said(await withdraw(permitted, 0)), [409, "APPROVAL_NOT_WITHDRAWN"]);
    assert.equal((await look(permitted)).status, "approved");
    const started = await approved();
    assert.equal((await post(started, "start")).status, 200);
    assert.deepEqual(said(await withdraw(started, 0)), [409, "APPROVAL_NOT_WITHDRAWN"]);
    // An approval that has not settled the request yet.
    const pending = (await submit("two")).body.id;
    assert.equal((await vote(pending)).body.status, "pending_approval");
    assert.equal((await withdraw(pending, 0)).body.status, "cancelled");
  });

  test("an admin cancels an approved action, and no one else can", async () => {
    const id = await approved();
    const { permit } = (await post(id, "permit")).body;
    assert.deepEqual(said(await post(id, "cancel")), [409, "ACTION_NOT_PENDING"]);
    assert.deepEqual(said(await post(id, "cancel", {}, approvers[1])), [403, "INSUFFICIENT_SCOPE"]);
    assert.equal((await post(id, "cancel", { reason: "not any more" }, service.admin)).body.status, "cancelled");
    for (const body of [{}, { permit }])
      assert.deepEqual(said(await post(id, "start", body)), [409, "ACTION_NOT_STARTABLE"]);
  });

  test("an approval with less time left than a permit issues permits that end with it", async () => {
    const id = await approved("brief");
    const { permit, approved_until } = (await post(id, "permit")).body;
    assert.equal(claimsOf(permit)["exp"], Math.floor(Date.parse(approved_until) / 1000));
  });
});

describe("a permit", () => {
  test("the response to a submission contains a permit if requested and startable, without an extra entry", async () => {
    const made = await submit("go", { prefer: "permit" });
    assert.equal(made.headers.get("preference-applied"), "permit");
    assert.equal(claimsOf(made.body.permit)["decision_hash"], made.body.decision_hash);
    assert.equal((await entriesOf(made.body.id)).length, 1);
    const plain = await submit("go");
    assert.deepEqual([plain.body.permit, plain.body.permit_expires_at], [null, null]);
    const waits = await submit("ask", { prefer: "permit" });
    assert.deepEqual(
      [waits.status, waits.body.permit, waits.headers.get("preference-applied")],
      [202, null, null],
      "what waits for approval gets none",
    );
    assert.equal((await post(made.body.id, "start", { permit: made.body.permit })).status, 200);
  });

  test("a repeated submission issues a new permit, for a new decision", async () => {
    const headers = { prefer: "permit", "idempotency-key": `again-${n}` };
    const first = (await submit("go", headers)).body;
    const second = (await submit("go", headers)).body;
    assert.equal(second.id, first.id);
    assert.notEqual(claimsOf(second.permit)["decision_hash"], first.decision_hash);
    await withPolicy(DENY, async () => {
      const third = await submit("go", headers);
      assert.deepEqual([third.status, third.body.status, third.body.permit], [200, "denied", null]);
    });
    assert.deepEqual(said(await post(first.id, "start", { permit: first.permit })), [409, "ACTION_NOT_STARTABLE"]);
  });

  test("an action starts once, however many permits there are and whoever has them", async () => {
    const id = await approved();
    const tool = await makeKey({ name: `${bot}-tool`, scopes: ["actions:execute"] });
    const permits = await Promise.all([1, 2, 3].map(async () => (await post(id, "permit")).body.permit as string));
    assert.equal(new Set(permits.map((permit) => claimsOf(permit)["jti"])).size, 3);
    const starts = await Promise.all([
      ...permits.map((permit) => post(id, "start", { permit }, tool.key)),
      ...permits.map((permit) => post(id, "start", { permit })),
      post(id, "start"),
    ]);
    assert.deepEqual(starts.map(({ status }) => status).sort(), [200, ...starts.slice(1).map(() => 409)]);
    assert.equal((await entriesOf(id)).filter(({ phase }) => phase === "start").length, 1);
    assert.deepEqual(said(await post(id, "permit")), [409, "ACTION_NOT_STARTABLE"]);
  });

  test(
    "a permit is issued to a key that sees the action and can execute it, within a limit",
    needs("replay"),
    async () => {
      const id = await approved();
      const reader = await makeKey({ name: `${bot}-reader`, scopes: ["actions:read"] });
      assert.deepEqual(said(await post(id, "permit", {}, reader.key)), [403, "INSUFFICIENT_SCOPE"]);
      const blind = await makeKey({ name: `${bot}-blind`, scopes: ["actions:execute"] });
      const other = await makeKey({ name: `${bot}-other`, preset: "agent", agent_id: "another" });
      for (const { key } of [blind, other])
        assert.deepEqual(said(await post(id, "permit", {}, key)), [404, "ACTION_NOT_FOUND"]);
      for (let i = 0; i < 100; i++) assert.equal((await post(id, "permit")).status, 200);
      assert.deepEqual(said(await post(id, "permit")), [409, "TOO_MANY_PERMITS"]);
      assert.equal((await post(id, "start")).status, 200);
      assert.equal((await replayed(id)).redecisions.length, 100);
    },
  );

  test("no further permit is issued once the decisions on the action have read too much past data", async () => {
    const id = await approved();
    assert.equal((await post(id, "permit")).status, 200);
    const { status, updated_at } = (await service.storage.action(id)) ?? assert.fail();
    const store = (past: string | null) =>
      service.storage.write((tx) => tx.updateAction(id, { status }, { status, updated_at, past }));
    await store("x".repeat(1_048_577));
    assert.deepEqual(said(await post(id, "permit")), [409, "TOO_MANY_PERMITS"]);
    await store(null);
    assert.equal((await post(id, "permit")).status, 200);
  });

  test("a caller other than the submitter needs a permit, and an altered one is rejected for the submitter too", async () => {
    const { id } = (await submit("go")).body;
    const { permit } = (await submit("go", { prefer: "permit" })).body;
    assert.deepEqual(said(await post(id, "start", {}, service.admin)), [403, "PERMIT_REQUIRED"]);
    assert.deepEqual(said(await post(id, "start", { permit })), [403, "PERMIT_INVALID"], "it is another action's");
    const key = agent.key;
    const headers = { "content-type": "application/json" };
    const started = await service.call("POST", `/v1/actions/${id}/start`, { key, raw: "", headers });
    assert.deepEqual([started.status, started.body.status], [200, "executing"], "an empty body is one without permit");
    const entry = (await entriesOf(id)).at(-1);
    assert.deepEqual([entry.v, entry.phase, entry.permit], [1, "start", null]);
  });
});

/** Returns the ids of the actions that approvers answered. */
async function answered(answer: string): Promise<string[]> {
  const { body } = await service.call("GET", `/v1/actions?limit=1000&answer=${answer}`, { key: service.admin });
  return body.actions.map((action: { id: string }) => action.id);
}

describe("current policies", () => {
  test("an action that the current policies deny gets no permit, and stays denied", needs("replay"), async () => {
    const [held, allowed] = [await approved(), (await submit("go", { prefer: "permit" })).body];
    await withPolicy(DENY, async () => {
      const refused = await post(held, "permit");
      assert.deepEqual(said(refused), [409, "NO_LONGER_ALLOWED"]);
      assert.match(refused.body.detail, /the shop is closed/);
      assert.deepEqual(said(await post(allowed.id, "start", { permit: allowed.permit })), [409, "NO_LONGER_ALLOWED"]);
    });
    for (const id of [held, allowed.id]) {
      const { status, reason_code, approved_until } = await look(id);
      assert.deepEqual([status, reason_code], ["denied", "NO_LONGER_ALLOWED"]);
      assert.ok(approved_until !== null);
      assert.deepEqual(said(await post(id, "start")), [409, "ACTION_NOT_STARTABLE"]);
      const answer = await replayed(id);
      assert.deepEqual([answer.equal, answer.redecisions.at(-1).recorded.decision.effect], [true, "deny"]);
    }
  });

  test(
    "if the current policies require more people, the action returns to the approvers with its votes, and earlier permits are invalid",
    needs("replay"),
    async () => {
      const id = await approved();
      const old = (await post(id, "permit")).body.permit as string;
      await withPolicy(MORE(2, "ask"), async () => {
        const back = await post(id, "permit");
        assert.deepEqual([back.status, back.body.status, back.body.permit], [202, "pending_approval", null]);
        assert.deepEqual([back.body.approvals_needed, back.body.approvals.length], [2, 1], "the vote stays");
        assert.deepEqual(
          [back.body.reason, back.body.reason_code, back.body.approved_until],
          ["the auditors are here", "MORE_APPROVALS_NEEDED", null],
        );
        assert.equal(Date.parse(back.body.expires_at) - Date.parse(back.body.updated_at), HOUR);
        assert.ok(!(await answered("any")).includes(id), "its answer is open again");
        const { effect, rule, approvals_needed, changed } = back.body.redecision;
        assert.deepEqual([effect, rule, approvals_needed], ["require_approval", "more", 2]);
        assert.deepEqual(changed.sort(), ["approvals_needed", "policy", "policy_hash", "reason", "rule"]);
        for (const body of [{}, { permit: old }])
          assert.deepEqual(said(await post(id, "start", body)), [409, "ACTION_NOT_STARTABLE"]);
        assert.deepEqual(said(await vote(id)), [422, "VALIDATION_FAILED"], "who has voted has no token any more");
        assert.equal((await vote(id, approvers[1])).body.status, "approved");
        assert.ok((await answered("approved")).includes(id) && !(await answered("rejected")).includes(id));
        assert.deepEqual(said(await post(id, "start", { permit: old })), [403, "PERMIT_INVALID"]);
        assert.equal((await post(id, "permit")).status, 200);
      });
      assert.equal((await post(id, "start")).body.status, "executing");
      const answer = await replayed(id);
      assert.equal(answer.equal, true);
      assert.deepEqual(
        answer.redecisions.map(({ occasion }: { occasion: string }) => occasion),
        ["permit", "permit", "permit"],
      );
    },
  );

  test("an action that was allowed returns to the approvers if the policies now require approval", async () => {
    const { id } = (await submit("go")).body;
    await withPolicy(MORE(1, "go"), async () => {
      assert.deepEqual(said(await post(id, "start")), [409, "MORE_APPROVALS_NEEDED"]);
      const { status, approvals_needed, decision } = await look(id);
      assert.deepEqual([status, approvals_needed, decision], ["pending_approval", 1, "allow"]);
      assert.equal((await vote(id)).body.status, "approved");
      assert.equal((await post(id, "start")).status, 200);
    });
    const kinds = (await entriesOf(id)).map(({ type, status }) => `${type} ${status}`);
    assert.deepEqual(kinds, [
      "decision allowed",
      "redecision pending_approval",
      "approval approved",
      "execution executing",
    ]);
  });

  test(
    "a vote that arrives before the permit counts toward a requirement for more people",
    needs("replay"),
    async () => {
      const { id } = (await submit("ask")).body;
      const before = (await look(id)).expires_at;
      await withPolicy(MORE(2, "ask"), async () => {
        const first = await vote(id);
        assert.deepEqual([first.status, first.body.status, first.body.approvals_needed], [200, "pending_approval", 2]);
        assert.equal(first.body.expires_at, before, "what waits keeps its time");
        const entry = (await entriesOf(id)).at(-1);
        assert.deepEqual([entry.verdict, entry.approvals, entry.quorum], ["approve", 1, 2]);
        assert.equal((await vote(id, approvers[1])).body.status, "approved");
      });
      assert.equal((await replayed(id)).equal, true);
    },
  );

  test("an approval is not withdrawn if the response to the submission could contain a permit", async () => {
    const { id, permit } = (await submit("go", { prefer: "permit" })).body;
    assert.equal(typeof permit, "string");
    await withPolicy(MORE(1, "go"), async () => {
      assert.deepEqual(said(await post(id, "start")), [409, "MORE_APPROVALS_NEEDED"]);
      assert.equal((await vote(id)).body.status, "approved");
      assert.deepEqual(said(await post(id, "withdraw", {}, approvers[0])), [409, "APPROVAL_NOT_WITHDRAWN"]);
      assert.equal((await look(id)).status, "approved");
    });
    const permitted = (await submit("go", { prefer: "permit" })).body;
    await withPolicy(MORE(2, "go"), async () => {
      assert.deepEqual(said(await post(permitted.id, "start")), [409, "MORE_APPROVALS_NEEDED"]);
      assert.equal((await vote(permitted.id)).body.status, "pending_approval");
      assert.deepEqual(said(await post(permitted.id, "withdraw", {}, approvers[0])), [409, "APPROVAL_NOT_WITHDRAWN"]);
    });
  });

  test("a requirement for fewer people does not undo anything", async () => {
    const { id } = (await submit("ask")).body;
    await withPolicy(MORE(3, "ask"), async () => {
      assert.equal((await vote(id)).body.approvals_needed, 3);
    });
    assert.equal((await vote(id, approvers[1])).body.status, "pending_approval", "three were asked for");
    assert.equal((await vote(id, approvers[2])).body.status, "approved");
  });

  test("limit usage is replayed with each decision, and an action counts once", needs("replay"), async () => {
    const limited = (count: number) =>
      `policy: budget\nrules: []\nlimits:\n  - { name: few, operation: go, per: agent, count: ${count}, window: 24h }\n`;
    let first = "";
    await withPolicy(limited(2), async () => {
      first = (await submit("go")).body.id;
      for (let i = 0; i < 5; i++) assert.equal((await post(first, "permit")).status, 200);
      assert.equal((await submit("go")).body.status, "allowed", "five permits are not five actions");
      assert.equal((await submit("go")).body.reason_code, "LIMIT_EXCEEDED");
      assert.equal((await post(first, "permit")).status, 200, "it keeps its place");
      const pasts = new Set((await entriesOf(first)).map(({ facts }) => facts.past));
      assert.equal(pasts.size, 1, "what was read once is committed to once");
    });
    const other = "policy: other\nrules: []\nlimits:\n  - { name: all, tool: t, per: agent, count: 9, window: 24h }\n";
    await withPolicy(other, async () => {
      assert.equal((await post(first, "permit")).status, 200);
      const row = await service.storage.action(first);
      assert.equal((JSON.parse(row?.past ?? "null") as unknown[]).length, 2, "what opens both is kept");
    });
    const { equal, redecisions } = await replayed(first);
    assert.equal(equal, true);
    assert.deepEqual(
      [redecisions.at(-1).limits[0].limit, redecisions.at(-1).limits[0].used, redecisions[0].limits[0].limit],
      ["all", 0, "few"],
    );
    const hash = redecisions.at(-1).hash as string;
    const alone = await service.call("POST", "/v1/replay", { key: service.admin, body: { hash } });
    assert.deepEqual([alone.status, alone.body.equal, alone.body.redecisions], [200, true, []]);
  });
});

describe("an action that was once allowed counts, because a permit may have been used elsewhere", () => {
  const ONE = "policy: one\nrules: []\nlimits:\n  - { name: one, tool: t, per: agent, count: 1, window: 24h }\n";
  const gone = async (id: string, how: () => Promise<unknown>): Promise<void> => {
    await how();
    assert.ok(["denied", "cancelled", "expired"].includes((await look(id)).status));
    assert.equal((await submit("go")).body.reason_code, "LIMIT_EXCEEDED");
  };
  const sentBack = async (id: string): Promise<void> => {
    const [operation] = [(await look(id)).operation];
    await withPolicy(MORE(2, operation), async () => assert.equal((await post(id, "permit")).status, 202));
  };

  test("also if the current policies deny it", () =>
    withPolicy(ONE, async () => {
      const { id, permit } = (await submit("go", { prefer: "permit" })).body;
      assert.ok(permit !== null);
      await gone(id, () => withPolicy(DENY, async () => void (await post(id, "permit"))));
    }));

  test("also if it returned to the approvers and is then withdrawn, rejected or expired", needs("agents"), () =>
    withPolicy(ONE, async () => {
      const ends: [string, (id: string) => Promise<unknown>][] = [
        ["its submitter withdraws it", (id) => post(id, "cancel")],
        ["an admin withdraws it", (id) => post(id, "cancel", {}, service.admin)],
        ["somebody denies it", (id) => vote(id, approvers[2], false)],
        ["its agent is suspended", (id) => suspend(id)],
        [
          "nobody decides in its time",
          async (id) => {
            service.clock.now += HOUR;
            await vote(id, approvers[2]);
            await service.restart();
          },
        ],
      ];
      for (const operation of ["go", "plain"])
        for (const [what, end] of ends) {
          bot = `bot-${++n}`;
          const id = operation === "go" ? (await submit("go")).body.id : await approved("plain");
          assert.equal((await post(id, "permit")).status, 200, what);
          await sentBack(id);
          await gone(id, () => end(id));
        }
    }),
  );

  test("but an action that was never allowed does not count", () =>
    withPolicy(ONE, async () => {
      const { id } = (await submit("ask")).body;
      assert.equal((await post(id, "cancel")).status, 200);
      const other = (await submit("ask")).body.id;
      assert.equal((await vote(other, approvers[0], false)).body.status, "denied");
      const third = (await submit("ask")).body.id;
      await withPolicy(DENY, async () => assert.equal((await vote(third)).body.code, "NO_LONGER_ALLOWED"));
      assert.equal((await submit("go")).body.status, "allowed");
    }));
});

test("concurrent permits, starts and an activation that denies: nothing starts after the activation", async () => {
  for (let round = 0; round < 5; round++) {
    const ids = await Promise.all([1, 2, 3, 4].map(async () => (await submit("go")).body.id as string));
    const { size } = await service.storage.head();
    await withPolicy(DENY.replace("closed", `closed-${round}`), async () => {
      await Promise.all(ids.flatMap((id) => [post(id, "permit"), post(id, "start")]));
    });
    const rows = await service.storage.entries(size, (await service.storage.head()).size);
    const entries = rows.map(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)) as Answer["body"]);
    const closed = entries.findIndex(({ policies }) =>
      policies?.some(({ policy }: { policy: string }) => policy === `closed-${round}`),
    );
    const opened = entries.findLastIndex(({ type }) => type === "policy_set");
    assert.ok(closed >= 0 && opened > closed);
    for (const entry of entries.slice(closed, opened)) assert.notEqual(entry.phase, "start");
  }
});
