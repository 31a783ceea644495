/** The scenario of the AuthZEN certification: levels Basic, Batch and Discovery. Titles name the case numbers. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import authzen from "../../../plugins/authzen/index.ts";
import { approve, makeKey, startService, type Answer, type Service } from "../../support/service.ts";

const FIXTURE = `
policy: records
rules:
  - name: admins write what is archived
    tool: record
    operation: write
    effect: allow
    when: has(params.subject.properties.role) && params.subject.properties.role == "admin" && has(params.resource.properties.status) && params.resource.properties.status == "archived"
  - name: nobody else does
    tool: record
    operation: write
    effect: deny
    when: has(params.resource.properties.status) && params.resource.properties.status == "archived"
  - name: alice writes
    tool: record
    operation: write
    effect: allow
    agent: alice
  - name: alice deletes softly
    tool: record
    operation: delete
    effect: allow
    agent: alice
    when: has(params.action.properties.soft) && params.action.properties.soft == true
  - name: both read
    tool: record
    operation: read
    effect: allow
  - name: a person looks at exports
    tool: record
    operation: export
    effect: require_approval
    approval: { quorum: 1 }
`;

const alice = { type: "user", id: "alice" };
const bob = { type: "user", id: "bob" };
const admin = { ...bob, properties: { role: "admin" } };
const record1 = { type: "record", id: "record-1" };
const archived = { type: "record", id: "record-2", properties: { status: "archived" } };
const read = { name: "read" };
const write = { name: "write" };

describe("an AuthZEN policy decision point", () => {
  let service: Service;
  let key = "";
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    service.call("POST", `/access/v1/${path}`, { key, body, headers });
  const decide = async (subject: object, action: object, resource: object, context?: object): Promise<boolean> => {
    const { status, body } = await post("evaluation", { subject, action, resource, ...(context ? { context } : {}) });
    assert.equal(status, 200, JSON.stringify(body));
    return body.decision;
  };

  before(async () => {
    service = await startService({
      policy: FIXTURE,
      change: (config) => (config.server.public_url = "https://pdp.example/"),
      plugins: [{ plugin: authzen, options: { enabled: true }, origin: "authzen" }],
    });
    const made = await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "gateway", preset: "agent" },
    });
    key = made.body.key;
  });
  after(() => service.close());

  it("decides as the fixture says, by ids and by properties (2.2, 2.6)", async () => {
    const cases: [object, object, object, boolean][] = [
      [alice, read, record1, true],
      [alice, write, record1, true],
      [bob, read, record1, true],
      [bob, write, record1, false],
      [alice, write, archived, false],
      [admin, write, archived, true],
      [alice, { name: "delete", properties: { soft: true } }, record1, true],
      [alice, { name: "delete", properties: { soft: false } }, record1, false],
    ];
    for (const [subject, action, resource, expected] of cases)
      for (let time = 0; time < 3; time++)
        assert.equal(await decide(subject, action, resource), expected, JSON.stringify({ subject, action, resource }));
    assert.equal(await decide(alice, read, record1, { time: "2025-06-27T18:03-07:00", ip: "192.168.1.1" }), true);
  });

  it("records each permission as started before returning it", async () => {
    const { body } = await post("evaluation", { subject: alice, action: read, resource: record1 });
    const action = await service.call("GET", `/v1/actions/${body.context.evaluation_id}`, { key });
    assert.deepEqual([action.body.status, action.body.agent_id, action.body.tool], ["executing", "alice", "record"]);
  });

  it("accepts unknown properties and members (2.2.8, 2.2.9)", async () => {
    const { status, body } = await post("evaluation", {
      subject: { ...alice, properties: { department: "Sales" } },
      action: { ...read, properties: { method: "GET" } },
      resource: { ...record1, properties: { status: "active" } },
      foo: "bar",
      futureField: { nested: true },
    });
    assert.deepEqual([status, body.decision], [200, true]);
  });

  it("returns 400 for missing members, wrong types and invalid JSON (2.4)", async () => {
    const whole = { subject: alice, action: read, resource: record1 };
    for (const body of [
      { ...whole, subject: undefined },
      { ...whole, action: undefined },
      { ...whole, resource: undefined },
      { ...whole, subject: { id: "alice" } },
      { ...whole, subject: { type: "user" } },
      { ...whole, action: {} },
      { ...whole, resource: { id: "record-1" } },
      { ...whole, resource: { type: "record" } },
      { ...whole, subject: "alice" },
      { ...whole, action: { name: 123 } },
      { ...whole, context: "now" },
      { ...whole, resource: { ...record1, type: `rec\u200bord` } },
    ])
      for (const path of ["evaluation", "evaluations"]) {
        const { status, body: answer } = await post(path, body);
        assert.deepEqual([path, status, answer.decision], [path, 400, undefined], JSON.stringify(body));
      }
    const raw = (text: string, type = "application/json"): Promise<Answer> =>
      service.call("POST", "/access/v1/evaluation", { key, raw: text, headers: { "content-type": type } });
    for (const answer of [
      await raw(JSON.stringify(whole), "text/plain"),
      await raw("{"),
      await raw(""),
      await raw('{"subject":{"type":"user","id":"bob"},"subject":{"type":"user","id":"alice"}}'),
      await raw(JSON.stringify({ ...whole, context: { text: "x".repeat(70_000) } })),
    ])
      assert.equal(answer.status, 400);
  });

  it("names the caller's member that is not a valid agent id", async () => {
    for (const id of ["x".repeat(257), "a\u200db", "\ufb01le"]) {
      const { status, body } = await post("evaluation", {
        subject: { type: "user", id },
        action: read,
        resource: record1,
      });
      assert.equal(status, 400);
      assert.match(body.error as string, /subject\.id/);
      assert.doesNotMatch(body.error as string, /agent_id/);
    }
  });

  it("returns the client's request id (2.5)", async () => {
    const body = { subject: alice, action: read, resource: record1 };
    assert.equal((await post("evaluation", body, { "x-request-id": "abc 1" })).headers.get("x-request-id"), "abc 1");
    assert.equal((await post("evaluation", {}, { "x-request-id": "abc-2" })).headers.get("x-request-id"), "abc-2");
    assert.match((await post("evaluation", body)).headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/);
  });

  it("evaluates several requests, with defaults and in order (3.2)", async () => {
    const decisions = async (body: object): Promise<boolean[]> => {
      const { status, body: answer } = await post("evaluations", body);
      assert.equal(status, 200, JSON.stringify(answer));
      return answer.evaluations.map(({ decision }: { decision: boolean }) => decision);
    };
    const both = [{ action: read }, { action: write }];
    assert.deepEqual(await decisions({ subject: bob, resource: record1, evaluations: both }), [true, false]);
    assert.deepEqual(
      await decisions({
        subject: alice,
        action: write,
        evaluations: [{ resource: record1 }, { resource: archived }],
      }),
      [true, false],
    );
    assert.deepEqual(
      await decisions({
        action: write,
        resource: archived,
        evaluations: [{ subject: alice }, { subject: admin }],
      }),
      [false, true],
    );
    assert.deepEqual(
      await decisions({ subject: alice, action: write, resource: record1, evaluations: [{}, { resource: archived }] }),
      [true, false],
    );
    // An unreadable evaluation is denied, and the others are decided (3.4.1).
    assert.deepEqual(await decisions({ subject: alice, action: read, evaluations: [{ resource: record1 }, {}] }), [
      true,
      false,
    ]);
    // Without evaluations the request is a single one (3.4.2, 3.4.3).
    for (const more of [{}, { evaluations: [] }])
      assert.equal(
        (await post("evaluations", { subject: alice, action: read, resource: record1, ...more })).body.decision,
        true,
      );
    const stopping = (evaluations_semantic: string, evaluations: object[]): Promise<boolean[]> =>
      decisions({ subject: bob, resource: record1, options: { evaluations_semantic }, evaluations });
    assert.deepEqual(await stopping("deny_on_first_deny", [{ action: read }, { action: write }, { action: read }]), [
      true,
      false,
    ]);
    assert.deepEqual(
      await stopping("permit_on_first_permit", [{ action: write }, { action: read }, { action: read }]),
      [false, true],
    );
    assert.equal(
      (await post("evaluations", { options: { evaluations_semantic: "some" }, evaluations: [{}] })).status,
      400,
    );
    const many = Array.from({ length: 51 }, () => ({ subject: bob, action: read, resource: record1 }));
    assert.equal((await post("evaluations", { evaluations: many })).status, 400);
  });

  it("publishes its endpoints (6)", async () => {
    const { status, body } = await service.call("GET", "/.well-known/authzen-configuration", { key: null });
    assert.equal(status, 200);
    assert.equal(body.policy_decision_point, "https://pdp.example");
    assert.equal(body.access_evaluation_endpoint, "https://pdp.example/access/v1/evaluation");
    for (const what of ["subject", "resource", "action"]) {
      // Section 9.1.1: endpoints that are not in the metadata are not supported.
      assert.ok(!(`search_${what}_endpoint` in body), "search is not offered");
      const request = { subject: alice, action: read, resource: record1 };
      const search = await service.call("POST", `/access/v1/search/${what}`, { body: request });
      assert.deepEqual([search.status, "results" in search.body], [404, false]);
    }
  });

  it("rejects callers without a key, and denies while the service cannot decide", async () => {
    const body = { subject: alice, action: read, resource: record1 };
    for (const wrong of [null, "assent_wrong"]) {
      const { status, body: answer } = await service.call("POST", "/access/v1/evaluation", { key: wrong, body });
      assert.deepEqual([status, answer.decision], [401, undefined]);
    }
    const made = await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "bound", preset: "agent", agent_id: "support-bot" },
    });
    const bound = await service.call("POST", "/access/v1/evaluation", { key: made.body.key, body });
    assert.equal(bound.body.decision, true);
    const { body: action } = await service.call("GET", `/v1/actions/${bound.body.context.evaluation_id}`, {
      key: service.admin,
    });
    assert.equal(action.agent_id, "support-bot", "a bound key asks for its own agent, whatever the subject");
  });

  it("returns an access request for a pending action, and permits once after the approval", async () => {
    const asked = { subject: alice, action: { name: "export" }, resource: record1, context: { why: "audit" } };
    const first = await post("evaluation", asked);
    assert.deepEqual([first.status, first.body.decision, first.body.context.reason], [200, false, "approval_required"]);
    const { evaluation_id, access_request } = first.body.context;
    assert.equal(
      (await post("evaluation", asked)).body.context.evaluation_id,
      evaluation_id,
      "asked again it is the same",
    );

    const denial = { evaluation_id, expires_at: access_request.expires_at, reason: "approval_required" };
    for (const other of [
      { ...asked, resource: { ...record1, id: "record-9" } },
      { ...asked, context: {} },
      { ...asked, subject: bob },
    ]) {
      const { status, body } = await post("requests", { ...other, denial });
      assert.deepEqual([status, body.type.split(":").at(-1)], [400, "invalid_denial_binding"]);
    }
    assert.equal((await post("requests", { ...asked, denial: { ...denial, evaluation_id: "x" } })).status, 400);
    const task = await post("requests", {
      ...asked,
      context: { ...asked.context, business_justification: "q4" },
      denial,
    });
    assert.deepEqual([task.status, task.body.task.status, task.body.task.id], [202, "pending", evaluation_id]);

    await approve(service, evaluation_id);
    const path = new URL(task.body.task.status_endpoint).pathname;
    const approved = await service.call("GET", path, { key });
    assert.deepEqual([approved.body.task.status, approved.body.result.mode], ["approved", "reevaluate"]);
    const { approval } = approved.body.result;

    // An approval covers only the approved request.
    const swapped = await post("evaluation", {
      ...asked,
      resource: { ...record1, id: "record-9" },
      context: { ...asked.context, approval },
    });
    assert.deepEqual([swapped.body.decision, swapped.body.context.next_action], [false, "request"]);

    const again = { ...asked, context: { ...asked.context, approval } };
    const permitted = await post("evaluation", again);
    assert.deepEqual([permitted.body.decision, permitted.body.context.evaluation_id], [true, evaluation_id]);
    const used = await post("evaluation", again);
    assert.deepEqual([used.body.decision, used.body.context.next_action], [false, "request"]);
    const cancelled = await service.call(
      "POST",
      `${path.replace(evaluation_id, used.body.context.evaluation_id)}/cancel`,
      {
        key,
      },
    );
    assert.deepEqual([cancelled.status, cancelled.body.task.status], [200, "cancelled"]);
    const late = await service.call("POST", `${path}/cancel`, { key });
    assert.deepEqual([late.status, late.body.type.split(":").at(-1)], [409, "invalid_task_state"]);
    assert.equal((await service.call("GET", "/access/v1/requests/nothing", { key })).status, 404);
  });
});

it("returns only the decision if configured so", async () => {
  const service = await startService({
    policy: FIXTURE,
    plugins: [{ plugin: authzen, options: { enabled: true, answers: "decision" }, origin: "authzen" }],
  });
  try {
    const { key } = await makeKey(service, { name: "gateway", preset: "agent" });
    const post = (path: string, body: object): Promise<Answer> =>
      service.call("POST", `/access/v1/${path}`, { key, body });
    const evaluation = { subject: bob, action: write, resource: record1 };
    assert.deepEqual((await post("evaluation", evaluation)).body, { decision: false });
    const batch = { subject: bob, resource: record1, evaluations: [{ action: read }, { action: write }, {}] };
    const decisions = [{ decision: true }, { decision: false }, { decision: false }];
    assert.deepEqual((await post("evaluations", batch)).body, { evaluations: decisions });
  } finally {
    await service.close();
  }
});

it("publishes no address that the client chose: without a public URL there is no metadata", async () => {
  const service = await startService({
    policy: FIXTURE,
    plugins: [{ plugin: authzen, options: { enabled: true }, origin: "authzen" }],
  });
  try {
    const headers = { host: "evil.example", "x-forwarded-host": "evil.example" };
    const metadata = await service.call("GET", "/.well-known/authzen-configuration", { key: null, headers });
    assert.deepEqual([metadata.status, metadata.body.code], [404, "NOT_FOUND"]);
    assert.match(metadata.body.detail as string, /server\.public_url/);
    const { key } = await makeKey(service, { name: "gateway", preset: "agent" });
    const body = { subject: alice, action: { name: "export" }, resource: record1 };
    const waits = await service.call("POST", "/access/v1/evaluation", { key, headers, body });
    assert.equal(waits.body.context.access_request.endpoint, "/access/v1/requests");
  } finally {
    await service.close();
  }
});
