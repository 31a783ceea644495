/**
 * Tasks: who may start one, what it covers, and what ends it with all its grants.
 * @needs edits, grants, plans, users
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { serve } from "../../../src/serve/index.ts";
import { assentInProcessWithEnv } from "../../support/cli.ts";
import { needs } from "../../support/features.ts";
import { invite, startPeople } from "../../support/people.ts";
import { signature, signVotes } from "../../support/signed-votes.ts";
import { makeKey, person, setSection, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: work
rules:
  - { name: free, tool: ci, operation: status, effect: allow }
  - { name: no, tool: ci, operation: destroy, effect: deny }
  - { name: prod, tool: ci, operation: deploy, when: 'has(params.critical)', risk: critical, effect: require_approval }
  - { name: deploy, tool: ci, operation: deploy, effect: require_approval, approval: { grants: { for: 8h, count: 50 }, editable: { params.replicas: { max: 9 } } } }
  - { name: mail, tool: mail, operation: send, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
  - { name: short, tool: mail, operation: short, effect: require_approval, approval: { grants: { for: 30m, count: 50 } } }
  - { name: two, tool: bank, operation: pay, effect: require_approval, approval: { quorum: 2 } }
  - { name: critical, tool: bank, operation: close, effect: require_approval, risk: critical }
  - { name: signed, tool: bank, operation: sign, effect: require_approval, approval: { signature: passkey } }
  - { name: finance, tool: bank, operation: book, effect: require_approval, approval: { grants: { for: 8h, count: 50 }, approvers: [{ group: finance }] } }
`;
const WEB = { tool: "ci", operation: "deploy", count: 10, scope: 'params.repo == "web"' };
const MAIL = { tool: "mail", operation: "send", count: 5 };

let service: Service;
let alice: string;
let bob: string;
let tim: string;
let n = 0;
/** Runs before the service reads the keys: when it starts a task, between the plan and the transaction. */
let beforeKeys: (() => Promise<void>) | null = null;

before(async () => {
  service = await startPeople({
    policy: POLICY,
    storage(folder) {
      const storage = sqliteStorage({ path: join(folder, "assent.db") });
      const keys = storage.keys.bind(storage);
      storage.keys = async () => {
        await beforeKeys?.();
        return keys();
      };
      return storage;
    },
    change(config) {
      config.approvals.trust_key_makers = true;
      config.groups = {
        finance: { members: [person("bob")] },
        near: { members: [person("tim")], agents: ["near-*"], tools: ["ci"] },
      };
      const release = { name: "release", for: "2h", operations: [WEB] };
      setSection(config, "tasks", { max_hours: 4, templates: [release] });
    },
  });
  alice = (await makeKey(service, { name: "alice", preset: "approver", owner: "alice" })).key;
  bob = (await makeKey(service, { name: "bob", preset: "approver", owner: "bob" })).key;
  tim = (await makeKey(service, { name: "tim", preset: "approver", owner: "tim" })).key;
});
after(() => service.close());

const freshAgent = (): string => `bot-${++n}`;
const start = (body: object, key = alice, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", "/v1/tasks", {
    key,
    headers,
    body: { title: "release 2.4", for: "2h", operations: [WEB, MAIL], ...body },
  });
async function started(body: object, key = alice): Promise<{ id: string; grants: { id: string }[] }> {
  const answer = await start(body, key);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body;
}
const submit = (agent_id: string, more: object = {}): Promise<Answer> =>
  service.call("POST", "/v1/actions", {
    key: service.agent,
    body: { agent_id, tool: "ci", operation: "deploy", params: { repo: "web", n: ++n }, ...more },
  });
const mail = { tool: "mail", operation: "send" };
/** The statuses of a request for each operation of the task. */
const statuses = async (agent_id: string): Promise<string[]> => [
  (await submit(agent_id)).body.status,
  (await submit(agent_id, mail)).body.status,
];
const INSIDE = ["allowed", "allowed"];
const OUTSIDE = ["pending_approval", "pending_approval"];
async function reject(id: string, key = alice): Promise<void> {
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key })).body;
  const vote = await service.call("POST", `/v1/actions/${id}/approval`, { key, body: { token, approve: false } });
  assert.equal(vote.body.status, "denied", JSON.stringify(vote.body));
}
const list = async (query: string, key = alice): Promise<Answer["body"][]> =>
  (await service.call("GET", `/v1/tasks?${query}`, { key })).body.tasks;
const causeOf = async (agent_id: string): Promise<string | undefined> =>
  (await list(`agent_id=${agent_id}`))[0]?.ended?.cause;
const openGrants = async (agent_id: string): Promise<unknown[]> =>
  (await service.call("GET", `/v1/grants?agent_id=${agent_id}&active=true`, { key: alice })).body.grants;
