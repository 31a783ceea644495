/** Requests of Claude's inference hooks, in the vendor's published format, and verdicts as the vendor reads them. */
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { Webhook } from "standardwebhooks";
import inferenceHooks from "../../../plugins/inference-hooks/index.ts";
import { approve, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const POLICY = `
policy: claude
rules:
  - { name: reading, tool: claude, operation: [read_file, crm_search], effect: allow }
  - { name: verified connectors, tool: claude, operation: crm_update, effect: allow, when: context.tool_info.?verified_origin.orValue(false) == true }
  - { name: bash by a person, tool: claude, operation: bash, effect: require_approval }
  - { name: harmless prompts, tool: claude.prompt, operation: prompt, effect: allow, when: "!params.text.contains('secret')" }
`;
type Json = Record<string, unknown>;
const newSecret = (): string => `whsec_${randomBytes(32).toString("base64")}`;

/** What the vendor makes of an answer. After a failure, its own setting decides, which can be to allow. */
type Verdict = "allow" | "deny" | "failure";
function read({ status, body }: Answer): Verdict {
  if (status !== 200 || (body?.action !== "allow" && body?.action !== "deny")) return "failure";
  if (body.action === "deny") assert.ok(typeof body.deny_reason === "string" && body.deny_reason.length <= 500);
  if (body.reference_id !== undefined) assert.match(body.reference_id, /^[A-Za-z0-9._:/-]{1,50}$/);
  return body.action;
}

describe("inference hooks", () => {
  const [current, previous] = [newSecret(), newSecret()];
  const options = {
    secrets: [current, previous],
    api_key: "not-a-key",
    tenant: "acme",
    prompts: "allow",
    unknown: "deny",
  };
  let service: Service;
  before(async () => {
    service = await startService({
      policy: POLICY,
      plugins: [{ plugin: inferenceHooks, options, origin: "inference-hooks" }],
    });
  });
  after(() => service.close());

  const use = (tool_name: string, input: unknown, tool_info: Json = { type: "client" }): Json => ({
    type: "tool_use",
    id: `toolu_${randomUUID()}`,
    tool_name,
    input,
    tool_info,
  });
  const frame = (content: unknown[], more: Json = {}): Json => ({
    type: "tool_call",
    request_id: `req_${randomUUID()}`,
    tenant_id: "acme",
    actor: { type: "user", id: "user_01", email_address: "alice@example.com" },
    source: { application: "claude-code" },
    session_id: "s-1",
    model: "claude-opus-5",
    messages: [{ role: "assistant", content }],
    metadata: {},
    ...more,
  });
  const send = (
    sent: Json | string,
    { secret = current, at = Date.now(), id = "", headers = {} } = {},
  ): Promise<Answer> => {
    const raw = typeof sent === "string" ? sent : JSON.stringify(sent);
    const webhookId = id === "" ? String((JSON.parse(raw) as Json)["request_id"]) : id;
    const time = new Date(at);
    return service.call("POST", "/inference-hooks", {
      key: null,
      raw,
      headers: {
        "content-type": "application/json",
        "webhook-id": webhookId,
        "webhook-timestamp": String(Math.floor(at / 1000)),
        "webhook-signature": new Webhook(secret).sign(webhookId, time, raw),
        ...headers,
      },
    });
  };
  const ask = (...content: unknown[]): Promise<Answer> => send(frame(content));
  const newest = async (): Promise<Answer["body"]> =>
    (await service.call("GET", "/v1/actions?limit=1", { key: service.admin })).body.actions[0];
  const size = async (): Promise<number> => (await service.storage.head()).size;

  it("deny every call while the service's own key is not valid, with status 200, so that no failure setting applies", async () => {
    const answer = await ask(use("read_file", { path: "a" }));
    assert.equal(read(answer), "deny");
    assert.match(answer.body.deny_reason, /INVALID_CREDENTIAL/);
    const { inference_hooks: health } = (await service.call("GET", "/readyz", { key: null })).body;
    assert.equal(health.ok, false);
    assert.match(health.detail, /INVALID_CREDENTIAL/);
    options.api_key = service.agent;
    await service.restart();
  });

  it("allow a call after its start is recorded, and name the action", async () => {
    const answer = await ask({ type: "text", text: "I read it." }, use("read_file", { path: "reports/q3.txt" }));
    assert.equal(read(answer), "allow");
    const { id, status, tool, operation, params, context, agent_id } = await newest();
    assert.equal(answer.body.reference_id, id);
    assert.deepEqual(
      [status, tool, operation, params, agent_id],
      ["executing", "claude", "read_file", { path: "reports/q3.txt" }, "claude:user_01"],
    );
    assert.deepEqual(context, {
      caller: { tenant_id: "acme", actor_id: "user_01", actor_email: "alice@example.com" },
      tool_info: { type: "client" },
    });
  });

  it("deny a call that no rule covers, and the whole frame if one of its calls may not run", async () => {
    assert.equal(read(await ask(use("delete_all", {}))), "deny");
    const before = await size();
    assert.equal(read(await ask(use("read_file", { path: "b" }), use("delete_all", {}))), "deny");
    assert.ok((await size()) > before);
    const { status } = (await service.call("GET", "/v1/actions?operation=read_file&limit=1", { key: service.admin }))
      .body.actions[0];
    assert.equal(status, "allowed");
    const update = (verified_origin: boolean): Promise<Answer> =>
      ask(use("crm_update", { n: 1 }, { type: "third_party", origin: "https://crm.example", verified_origin }));
    assert.deepEqual([read(await update(true)), read(await update(false))], ["allow", "deny"]);
  });

  it("deny a call that needs approval at once with a link, join on a retry, and allow it once when it is approved", async () => {
    const bash = (command: string, actor = "user_01"): Promise<Answer> =>
      send(frame([use("bash", { command })], { actor: { type: "user", id: actor, email_address: null } }));
    const waits = await bash("make deploy");
    assert.equal(read(waits), "deny");
    const { id } = await newest();
    assert.match(waits.body.deny_reason, new RegExp(`waits for a person's approval.*/approve#${id}$`));
    assert.equal((await bash("make deploy")).body.reference_id, id);
    await approve(service, id);
    assert.equal(read(await bash("make deploy", "user_02")), "deny", "another person's approval");
    assert.equal(read(await bash("make deploy --force")), "deny", "other arguments");
    assert.equal(read(await bash("make deploy")), "allow");
    assert.equal(read(await bash("make deploy")), "deny", "an approval is for one call");
  });

  it("keep the link whole if the reason is long", async () => {
    const answer = await ask(use("bash", { command: "x".repeat(5000) }), use("bash", { command: "y" }));
    assert.match(answer.body.deny_reason, /\/approve#[\w-]+$/);
    assert.equal(read(await ask(use("o".repeat(200), {}))), "deny");
  });

  it("accept both secrets during a rotation, and no other signature, time or id", async () => {
    const call = (): Json => frame([use("read_file", { path: "c" })]);
    assert.equal(read(await send(call(), { secret: previous })), "allow");
    const before = await size();
    const minutes = 60_000;
    const rejected = [
      send(call(), { secret: newSecret() }),
      send(call(), { at: Date.now() - 6 * minutes }),
      send(call(), { at: Date.now() + 6 * minutes }),
      send(call(), { headers: { "webhook-signature": "" } }),
      send(call(), { headers: { "webhook-id": "other" } }),
      service.call("POST", "/inference-hooks", { key: service.agent, body: call() }),
    ];
    for (const answer of await Promise.all(rejected)) assert.deepEqual([answer.status, read(answer)], [401, "failure"]);
    assert.equal(
      read(await send(call(), { at: Date.now() - 4 * minutes })),
      "allow",
      "the clocks differ by four minutes",
    );
    assert.equal(read(await send(call(), { id: "another-id" })), "deny", "the id is not that of the frame");
    assert.equal(read(await send(frame([use("read_file", {})], { tenant_id: "other" }))), "deny");
    assert.ok((await size()) > before);
  });

  it("decide a request once, also after a restart and if it is signed again", async () => {
    const call = frame([use("read_file", { path: "d" })]);
    const at = Date.now();
    assert.equal(read(await send(call, { at })), "allow");
    for (const again of [at, at + 2000]) {
      assert.match((await send(call, { at: again })).body.deny_reason, /sent before, and each is decided once/);
      await service.restart();
    }
  });

  it("deny a call whose caller or tool_info cannot be read exactly, and name the agent by the e-mail address without an id", async () => {
    const info = (tool_info: unknown): Json => frame([{ ...use("read_file", { path: "f" }), tool_info }]);
    const by = (actor: Json, more: Json = {}): Json => frame([use("read_file", { path: "f" })], { actor, ...more });
    for (const [sent, reason] of [
      [by({ type: "user" }), /neither an id nor an e-mail address/],
      [by({ id: "", email_address: null }), /neither an id nor an e-mail address/],
      [by({ id: "u".repeat(257) }), /id of the actor is not a string of at most 256/],
      [by({ id: 7, email_address: "bob@example.com" }), /id of the actor is not a string/],
      [by({ id: "u", email_address: "b".repeat(257) }), /e-mail address of the actor is not a string/],
      [info("verified"), /tool_info of one of the calls is not an object/],
      [info([]), /tool_info of one of the calls is not an object/],
    ] as const) {
      const answer = await send(sent);
      assert.equal(read(answer), "deny");
      assert.match(answer.body.deny_reason, reason);
    }
    assert.equal(read(await send(by({ email_address: "bob@example.com" }))), "allow");
    assert.equal((await newest()).agent_id, "claude:bob@example.com");
  });

  it("deny what cannot be read, and pass prompts, which are not decided by default", async () => {
    const id = (): string => `req_${randomUUID()}`;
    const twice = `{"type":"tool_call","request_id":"${id()}","tenant_id":"acme","actor":{},"messages":[{"content":[{"type":"tool_use","tool_name":"read_file","input":{"path":"a","path":"b"}}]}]}`;
    for (const sent of [
      frame([]),
      frame([{ type: "text", text: "no call" }]),
      frame([use("read_file", "no object")]),
      frame([{ ...use("read_file", {}), tool_name: null }]),
      frame([use("read_file", {}), { type: "server_tool_use", id: "x" }]),
      frame([use("read_file", { path: "e" }), use("read_file", { path: "e" })]),
      frame(Array.from({ length: 21 }, (_, n) => use("read_file", { n }))),
      frame([use("read_file", {})], { messages: [] }),
      frame([use("read_file", {})], { actor: null }),
      frame([], { type: "response" }),
      twice,
    ])
      assert.equal(read(await send(sent)), "deny", JSON.stringify(sent).slice(0, 200));
    assert.equal(read(await send("[]", { id: id() })), "deny");
    const before = await size();
    const transcript = [{ role: "user", content: [{ type: "text", text: "x".repeat(2_000_000) }] }];
    assert.equal(read(await send(frame([], { type: "prompt", messages: transcript }))), "allow");
    assert.equal(read(await send(frame([], { type: "prompt", source: { application: "config-test" } }))), "allow");
    assert.equal(await size(), before);
  });

  it("decide prompts and pass unknown events if the options say so", async () => {
    Object.assign(options, { prompts: "decide", unknown: "allow" });
    await service.restart();
    const prompt = (text: string): Promise<Answer> =>
      send(frame([], { type: "prompt", messages: [{ role: "user", content: [{ type: "text", text }] }] }));
    assert.deepEqual([read(await prompt("hello")), read(await prompt("the secret"))], ["allow", "deny"]);
    assert.equal(read(await ask(use("prompt", { text: "hello" }))), "deny", "a tool with the name of prompts");
    assert.equal(read(await send(frame([], { type: "response" }))), "allow");
  });

  it("deny a prompt that cannot be read, and bind the decision to all of a prompt", async () => {
    const prompt = (messages: unknown, more: Json = {}): Promise<Answer> =>
      send(frame([], { type: "prompt", messages, ...more }));
    const by = (content: unknown): unknown[] => [{ role: "user", content }];
    const text = { type: "text", text: "hello" };
    for (const messages of [
      undefined,
      [],
      by("the secret"),
      by([]),
      [{ role: "assistant", content: [text] }],
      [...by([text]), "the secret"],
      by([{ type: "text" }]),
      by([{ type: "text", text: ["the secret"] }]),
      by([text, "the secret"]),
      by([text, { type: "image", source: "x" }]),
    ])
      assert.equal(read(await prompt(messages)), "deny", JSON.stringify(messages));
    assert.equal(read(await prompt(by([text]), { actor: { type: "user" } })), "deny", "no actor");
    const id = `req_${randomUUID()}`;
    const twice = `{"type":"prompt","request_id":"${id}","tenant_id":"acme","actor":{"id":"u"},"messages":[{"role":"user","content":[{"type":"text","text":"the secret","text":"hello"}]}]}`;
    assert.equal(read(await send(twice)), "deny", "a member twice");
    const digests = new Set<unknown>();
    for (const content of [
      [text],
      [text, { type: "attachment", name: "a" }],
      [text, { type: "attachment", name: "b" }],
    ]) {
      assert.equal(read(await prompt(by(content))), "allow");
      digests.add((await newest()).params.sha256);
    }
    assert.equal(digests.size, 3);
    const { params, agent_id, context } = await newest();
    assert.deepEqual([params.text, params.truncated, params.types], ["hello", false, ["attachment", "text"]]);
    assert.deepEqual([agent_id, context.caller.actor_email], ["claude:user_01", "alice@example.com"]);
    assert.equal(read(await prompt(by([{ type: "text", text: "x".repeat(20_001) }]))), "allow");
    assert.equal((await newest()).params.truncated, true);
  });

  it("deny a frame with more values or levels than can be parsed, before it is parsed", async () => {
    const padded = (padding: string): string =>
      `{"type":"prompt","request_id":"req_${randomUUID()}","tenant_id":"acme","padding":${padding}}`;
    assert.match((await send(padded(`${"[".repeat(300)}${"]".repeat(300)}`))).body.deny_reason, /deep/);
    assert.match((await send(padded(`[${"0,".repeat(1_000_000)}0]`))).body.deny_reason, /more than 1000000 values/);
  });

  it("answer forty frames at once, each once", async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(use("crm_search", { n }))));
    assert.ok(answers.every((answer) => read(answer) === "allow"));
    const ids = new Set(answers.map(({ body }) => body.reference_id));
    assert.equal(ids.size, 40);
  });

  it("deny in time while the store is stuck, and start no call afterwards", async () => {
    Object.assign(options, { timeout_ms: 100 });
    await service.restart();
    let release = (): void => {};
    // The plugin's timer keeps no process alive.
    const alive = setInterval(() => {}, 1000);
    const held = service.storage.write(() => new Promise<void>((resolve) => (release = resolve)));
    const answer = await ask(use("read_file", { path: "late" }));
    assert.equal(read(answer), "deny");
    assert.match(answer.body.deny_reason, /TOO_LATE.*was not denied; try again later/);
    release();
    await held;
    clearInterval(alive);
    const late = async (): Promise<Answer["body"]> =>
      (await service.call("GET", "/v1/actions?operation=read_file&limit=1", { key: service.admin })).body.actions[0];
    await until("the call is decided", async () => (await late()).params.path === "late");
    assert.equal((await late()).status, "allowed");
  });
});
