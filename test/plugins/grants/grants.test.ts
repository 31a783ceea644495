/** Grants: what they cover, how their caps are counted, and how they end. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import { makeKey, startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: work
rules:
  - { name: no, tool: ci, operation: deploy, when: 'has(params.forbidden)', effect: deny }
  - { name: prod, tool: ci, operation: deploy, when: 'has(params.critical)', risk: critical, effect: require_approval }
  - { name: deploy, tool: ci, operation: deploy, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
  - { name: pay, tool: bank, operation: pay, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
  - { name: limited, tool: bank, operation: limited, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
  - { name: both, tool: bank, operation: both, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
  - { name: alone, tool: bank, operation: alone, effect: require_approval }
limits:
  - { name: three, tool: bank, operation: limited, count: 3, window: 24h }
---
policy: other
rules:
  - { name: both, tool: bank, operation: both, when: 'has(params.other)', effect: require_approval }
`;

let service: Service;
let alice: string;
let bob: string;
let n = 0;

before(async () => {
  service = await startService({ policy: POLICY, change: (config) => (config.approvals.trust_key_makers = true) });
  alice = (await makeKey(service, { name: "alice", preset: "approver", owner: "Alice" })).key;
  bob = (await makeKey(service, { name: "bob", preset: "approver", owner: "bob" })).key;
});
after(() => service.close());

interface Submission {
  agent_id: string;
  tool?: string;
  operation?: string;
  params?: object;
}

const freshAgent = (): string => `bot-${++n}`;
const submit = (body: Submission, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", "/v1/actions", {
    key: service.agent,
    headers,
    body: { tool: "ci", operation: "deploy", params: { n: ++n }, ...body },
  });
const grant = (body: object, key = alice, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", "/v1/grants", {
    key,
    headers,
    body: { tool: "ci", operation: "deploy", for: "1h", count: 10, ...body },
  });
const readGrant = async (id: string): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/grants/${id}`, { key: alice })).body;
async function granted(body: object, key = alice): Promise<string> {
  const answer = await grant(body, key);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.id;
}
async function vote(id: string, body: object, key = alice): Promise<Answer> {
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key })).body;
  return service.call("POST", `/v1/actions/${id}/approval`, { key, body: { token, ...body } });
}
async function statusOf(body: Submission): Promise<string> {
  return (await submit(body)).body.status;
}
async function run(body: Submission, success = true): Promise<string> {
  const { id } = (await submit(body)).body;
  const started = await service.call("POST", `/v1/actions/${id}/start`, { key: service.agent, body: {} });
  assert.equal(started.status, 200, JSON.stringify(started.body));
  await service.call("POST", `/v1/actions/${id}/result`, { key: service.agent, body: { success } });
  return id;
}

describe("a use", () => {
  test("a use is allowed, names the grant, and is counted", async () => {
    const agent_id = freshAgent();
    const id = await granted({ agent_id, scope: 'params.repo == "web"' });
    const answer = await submit({ agent_id, params: { repo: "web" } });
    assert.deepEqual(
      [answer.status, answer.body.status, answer.body.decision, answer.body.reason_code, answer.body.grant],
      [200, "allowed", "allow", "GRANTED", id],
    );
    assert.match(answer.body.reason, /^covered by a grant of [A-Z][a-z]+; without it: /);
    assert.deepEqual((await readGrant(id)).used, { count: 1, sum: null });
    const uses = await service.call("GET", `/v1/actions?grant_id=${id}`, { key: alice });
    assert.deepEqual(
      uses.body.actions.map((action: { id: string }) => action.id),
      [answer.body.id],
    );
  });

  test("a use needs exactly the same agent, tool and operation, and a true scope", async () => {
    const agent_id = freshAgent();
    await granted({ agent_id, scope: "params.amount <= 5" });
    assert.equal(await statusOf({ agent_id, params: { amount: 5 } }), "allowed");
    assert.equal(await statusOf({ agent_id, tool: "CI", params: { amount: 5 } }), "pending_approval");
    assert.equal(await statusOf({ agent_id: agent_id.toUpperCase(), params: { amount: 5 } }), "pending_approval");
    assert.equal(await statusOf({ agent_id, params: { amount: 6 } }), "pending_approval");
    assert.equal(await statusOf({ agent_id, params: { amount: "5" } }), "pending_approval");
    assert.equal(await statusOf({ agent_id, params: {} }), "pending_approval");
    assert.equal(await statusOf({ agent_id: freshAgent(), params: { amount: 5 } }), "pending_approval");
    assert.equal(
      await statusOf({ agent_id, tool: "bank", operation: "pay", params: { amount: 5 } }),
      "pending_approval",
    );
  });

  test("a repeated submission counts as one use", async () => {
    const agent_id = freshAgent();
    const id = await granted({ agent_id, count: 2 });
    const headers = { "idempotency-key": `k-${n}` };
    const body = { agent_id, params: { same: true } };
    const [first, second] = [await submit(body, headers), await submit(body, headers)];
    assert.equal(first.body.id, second.body.id);
    const joined = await service.call("POST", "/v1/actions?join=open", {
      key: service.agent,
      body: { tool: "ci", operation: "deploy", ...body },
    });
    assert.equal(joined.body.id, first.body.id);
    assert.equal((await readGrant(id)).used.count, 1);
  });

  test("a use is evaluated again at its start: if the grant has ended, the action requires approval", async () => {
    const agent_id = freshAgent();
    const id = await granted({ agent_id });
    const { body: action } = await submit({ agent_id });
    await service.call("POST", `/v1/grants/${id}/revoke`, { key: bob, body: {} });
    const start = await service.call("POST", `/v1/actions/${action.id}/start`, { key: service.agent, body: {} });
    assert.deepEqual([start.status, start.body.code], [409, "MORE_APPROVALS_NEEDED"]);
    assert.equal((await vote(action.id, { approve: true })).body.status, "approved");
    assert.equal(
      (await service.call("POST", `/v1/actions/${action.id}/start`, { key: service.agent, body: {} })).status,
      200,
    );
  });

  test("an action starts while the grant is open, including the last use", async () => {
    const agent_id = freshAgent();
    const id = await granted({ agent_id, count: 1 });
    await run({ agent_id });
    assert.equal(await statusOf({ agent_id }), "pending_approval");
    assert.equal((await readGrant(id)).status, "used_up");
  });
});

describe("the caps", () => {
  test("a cap on uses is exact, even for concurrent submissions", async () => {
    const agent_id = freshAgent();
    await granted({ agent_id, count: 7 });
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf({ agent_id })));
    assert.equal(statuses.filter((status) => status === "allowed").length, 7);
    assert.equal(statuses.filter((status) => status === "pending_approval").length, 13);
  });

  test("a cap on the sum is exact to a millionth", async () => {
    const agent_id = freshAgent();
    const pay = (amount: unknown) => statusOf({ agent_id, tool: "bank", operation: "pay", params: { amount, n: ++n } });
    const sum = { of: "params.amount", at_most: 0.3 };
    const id = await granted({ agent_id, tool: "bank", operation: "pay", sum });
    assert.deepEqual([await pay(0.1), await pay(0.2), await pay(0.000001)], ["allowed", "allowed", "pending_approval"]);
    assert.deepEqual(
      [await pay(-1), await pay("1"), await pay(0)],
      ["pending_approval", "pending_approval", "allowed"],
    );
    assert.deepEqual((await readGrant(id)).used, { count: 3, sum: 0.3 });
  });

  test("a grant ends at its time", async () => {
    const agent_id = freshAgent();
    const id = await granted({ agent_id, for: "2s" });
    const { body: action } = await submit({ agent_id });
    assert.equal(action.status, "allowed");
    service.clock.now += 2_000;
    assert.equal(await statusOf({ agent_id }), "pending_approval");
    assert.equal((await readGrant(id)).ended.cause, "time");
    const start = await service.call("POST", `/v1/actions/${action.id}/start`, { key: service.agent, body: {} });
    assert.equal(start.body.code, "MORE_APPROVALS_NEEDED");
  });

  test("several grants are used one after the other", async () => {
    const agent_id = freshAgent();
    const first = await granted({ agent_id, count: 1 });
    const second = await granted({ agent_id, count: 1 });
    const grants = [(await submit({ agent_id })).body.grant, (await submit({ agent_id })).body.grant];
    assert.deepEqual(grants, [first, second]);
    assert.equal(await statusOf({ agent_id }), "pending_approval");
  });

  test("caps cannot exceed those of the rules", async () => {
    const agent_id = freshAgent();
    for (const body of [{ for: "9h" }, { count: 51 }, { tool: "bank", operation: "alone" }, { tool: "unknown" }]) {
      const answer = await grant({ agent_id, ...body });
      assert.deepEqual([answer.status, answer.body.code], [403, "GRANT_NOT_ALLOWED"], JSON.stringify(body));
    }
  });
});

describe("no grant widens", () => {
  test("a grant does not override a deny, a critical rule, or a rule that allows no grants", async () => {
    const agent_id = freshAgent();
    await granted({ agent_id });
    await granted({ agent_id, tool: "bank", operation: "both" });
    assert.equal(await statusOf({ agent_id, params: { forbidden: 1 } }), "denied");
    assert.equal(await statusOf({ agent_id, params: { critical: 1 } }), "pending_approval");
    const both = { agent_id, tool: "bank", operation: "both" };
    assert.equal(await statusOf({ ...both, params: { n: ++n } }), "allowed");
    assert.equal(await statusOf({ ...both, params: { other: 1 } }), "pending_approval");
  });

  test("a grant does not override a limit", async () => {
    const agent_id = freshAgent();
    const limited = { agent_id, tool: "bank", operation: "limited" };
    await granted({ ...limited, count: 10 });
    const statuses: string[] = [];
    for (let i = 0; i < 4; i++) statuses.push(await statusOf(limited));
    assert.deepEqual(statuses, ["allowed", "allowed", "allowed", "denied"]);
  });

  test("a grant does not override an active rejection of the same request", async () => {
    const agent_id = freshAgent();
    const request = { agent_id, params: { once: 1 } };
    const { body: action } = await submit(request);
    await vote(action.id, { approve: false });
    await granted({ agent_id });
    assert.equal((await submit(request)).body.reason_code, "EARLIER_REJECTION");
    assert.equal(await statusOf({ agent_id }), "allowed");
  });

  test("a grant does not override the suspension of the agent", needs("agents"), async () => {
    const agent_id = freshAgent();
    await service.call("POST", "/v1/agents", { key: service.admin, body: { id: agent_id, name: agent_id } });
    await granted({ agent_id });
    await service.call("POST", `/v1/agents/${agent_id}/suspend`, { key: service.admin, body: { reason: "x" } });
    assert.equal((await submit({ agent_id })).body.reason_code, "AGENT_SUSPENDED");
  });
});

describe("a grant ends", () => {
  const ended = async (id: string): Promise<string> => (await readGrant(id)).ended?.cause;

  test("a grant ends when it is revoked, once", async () => {
    const agent_id = freshAgent();
    const id = await granted({ agent_id });
    const revoke = () => service.call("POST", `/v1/grants/${id}/revoke`, { key: alice, body: { reason: "enough" } });
    const answer = await revoke();
    assert.deepEqual(
      [answer.status, answer.body.status, answer.body.ended.cause, answer.body.ended.comment],
      [200, "ended", "revoked", "enough"],
    );
    assert.deepEqual([(await revoke()).body.code, await statusOf({ agent_id })], ["GRANT_ENDED", "pending_approval"]);
  });

  test("a grant ends when someone rejects a request of the same agent, tool and operation", async () => {
    const agent_id = freshAgent();
    const [web, api] = [
      await granted({ agent_id, scope: 'params.repo == "web"' }),
      await granted({ agent_id, scope: 'params.repo == "api"' }),
    ];
    const other = await granted({ agent_id, tool: "bank", operation: "pay" });
    const { body: action } = await submit({ agent_id: agent_id.toUpperCase(), params: { repo: "docs" } });
    await vote(action.id, { approve: false }, bob);
    assert.deepEqual([await ended(web), await ended(api), await ended(other)], ["rejection", "rejection", undefined]);
    assert.equal((await readGrant(web)).ended.action_id, action.id);
    assert.equal(await statusOf({ agent_id, params: { repo: "web" } }), "pending_approval");
  });

  test("a grant ends when a person flags one of its uses, but not another action", async () => {
    const agent_id = freshAgent();
    const id = await granted({ agent_id, scope: "has(params.ok)" });
    const { body: use } = await submit({ agent_id, params: { ok: 1 } });
    const { body: stranger } = await submit({ agent_id });
    const flag = (action_id: string) =>
      service.call("POST", `/v1/grants/${id}/flag`, { key: bob, body: { action_id, reason: "wrong repo" } });
    assert.equal((await flag(stranger.id)).status, 422);
    assert.equal((await flag(use.id)).body.ended.cause, "flag");
    assert.equal(await statusOf({ agent_id, params: { ok: 2 } }), "pending_approval");
  });

  test("a grant ends at a stop that covers it, and stays ended after the stop is lifted", needs("stop"), async () => {
    const agent_id = freshAgent();
    const id = await granted({ agent_id });
    const other = await granted({ agent_id: freshAgent() });
    const stop = await service.call("POST", "/v1/stop", { key: service.admin, body: { reason: "x", agent: agent_id } });
    assert.equal(await statusOf({ agent_id }), "denied");
    await service.call("POST", `/v1/stop/${stop.body.id}/lift`, { key: service.admin, body: {} });
    assert.deepEqual([await ended(id), await ended(other)], ["stop", undefined]);
    assert.equal(await statusOf({ agent_id }), "pending_approval");
  });

  test("a grant ends at a failed result if its terms say so", async () => {
    const agent_id = freshAgent();
    const lasting = await granted({ agent_id, scope: "has(params.lasting)" });
    const brittle = await granted({ agent_id, scope: "has(params.brittle)", ends_on_failure: true });
    await run({ agent_id, params: { lasting: 1 } }, false);
    await run({ agent_id, params: { brittle: 1 } }, true);
    assert.deepEqual([await ended(lasting), await ended(brittle)], [undefined, undefined]);
    await run({ agent_id, params: { brittle: 2 } }, false);
    assert.deepEqual([await ended(lasting), await ended(brittle)], [undefined, "failure"]);
  });
});

describe("the grantor", () => {
  test("the grantor must still be able to vote and grant at each use", async () => {
    const agent_id = freshAgent();
    const { key, id: keyId } = await makeKey(service, { name: "carol", preset: "approver", owner: "carol" });
    const id = await granted({ agent_id }, key);
    assert.equal(await statusOf({ agent_id }), "allowed");
    assert.equal((await service.call("DELETE", `/v1/api-keys/${keyId}`, { key: service.admin })).status < 300, true);
    assert.equal(await statusOf({ agent_id }), "pending_approval");
    assert.equal((await readGrant(id)).status, "blocked");
  });

  test("a grantor cannot grant to their own agent, and a grant does not cover the grantor's own actions", async () => {
    const agent_id = freshAgent();
    const id = await granted({ agent_id });
    const own = await makeKey(service, { name: `own-${n}`, preset: "agent", agent_id, owner: "ALICE" });
    const answer = await service.call("POST", "/v1/actions", {
      key: own.key,
      body: { agent_id, tool: "ci", operation: "deploy" },
    });
    assert.deepEqual([answer.body.status, answer.body.grant], ["pending_approval", null]);
    assert.equal(await statusOf({ agent_id }), "allowed");
    assert.equal((await readGrant(id)).used.count, 1);
    assert.equal((await grant({ agent_id })).body.code, "SELF_APPROVAL");
    assert.equal((await grant({ agent_id }, bob)).status, 201);
  });

  test("the grantor needs the scope and a key that is not bound to an agent", async () => {
    const agent_id = freshAgent();
    assert.equal((await grant({ agent_id }, service.agent)).status, 403);
    const scopes = ["approvals:decide", "actions:read"];
    const voter = await makeKey(service, { name: "voter", scopes, owner: "dan" });
    assert.equal((await grant({ agent_id }, voter.key)).status, 403);
    const { body: action } = await submit({ agent_id });
    const answer = await vote(action.id, { approve: true, grant: { for: "1h", count: 1 } }, voter.key);
    assert.deepEqual([answer.status, answer.body.code], [403, "INSUFFICIENT_SCOPE"]);
    assert.equal(
      (await service.call("GET", `/v1/actions/${action.id}`, { key: alice })).body.status,
      "pending_approval",
    );
  });
});

describe("a grant with a vote", () => {
  test("a vote with a grant approves the action and covers later actions", async () => {
    const agent_id = freshAgent();
    const { body: action } = await submit({ agent_id, params: { repo: "web" } });
    const read = await service.call("GET", `/v1/actions/${action.id}`, { key: alice });
    assert.deepEqual(read.body.approval_terms.grants, { count: 50, for_seconds: 28_800 });
    const terms = { for: "1h", count: 1, scope: 'params.repo == "web"' };
    const answer = await vote(action.id, { approve: true, grant: terms, reason: "routine" });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const { new_grant: created } = answer.body;
    assert.deepEqual(
      [answer.body.status, answer.body.grant, created.granted_with, created.used.count, created.comment],
      ["approved", null, action.id, 0, "routine"],
    );
    assert.equal((await submit({ agent_id, params: { repo: "web", n: 2 } })).body.grant, created.id);
    assert.equal(await statusOf({ agent_id, params: { repo: "web", n: 3 } }), "pending_approval");
  });

  test("withdrawing the approval ends the grant that was created with it", async () => {
    const agent_id = freshAgent();
    const { body: action } = await submit({ agent_id });
    const { body: voted } = await vote(action.id, { approve: true, grant: { for: "1h", count: 5 } });
    const another = await granted({ agent_id, scope: "params.n < 0" });
    const withdraw = { key: alice, body: {} };
    assert.equal((await service.call("POST", `/v1/actions/${action.id}/withdraw`, withdraw)).status, 200);
    const { cause, action_id } = (await readGrant(voted.new_grant.id)).ended;
    assert.deepEqual([cause, action_id], ["revoked", action.id]);
    assert.equal((await readGrant(another)).ended, null);
    assert.equal(await statusOf({ agent_id }), "pending_approval");
  });

  test("a vote with invalid grant terms is rejected as a whole", async () => {
    const agent_id = freshAgent();
    const { body: action } = await submit({ agent_id, params: { repo: "web" } });
    const refused: [object, number, string][] = [
      [{ for: "9h", count: 1 }, 403, "GRANT_NOT_ALLOWED"],
      [{ for: "1h", count: 1, scope: 'params.repo == "api"' }, 422, "VALIDATION_FAILED"],
      [{ for: "1h", count: 1, scope: "params.repo ==" }, 422, "VALIDATION_FAILED"],
      [{ for: "soon", count: 1 }, 422, "VALIDATION_FAILED"],
      [{ for: "1h", count: 0 }, 422, "VALIDATION_FAILED"],
    ];
    for (const [terms, status, code] of refused) {
      const answer = await vote(action.id, { approve: true, grant: terms });
      assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(terms));
    }
    const rejection = await vote(action.id, { approve: false, grant: { for: "1h", count: 1 } });
    assert.equal(rejection.status, 422);
    assert.equal((await vote(action.id, { approve: true })).body.status, "approved");
  });
});

test(
  "a suspension of the agent ends its grants, and resuming the agent does not restore them",
  needs("agents"),
  async () => {
    const agent_id = `Bot-${++n}`;
    const admin = { key: service.admin };
    assert.equal((await service.call("POST", "/v1/agents", { ...admin, body: { id: agent_id } })).status, 201);
    const params = { repo: "web" };
    const id = await granted({ agent_id });
    const other = await granted({ agent_id: freshAgent() });
    assert.equal(await statusOf({ agent_id, params }), "allowed");
    const suspend = { ...admin, body: { reason: "it deleted a branch" } };
    assert.equal((await service.call("POST", `/v1/agents/${agent_id}/suspend`, suspend)).status, 200);
    const { status, ended } = await readGrant(id);
    assert.deepEqual([status, ended.cause, ended.action_id], ["ended", "suspension", null]);
    assert.equal((await service.call("POST", `/v1/agents/${agent_id}/resume`, admin)).status, 200);
    assert.equal(await statusOf({ agent_id, params }), "pending_approval");
    assert.equal((await readGrant(other)).status, "active", "grants for other agents remain");
  },
);

describe("suggestions", () => {
  const suggest = async (id: string): Promise<Answer["body"]> =>
    (await service.call("GET", `/v1/actions/${id}/grant-suggestions`, { key: alice })).body;

  test("suggestions fix every member of the request, except those that they name, with the actions that each would have covered", async () => {
    const agent_id = freshAgent();
    const ids: string[] = [];
    for (const [params, approve] of [
      [{ repo: "web", amount: 5 }, true],
      [{ repo: "web", amount: 50 }, true],
      [{ repo: "web", amount: 500 }, null],
      [{ repo: "api", amount: 20 }, true],
      [{ repo: "web", amount: 7, force: true }, true],
    ] as const) {
      const { id } = (await submit({ agent_id, params })).body;
      if (approve !== null) await vote(id, { approve });
      ids.unshift(id);
    }
    const { body: action } = await submit({ agent_id, params: { repo: "web", amount: 5 } });
    const answer = await suggest(action.id);
    const named = answer.suggestions.map((each: Answer["body"]) => ({
      ...each,
      requests: each.requests.map(({ id }: { id: string }) => ids.indexOf(id)),
    }));
    const equal = 'size(params) == 2 && params.repo == "web" && params.amount == 5 && size(context) == 0';
    const wider =
      'size(params) == 2 && params.repo == "web" && params.amount >= 5 && params.amount <= 50 && size(context) == 0';
    const varying = [{ member: "params.amount", values: "from 5 to 50" }];
    assert.deepEqual(
      [answer.considered, named],
      [
        5,
        [
          { scope: equal, varying: [], covered: 1, requests: [4] },
          { scope: wider, varying, covered: 2, requests: [3, 4] },
        ],
      ],
    );
    assert.deepEqual(
      [answer.suggestions[0].requests[0].status, answer.suggestions[0].requests[0].summary],
      ["approved", '{"repo":"web","amount":5}'],
    );
    const terms = { for: "1h", count: 1, scope: wider };
    const voted = await vote(action.id, { approve: true, grant: terms });
    assert.equal(voted.status, 200, "a suggestion can be granted");
    assert.deepEqual(voted.body.new_grant.free, ["params.amount"]);
  });

  test("an approver can try a scope of their own, which says what it covers and leaves free", async () => {
    const agent_id = freshAgent();
    for (const amount of [5, 50])
      await vote((await submit({ agent_id, params: { repo: "web", amount } })).body.id, { approve: true });
    const { id } = (await submit({ agent_id, params: { repo: "web", amount: 7 } })).body;
    const attempt = (scope: string): Promise<Answer> =>
      service.call("GET", `/v1/actions/${id}/grant-suggestions?scope=${encodeURIComponent(scope)}`, { key: alice });
    const { written } = (await attempt('params.repo == "web" && params.amount < 10')).body;
    assert.deepEqual(
      [written.covers_request, written.covered, written.free, written.requests.length],
      [true, 1, ["params.amount", "params.*", "context.*"], 1],
    );
    assert.equal((await attempt("params.amount > 10")).body.written.covers_request, false);
    assert.equal((await suggest(id)).written, null);
    for (const [scope, detail] of [
      ["params.amount <", /scope/],
      ["1 + 1", /scope/],
    ] as const) {
      const { status, body } = await attempt(scope);
      assert.deepEqual([status, body.code, body.errors[0].parameter], [422, "VALIDATION_FAILED", "scope"]);
      assert.match(body.detail, detail);
    }
  });

  test("suggestions would have covered no request that a person rejected", async () => {
    const agent_id = freshAgent();
    const params = { repo: "web", force: true };
    await vote((await submit({ agent_id, params: { ...params, repo: "api" } })).body.id, { approve: true });
    await vote((await submit({ agent_id, params: { ...params, repo: "api" } })).body.id, { approve: false });
    const { suggestions } = await suggest((await submit({ agent_id, params })).body.id);
    assert.deepEqual(
      suggestions.map(({ varying }: { varying: unknown[] }) => varying),
      [[]],
    );
  });

  test("suggestions mark hidden characters of earlier requests, and shorten long ones", async () => {
    const agent_id = freshAgent();
    for (const [note, length] of [
      ["x\u202Ey", 20],
      ["\u202E".repeat(200), 170],
    ] as const) {
      await submit({ agent_id, params: { note } });
      const { suggestions } = await suggest((await submit({ agent_id, params: { note } })).body.id);
      const { summary } = suggestions[0].requests[0];
      assert.ok(summary.startsWith('{"note":"') && summary.includes("[U+202E]"), summary);
      assert.ok(!summary.includes("\u202E") && summary.length <= length + 10, summary);
    }
  });

  test("suggestions quote all text that the agent wrote", async () => {
    const agent_id = freshAgent();
    const params = { 'a"] || true || params["b': '" || true || "', in: "x\u202Ey\u0000", "\\": "\\" };
    const { body: action } = await submit({ agent_id, params });
    const { suggestions } = await suggest(action.id);
    const { scope } = suggestions[0];
    assert.equal(
      scope,
      'size(params) == 3 && params["a\\"] || true || params[\\"b"] == "\\" || true || \\"" && params["in"] == "x\\u202ey\\u0000" && params["\\\\"] == "\\\\" && size(context) == 0',
    );
    await granted({ agent_id, scope });
    assert.equal(await statusOf({ agent_id, params: { anything: 1 } }), "pending_approval");
    assert.equal(await statusOf({ agent_id, params: { ...params, more: 1 } }), "pending_approval");
    assert.equal(await statusOf({ agent_id, params }), "allowed");
  });

  test("a grant lists what its scope leaves free by name, from the action that was approved with it or the newest one", async () => {
    const agent_id = freshAgent();
    const params = { repo: "web", amount: 5, note: "n" };
    const { body: action } = await submit({ agent_id, params });
    const terms = { for: "1h", count: 1, scope: 'params.repo == "web" && params.amount <= 9' };
    const { new_grant } = (await vote(action.id, { approve: true, grant: terms })).body;
    assert.deepEqual(new_grant.free, ["params.amount", "params.note", "params.*", "context.*"]);
    const everything = await readGrant(await granted({ agent_id }));
    assert.deepEqual(everything.free, ["params.repo", "params.amount", "params.note", "params.*", "context.*"]);
    const unseen = await readGrant(await granted({ agent_id: freshAgent(), scope: "params.amount <= 9" }));
    assert.deepEqual(unseen.free, ["params.amount", "params.*", "context.*"]);
  });

  test("suggestions are made only for pending actions", async () => {
    const agent_id = freshAgent();
    await granted({ agent_id });
    assert.equal((await suggest((await submit({ agent_id })).body.id)).code, "ACTION_NOT_PENDING");
  });
});

test("hostile scopes are rejected, or cover nothing", async () => {
  const agent_id = freshAgent();
  const refused = [
    "parms.repo == 'web'",
    "params.repo = 'web'",
    "tool > 5",
    "1 + 1",
    "principal.ownr == 'a'",
    "true\u0000",
    "a".repeat(501),
    "(".repeat(200) + "true" + ")".repeat(200),
  ];
  for (const scope of refused) assert.equal((await grant({ agent_id, scope })).status, 422, scope);
  assert.equal((await grant({ agent_id, sum: { of: "'text'", at_most: 1 } })).status, 422);
  // Each needs more steps than one decision has. It must not prevent a later grant or the decision from being
  // evaluated.
  const items = Array.from({ length: 2_000 }, (_, i) => i);
  for (let i = 0; i < 3; i++)
    await granted({ agent_id, scope: `params.items.all(a, params.items.exists(b, b == a + ${i} && b >= 0))` });
  assert.equal(await statusOf({ agent_id, params: { items } }), "pending_approval");
});

test("at most 20 grants of one agent, tool and operation are open", async () => {
  const agent_id = freshAgent();
  const ids: string[] = [];
  for (let i = 0; i < 20; i++) ids.push(await granted({ agent_id }));
  assert.deepEqual([(await grant({ agent_id })).body.code], ["TOO_MANY_GRANTS"]);
  await service.call("POST", `/v1/grants/${ids[0]}/revoke`, { key: alice, body: {} });
  assert.equal((await grant({ agent_id })).status, 201);
});

test("a repeated creation with the same idempotency key creates one grant", async () => {
  const agent_id = freshAgent();
  const headers = { "idempotency-key": "grant-once" };
  const [first, second] = [await grant({ agent_id }, alice, headers), await grant({ agent_id }, alice, headers)];
  assert.deepEqual([first.status, second.status, first.body.id], [201, 200, second.body.id]);
  assert.equal((await grant({ agent_id, count: 2 }, alice, headers)).body.code, "IDEMPOTENCY_CONFLICT");
});

test("lists show grants newest first, by agent and by whether they are open", async () => {
  const agent_id = freshAgent();
  const ids = [await granted({ agent_id }), await granted({ agent_id }), await granted({ agent_id })];
  await service.call("POST", `/v1/grants/${ids[1]}/revoke`, { key: alice, body: {} });
  const list = async (query: string): Promise<Answer["body"]> =>
    (await service.call("GET", `/v1/grants?agent_id=${agent_id}${query}`, { key: alice })).body;
  const idsOf = ({ grants }: Answer["body"]): string[] => grants.map(({ id }: { id: string }) => id);
  assert.deepEqual(idsOf(await list("")), [ids[2], ids[1], ids[0]]);
  assert.deepEqual(idsOf(await list("&active=true")), [ids[2], ids[0]]);
  assert.deepEqual(idsOf(await list("&active=false")), [ids[1]]);
  const first = await list("&limit=2");
  assert.deepEqual(idsOf(await list(`&cursor=${first.next_cursor}`)), [ids[0]]);
  assert.equal((await list(`&cursor=${Buffer.from("grants:x").toString("base64url")}`)).code, "INVALID_CURSOR");
  assert.equal((await service.call("GET", "/v1/grants/none", { key: alice })).body.code, "GRANT_NOT_FOUND");
});

test("the usage is no longer reported when its rows might have been removed", async () => {
  const agent_id = freshAgent();
  const id = await granted({ agent_id, for: "1h" });
  await submit({ agent_id });
  service.clock.now += 24 * 3_600_000;
  assert.deepEqual((await readGrant(id)).used, { count: 1, sum: null });
  service.clock.now += 3_600_000;
  assert.equal((await readGrant(id)).used, null);
  const uses = await service.call("GET", `/v1/actions?grant_id=${id}`, { key: alice });
  assert.equal(uses.body.actions.length, 1);
});

test("grants survive a restart, and their uses replay", needs("replay"), async () => {
  const agent_id = freshAgent();
  const id = await granted({ agent_id, count: 2, sum: { of: "1.5", at_most: 10 } });
  const { body: action } = await submit({ agent_id });
  await service.restart();
  assert.equal((await submit({ agent_id })).body.grant, id);
  assert.equal(await statusOf({ agent_id }), "pending_approval");
  const replay = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: action.id } });
  assert.equal(replay.status, 200, JSON.stringify(replay.body));
  assert.equal(JSON.stringify(replay.body).includes('"equal":false'), false, JSON.stringify(replay.body));
});