const end = (id: string, key = alice): Promise<Answer> =>
  service.call("POST", `/v1/tasks/${id}/end`, { key, body: { reason: "done" } });

test("the uses of one operation in several parts of a task count together", async () => {
  const answer = await start({
    agent_id: freshAgent(),
    operations: [
      { ...MAIL, count: 30 },
      { ...MAIL, count: 21 },
    ],
  });
  assert.deepEqual([answer.status, answer.body.code], [403, "GRANT_NOT_ALLOWED"]);
  await started({
    agent_id: freshAgent(),
    operations: [
      { ...MAIL, count: 30 },
      { ...MAIL, count: 20 },
    ],
  });
});

test("a task names what its scopes leave free", async () => {
  const closed = { ...MAIL, scope: 'size(params) == 1 && params.to == "ann" && size(context) == 0' };
  const { body } = await start({ agent_id: freshAgent(), operations: [WEB, MAIL, closed] });
  const free = [["params.*", "context.*"], ["params.*", "context.*"], []];
  assert.deepEqual(
    body.grants.map((grant: { free: string[] }) => grant.free),
    free,
  );
  const [listed] = await list(`agent_id=${body.agent_id}`);
  assert.deepEqual(listed, body);
});

test("a grant does not tell the title of its task, and titles are visible", async () => {
  const { id, grants } = await started({ agent_id: freshAgent(), title: "secret merger" });
  const { body } = await service.call("GET", `/v1/grants/${grants[0]?.id}`, { key: bob });
  assert.ok(!JSON.stringify(body).includes("secret merger") && JSON.stringify(body).includes(id));
  for (const title of ["   ", "\u200b", "a\u202eb", "a\u2028b", "a\u009bb"])
    assert.equal((await start({ agent_id: freshAgent(), title })).status, 422, JSON.stringify(title));
});

test("a cursor that the list did not return is refused", async () => {
  const cursor = Buffer.from("tasks:x").toString("base64url");
  const { status, body } = await service.call("GET", `/v1/tasks?cursor=${cursor}`, { key: alice });
  assert.deepEqual([status, body.code], [422, "INVALID_CURSOR"]);
});

test("templates that no request could start are refused at startup", async () => {
  const operations = [WEB];
  const refused = (templates: object[], words: RegExp): Promise<void> =>
    assert.rejects(
      startPeople({ policy: POLICY, change: (config) => setSection(config, "tasks", { max_hours: 4, templates }) }),
      words,
    );
  await refused([{ name: "long", for: "5h", operations }], /"long" takes 5h, more than tasks.max_hours \(4\)/);
  const twice = { name: "a", for: "1h", operations };
  await refused([twice, twice], /two templates have the name "a"/);
});

