/**
 * Result rules: what they find and replace, what clients get, and the labels that later decisions read.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import { makeKey, startService, type Answer, type Service } from "../../support/service.ts";
import { LABELS } from "../../../plugins/results/entry.ts";
import { applyLabels, findLabelEnd, NO_LABELS } from "../../../plugins/results/state.ts";
import type { PluginEntry } from "../../../src/core.ts";
import { auditStore } from "../../../src/testing/index.ts";

const POLICY = `policy: work
rules:
  - name: mail after outside content
    tool: mail
    operation: send
    when: '"external_content" in session.labels'
    effect: require_approval
  - { name: others, effect: allow }
results:
  - { name: of bosses, agent: "boss*", tool: shared, effect: withhold }
  - { name: outside, tool: web, effect: allow, labels: [external_content] }
  - name: keys
    tool: [web, files, chat]
    match: { pattern: 'AKIA[0-9A-Z]{16}' }
    effect: redact
    labels: [secret]
  - { name: cards, tool: files, match: { pattern: '\\b4[0-9]{15}\\b' }, effect: redact, replacement: <card> }
  - { name: numbers, tool: crm, effect: redact, members: [result.customer.ssn, result.rows.*.email] }
  - { name: large, tool: files, match: { larger_than: 100000 }, effect: withhold, reason: too large for the agent }
  - { name: pictures, tool: files, match: { type: "image/*" }, effect: withhold }
  - { name: hard, tool: hard, match: { pattern: ['(x+x+)+y', 'a[ab]{20}c', '(a|ab|abc)*d'] }, effect: redact, replacement: '#' }
  - { name: odd, tool: odd, effect: redact, members: [result.a], replacement: $& }
  - { name: first, tool: both, match: { pattern: '"id":"[^"]*"' }, effect: redact }
  - { name: second, tool: both, effect: redact, members: [result.customer] }
  - { name: internal, tool: db, match: { when: 'result.rows.size() > params.most' }, effect: withhold }
`;
const KEY = "AKIAIOSFODNN7EXAMPLE";
const text = (value: string) => ({ type: "text", text: value });

let service: Service;
let n = 0;
before(async () => {
  service = await startService({ policy: POLICY });
});
after(() => service.close());

const freshAgent = (): string => `bot-${++n}`;
const call = (path: string, body: object, key = service.agent, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", path, { key, body, headers });
const submit = (agent_id: string, tool: string, more: object = {}, headers = {}): Promise<Answer> =>
  call("/v1/actions", { agent_id, tool, operation: "read", params: { most: 2, n: ++n }, ...more }, undefined, headers);
async function started(
  agent_id: string,
  tool: string,
  headers: Record<string, string> = {},
  how: object = { inspects: true },
): Promise<string> {
  const { body } = await submit(agent_id, tool, {}, headers);
  const start = await call(`/v1/actions/${body.id}/start`, how);
  assert.equal(start.status, 200, JSON.stringify(start.body));
  return body.id;
}
const inspect = (id: string, output: unknown, more: object = {}): Promise<Answer> =>
  call(`/v1/actions/${id}/inspect`, { output, ...more });
async function inspected(tool: string, output: unknown, more: object = {}): Promise<Answer["body"]> {
  const answer = await inspect(await started(freshAgent(), tool), output, more);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}
const report = (id: string): Promise<Answer> => call(`/v1/actions/${id}/result`, { success: true });
const send = async (agent: string, headers = {}): Promise<string> =>
  (await submit(agent, "mail", { operation: "send" }, headers)).body.status;

test("a label can have the name of a member that every object inherits", () => {
  const at = "2026-01-01T00:00:00.000Z";
  const entry = { type: LABELS, agent_id: "bot", at, data: { session: null, labels: ["other"], until: at } };
  const state = applyLabels(NO_LABELS, entry as unknown as PluginEntry);
  assert.equal(findLabelEnd({ state: () => state as never }, "bot", undefined, "constructor"), 0);
});

describe("what is asked for", () => {
  test("an action has `inspect` only if a result rule applies to it", async () => {
    for (const [tool, asked] of [
      ["web", true],
      ["WEB", true],
      ["shell", undefined],
    ] as const) {
      const { body } = await submit(freshAgent(), tool);
      assert.equal(body.inspect, asked, tool);
      assert.equal((await call(`/v1/actions/${body.id}/start`, {})).body.inspect, asked, tool);
      assert.equal((await report(body.id)).body.inspect, undefined);
    }
  });

  test("an output without a matching rule passes, and nothing is recorded if no rule applies", async () => {
    assert.deepEqual(await inspected("files", "hello"), {
      verdict: "allow",
      labels: [],
      rule: null,
      reason: null,
    });
    const id = await started(freshAgent(), "shell");
    const before = (await service.storage.head()).size;
    assert.equal((await inspect(id, KEY)).body.verdict, "allow");
    assert.equal((await service.storage.head()).size, before);
  });
});

describe("what patterns find", () => {
  test("matches in texts, members and numbers are replaced, in MCP results too", async () => {
    const { verdict, output, reason, rule, labels } = await inspected("files", {
      content: [text(`a ${KEY} b ${KEY}`), { type: "resource", resource: { uri: "file:///x", text: KEY } }],
      structuredContent: { key: KEY, card: 4111111111111111, id: 7 },
      isError: true,
    });
    assert.deepEqual([verdict, rule, labels], ["redact", { policy: "work", rule: "keys" }, ["secret"]]);
    assert.equal(reason, 'redacted by rule "keys" of policy "work"');
    assert.deepEqual(output, {
      content: [
        text("a [redacted] b [redacted]"),
        { type: "resource", resource: { uri: "file:///x", text: "[redacted]" } },
      ],
      structuredContent: { key: "[redacted]", card: "<card>", id: 7 },
      isError: true,
    });
  });

  test("zero-width, full-width and directional characters do not hide a match", async () => {
    for (const hidden of [
      "AKIA\u200bIOSFODNN7EXAMPLE",
      "ＡＫＩＡIOSFODNN7EXAMPLE",
      "AK\u202eIAIOSFOD\u00adNN7EXAMPLE",
      "AKIAIOSFODNN7EXAMPL\u{1d5a4}",
    ]) {
      const { output } = await inspected("files", `before ${hidden} after`);
      assert.equal(output, "before [redacted] after", hidden);
    }
  });

  test("a match that is split over content items, or is the name of a member, is withheld", async () => {
    for (const output of [
      { content: [text("AKIAIOSF"), text("ODNN7EXAMPLE")] },
      [text("AKIAIOSF"), { type: "image", data: "" }, text("ODNN7EXAMPLE")],
      { content: [text("AKIAIOSF"), { type: "resource", resource: { uri: "a:b", text: "ODNN7EXAMPLE" } }] },
      {
        contents: [
          { uri: "a:b", text: "AKIAIOSF" },
          { uri: "a:c", text: "ODNN7EXAMPLE" },
        ],
      },
      {
        messages: [
          { role: "user", content: text("AKIAIOSF") },
          { role: "user", content: text("ODNN7EXAMPLE") },
        ],
      },
      {
        messages: [
          { role: "user", content: "AKIAIOSF" },
          { role: "user", content: [text("ODNN7EXAMPLE")] },
        ],
      },
      { [KEY]: 1 },
    ]) {
      const body = await inspected("files", output);
      assert.deepEqual([body.verdict, "output" in body], ["withhold", false], JSON.stringify(output));
    }
  });

  test("encoded and look-alike texts are not found, as the documentation says", async () => {
    for (const encoded of [btoa(KEY), "\u0410KIAIOSFODNN7EXAMPLE", KEY.split("").join(" ")])
      assert.equal((await inspected("files", encoded)).verdict, "allow", encoded);
  });

  test("members are replaced, also in JSON texts and where their values occur again", async () => {
    const data = { customer: { ssn: "078-05-1120", name: "Ada" }, rows: [{ email: "a@example.com", id: 1 }] };
    const hidden = { customer: { ssn: "[redacted]", name: "Ada" }, rows: [{ email: "[redacted]", id: 1 }] };
    assert.deepEqual((await inspected("crm", data)).output, hidden);
    const { output } = await inspected("crm", {
      content: [text(JSON.stringify(data)), text("SSN 078-05-1120")],
      structuredContent: data,
    });
    assert.deepEqual(output, {
      content: [text(JSON.stringify(hidden)), text("SSN [redacted]")],
      structuredContent: hidden,
    });
    assert.equal((await inspected("crm", { customer: { name: "Ada" } })).verdict, "allow");
  });

  test("escapes in a text that is JSON hide nothing, and its other parts stay exact", async () => {
    const escaped = (value: string): string => `{"id":1234567890123456789,"key":"${value}"}`;
    const { output } = await inspected("files", { content: [text(escaped(KEY))] });
    assert.deepEqual(output, { content: [text(escaped("[redacted]"))] });
    const card =
      '{"card":4111111111111111,"key":"\\u0041KIAIOSFODNN7EXAMPLE","nested":"[\\"\\\\u0041KIAIOSFODNN7EXAMPLE\\"]"}';
    assert.equal(
      (await inspected("files", card)).output,
      '{"card":"<card>","key":"[redacted]","nested":"[\\"[redacted]\\"]"}',
    );
    // What cannot be replaced exactly is withheld.
    assert.equal((await inspected("files", escaped("\\u0041KIAIOSFODNN7EXAMPLE"))).verdict, "withhold");
  });

  test("members in a text are replaced if it has a byte order mark or large numbers, and withheld if one occurs twice", async () => {
    const customer = '{"customer":{"ssn":"078-05-1120"}}';
    assert.equal((await inspected("crm", `\ufeff${customer}`)).output, '{"customer":{"ssn":"[redacted]"}}');
    for (const output of [
      '{"id":1234567890123456789,"customer":{"ssn":"078-05-1120"}}',
      '{"customer":{"ssn":"078-05-1120"},"customer":{}}',
    ])
      assert.equal((await inspected("crm", output)).verdict, "withhold", output);
    assert.equal((await inspected("crm", '{"id":1234567890123456789}')).verdict, "allow");
    assert.equal((await inspected("web", '{"a":1,"a":{}}')).verdict, "withhold");
  });

  test("a removed value is replaced behind escapes and in other members, whatever the replacement is", async () => {
    const ssn = '078"05\n1120';
    const { output } = await inspected("crm", {
      customer: { ssn },
      log: JSON.stringify({ seen: `was ${ssn}` }),
      ok: "null",
    });
    assert.deepEqual(output, { customer: { ssn: "[redacted]" }, log: '{"seen":"was [redacted]"}', ok: "null" });
    const { output: odd } = await inspected("odd", { a: "secret", b: "a secret", c: null, d: "null" });
    assert.deepEqual(odd, { a: "$&", b: "a $&", c: null, d: "null" });
    assert.equal(
      (await inspected("crm", { customer: { ssn: "078-05-1120" }, content: [text("078-05"), text("-1120")] })).verdict,
      "withhold",
    );
    const both = await inspected("both", '{"id":"AKIA","customer":"Ada L."}');
    assert.doesNotMatch(JSON.stringify(both.output ?? ""), /Ada L/);
  });

  test("size, type and conditions match", async () => {
    const large = await inspected("files", "x".repeat(100_001));
    assert.deepEqual([large.verdict, large.reason], ["withhold", "too large for the agent"]);
    const image = { content: [{ type: "image", mimeType: "image/png", data: "AAAA" }] };
    assert.equal((await inspected("files", image)).verdict, "withhold");
    assert.equal((await inspected("files", "AAAA", { media_type: "image/PNG; q=1" })).verdict, "withhold");
    assert.equal((await inspected("db", { rows: [1, 2] })).verdict, "allow");
    assert.equal((await inspected("db", { rows: [1, 2, 3] })).verdict, "withhold");
  });

  test("a text that is hard for patterns is inspected in a bounded number of steps, or withheld", async () => {
    for (const part of ["x", "ab", "a\u0431", "abc"]) {
      const body = await inspected("hard", part.repeat(150_000));
      assert.ok(body.verdict === "allow" || /too large or too complex/.test(body.reason), part);
    }
    assert.equal(
      (
        await inspected(
          "hard",
          Array.from({ length: 5000 }, () => "xxy"),
        )
      ).output[4999],
      "#",
    );
  });

  test("an output is withheld if a condition cannot be evaluated for it, and refused if it is too large", async () => {
    const body = await inspected("db", { error: "no rows" });
    assert.equal(body.verdict, "withhold");
    assert.match(body.reason, /condition of rule "internal" could not be evaluated/);
    assert.equal((await inspect(await started(freshAgent(), "files"), "x".repeat(1_048_577))).status, 413);
  });
});

describe("who may inspect, and when", () => {
  test("only the key that started the action, while its result is missing", async () => {
    const id = (await submit(freshAgent(), "web")).body.id;
    assert.equal((await inspect(id, "a")).body.code, "ACTION_NOT_STARTED");
    await call(`/v1/actions/${id}/start`, {});
    const other = await makeKey(service, { name: "other", preset: "agent", owner: "ada" });
    const stranger = await makeKey(service, { name: "bound", preset: "agent", owner: "ada", agent_id: "someone" });
    for (const { key } of [other, stranger]) {
      const { status } = await call(`/v1/actions/${id}/inspect`, { output: "a" }, key);
      assert.ok(status === 403 || status === 404 || status === 409, String(status));
    }
    assert.equal((await inspect(id, "a")).status, 200);
    await report(id);
    assert.equal((await inspect(id, "a")).body.code, "ACTION_NOT_STARTED");
  });

  test("of several outputs of one action, the strictest verdict counts and labels add up", async () => {
    const agent = freshAgent();
    const id = await started(agent, "files");
    assert.equal((await inspect(id, "a")).body.verdict, "allow");
    assert.equal((await inspect(id, KEY)).body.verdict, "redact");
    assert.equal((await inspect(id, "b")).body.verdict, "redact");
    assert.equal((await inspect(id, "x".repeat(100_001))).body.verdict, "withhold");
    const last = (await inspect(id, KEY)).body;
    assert.deepEqual([last.verdict, "output" in last, last.labels], ["withhold", false, ["secret"]]);
    for (let i = 5; i < 20; i++) assert.equal((await inspect(id, "b")).body.verdict, "withhold");
    assert.equal((await inspect(id, "b")).body.code, "TOO_MANY_INSPECTIONS");
  });

  test("entries contain no part of an output", async () => {
    const id = await started(freshAgent(), "files");
    await inspect(id, `marker-in-output ${KEY}`);
    const entries = await service.storage.entriesOfAction(id);
    const all = entries.map(({ bytes }) => new TextDecoder().decode(bytes)).join();
    assert.match(all, /results:inspection/);
    assert.ok(!all.includes("marker") && !all.includes(KEY));
  });
});

describe("labels", () => {
  const tokenOf = async (name: string): Promise<{ headers: Record<string, string>; id: string }> => {
    const { body } = await call("/v1/agent-sessions", { name, key_id: keyId }, service.admin);
    return { headers: { "Assent-Session": body.token }, id: body.session_id };
  };
  let keyId: string;
  before(async () => {
    keyId = (await submit(freshAgent(), "shell")).body.submitted_by;
  });

  test("a label of a session changes later decisions of the session, and of no other session", async () => {
    const agent = freshAgent();
    const [one, two] = [await tokenOf("one"), await tokenOf("two")];
    const id = await started(agent, "web", one.headers);
    assert.equal(await send(agent, one.headers), "allowed");
    assert.deepEqual((await inspect(id, "text")).body.labels, ["external_content"]);
    assert.equal(await send(agent, one.headers), "pending_approval");
    assert.equal(await send(agent, two.headers), "allowed");
    // Without its session, the agent has the labels of all its sessions.
    assert.equal(await send(agent), "pending_approval");
    assert.equal(await send(freshAgent()), "allowed");
  });

  test("without a session, labels apply to the agent in all its sessions, under any spelling of its name", async () => {
    const agent = freshAgent();
    await inspect(await started(agent, "web"), "text");
    assert.equal(await send(agent), "pending_approval");
    assert.equal(await send(agent.toUpperCase()), "pending_approval");
    assert.equal(await send(agent, (await tokenOf("three")).headers), "pending_approval");
  });

  test("an action whose result is reported without an inspection has the labels of all rules that apply", async () => {
    const agent = freshAgent();
    const id = await started(agent, "web");
    await report(id);
    assert.equal(await send(agent), "pending_approval");
    const entries = await service.storage.entriesOfAction(id);
    assert.deepEqual(
      entries.map(({ type }) => type),
      ["decision", "execution", "execution", "results:inspection", "results:labels"],
    );
  });

  test("without an inspection, the labels of all rules that apply hold from the start on", async () => {
    const agent = freshAgent();
    const { headers } = await tokenOf("uninspected");
    const id = await started(agent, "web", headers, {});
    // The agent may have the output now. Its result comes later, or never.
    assert.equal(await send(agent, headers), "pending_approval");
    assert.equal(await send(agent, (await tokenOf("elsewhere")).headers), "allowed");
    assert.deepEqual((await inspect(id, "text")).body.verdict, "allow");
    await report(id);
    const entries = await service.storage.entriesOfAction(id);
    assert.deepEqual(
      entries.map(({ type }) => type),
      ["decision", "execution", "results:inspection", "results:labels", "results:inspection", "execution"],
    );
  });

  test("an allowed action that starts after its session was labelled is decided again", async () => {
    const agent = freshAgent();
    const { body } = await submit(agent, "mail", { operation: "send" });
    assert.equal(body.status, "allowed");
    await inspect(await started(agent, "web"), "text");
    const start = await call(`/v1/actions/${body.id}/start`, {});
    assert.equal(start.body.code, "MORE_APPROVALS_NEEDED", JSON.stringify(start.body));
  });

  test("labels survive a restart, and end after 30 days", async () => {
    const agent = freshAgent();
    await inspect(await started(agent, "web"), "text");
    await service.restart();
    assert.equal(await send(agent), "pending_approval");
    service.clock.now += 31 * 86_400_000;
    assert.equal(await send(agent), "allowed");
  });

  test("the audit finds no fault", async () => {
    assert.deepEqual((await auditStore(service.storage)).faults, []);
  });
});

test(
  "rules for an agent that gave an authority apply to what another reads under it",
  needs("sub-agents"),
  async () => {
    const agentKey = async (name: string): Promise<string> =>
      (await makeKey(service, { name, preset: "agent", agent_id: name })).key;
    const [boss, worker] = [await agentKey("boss-1"), await agentKey("worker-1")];
    const body = { agent_id: "worker-1", tools: ["*"], for: "1h" };
    const given = await call("/v1/authorities", body, boss);
    assert.equal(given.status, 201, JSON.stringify(given.body));
    const run = async (more: object): Promise<Answer["body"]> => {
      const action = { agent_id: "worker-1", tool: "shared", operation: "read", params: { most: 2, n: ++n }, ...more };
      const { body: submitted } = await call("/v1/actions", action, worker);
      assert.equal((await call(`/v1/actions/${submitted.id}/start`, {}, worker)).status, 200);
      const { body: inspected } = await call(`/v1/actions/${submitted.id}/inspect`, { output: "text" }, worker);
      return [submitted.inspect, inspected.verdict];
    };
    assert.deepEqual(await run({}), [undefined, "allow"]);
    assert.deepEqual(await run({ authority: given.body.id }), [true, "withhold"]);
  },
);

test("without the feature, actions still ask for an inspection, so that clients withhold what rules should look at", async (t) => {
  const without = await startService({ policy: POLICY, without: ["results"] });
  t.after(() => without.close());
  const submitted = await without.call("POST", "/v1/actions", {
    key: without.agent,
    body: { agent_id: "bot", tool: "web", operation: "read", params: {} },
  });
  assert.deepEqual([submitted.body.status, submitted.body.inspect], ["allowed", true]);
  const answer = await without.call("POST", `/v1/actions/${submitted.body.id}/inspect`, {
    key: without.agent,
    body: { output: "x" },
  });
  assert.equal(answer.status, 404);
});
