/** Requests of LiteLLM's generic guardrail about a model's answer, in its format. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import litellm from "../../../plugins/litellm/index.ts";
import { type GateRequest, submitAndStartAll } from "../../../plugins/actions/gateway/gate.ts";
import { approve, makeKey, startService, type Answer, type Service } from "../../support/service.ts";
import { eventually } from "../../support/wait.ts";

const POLICY = `
policy: tools
rules:
  - { name: small refunds, tool: litellm, operation: refund, effect: allow, when: params.amount <= 100 }
  - { name: larger ones by a person, tool: litellm, operation: refund, effect: require_approval, when: params.amount <= 1000 }
  - { name: the clock, tool: litellm, operation: now, effect: allow, when: size(params) == 0 }
`;
const PATH = "/litellm/beta/litellm_basic_guardrail_api";
type Json = Record<string, unknown>;

describe("a guardrail request of LiteLLM", () => {
  let service: Service;
  before(async () => {
    service = await startService({
      policy: POLICY,
      plugins: [{ plugin: litellm, options: { enabled: true }, origin: "litellm" }],
    });
  });
  after(() => service.close());

  const calling = (name: string, args: unknown): Json => ({
    id: "call_1",
    type: "function",
    function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
  });
  const refund = (amount: unknown): Json => calling("refund", { amount });
  const question = (tool_calls: unknown, more: Json = {}): Json => ({
    input_type: "response",
    litellm_call_id: "c-1",
    texts: ["I will do that."],
    images: null,
    tools: null,
    structured_messages: null,
    request_data: { user_api_key_hash: "a".repeat(64), user_api_key_alias: "support", user_api_key_user_id: null },
    additional_provider_specific_params: {},
    tool_calls,
    ...more,
  });
  const post = (raw: string, key: string | null = service.agent): Promise<Answer> =>
    service.call("POST", PATH, { key, raw });
  const ask = async (...calls: Json[]): Promise<Answer["body"]> => {
    const { status, body } = await post(JSON.stringify(question(calls)));
    assert.equal(status, 200);
    return body;
  };
  const newest = async (): Promise<Answer["body"]> =>
    (await service.call("GET", "/v1/actions?limit=1", { key: service.admin })).body.actions[0];
  const count = async (): Promise<number> => (await service.storage.head()).size;

  it("passes allowed calls, each after its start is recorded", async () => {
    assert.deepEqual(await ask(refund(5)), { action: "NONE" });
    const { status, tool, operation, params, context } = await newest();
    const caller = { key_hash: "a".repeat(64), key_alias: "support" };
    assert.deepEqual(
      [status, tool, operation, params, context],
      ["executing", "litellm", "refund", { amount: 5 }, { caller }],
    );
    assert.deepEqual(await ask(refund(6), refund(7), calling("now", "")), { action: "NONE" });
    const { body } = await service.call("GET", "/v1/actions?limit=3", { key: service.admin });
    assert.deepEqual(
      body.actions.map((action: Answer["body"]) => action.status),
      ["executing", "executing", "executing"],
    );
  });

  it("passes an answer without calls, and records nothing", async () => {
    const before = await count();
    for (const calls of [null, []])
      assert.deepEqual((await post(JSON.stringify(question(calls)))).body, { action: "NONE" });
    assert.equal(await count(), before);
  });

  it("blocks and starts no call if one of them is not allowed", async () => {
    const words = (await ask(refund(8), refund(5000))).blocked_reason;
    assert.match(words, /^Not run: .*\(NO_MATCH|DENIED/);
    const { body } = await service.call("GET", "/v1/actions?status=executing&limit=100", { key: service.admin });
    assert.ok(!body.actions.some((action: Answer["body"]) => action.params.amount === 8));
  });

  it("passes once after approval, with the same arguments, also next to allowed calls", async () => {
    const waits = await ask(refund(9), refund(500));
    assert.match(waits.blocked_reason, /waits for approval.*not denied.*same arguments/);
    const id = /action ([0-9a-f-]{36})/.exec(waits.blocked_reason)?.[1] ?? "";
    await approve(service, id);
    assert.equal((await ask(refund(501))).action, "BLOCKED");
    assert.equal((await ask(refund(500), refund(5000))).action, "BLOCKED");
    const after = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
    assert.equal(after.body.status, "approved", "the approval is kept for an answer that passes");
    assert.deepEqual(await ask(refund(500), refund(9)), { action: "NONE" });
    assert.equal((await ask(refund(500))).action, "BLOCKED");
  });

  it("keeps calls of different LiteLLM keys apart, and of different end users, teams and organizations of one key", async () => {
    const as = (caller: Json, amount: number): Promise<Answer> =>
      post(JSON.stringify(question([refund(amount)], { request_data: { user_api_key_hash: "b", ...caller } })));
    for (const [i, name] of ["hash", "end_user_id", "user_id", "team_id", "org_id"].entries()) {
      const by = (value: string): Promise<Answer> => as({ [`user_api_key_${name}`]: value }, 600 + i);
      const id = /action ([0-9a-f-]{36})/.exec((await by("ada")).body.blocked_reason)?.[1] ?? "";
      await approve(service, id);
      assert.equal((await by("bob")).body.action, "BLOCKED", name);
      if (name !== "hash") assert.equal((await as({}, 600 + i)).body.action, "BLOCKED", name);
      assert.equal((await by("ada")).body.action, "NONE", name);
    }
  });

  it("needs a key that is bound to an agent, and ignores agent names from LiteLLM", async (t) => {
    const open = await startService({
      policy: POLICY,
      plugins: [{ plugin: litellm, options: { enabled: true }, origin: "litellm" }],
      change(config) {
        config.agents = "any";
      },
    });
    t.after(() => open.close());
    const { body } = await open.call("POST", PATH, { key: open.admin, raw: JSON.stringify(question([refund(5)])) });
    assert.deepEqual(body, { action: "NONE" });
    const { body: list } = await open.call("GET", "/v1/actions?limit=1", { key: open.admin });
    assert.equal(list.actions[0].agent_id, "litellm:support");
  });

  it("blocks calls that are incomplete or ambiguous, and records nothing", async () => {
    const before = await count();
    const one = question([refund(5)]);
    const { tool_calls: _, ...silent } = one;
    for (const body of [
      silent,
      { ...one, input_type: "request" },
      { ...one, input_type: undefined },
      { ...one, tool_calls: "refund" },
      { ...one, tool_calls: { "0": refund(5) } },
      { ...one, tool_calls: Array.from({ length: 21 }, (_each, amount) => refund(amount + 1)) },
      question([refund(5), refund(5)]),
      question([refund(5)], { request_data: undefined }),
      question([refund(5)], { request_data: {} }),
      question([refund(5)], { request_data: { user_api_key_alias: "support" } }),
      question([refund(5)], { request_data: { user_api_key_hash: "", user_api_key_end_user_id: "ada" } }),
      question([refund(5)], { request_data: { user_api_key_hash: "b", user_api_key_end_user_id: 7 } }),
      question([{ ...refund(5), type: "mcp" }]),
      question([{ id: "x", type: "function" }]),
      question([calling("", {})]),
      question([{ type: "function", function: { name: "refund", arguments: { amount: 5 } } }]),
      question([calling("refund", '{"amount":5,"amount":5000}')]),
      question([calling("refund", '{"amount":5')]),
      question([calling("refund", '{"amount":5} {"amount":5000}')]),
      question([calling("refund", "[5]")]),
    ]) {
      const { status, body: answer } = await post(JSON.stringify(body));
      assert.deepEqual([status, answer.action], [200, "BLOCKED"], JSON.stringify(body));
      assert.match(answer.blocked_reason, /cannot be decided/);
    }
    for (const raw of ["", "[]", "null", '{"input_type":"response","tool_calls":[],"tool_calls":null}'])
      assert.equal((await post(raw)).body.action, "BLOCKED", raw);
    assert.equal(await count(), before);
  });

  it("blocks with a status that LiteLLM never ignores if the service cannot decide", async () => {
    const raw = JSON.stringify(question([refund(5)]));
    for (const answer of [
      await post(raw, null),
      await post(raw, "wrong"),
      await post(JSON.stringify(question([refund(5)], { texts: ["x".repeat(2_000_000)] }))),
    ])
      assert.deepEqual([answer.status, answer.body.action], [200, "BLOCKED"]);
    assert.notEqual((await service.call("GET", PATH)).body.action, "NONE");
    const left = new Request(`http://assent.test${PATH}`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.agent}` },
      body: raw,
      signal: AbortSignal.abort(),
    });
    const gone = (await (await service.runtime.fetch(left)).json()) as Json;
    assert.equal(gone["action"], "BLOCKED");
    assert.notEqual((await newest()).status, "executing");
  });

  it("reports who rejected a call while it waited, and why", async (t) => {
    const patient = await startService({
      policy: POLICY,
      plugins: [{ plugin: litellm, options: { enabled: true, wait_seconds: 60 }, origin: "litellm" }],
    });
    t.after(() => patient.close());
    const { key } = await makeKey(patient, { name: "alice", preset: "approver", owner: "alice" });
    const answer = patient.call("POST", PATH, { raw: JSON.stringify(question([refund(700)])) });
    const pending = await eventually(
      async () => (await patient.call("GET", "/v1/approvals", { key })).body.actions[0] as Answer["body"],
      () => "the call does not wait",
    );
    const { body: action } = await patient.call("GET", `/v1/actions/${pending.id}`, { key });
    const vote = { token: action.approval_token, approve: false, reason: "use the small refund" };
    assert.equal((await patient.call("POST", `/v1/actions/${pending.id}/approval`, { key, body: vote })).status, 200);
    const { action: outcome, blocked_reason: words } = (await answer).body;
    assert.equal(outcome, "BLOCKED");
    assert.match(words, /^Not run: rejected by alice: use the small refund \[action /);
  });

  it("waits for approvals once for all calls", async () => {
    const waits: number[] = [];
    const call: Parameters<typeof submitAndStartAll>[0] = {
      request: new Request("http://assent.test/"),
      async callApi(_method, path, { headers = {} } = {}) {
        const answer = (json: unknown) => ({ status: 200, headers: new Headers(), json });
        if (path === "/v1/me") return answer({ key: { agent_id: null } });
        // Approved just before the timeout.
        const wait = Number(/^wait=([0-9]+)$/.exec(headers["Prefer"] ?? "wait=0")?.[1]);
        waits.push(wait);
        await new Promise((resolve) => setTimeout(resolve, wait * 1000));
        return answer({ id: "x", status: "approved", decision: "require_approval" });
      },
    };
    const requests = [1, 2, 3].map((amount) => ({ agent_id: "a", tool: "t", operation: "o", params: { amount } }));
    assert.equal((await submitAndStartAll(call, requests, 1)).passed, true);
    assert.deepEqual([waits[0], waits.reduce((sum, each) => sum + each, 0)], [1, 1]);
  });

  it("withdraws the first start if another client started the second call", async () => {
    const request = (amount: number): GateRequest => ({
      agent_id: "support-bot",
      tool: "litellm",
      operation: "refund",
      params: { amount },
    });
    const { body: waits } = await service.call("POST", "/v1/actions", { body: request(700) });
    await approve(service, waits.id);
    let first = "";
    const call: Parameters<typeof submitAndStartAll>[0] = {
      request: new Request("http://assent.test/"),
      async callApi(method, path, { json } = {}) {
        const { status, headers, body } = await service.call(method, path, json === undefined ? {} : { body: json });
        if (path.endsWith("/start") && first === "") {
          first = body.id;
          await service.call("POST", `/v1/actions/${waits.id}/start`, { body: {} });
        }
        return { status, headers, json: body };
      },
    };
    const { passed, outcomes: verdicts } = await submitAndStartAll(call, [request(10), request(700)]);
    assert.deepEqual([passed, verdicts.map(({ kind }) => kind)], [false, ["wait"]]);
    const { body } = await service.call("GET", `/v1/actions/${first}`, { key: service.admin });
    assert.equal(body.status, "failed");
    assert.match(body.result.error, /^not run/);
  });
});