describe("a task from the agent's plan", () => {
  const plan = async (agent_id: string, actions: object[]): Promise<string> => {
    const body = { actions: actions.map((action) => ({ agent_id, ...action })) };
    return (await service.call("POST", "/v1/plans", { key: service.agent, body })).body.id;
  };
  const deploy = (params: object): object => ({ tool: "ci", operation: "deploy", params });
  const sending = (params: object): object => ({ ...mail, params });
  /** Starts a task from the plan; without a digest, from the plan as it is now. */
  const from = async (
    agent_id: string,
    { digest, ...more }: { id: string; digest?: string; free?: string[]; times?: number },
    key = alice,
  ): Promise<Answer> => {
    const now = digest ?? (await service.call("GET", `/v1/plans/${more.id}`, { key: alice })).body.digest ?? "";
    const body = { agent_id, title: "release", for: "1h", plan: { ...more, digest: now } };
    return service.call("POST", "/v1/tasks", { key, body });
  };
  const status = async (agent_id: string, action: object): Promise<string> =>
    (await service.call("POST", "/v1/actions", { key: service.agent, body: { agent_id, ...action } })).body.status;

  test("covers the requests of the plan that ask, as often as the plan has them, and nothing else", async () => {
    const agent_id = freshAgent();
    const [web, ann] = [deploy({ repo: "web" }), sending({ to: "ann", body: "hi" })];
    const id = await plan(agent_id, [web, web, ann, { tool: "ci", operation: "status", params: {} }]);
    assert.equal(await status(agent_id, web), "pending_approval");
    const { status: created, body } = await from(agent_id, { id });
    assert.equal(created, 201, JSON.stringify(body));
    assert.deepEqual(
      body.grants.map(({ tool, count, free }: Answer["body"]) => [tool, count, free]),
      [
        ["ci", 2, []],
        ["mail", 1, []],
      ],
    );
    for (const other of [
      deploy({ repo: "api" }),
      deploy({ repo: "web", force: true }),
      sending({ to: "eve", body: "hi" }),
    ])
      assert.equal(await status(agent_id, other), "pending_approval", JSON.stringify(other));
    assert.deepEqual([await status(agent_id, web), await status(agent_id, web)], ["allowed", "allowed"]);
    assert.equal(await status(agent_id, web), "pending_approval", "used up");
    const pending = (await service.call("GET", `/v1/plans/${id}`, { key: alice })).body.actions;
    assert.deepEqual(
      pending.map((action: Answer["body"]) => action.status),
      ["pending_approval", "pending_approval", "pending_approval", "allowed"],
    );
  });

  test("leaves only the members free that the person names, and never more members than the plan has", async () => {
    const agent_id = freshAgent();
    const id = await plan(agent_id, [
      sending({ to: "ann", body: "hi" }),
      sending({ to: "ann", body: "bye" }),
      deploy({ repo: "web" }),
    ]);
    const { body } = await from(agent_id, { id, free: ["params.body"], times: 2 });
    assert.deepEqual(
      body.grants.map(({ count, free }: Answer["body"]) => [count, free]),
      [
        [4, ["params.body"]],
        [2, []],
      ],
      JSON.stringify(body),
    );
    assert.equal(await status(agent_id, sending({ to: "ann", body: "anything" })), "allowed");
    for (const params of [
      { to: "eve", body: "hi" },
      { to: "ann", bcc: "eve" },
      { to: "ann", body: "hi", bcc: "eve" },
    ])
      assert.equal(await status(agent_id, sending(params)), "pending_approval", JSON.stringify(params));
  });

  for (const [change, count] of [
    ["edited", 2],
    ["rejected", 1],
  ] as const)
    for (const when of ["after the person has read the plan", "after the service has read the plan"])
      test(`is refused if an action is ${change} ${when}`, async () => {
        const agent_id = freshAgent();
        const id = await plan(agent_id, [deploy({ repo: "web", replicas: 1 }), deploy({ repo: "api" })]);
        const { actions, digest } = (await service.call("GET", `/v1/plans/${id}`, { key: alice })).body;
        const alter = async (): Promise<void> => {
          beforeKeys = null;
          if (change === "rejected") return reject(actions[0].id, bob);
          const { approval_token: token } = (await service.call("GET", `/v1/actions/${actions[0].id}`, { key: bob }))
            .body;
          const body = { token, changes: { "params.replicas": 9 } };
          const edit = await service.call("POST", `/v1/actions/${actions[0].id}/edit`, { key: bob, body });
          assert.equal(edit.status, 200, JSON.stringify(edit.body));
        };
        if (when.includes("the service")) beforeKeys = alter;
        else await alter();
        const { status: refused, body } = await from(agent_id, { id, digest });
        assert.deepEqual([beforeKeys, refused, body.code], [null, 409, "PLAN_CHANGED"], JSON.stringify(body));
        assert.deepEqual(await openGrants(agent_id), []);
        const { body: started } = await from(agent_id, { id });
        assert.equal(started.grants.length, count);
        if (change === "edited") assert.match(started.grants[0].scope, /replicas == 9/);
      });

  test("starts on the command line only with the digest that `assent plan show` prints", async () => {
    const agent_id = freshAgent();
    const id = await plan(agent_id, [deploy({ repo: "web" })]);
    const server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
    const run = (...args: string[]) =>
      assentInProcessWithEnv({ ASSENT_URL: server.url, ASSENT_API_KEY: alice }, ...args);
    try {
      const begin = (...more: string[]) =>
        run("task", "start", agent_id, "--title", "release", "--for", "1h", "--plan", id, ...more);
      const [, digest = ""] = /^digest ([0-9a-f]{64})$/m.exec((await run("plan", "show", id)).out) ?? [];
      assert.match((await begin()).err, new RegExp(`--plan needs --digest, which \`assent plan show ${id}\``));
      assert.match((await begin("--digest", "0".repeat(64))).err, /PLAN_CHANGED/);
      const { code, out, err } = await begin("--digest", digest);
      assert.deepEqual([code, err], [0, ""], out);
    } finally {
      await server.stop(0);
    }
  });

  test("is refused for other agents, unseen plans, unknown members, and plans in which nothing asks", async () => {
    const agent_id = freshAgent();
    const id = await plan(agent_id, [deploy({ repo: "web" })]);
    const nothing = await plan(agent_id, [{ tool: "ci", operation: "status", params: {} }]);
    const pointer = async (answer: Promise<Answer>): Promise<string> => (await answer).body.errors?.[0]?.pointer;
    assert.equal(await pointer(from(freshAgent(), { id })), "/agent_id");
    const unknown = "019346a0-0000-7000-8000-000000000000";
    assert.equal((await from(agent_id, { id: unknown })).body.code, "PLAN_NOT_FOUND");
    assert.equal((await from(agent_id, { id }, tim)).body.code, "PLAN_NOT_FOUND", "the agent is not near");
    assert.equal(await pointer(from(agent_id, { id, free: ["params.branch"] })), "/plan/free");
    assert.equal(await pointer(from(agent_id, { id: nothing })), "/plan/id");
    assert.equal((await from(agent_id, { id, times: 51 })).body.code, "GRANT_NOT_ALLOWED");
    const both = { agent_id, title: "x", for: "1h", plan: { id }, operations: [WEB] };
    assert.equal((await service.call("POST", "/v1/tasks", { key: alice, body: both })).status, 422);
    const twoPeople = await plan(agent_id, [{ tool: "bank", operation: "pay", params: {} }]);
    assert.equal((await from(agent_id, { id: twoPeople })).body.code, "GRANT_NOT_ALLOWED");
  });
});

describe("what a task cannot cover", () => {
  const refused: [string, object, number, string][] = [
    ["an operation that needs two people", { tool: "bank", operation: "pay" }, 403, "GRANT_NOT_ALLOWED"],
    ["a critical operation", { tool: "bank", operation: "close" }, 403, "GRANT_NOT_ALLOWED"],
    ["an operation whose approval must be signed", { tool: "bank", operation: "sign" }, 403, "GRANT_NOT_ALLOWED"],
    ["an operation without a rule", { tool: "x", operation: "y" }, 403, "GRANT_NOT_ALLOWED"],
    ["more time than the rule allows", { tool: "mail", operation: "short" }, 403, "GRANT_NOT_ALLOWED"],
    ["more uses than the rule allows", { ...MAIL, count: 51 }, 403, "GRANT_NOT_ALLOWED"],
    ["a scope that is not CEL", { ...MAIL, scope: "params.a =" }, 422, "VALIDATION_FAILED"],
  ];
  for (const [name, operation, status, code] of refused)
    test(`${name} refuses the whole task, and nothing is granted`, async () => {
      const agent_id = freshAgent();
      const answer = await start({ agent_id, operations: [WEB, { count: 1, ...operation }] });
      assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(answer.body));
      if (status === 422) assert.equal(answer.body.errors[0].pointer, "/operations/1/scope");
      assert.deepEqual(await openGrants(agent_id), []);
      assert.deepEqual(await list(`agent_id=${agent_id}`), []);
      assert.equal((await submit(agent_id)).body.status, "pending_approval");
    });

  test("critical parameters, a denial and the groups of a rule count at each use", async () => {
    const agent_id = freshAgent();
    const book = { tool: "bank", operation: "book" };
    await started({ agent_id, operations: [WEB, { ...book, count: 5 }] });
    const critical = await submit(agent_id, { params: { repo: "web", critical: true } });
    assert.equal(critical.body.status, "pending_approval");
    assert.equal((await submit(agent_id, { operation: "destroy" })).body.status, "denied");
    assert.equal((await submit(agent_id, book)).body.status, "pending_approval", "alice is not in finance");
    const other = freshAgent();
    await started({ agent_id: other, operations: [{ ...book, count: 5 }] }, bob);
    assert.equal((await submit(other, book)).body.status, "allowed");
  });

  test("an agent's key, a key without the scope and the person of the agent start and end nothing", async () => {
    const agent_id = freshAgent();
    const own = await makeKey(service, { name: "own", preset: "agent", agent_id, owner: "alice" });
    const bound = await makeKey(service, {
      name: "bound",
      scopes: ["grants:write", "approvals:decide", "actions:submit"],
      agent_id: "bound-bot",
      owner: "alice",
    }).catch(() => null);
    const granter = await makeKey(service, { name: "no votes", scopes: ["grants:write"] });
    assert.equal((await start({ agent_id }, own.key)).body.code, "INSUFFICIENT_SCOPE");
    if (bound !== null) assert.equal((await start({ agent_id: "x" }, bound.key)).body.code, "AGENT_MISMATCH");
    assert.equal((await start({ agent_id }, granter.key)).body.code, "INSUFFICIENT_SCOPE");
    assert.equal((await start({ agent_id })).body.code, "SELF_APPROVAL");
    const { id } = await started({ agent_id }, bob);
    assert.equal((await end(id, own.key)).body.code, "INSUFFICIENT_SCOPE");
  });

  test("a person with limits neither starts, lists nor ends a task outside of them", async () => {
    const far = await start({ agent_id: "far", operations: [WEB] }, tim);
    assert.deepEqual([far.status, far.body.code], [403, "APPROVER_NOT_ELIGIBLE"]);
    assert.equal((await start({ agent_id: "near-1" }, tim)).body.code, "APPROVER_NOT_ELIGIBLE", "mail is outside");
    const mixed = await started({ agent_id: "near-1" });
    assert.deepEqual(await list("agent_id=near-1", tim), []);
    assert.equal((await end(mixed.id, tim)).body.code, "TASK_NOT_FOUND");
    const own = await started({ agent_id: "near-2", operations: [WEB] }, tim);
    assert.deepEqual(
      (await list("", tim)).map(({ id }) => id),
      [own.id],
    );
    assert.equal((await end(own.id, tim)).status, 200);
  });
});

describe("a task that a vote starts", () => {
  const terms = { for: "2h", count: 10, scope: WEB.scope, task: "release 2.4" };
  const tokenOf = async (id: string, key: string): Promise<string> =>
    (await service.call("GET", `/v1/actions/${id}`, { key })).body.approval_token;
  async function vote(agent_id: string, grant: object = terms, key = alice, body: object = {}): Promise<Answer> {
    return voteOn((await submit(agent_id)).body.id, grant, key, body);
  }
  async function voteOn(id: string, grant: object = terms, key = alice, body: object = {}): Promise<Answer> {
    const token = await tokenOf(id, alice);
    const voted = { token, approve: true, grant, ...body };
    return service.call("POST", `/v1/actions/${id}/approval`, { key, body: voted });
  }

  test("approves the request and covers later ones, until the task ends", async () => {
    const agent_id = freshAgent();
    const { status, body } = await vote(agent_id);
    assert.deepEqual([status, body.status], [200, "approved"], JSON.stringify(body));
    const [task] = await list(`agent_id=${agent_id}`);
    const [grant] = task.grants;
    assert.deepEqual([task.title, task.status, grant.id], ["release 2.4", "active", body.new_grant.id]);
    assert.deepEqual(grant.free, ["params.*", "context.*"]);
    assert.deepEqual(await statuses(agent_id), ["allowed", "pending_approval"]);
    assert.equal((await end(task.id)).status, 200);
    assert.deepEqual(await statuses(agent_id), OUTSIDE);
  });

  test(
    "ends at a rejection of another operation, a flag, a stop, and the withdrawal of the vote",
    needs("stop"),
    async () => {
      const causes: Record<string, (agent_id: string, voted: Answer["body"]) => Promise<unknown>> = {
        rejection: async (agent_id) =>
          reject((await submit(agent_id, { tool: "mail", operation: "short" })).body.id, bob),
        async flag(agent_id) {
          const { body: use } = await submit(agent_id);
          const body = { action_id: use.id, reason: "not this" };
          await service.call("POST", `/v1/grants/${use.grant}/flag`, { key: bob, body });
        },
        async stop(agent) {
          const { body } = await service.call("POST", "/v1/stop", {
            key: service.admin,
            body: { reason: "drill", agent },
          });
          await service.call("POST", `/v1/stop/${body.id}/lift`, { key: service.admin, body: {} });
        },
        person: (_, { id }) => service.call("POST", `/v1/actions/${id}/withdraw`, { key: alice, body: {} }),
      };
      for (const [cause, bring] of Object.entries(causes)) {
        const agent_id = freshAgent();
        const { body } = await vote(agent_id);
        assert.equal((await submit(agent_id)).body.status, "allowed", cause);
        await bring(agent_id, body);
        assert.equal(await causeOf(agent_id), cause);
        assert.equal((await submit(agent_id)).body.status, "pending_approval", cause);
      }
      assert.deepEqual((await auditStore(service.storage)).faults, []);
    },
  );

  test("a vote that the recorded decision does not accept alone starts nothing", async () => {
    const agent_id = freshAgent();
    const two = {
      policy: "two",
      rules: [{ name: "two", tool: "ci", effect: "require_approval", approval: { quorum: 2 } }],
    };
    const change = (path: string, body?: object) =>
      service.call("POST", `/v1/policies${path}`, { key: service.admin, ...(body === undefined ? {} : { body }) });
    assert.equal((await change("?activate=true", two)).status, 201);
    const { id } = (await submit(agent_id)).body;
    assert.equal((await change("/two/deactivate")).status, 200);
    assert.equal((await voteOn(id)).body.code, "GRANT_NOT_ALLOWED");
    assert.deepEqual([await list(`agent_id=${agent_id}`), await openGrants(agent_id)], [[], []]);
  });

  test("the agent cannot vote for itself, nor with the token of a person, nor can a vote exceed the limits of tasks", async () => {
    const agent_id = freshAgent();
    const own = await makeKey(service, { name: "votes", preset: "agent", agent_id });
    assert.equal((await vote(agent_id, terms, own.key)).body.code, "INSUFFICIENT_SCOPE");
    assert.equal((await vote(agent_id, terms, bob)).body.code, "TOKEN_OTHER_APPROVER", "the token is that of alice");
    const refused: [object, string, number, object?][] = [
      [{ ...terms, for: "5h" }, "/grant/for", 422],
      [{ ...terms, task: " " }, "/grant/task", 422],
      [{ ...terms, task: "a\u202eb" }, "/grant/task", 422],
      [{ ...terms, scope: 'params.repo == "api"' }, "/grant/scope", 422],
      [terms, "/grant", 422, { approve: false }],
    ];
    for (const [grant, pointer, status, body] of refused) {
      const answer = await vote(agent_id, grant, alice, body);
      assert.deepEqual(
        [answer.status, answer.body.errors?.[0].pointer],
        [status, pointer],
        JSON.stringify(answer.body),
      );
    }
    assert.deepEqual([await list(`agent_id=${agent_id}`), await openGrants(agent_id)], [[], []]);
    const uma = await invite(service, { name: "Uma Three", roles: ["approver"] });
    const body = { agent_id, title: "t", for: "1h", operations: [WEB] };
    for (const forged of [{ origin: "http://evil.example" }, { "assent-session": "1" }]) {
      const answer = await uma.call("POST", "/v1/tasks", body, forged as Record<string, string>);
      assert.ok(answer.status === 401 || answer.status === 403, `${JSON.stringify(forged)}: ${answer.status}`);
    }
    // Asked for before a task covers such requests.
    const waiting = (await submit(agent_id)).body.id;
    const signed = { action_id: (await submit(agent_id)).body.id, approve: true, grant: terms };
    const other = { ...signed, grant: { ...terms, task: "release 2.5" } };
    const altered = await uma.call("POST", "/v1/votes", { ...(await signature(uma, [signed])), votes: [other] });
    assert.equal(altered.body.code, "VOTE_SIGNATURE_INVALID");
    assert.deepEqual(await list(`agent_id=${agent_id}`), []);
    assert.equal((await signVotes(uma, [signed])).body.results?.[0].status ?? "approved", "approved");
    assert.equal((await list(`agent_id=${agent_id}`))[0].title, "release 2.4");
    for (let i = 1; i < 10; i++) await started({ agent_id });
    assert.match((await voteOn(waiting)).body.detail, /10 tasks of the agent ".*" are open/);
  });
});

describe("what a task covers", () => {
  test("the listed operations do not ask, and all others ask as usual", async () => {
    const agent_id = freshAgent();
    const { grants } = await started({ agent_id });
    const { body: inside } = await submit(agent_id);
    assert.deepEqual([inside.status, inside.reason_code, inside.grant], ["allowed", "GRANTED", grants[0]?.id]);
    assert.equal((await submit(agent_id, { params: { repo: "api" } })).body.status, "pending_approval");
    assert.equal((await submit(agent_id, { tool: "CI" })).body.status !== "allowed", true);
    assert.equal((await submit(freshAgent())).body.status, "pending_approval");
  });

  test("a template gives the operations and the longest time", async () => {
    const agent_id = freshAgent();
    const { grants, ...task } = (await start({ agent_id, operations: undefined, for: undefined, template: "release" }))
      .body;
    assert.deepEqual([task.template, grants.length, grants[0].scope], ["release", 1, WEB.scope]);
    assert.equal(Date.parse(task.until) - Date.parse(task.started_at), 2 * 3_600_000);
    const longer = await start({ agent_id, operations: undefined, for: "3h", template: "release" });
    assert.deepEqual([longer.status, longer.body.errors[0].pointer], [422, "/for"]);
    for (const [body, pointer] of [
      [{ template: "release" }, "/operations"],
      [{ operations: undefined }, "/operations"],
      [{ operations: undefined, template: "none" }, "/template"],
      [{ for: "5h" }, "/for"],
      [{ for: "soon" }, "/for"],
      [{ for: undefined }, "/for"],
      [{ operations: [{ ...WEB, for: "9h" }] }, "/operations/0/for"],
    ] as const) {
      const answer = await start({ agent_id, ...body });
      assert.deepEqual([answer.status, answer.body.errors?.[0].pointer], [422, pointer], JSON.stringify(answer.body));
    }
  });

  test("a repeated request starts one task, and at most 10 tasks of an agent are open", async () => {
    const agent_id = freshAgent();
    const headers = { "idempotency-key": "task-once" };
    const [first, second] = [await start({ agent_id }, alice, headers), await start({ agent_id }, alice, headers)];
    assert.deepEqual([first.status, second.status, first.body.id], [201, 200, second.body.id]);
    for (let i = 1; i < 10; i++) await started({ agent_id });
    assert.equal((await start({ agent_id: agent_id.toUpperCase() })).body.code, "TOO_MANY_TASKS");
    const page = (await service.call("GET", `/v1/tasks?agent_id=${agent_id}&limit=4`, { key: alice })).body;
    const next = await list(`agent_id=${agent_id}&cursor=${page.next_cursor}`);
    assert.deepEqual([page.tasks.length, next.length, next.at(-1).id], [4, 6, first.body.id]);
  });
});

describe("what ends a task ends all its grants", () => {
  async function assertEnded(agent_id: string, cause: string): Promise<void> {
    assert.deepEqual(await statuses(agent_id), OUTSIDE);
    assert.deepEqual(await openGrants(agent_id), []);
    assert.equal(await causeOf(agent_id), cause);
    assert.deepEqual(await list(`agent_id=${agent_id}&active=true`), []);
  }
  async function withTask(): Promise<string> {
    const agent_id = freshAgent();
    await started({ agent_id });
    assert.deepEqual(await statuses(agent_id), INSIDE);
    return agent_id;
  }

  test("a person ends it, also for what was allowed and not started", async () => {
    const agent_id = freshAgent();
    const { id } = await started({ agent_id });
    const { body: action } = await submit(agent_id);
    assert.equal((await end(id, bob)).body.ended.comment, "done");
    const run = await service.call("POST", `/v1/actions/${action.id}/start`, { key: service.agent, body: {} });
    assert.equal(run.body.code, "MORE_APPROVALS_NEEDED");
    await assertEnded(agent_id, "person");
    assert.equal((await end(id)).body.code, "TASK_ENDED");
    assert.equal((await end("none")).body.code, "TASK_NOT_FOUND");
  });

  test("a rejection of another operation of the agent, under another spelling of its name", async () => {
    const agent_id = await withTask();
    const { body: other } = await submit(agent_id.toUpperCase(), { tool: "mail", operation: "short" });
    await reject(other.id, bob);
    await assertEnded(agent_id, "rejection");
  });

  test("a flag of one use", async () => {
    const agent_id = await withTask();
    const { body: use } = await submit(agent_id);
    const body = { action_id: use.id, reason: "not this" };
    assert.equal((await service.call("POST", `/v1/grants/${use.grant}/flag`, { key: bob, body })).status, 200);
    await assertEnded(agent_id, "flag");
  });

  test("a flag of one use after its grant was revoked", async () => {
    const agent_id = await withTask();
    const { body: use } = await submit(agent_id);
    const path = `/v1/grants/${use.grant}`;
    assert.equal((await service.call("POST", `${path}/revoke`, { key: bob, body: {} })).status, 200);
    const body = { action_id: use.id, reason: "not this" };
    assert.equal((await service.call("POST", `${path}/flag`, { key: bob, body })).status, 200);
    await assertEnded(agent_id, "flag");
    assert.equal((await service.call("POST", `${path}/flag`, { key: bob, body })).body.code, "GRANT_ENDED");
  });

  test("a stop of the agent or of one tool, even after it is lifted", needs("stop"), async () => {
    for (const selector of [{}, { tool: "mail" }, { policy: "work" }]) {
      const agent_id = await withTask();
      const body = { reason: "drill", agent: agent_id, ...selector };
      const stop = await service.call("POST", "/v1/stop", { key: service.admin, body });
      assert.equal(stop.status, 201);
      assert.deepEqual(await openGrants(agent_id), []);
      const lift = await service.call("POST", `/v1/stop/${stop.body.id}/lift`, { key: service.admin, body: {} });
      assert.equal(lift.status, 200);
      await assertEnded(agent_id, "stop");
    }
  });

  test("a suspension of the agent, even after it is resumed", needs("agents"), async () => {
    const agent_id = await withTask();
    await service.call("POST", "/v1/agents", { key: service.admin, body: { id: agent_id, allowed_tools: ["*"] } });
    const send = (change: string, body?: object) =>
      service.call("POST", `/v1/agents/${agent_id}/${change}`, { key: service.admin, body });
    assert.equal((await send("suspend", { reason: "odd" })).status, 200);
    assert.equal((await send("resume")).status, 200);
    await assertEnded(agent_id, "suspension");
  });

  test("the end of the user who started it", async () => {
    const agent_id = freshAgent();
    const uma = await invite(service, { name: "Uma", roles: ["approver"] });
    const body = { agent_id, title: "t", for: "1h", operations: [WEB, MAIL] };
    assert.equal((await uma.call("POST", "/v1/tasks", body)).status, 201);
    assert.deepEqual(await statuses(agent_id), INSIDE);
    await service.call("POST", `/v1/users/${uma.id}/end`, { key: service.admin, body: { reason: "left" } });
    await assertEnded(agent_id, "deactivation");
  });

  test("the id of a rejected action is shown only to those who see the action", async () => {
    const agent_id = `near-${freshAgent()}`;
    await started({ agent_id, operations: [WEB] });
    const { body: hidden } = await submit(agent_id, { tool: "mail", operation: "short" });
    await reject(hidden.id);
    const shownTo = async (key: string) => (await list(`agent_id=${agent_id}`, key))[0].ended;
    assert.equal((await shownTo(alice)).action_id, hidden.id);
    const { cause, action_id } = await shownTo(tim);
    assert.deepEqual([cause, action_id], ["rejection", null]);
  });

  test("lost rights of the person who started it block it until they are back", async () => {
    const agent_id = freshAgent();
    const uma = await invite(service, { name: "Uma Two", roles: ["approver"] });
    const body = { agent_id, title: "t", for: "1h", operations: [WEB, MAIL] };
    assert.equal((await uma.call("POST", "/v1/tasks", body)).status, 201);
    const setRoles = async (roles: string[]): Promise<void> => {
      const changed = await service.call("PATCH", `/v1/users/${uma.id}`, { key: service.admin, body: { roles } });
      assert.equal(changed.status, 200, JSON.stringify(changed.body));
    };
    const statusOf = async (): Promise<string> => (await list(`agent_id=${agent_id}`))[0].status;
    await setRoles(["viewer"]);
    assert.deepEqual([await statusOf(), ...(await statuses(agent_id))], ["blocked", ...OUTSIDE]);
    await setRoles(["approver"]);
    assert.deepEqual([await statusOf(), ...(await statuses(agent_id))], ["active", ...INSIDE]);
  });

  test("a revoked grant narrows the task, which goes on", async () => {
    const agent_id = freshAgent();
    const { grants } = await started({ agent_id });
    await service.call("POST", `/v1/grants/${grants[0]?.id}/revoke`, { key: alice, body: {} });
    assert.deepEqual(await statuses(agent_id), ["pending_approval", "allowed"]);
  });

  test("the audit is clean, and after a restart tasks are as before", async () => {
    const agent_id = freshAgent();
    const { id } = await started({ agent_id });
    assert.deepEqual((await auditStore(service.storage)).faults, []);
    await service.restart();
    assert.deepEqual(await statuses(agent_id), INSIDE);
    await end(id);
    await service.restart();
    await assertEnded(agent_id, "person");
  });

  test("its time", async () => {
    const agent_id = await withTask();
    service.clock.now += 2 * 3_600_000;
    await assertEnded(agent_id, "time");
    assert.deepEqual((await auditStore(service.storage)).faults, []);
  });
});

test("the budget of an operation counts reported usage, and requires approval when it is used up", async () => {
  const agent = freshAgent();
  const sum = { of: "usage.cost_usd", at_most: 10, reserve: 2 };
  for (const wrong of [
    { of: sum.of, at_most: 10 },
    { ...sum, of: "params.n" },
  ])
    assert.equal((await start({ agent_id: agent, operations: [{ ...MAIL, sum: wrong }] })).status, 422);
  await started({ agent_id: agent, operations: [{ ...MAIL, sum }] });
  const send = async (): Promise<{ id: string; status: string }> => {
    const body = { agent_id: agent, tool: "mail", operation: "send", params: { n: ++n } };
    return (await service.call("POST", "/v1/actions", { body })).body;
  };
  const { id } = await send();
  assert.equal((await service.call("POST", `/v1/actions/${id}/start`, { body: {} })).status, 200);
  await service.call("POST", `/v1/actions/${id}/result`, { body: { success: true, usage: { cost_usd: 7 } } });
  const statuses = [await send(), await send()].map(({ status }) => status);
  assert.deepEqual(statuses, ["allowed", "pending_approval"], "7 + 2, and 7 + 4");
  assert.deepEqual((await auditStore(service.storage)).faults, []);
});

test("an action that was allowed requires approval at its start when others have used up the budget of the operation", async () => {
  const agent_id = freshAgent();
  await started({ agent_id, operations: [{ ...MAIL, sum: { of: "usage.cost_usd", at_most: 10, reserve: 2 } }] });
  const send = async (): Promise<string> => {
    const body = { agent_id, tool: "mail", operation: "send", params: { n: ++n } };
    return (await service.call("POST", "/v1/actions", { body })).body.id;
  };
  const [first, second] = [await send(), await send()];
  const start = (id: string) => service.call("POST", `/v1/actions/${id}/start`, { body: { attempt: id } });
  assert.equal((await start(first)).status, 200);
  await service.call("POST", `/v1/actions/${first}/result`, { body: { success: true, usage: { cost_usd: 9 } } });
  assert.equal((await start(second)).body.code, "MORE_APPROVALS_NEEDED", "9 + 2");
  assert.deepEqual((await auditStore(service.storage)).faults, []);
});
