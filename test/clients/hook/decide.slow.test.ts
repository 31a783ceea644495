/** One call of a hook: its request, its answer, and that every failure is a denial in the host's format. */
import assert from "node:assert/strict";
import { realpathSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createAssent } from "../../../clients/typescript/index.ts";
import { parseJson, type JsonObject } from "../../../src/domain/json.ts";
import { countMetaBytes, MAX_META_BYTES } from "../../../plugins/actions/meta.ts";
import { toCanonicalAction } from "../../../clients/hook/action/canonical-action.ts";
import type { HookConfig } from "../../../clients/hook/hook-config.ts";
import { HookConfigError, configFiles, loadConfig } from "../../../clients/hook/hook-config.ts";
import { decideHookCall } from "../../../clients/hook/decide-tool-call.ts";
import { HOSTS, type HookAnswer, type Host } from "../../../clients/hook/hosts/answers.ts";
import { readEvent } from "../../../clients/hook/hosts/host-events.ts";
import { HookState } from "../../../clients/hook/hook-state.ts";
import { writeFiles, folderWith } from "../../support/cli.ts";
import { AFTER, allows, BEFORE, passes, PROMPT, settles, stops } from "./payloads.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const CONFIG: HookConfig = {
  url: "http://127.0.0.1:1",
  apiKey: "k",
  agent: "coder",
  wait: null,
  sessions: false,
  authority: null,
  subAgents: new Map(),
  service: null,
};
const ENVIRONMENT = { cwd: "/work/app", home: "/home/ada", project: null, codexProgram: null };

interface Call {
  method: string;
  path: string;
  body: Record<string, unknown>;
}
type Reply = { status?: number; body?: unknown; raw?: string } | Error | "hang";

/** A service with scripted responses that records its requests. */
function scripted(reply: (call: Call) => Reply): { calls: Call[]; fetch: typeof fetch } {
  const calls: Call[] = [];
  return {
    calls,
    fetch: async (url, init) => {
      const { pathname, search } = new URL(url as string);
      const body = init?.body === undefined ? {} : (JSON.parse(init.body as string) as Record<string, unknown>);
      const call = { method: init?.method ?? "GET", path: pathname + search, body };
      calls.push(call);
      const answer = reply(call);
      if (answer instanceof Error) throw answer;
      if (answer === "hang")
        return new Promise((_, fail) => init?.signal?.addEventListener("abort", () => fail(new Error("aborted"))));
      const { status = 200, body: content, raw } = answer;
      return new Response(raw ?? JSON.stringify(content), { status, headers: { "content-type": "application/json" } });
    },
  };
}

/** Responds with `verdict` to the submission, and starts startable actions. */
function verdict(status: string, more: Record<string, unknown> = {}): (call: Call) => Reply {
  let asked: Record<string, unknown> = {};
  return ({ method, path, body }) => {
    if (method === "POST" && path.startsWith("/v1/actions?")) asked = body;
    const action = {
      id: "act_1",
      reason: "because",
      reason_code: "POLICY_RULE",
      permit: null,
      ...asked,
      status,
      ...more,
    };
    return { body: path.endsWith("/start") ? { ...action, status: "executing" } : action };
  };
}

async function answer(
  host: Host,
  payload: unknown,
  reply: (call: Call) => Reply,
  options: { deadline?: number; state?: HookState; signal?: AbortSignal; sessions?: boolean } = {},
): Promise<HookAnswer & { calls: Call[] }> {
  const service = scripted(reply);
  const bytes =
    payload instanceof Uint8Array
      ? payload
      : Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload));
  const given = await decideHookCall(
    {
      flag: host,
      payload: bytes,
      environment: ENVIRONMENT,
      deadline: options.deadline ?? 10,
      maxWait: null,
      signal: options.signal ?? new AbortController().signal,
    },
    {
      config: () => ({ ...CONFIG, sessions: options.sessions ?? false }),
      state: options.state ?? new HookState(null),
      createClient: (_, session) =>
        createAssent({ url: CONFIG.url, apiKey: "k", session, fetch: service.fetch, timeout: 1, retries: 0 }),
    },
  );
  return { ...given, calls: service.calls };
}

for (const host of HOSTS)
  describe(host, () => {
    test("an allowed call is started and continues", async () => {
      const given = await answer(host, BEFORE[host], verdict("allowed"));
      assert.ok(passes(host, given), JSON.stringify(given));
      assert.deepEqual(
        given.calls.map(({ method, path }) => `${method} ${path}`),
        ["POST /v1/actions?join=open", "POST /v1/actions/act_1/start"],
      );
      const {
        tool,
        operation,
        params,
        agent_id: agent,
      } = (given.calls[0] as Call).body as Record<string, Record<string, unknown>>;
      assert.deepEqual([agent, tool, operation, params?.["command"]], ["coder", "shell", "run", "ls -la src"]);
      assert.equal(params?.["cwd"], "/work/app");
    });
    test("with sessions, the host's session is the session of the action, and without its token nothing runs", async () => {
      const session = readEvent(host, BEFORE[host] as JsonObject, ENVIRONMENT).session;
      const token = (call: Call): Reply =>
        call.path === "/v1/agent-sessions" ? { body: { token: "ses1_a.b" } } : verdict("allowed")(call);
      const { calls } = await answer(host, BEFORE[host], token, { sessions: true });
      const requested = calls.filter(({ path }) => path === "/v1/agent-sessions").map(({ body }) => body["name"]);
      assert.deepEqual(requested, session === null ? [] : [`${host}:${session}`]);
      if (session === null) return;
      const refused = await answer(
        host,
        BEFORE[host],
        (call) =>
          call.path === "/v1/agent-sessions" ? { status: 403, body: { code: "INSUFFICIENT_SCOPE" } } : token(call),
        { sessions: true },
      );
      assert.ok(stops(host, refused), JSON.stringify(refused));
      assert.equal(refused.calls.length, 1);
    });
    test("a denied call is stopped with the reason", async () => {
      const given = await answer(host, BEFORE[host], verdict("denied"));
      assert.ok(stops(host, given), JSON.stringify(given));
      assert.match(given.stdout + given.stderr, /denied by policy: because/);
      assert.equal(given.calls.length, 1);
    });
    test("a rejected call is stopped with the approver and the comment as plain text, whenever it was rejected", async () => {
      const rejection = {
        action_id: "act_0",
        approver: "user:alice",
        reason: `use npm run\u001b[2J\n ship instead${"!".repeat(9000)}`,
        rejected_at: "2026-01-01T00:00:00.000Z",
        holds_until: "2026-01-02T00:00:00.000Z",
      };
      for (const denied_by of ["person", "earlier_rejection"]) {
        const given = await answer(host, BEFORE[host], verdict("denied", { denied_by, rejection }));
        assert.ok(stops(host, given), JSON.stringify(given));
        const said = given.stdout + given.stderr;
        assert.match(said, /rejected by the user alice: use npm run \[2J ship instead!+… \(act_1\)/);
        assert.match(said, /refused until 2026-01-02T00:00:00.000Z/);
        assert.doesNotMatch(said, /denied by|!{501}/);
      }
    });
    test("a call under a stop is denied and says so", async () => {
      const given = await answer(host, BEFORE[host], verdict("denied", { denied_by: "stop", reason_code: "STOPPED" }));
      assert.match(given.stdout + given.stderr, /stopped: because.*once the stop is lifted/);
    });
    test("a call that is pending at the deadline is stopped with the advice to repeat it", async () => {
      const given = await answer(host, BEFORE[host], verdict("pending_approval"), { deadline: 4 });
      assert.ok(stops(host, given), JSON.stringify(given));
      assert.match(given.stdout + given.stderr, /waits for approval act_1.*repeat the same command/);
      assert.ok(!given.calls.some(({ path }) => path.endsWith("/start")));
    });
    test("expired and cancelled calls are stopped, each with its own message", async () => {
      const expired = await answer(host, BEFORE[host], verdict("expired"));
      const cancelled = await answer(host, BEFORE[host], verdict("cancelled"));
      assert.ok(stops(host, expired) && stops(host, cancelled));
      assert.match(expired.stdout + expired.stderr, /not decided on in time.*can be submitted again/);
      assert.match(cancelled.stdout + cancelled.stderr, /cancelled/);
    });
    const FAILURES: readonly [string, (call: Call) => Reply][] = [
      ["is down", () => new TypeError("connect ECONNREFUSED")],
      ["hangs", () => "hang"],
      ["answers garbage", () => ({ raw: "<html>" })],
      ["answers an empty object", () => ({ body: {} })],
      ["answers 500", () => ({ status: 500, body: { code: "INTERNAL" } })],
      ["does not take the key", () => ({ status: 401, body: { code: "UNAUTHENTICATED", detail: "no" } })],
      ["refuses the question", () => ({ status: 422, body: { code: "INVALID_REQUEST", detail: "no" } })],
      ["answers a status that is not known", verdict("perhaps")],
      ["says that the action runs already", verdict("executing")],
      ["answers about another tool", verdict("allowed", { tool: "files" })],
      [
        "cannot start it",
        (call) =>
          call.path.endsWith("/start")
            ? { status: 503, body: { code: "UNAVAILABLE" } }
            : verdict("allowed", { ...call.body })(call),
      ],
      [
        "has had it started by another call, each time",
        (call) =>
          call.path.endsWith("/start")
            ? { status: 409, body: { code: "ACTION_NOT_STARTABLE", detail: "no" } }
            : verdict("allowed")(call),
      ],
    ];
    for (const [what, reply] of FAILURES)
      test(`a call is stopped when the service ${what}`, async () => {
        const given = await answer(host, BEFORE[host], reply);
        assert.ok(stops(host, given), JSON.stringify(given));
      });
    test("an unreadable payload is stopped without a request", async () => {
      const shapes: unknown[] = [
        "",
        "{",
        "null",
        "[]",
        '"x"',
        "\u0000",
        Buffer.from([0xff, 0xfe, 0x7b]),
        { ...BEFORE[host], hook_event_name: "PreToolUseX", toolName: undefined, source: undefined },
        { ...BEFORE[host], [host === "copilot" ? "toolArgs" : "tool_input"]: "x" },
        { ...BEFORE[host], tool_input: { command: "ls" }, args: { command: "ls" } },
        { ...BEFORE[host], [host === "copilot" ? "toolArgs" : "tool_input"]: { command: ["x", 1] } },
        { ...BEFORE[host], [host === "copilot" ? "toolArgs" : "tool_input"]: {} },
        { ...BEFORE[host], cwd: "relative" },
      ];
      for (const shape of shapes) {
        const given = await answer(host, shape, verdict("allowed"));
        assert.ok(stops(host, given), `${JSON.stringify(shape)}: ${JSON.stringify(given)}`);
        assert.deepEqual(given.calls, []);
      }
    });
    test("an event whose name only begins like a known one is stopped, and the message names it", async () => {
      for (const name of ["PostToolUse2", "SessionStartX", "StopTool", "afterToolCall", "PreToolUse ", "__proto__"]) {
        const given = await answer(host, { ...BEFORE[host], hook_event_name: name }, verdict("allowed"));
        assert.ok(stops(host, given), `${name}: ${JSON.stringify(given)}`);
        assert.match(given.stdout + given.stderr, /the hook does not know the event/);
        assert.deepEqual(given.calls, []);
      }
      const { stdout, stderr } = await answer(
        host,
        { ...AFTER[host], hook_event_name: "PostToolUse2" },
        verdict("allowed"),
      );
      assert.match(stdout + stderr, /posttooluse2/);
    });
    test("an ambiguous payload is stopped without a request", async () => {
      const text = JSON.stringify(BEFORE[host]);
      const member = (name: string, value: unknown): string =>
        text.replace("{", `{${JSON.stringify(name)}:${JSON.stringify(value)},`);
      const input = host === "copilot" ? "toolArgs" : "tool_input";
      const whole = text.replace(/"(?:tool_input|toolArgs)":(?:\{[^}]*\}|"(?:[^"\\]|\\.)*")/, "INPUT");
      const given = (json: string): string => whole.replace("INPUT", () => `"${input}":${json}`);
      const twice = '{"command":"rm -rf /","command":"ls -la src"}';
      for (const shape of [
        member("cwd", "/etc"),
        member(input, { command: "rm -rf /" }),
        member(host === "copilot" ? "toolName" : "hook_event_name", "PostToolUse"),
        given(twice),
        given(JSON.stringify(twice)),
        given('{"command":"ls -la src","\\u0063ommand":"rm -rf /"}'),
        given('{"command":"ls -la src","more":[{"to":1,"to":2}]}'),
        given('{"command":"ls -la src","more":9007199254740993}'),
        given(JSON.stringify('{"command":"ls -la src","more":1e400}')),
        given('{"command":"ls -la src","more":"\\ud800"}'),
      ]) {
        const asked = await answer(host, shape, verdict("allowed"));
        assert.ok(stops(host, asked), `${shape}: ${JSON.stringify(asked)}`);
        assert.match(asked.stdout + asked.stderr, /has a duplicate member|is not exact|half of a surrogate/);
        assert.deepEqual(asked.calls, []);
      }
      const other = await answer(host, member("at", 0).replace(":0,", ":1732347000000000001,"), verdict("allowed"));
      assert.ok(passes(host, other), "what nobody decides on may be any number");
    });
    test("a byte order mark has no effect", async () => {
      const given = await answer(host, `\ufeff${JSON.stringify(BEFORE[host])}`, verdict("allowed"));
      assert.ok(passes(host, given), JSON.stringify(given));
    });
    test("a payload of this host is recognised behind another host's flag", async () => {
      const other = await answer(host === "claude-code" ? "kiro" : "claude-code", BEFORE[host], verdict("denied"));
      const plain = ["claude-code", "vscode", "kiro"].includes(host);
      // These three send the same members: the flag tells them apart.
      if (!plain) assert.ok(stops(host, other), JSON.stringify(other));
    });
    test("an event after a call is never answered with a denial", async () => {
      const { tool_input: _, toolArgs: __, ...bare } = AFTER[host];
      const ended = JSON.stringify(AFTER[host]);
      const result = host === "copilot" ? "toolResult" : "tool_response";
      const { [result]: ___, ...open } = AFTER[host];
      const text = JSON.stringify(open);
      const given = (json: string): string => `${text.slice(0, -1)},"${result}":${json}}`;
      for (const shape of [
        bare,
        { ...AFTER[host], [host === "copilot" ? "toolArgs" : "tool_input"]: [1] },
        ended.replace('"command":"ls -la src"', '"command":"ls -la src","id":1732347000000000001'),
        ended.replace('"command":"ls -la src"', '"command":"ls -la src","\\u0063ommand":1'),
        given('{"id":1732347000000000001,"half":"\\ud83d","low":1e400,"small":[1e-7,1.0,-0]}'),
        given('{"a":1,"a":2}'),
      ]) {
        const answered = await answer(host, shape, () => new Error("nobody there"));
        assert.ok(passes(host, answered), `${JSON.stringify(shape)}: ${JSON.stringify(answered)}`);
      }
      const twice = ended.replace("{", '{"session_id":"x","session_id":"y",');
      assert.ok(
        stops(host, await answer(host, twice, () => new Error("nobody there"))),
        "which event it is is not clear",
      );
    });
    test("the end of a call is reported if the host reports it", async (t) => {
      const state = new HookState(join(folderWith(t, {}), "state"));
      await answer(host, BEFORE[host], verdict("allowed"), { state });
      const given = await answer(host, AFTER[host], () => ({ body: { id: "act_1", status: "succeeded" } }), { state });
      assert.ok(passes(host, given), JSON.stringify(given));
      const named = !["copilot", "gemini", "kiro"].includes(host);
      assert.deepEqual(
        given.calls.map(({ path, body }) => [path, body["success"]]),
        // Hosts that give calls no id do not say which call has ended.
        named ? [["/v1/actions/act_1/result", true]] : [],
      );
    });
  });

/** A service that decides with the members of `decided`, and later returns the started action with those of `later`. */
function decides(decided: Record<string, unknown>, later: Record<string, unknown> | Error = {}): (call: Call) => Reply {
  let asked: Record<string, unknown> = {};
  return ({ method, path, body }) => {
    if (path.startsWith("/v1/actions?")) asked = body;
    const action = {
      id: "act_1",
      decision: "allow",
      reason: "because",
      reason_code: "POLICY_RULE",
      policy: "work",
      rule: "commands",
      grant: null,
      permit: null,
      approvals: [],
      proposed: null,
      status: "allowed",
      ...asked,
      ...decided,
    };
    if (method === "GET")
      return later instanceof Error ? later : { body: { ...action, status: "executing", ...later } };
    return { body: path.endsWith("/start") ? { ...action, status: "executing" } : action };
  };
}

const VOTE = { approve: true, approver: "user:ada", reason: "go\u001b[2J on", key_id: "k" };
const APPROVED = { decision: "require_approval", status: "approved", approvals: [VOTE], names: { "user:ada": "Ada" } };

describe("an allow of the hook", () => {
  const SILENT: readonly Host[] = ["codex", "cursor", "gemini", "kiro", "opencode"];
  for (const host of HOSTS)
    test(`${host}: a decision of a rule or a person is the host's allow, with its reason and id`, async () => {
      const byRule = await answer(host, BEFORE[host], decides({}));
      const byPerson = await answer(host, BEFORE[host], decides(APPROVED));
      assert.equal(allows(host, byRule), !SILENT.includes(host), JSON.stringify(byRule));
      assert.equal(allows(host, byPerson), !SILENT.includes(host), JSON.stringify(byPerson));
      assert.ok(passes(host, byRule) && passes(host, byPerson));
      if (SILENT.includes(host)) return;
      assert.match(byRule.stdout, /allowed by the rule \\"commands\\" of the policy \\"work\\": because \(act_1\)/);
      assert.match(byPerson.stdout, /approved by Ada: go \[2J on \(act_1\)/);
    });
  const claude = BEFORE["claude-code"];
  const read = { ...claude, tool_name: "Read", tool_input: { file_path: "/work/app/x" } };
  const noOpinions: [string, unknown, Record<string, unknown>][] = [
    ["a decision that names no rule", claude, { rule: null }],
    ["a decision that names no policy", claude, { policy: undefined }],
    ["an unknown reason", claude, { reason_code: "DEFAULT" }],
    ["a read", read, {}],
    ["a search", { ...claude, tool_name: "Grep", tool_input: { pattern: "x", path: "/work/app" } }, {}],
    ["a question to the user", { ...claude, tool_name: "AskUserQuestion", tool_input: { questions: [] } }, {}],
    ["the end of the plan", { ...claude, tool_name: "ExitPlanMode", tool_input: { plan: "x" } }, {}],
    ["a call in plan mode", { ...claude, permission_mode: "plan" }, {}],
    ["an approved call in plan mode", { ...claude, permission_mode: "plan" }, APPROVED],
  ];
  for (const [what, payload, decided] of noOpinions)
    test(`is not given for ${what}`, async () => {
      const given = await answer("claude-code", payload, decides(decided));
      assert.deepEqual([given.stdout, given.code], ["", 0]);
    });
  test("is given for a read that a person approved", async () => {
    assert.ok(allows("claude-code", await answer("claude-code", read, decides(APPROVED))));
    assert.ok(
      allows("claude-code", await answer("claude-code", read, decides({ reason_code: "GRANTED", grant: "g" }))),
    );
  });
});

for (const host of Object.keys(PROMPT) as Host[])
  describe(`${host}: a question of the host to its user`, () => {
    const prompt = PROMPT[host] as Record<string, unknown>;
    const ask = async (
      reply: (call: Call) => Reply,
      { before = BEFORE[host], event = prompt }: { before?: unknown; event?: unknown } = {},
      state = new HookState(join(temporaryFolder("assent-prompt-"), "state")),
    ): ReturnType<typeof answer> => {
      if (before !== null) assert.ok(passes(host, await answer(host, before, reply, { state })));
      return answer(host, event, reply, { state });
    };
    const isSilent = ({ stdout, stderr, code }: HookAnswer): boolean => stdout + stderr === "" && code === 0;
    const renamed = (value: unknown, from: string, to: string): unknown =>
      JSON.parse(JSON.stringify(value).replaceAll(from, to));

    test("is settled by the decision of the same call, once, and no one is asked again", async () => {
      const state = new HookState(join(temporaryFolder("assent-prompt-"), "state"));
      const given = await ask(decides(APPROVED), {}, state);
      assert.ok(settles(host, given), JSON.stringify(given));
      assert.match(given.stdout, /approved by Ada.*act_1/);
      assert.deepEqual(
        given.calls.map(({ method, path }) => `${method} ${path}`),
        ["GET /v1/actions/act_1"],
      );
      assert.ok(isSilent(await ask(decides(APPROVED), { before: null }, state)));
    });
    test("is settled by a rule only if the host's own rules still apply", async () => {
      const given = await ask(decides({}));
      assert.equal(settles(host, given), host !== "copilot", JSON.stringify(given));
      assert.ok(settles(host, given) || isSilent(given));
    });
    const later: [string, Record<string, unknown> | Error][] = [
      ["has ended", { status: "succeeded" }],
      ["is of another session", { meta: { host, session: "other" } }],
      ["is of another host", { meta: { host: "kiro" } }],
      ["is of another agent", { agent_id: "other" }],
      ["has another command", { params: { command: "rm -rf /" } }],
      ["runs with other parameters", { proposed: { params: {} } }],
      ["cannot be read because the service is down", new TypeError("connect ECONNREFUSED")],
    ];
    for (const [what, members] of later)
      test(`is left to the user if the action ${what}`, async () => {
        const given = await ask(decides(APPROVED, members));
        assert.ok(isSilent(given), JSON.stringify(given));
      });
    test("is left to the user if the call was not decided, differs, or is of another session", async () => {
      const session = host === "copilot" ? "p-1" : String(BEFORE[host]["session_id"]);
      for (const shapes of [
        { before: null },
        { event: renamed(prompt, "ls -la src", "ls -la /etc") },
        { event: renamed(prompt, session, "another-session") },
        { event: renamed(prompt, "/work/app", "/work/other") },
        { event: { ...prompt, [host === "copilot" ? "toolName" : "tool_name"]: "mcp__x__run" } },
      ]) {
        const given = await ask(decides(APPROVED), shapes);
        assert.ok(isSilent(given), JSON.stringify([shapes, given]));
        assert.deepEqual(given.calls, []);
      }
    });
    if (host !== "copilot")
      test("is left to the user if it names another call with the same request", async () => {
        const id = BEFORE[host]["tool_use_id"];
        assert.ok(settles(host, await ask(decides(APPROVED), { event: { ...prompt, tool_use_id: id } })));
        assert.ok(isSilent(await ask(decides(APPROVED), { event: { ...prompt, tool_use_id: "other" } })));
      });
    test("is left to the user if the service answers garbage or hangs", async () => {
      for (const reply of ["hang", { raw: "<html>" }, { body: {} }, { status: 500, body: {} }] as Reply[]) {
        const decided = decides(APPROVED);
        const given = await ask((call) => (call.method === "GET" ? reply : decided(call)));
        assert.ok(isSilent(given), JSON.stringify([reply, given]));
      }
    });
    test("is left to the user if its arguments are ambiguous", async () => {
      const text = JSON.stringify(prompt).replace('"command":"ls -la src"', '"command":"rm","command":"ls -la src"');
      assert.ok(isSilent(await ask(decides(APPROVED), { event: text })));
    });
  });

test("a question of Codex about the network is left to the user", async () => {
  const state = new HookState(join(temporaryFolder("assent-prompt-"), "state"));
  await answer("codex", BEFORE.codex, decides(APPROVED), { state });
  const event = { ...PROMPT.codex, tool_input: { command: "ls -la src", description: "network-access evil.example" } };
  assert.equal((await answer("codex", event, decides(APPROVED), { state })).stdout, "");
});

test("the answer of the host's user, or of the host itself, is part of the recorded result", async () => {
  const host = "claude-code";
  const state = new HookState(join(temporaryFolder("assent-prompt-"), "state"));
  const reply = decides({ rule: null });
  await answer(host, BEFORE[host], reply, { state });
  assert.equal((await answer(host, PROMPT[host], reply, { state })).stdout, "");
  const accepted = await answer(host, AFTER[host], reply, { state });
  assert.deepEqual(accepted.calls[0]?.body["meta"], { outcome: "success", host_prompt: "accepted" });
  await answer(host, BEFORE[host], reply, { state });
  const event = { ...BEFORE[host], hook_event_name: "PermissionDenied", reason: `[Exfiltration] ${"x".repeat(9000)}` };
  const refused = await answer(host, event, reply, { state });
  assert.deepEqual([refused.stdout, refused.code], ["", 0]);
  const { success, error, meta } = (refused.calls[0] as Call).body;
  assert.deepEqual([success, meta], [false, { host_prompt: "refused" }]);
  assert.match(String(error), /^not run: claude-code refused the call: \[Exfiltration\] x{300,480}$/);
});

test("if the agent has disconnected, the started action is reported as not run", async () => {
  const gone = new AbortController();
  const given = await answer(
    "claude-code",
    BEFORE["claude-code"],
    (call) => {
      if (call.path.endsWith("/start")) gone.abort(new Error("gone"));
      return verdict("allowed", { tool: "shell", operation: "run", agent_id: "coder" })(call);
    },
    { signal: gone.signal },
  );
  assert.ok(stops("claude-code", given));
});

test("a shortened text is not cut inside a character", async () => {
  const claude = BEFORE["claude-code"];
  const long = (length: number): string => `${"x".repeat(length - 1)}${"😀".repeat(20_000)}`;
  const words = Object.fromEntries(
    ["description", "explanation", "goal", "reason", "summary"].map((name) => [name, "語".repeat(400)]),
  );
  for (const shape of [
    { ...claude, tool_input: { command: "ls", description: long(300) } },
    { ...claude, tool_input: { command: "ls", ...words } },
    { ...claude, session_id: long(300), tool_use_id: "\ud83d" },
    { ...claude, tool_name: "Write", tool_input: { file_path: "/work/app/x", content: long(4096) } },
  ]) {
    const given = await answer("claude-code", shape, verdict("allowed"));
    assert.ok(passes("claude-code", given), JSON.stringify(given));
    // As the service reads it.
    const { meta } = parseJson(JSON.stringify(given.calls[0]?.body)) as { meta: JsonObject };
    assert.ok(countMetaBytes(meta) <= MAX_META_BYTES);
  }
});

describe("the action of a call", () => {
  const unclearOf = ({ params = {} }: { params?: Record<string, unknown> | undefined }): unknown =>
    (params["parsed"] as { unclear: unknown }).unclear;
  const become = async (tool: string, input: Record<string, unknown>, cwd: string, home = "/home/ada") => {
    const payload = { hook_event_name: "PreToolUse", session_id: "s", cwd, tool_name: tool, tool_input: input };
    const environment = { cwd, home, project: null, codexProgram: null };
    return (await toCanonicalAction(readEvent("claude-code", payload, environment), "coder", environment)).request;
  };
  test("links are followed, even to files that do not exist yet", async (t) => {
    const root = realpathSync(temporaryFolder("assent-hook-"));
    t.after(() => rmSync(root, { recursive: true, force: true }));
    mkdirSync(join(root, "app/sub"), { recursive: true });
    mkdirSync(join(root, "elsewhere/deep"), { recursive: true });
    writeFiles(root, { "app/a": "x" });
    symlinkSync(join(root, "elsewhere/deep"), join(root, "app/link"));
    symlinkSync(join(root, "elsewhere/new"), join(root, "app/dangling"));
    symlinkSync("loop", join(root, "app/loop"));
    const paths = async (path: string): Promise<unknown> =>
      (await become("Write", { file_path: path, content: "x" }, join(root, "app"))).params?.["paths"];
    assert.deepEqual(await paths("a"), [join(root, "app/a")]);
    assert.deepEqual(await paths("sub/not/there"), [join(root, "app/sub/not/there")]);
    assert.deepEqual(await paths("link/x"), [join(root, "app/link/x"), join(root, "elsewhere/deep/x")]);
    assert.ok(((await paths("link/../x")) as string[]).includes(join(root, "elsewhere/x")));
    assert.deepEqual(await paths("dangling"), [join(root, "app/dangling"), join(root, "elsewhere/new")]);
    // Also under the name that a policy may know.
    symlinkSync("env", join(root, "app/.env"));
    assert.deepEqual(await paths(".env"), [join(root, "app/.env"), join(root, "app/env")]);
    await assert.rejects(paths("loop"), /a link in a path of the call cannot be resolved/);
    const { params } = await become("Bash", { command: "cat link/x > dangling" }, join(root, "app"));
    const parsed = params?.["parsed"] as Record<string, unknown>;
    assert.deepEqual(parsed["writes"], [join(root, "app/dangling"), join(root, "elsewhere/new")]);
    assert.ok((parsed["paths"] as string[]).includes(join(root, "elsewhere/deep/x")));
  });
  test("a prototype in the arguments adds no members", async () => {
    const input = JSON.parse(`{"command":"cat ../x","__proto__":{"cwd":"/work/app/sub"}}`) as Record<string, unknown>;
    const { params = {} } = await become("Bash", input, "/work/app");
    assert.equal(params["cwd"], "/work/app");
    assert.ok((params["parsed"] as { paths: string[] }).paths.includes("/work/x"));
    assert.ok("options" in params);
  });
  test("paths include every file that a host may mean, for each kind of argument", async () => {
    const paths = async (tool: string, input: Record<string, unknown>): Promise<unknown> =>
      (await become(tool, input, "/work/app")).params?.["paths"];
    // VS Code accepts URLs as paths.
    assert.deepEqual(await paths("create_file", { filePath: "file:///etc/x%20y", content: "" }), ["/etc/x y"]);
    for (const path of ["vscode-userdata:/x", "file://host/x", "http://x.test/"])
      await assert.rejects(paths("read_file", { filePath: path }), /URL/, path);
    assert.deepEqual(await paths("Read", { file_path: " /etc/x" }), ["/etc/x", "/work/app/ /etc/x"]);
    // As HFS+ interprets it.
    assert.deepEqual(await paths("Write", { file_path: ".g\u200cit/config", content: "" }), [
      "/work/app/.git/config",
      "/work/app/.g\u200cit/config",
    ]);
    assert.deepEqual(await paths("grep", { pattern: "x", paths: "/srv" }), ["/srv"]);
    assert.deepEqual(await paths("codebase_search", { query: "x", target_directories: ["/srv"] }), ["/srv"]);
    assert.deepEqual(await paths("list_dir", { target_directory: "/srv" }), ["/srv"]);
    assert.deepEqual(await paths("fs_read", { operations: [{ mode: "Line", path: "/srv/x" }] }), ["/srv/x"]);
    assert.deepEqual(await paths("read_file", { path: "src/[id]/{a,b}.ts" }), ["/work/app/src/[id]/{a,b}.ts"]);
    for (const include of [".{.,x}/x", "{.,a}{.,b}/x", "*/../../x", "{../a,b}/x"])
      await assert.rejects(paths("read_many_files", { include: [include] }), /leaves its folder/, include);
  });
  test("another name of a folder above the workspace does not name a file in it", async (t) => {
    const root = realpathSync(temporaryFolder("assent-hook-"));
    t.after(() => rmSync(root, { recursive: true, force: true }));
    mkdirSync(join(root, "deep/app"), { recursive: true });
    symlinkSync("deep", join(root, "short"));
    const { params } = await become("Read", { file_path: join(root, "short/app/x") }, join(root, "short/app"));
    const none = { secrets: [], untracked: [], later: [] };
    assert.deepEqual(params, { paths: [join(root, "deep/app/x")], ...none, workspace: join(root, "deep/app") });
  });
  test("in a folder without git, the agent knows only the files that it created", async (t) => {
    const root = realpathSync(folderWith(t, { "README.md": "x", "own.md": "x" }));
    const event = {
      host: "claude-code" as const,
      kind: "before" as const,
      session: null,
      callId: null,
      tool: "Bash",
      input: { command: "cat README.md own.md missing.md" },
      cwd: root,
      workspace: root,
      success: true,
      outcomeReported: false,
    };
    const environment = { cwd: root, home: "/home/ada", project: root, codexProgram: null };
    const ownFiles = () => Promise.resolve(new Set([join(root, "own.md")]));
    const { request } = await toCanonicalAction(event, "coder", { ...environment, ownFiles });
    const parsed = request.params?.["parsed"] as { untracked: string[] } | undefined;
    assert.deepEqual(parsed?.untracked, [join(root, "README.md")]);
  });
  test("a copy or move into a folder counts the files that it replaces", async (t) => {
    const root = realpathSync(folderWith(t, { "data/a.sql": "x", "src/a.sql": "y", "src/b.sql": "y" }));
    const untracked = async (command: string): Promise<string[] | undefined> => {
      const { params } = await become("Bash", { command }, root);
      return (params?.["parsed"] as { untracked: string[] } | undefined)?.untracked;
    };
    for (const command of ["cp src/a.sql data", "mv src/b.sql src/a.sql data/", "cp src/* data"])
      assert.ok((await untracked(command))?.includes(join(root, "data/a.sql")), command);
    assert.ok(!(await untracked("cp src/b.sql data"))?.includes(join(root, "data/a.sql")));
  });
  test("/proc paths of a process are not resolved for the hook's own process", async () => {
    const { params } = await become("Read", { file_path: "/proc/self/cwd/x" }, process.cwd());
    assert.deepEqual(params?.["paths"], ["/proc/self/cwd/x"]);
  });
  test("git requires approval if it would treat a folder of the workspace as a repository", async (t) => {
    const root = folderWith(t, {
      "bare/HEAD": "ref: refs/heads/x\n",
      "bare/config": "[core]\n",
      "plain/.git": "gitdir: ../.git/modules/plain",
      "tree/.git": "gitdir: ../store/worktrees/tree\n",
      "away/.git": "gitdir: /srv/store",
      "store/x": "",
      "odd/.git": "x",
    });
    mkdirSync(join(root, "link"));
    symlinkSync("../store", join(root, "link/.git"));
    const unclear = async (command: string): Promise<unknown> => unclearOf(await become("Bash", { command }, root));
    assert.deepEqual(await unclear("cd bare && git status"), ["repository"]);
    assert.deepEqual(await unclear("git -C bare status"), ["repository"]);
    for (const folder of ["plain", "away"]) assert.deepEqual(await unclear(`git -C ${folder} status`), [], folder);
    // Settings that anyone with write access to the workspace can write, under names without rules.
    for (const folder of ["tree", "link", "odd"])
      assert.deepEqual(await unclear(`git -C ${folder} status`), ["repository"], folder);
    assert.deepEqual(await unclear("cd bare && ls"), []);
  });
  test("diff of folders, and git commands on untracked files, require approval because they show unnamed files", async (t) => {
    const root = folderWith(t, { ".env": "KEY=1", "a/x": "1", "b/x": "2", "own/.git/x": "", "own/c/x": "" });
    symlinkSync("a", join(root, "link"));
    const unclear = async (command: string): Promise<unknown> => unclearOf(await become("Bash", { command }, root));
    for (const command of ["diff . a", "diff a/x b", "diff link a/x", "cd a && diff . ../b", `diff ${root} a`]) {
      const { params = {} } = await become("Bash", { command }, root);
      const { untracked } = params["parsed"] as { untracked: string[] };
      assert.ok(
        untracked.some((path) => [root, join(root, "a"), join(root, "b")].includes(path)),
        command,
      );
    }
    for (const command of ["diff a/x b/x", "cd a && diff x y", "cd own && git status"])
      assert.deepEqual(await unclear(command), [], command);
    const inside = await become("Bash", { command: "git diff main feature" }, join(root, "own"));
    assert.deepEqual(unclearOf(inside), []);
    for (const command of ["git diff . a", "git diff -- a b", "git grep x", "git -C own diff . ../a"])
      assert.ok(((await unclear(command)) as string[]).includes("repository"), command);
    assert.deepEqual(await unclear("git diff"), []);
  });
  test("no path is shortened, however long the command is", async () => {
    const path = `${"x/".repeat(150)}.env`;
    const words = Array.from({ length: 30 }, (_, i) => `${i}${"y".repeat(900)}`).join(" ");
    const { params } = await become("Bash", { command: `cat ${path} ${words}` }, "/work/app");
    const parsed = params?.["parsed"] as { paths: string[]; unclear: string[] };
    assert.ok(parsed.paths.includes(`/work/app/${path}`));
    assert.deepEqual(parsed.unclear, ["size"]);
    assert.ok(Buffer.byteLength(JSON.stringify(params)) <= 48 * 1024);
  });
  test("characters that a terminal replaces are unclear if commands are typed into one", async () => {
    const unclear = async (host: Host, command: string): Promise<unknown> => {
      const payload = { ...BEFORE[host], tool_input: { command } };
      const { request } = await toCanonicalAction(readEvent(host, payload, ENVIRONMENT), "coder", ENVIRONMENT);
      return unclearOf(request);
    };
    for (const command of ["ls # ; rm x", "echo a !x", "^a^b"]) {
      assert.deepEqual(await unclear("vscode", command), ["shell"], command);
      assert.deepEqual(await unclear("claude-code", command), [], command);
    }
  });
  test("the folder that Codex's model chooses for a command is not the workspace", async () => {
    const payload = { ...BEFORE.codex, cwd: "/etc", tool_input: { command: "echo x > passwd" } };
    const { request } = await toCanonicalAction(readEvent("codex", payload, ENVIRONMENT), "coder", ENVIRONMENT);
    assert.equal(request.params?.["workspace"], "/work/app");
    assert.equal(request.params?.["cwd"], "/etc");
    const parsed = request.params?.["parsed"] as { writes: string[] } | undefined;
    assert.deepEqual(parsed?.writes, ["/etc/passwd"]);
  });
  test("a Codex version that reports the folder of a command is trusted, and no other", async (t) => {
    const folder = folderWith(t, {});
    const program = (name: string, says: string): string => {
      const path = join(folder, name);
      writeFileSync(path, `#!/bin/sh\necho '${says}'\n`, { mode: 0o755 });
      return path;
    };
    const unclear = async (path: string | null): Promise<unknown> => {
      const payload = { ...BEFORE.codex, tool_input: { command: "ls src" } };
      const environment = { ...ENVIRONMENT, codexProgram: path };
      return unclearOf(
        (await toCanonicalAction(readEvent("codex", payload, environment), "coder", environment)).request,
      );
    };
    for (const [i, version] of ["codex-cli 0.169.0", "codex-cli 0.170.0-alpha.2", "codex-cli 1.0.0"].entries())
      assert.deepEqual(await unclear(program(`new-${i}`, version)), [], version);
    for (const [i, version] of ["codex-cli 0.168.9", "codex-cli 0.169.0-alpha.1", "other 0.169.0", ""].entries())
      assert.deepEqual(await unclear(program(`old-${i}`, version)), ["directory"], version);
    assert.deepEqual(await unclear(null), ["directory"]);
    assert.deepEqual(await unclear(join(folder, "missing")), ["directory"]);
    // Another version under the same name is another program.
    const path = program("codex", "codex-cli 0.169.0");
    assert.deepEqual(await unclear(path), []);
    rmSync(path);
    assert.deepEqual(await unclear(program("codex", "codex-cli 0.50.0")), ["directory"]);
  });
  test("the start of a file name pattern is a path", async () => {
    const paths = async (pattern: string, path?: string): Promise<unknown> =>
      (await become("Glob", { pattern, ...(path === undefined ? {} : { path }) }, "/work/app")).params?.["paths"];
    assert.deepEqual(await paths("src/**/*.ts"), ["/work/app", "/work/app/src"]);
    assert.deepEqual(await paths("/etc/**"), ["/etc", "/work/app"]);
    assert.deepEqual(await paths("../../x/*", "sub"), ["/work/app/sub", "/work/x"]);
    assert.deepEqual(await paths("~/.ssh/*"), ["/home/ada/.ssh", "/work/app"]);
    await assert.rejects(paths("*/../../x"), /leaves its folder/);
    assert.deepEqual((await become("Grep", { pattern: "/etc/**" }, "/work/app")).params?.["paths"], ["/work/app"]);
  });
  test("every file of a patch counts, in any style of marker", async () => {
    const patch = (line: string): string => `*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n${line}\n*** End Patch`;
    for (const line of [
      "*** Add File: /srv/x",
      "  *** Add File: /srv/x",
      "\u0085*** Add File: /srv/x",
      "*** add file:/srv/x\r",
      "*** Move to: /srv/x",
    ])
      assert.deepEqual(
        (await become("apply_patch", { input: patch(line) }, "/work/app")).params?.["paths"],
        ["/srv/x", "/work/app/a"],
        JSON.stringify(line),
      );
    const odd = await become("apply_patch", { input: patch("*** Delete File: a\u2028b") }, "/work/app");
    assert.deepEqual(odd.params?.["deletes"], ["/work/app/a\u2028b"]);
  });
  test("the same call of an MCP tool is another action in another workspace", async () => {
    const one = await become("mcp__db__query", { sql: "x" }, "/work/app");
    assert.deepEqual(one, await become("mcp__db__query", { sql: "x" }, "/work/app"));
    assert.notDeepEqual(one, await become("mcp__db__query", { sql: "x" }, "/work/other"));
  });
  test("the home folder, its parents and the root are not workspaces", async () => {
    assert.equal((await become("Bash", { command: "ls" }, "/home")).params?.["workspace"], undefined);
    assert.equal((await become("Bash", { command: "ls" }, "/")).params?.["workspace"], undefined);
    assert.equal((await become("Bash", { command: "ls" }, "/tmp", "/tmp")).params?.["workspace"], undefined);
  });
  test("remarks of the model are not part of the request", async () => {
    const one = await become("Bash", { command: "ls", description: "a" }, "/work/app");
    const two = await become("Bash", { command: "ls", description: "b" }, "/work/app");
    assert.deepEqual(one, two);
  });
  test("long strings are bound by their digest", async () => {
    const write = (end: string): Promise<unknown> =>
      become("Write", { file_path: "/work/app/x", content: `${"x".repeat(100_000)}${end}` }, "/work/app");
    assert.ok(JSON.stringify(await write("a")).length < 60_000);
    assert.notDeepEqual(await write("a"), await write("b"));
  });
  test("tool names are the same for all hosts", async () => {
    const names: Readonly<Record<string, [tool: string, input: Record<string, unknown>][]>> = {
      "files/write": [
        ["Write", { file_path: "x", content: "" }],
        ["MultiEdit", { file_path: "x", edits: [] }],
        ["create_file", { filePath: "x" }],
        ["fs_write", { command: "create", path: "x" }],
        ["apply_patch", { input: "*** Begin Patch\n*** Update File: x\n*** End Patch" }],
        ["multi_replace_string_in_file", { replacements: [{ filePath: "x" }] }],
      ],
      "files/read": [
        ["Read", { file_path: "x" }],
        ["fs_read", { operations: [{ mode: "Line", path: "x" }] }],
      ],
      "files/delete": [["Delete", { path: "x" }]],
      "mcp.github/create_issue": [
        ["mcp__github__create_issue", {}],
        ["mcp_github_create_issue", {}],
        ["@github/create_issue", {}],
      ],
      "other/Launch": [["Launch", {}]],
    };
    for (const [name, calls] of Object.entries(names))
      for (const [tool, input] of calls) {
        const request = await become(tool, input, "/work/app");
        assert.equal(`${request.tool}/${request.operation}`, name, tool);
        if (name.startsWith("files/")) assert.deepEqual(request.params?.["paths"], ["/work/app/x"], tool);
      }
  });
  test("a call with a duplicate member is rejected", async () => {
    await assert.rejects(become("Write", { file_path: "a", path: "b" }, "/work/app"), /two different paths/);
    await assert.rejects(become("Bash", { command: "a", cmd: "b" }, "/work/app"), /two different commands/);
    await assert.rejects(become("apply_patch", { input: "x" }, "/work/app"), /names no file/);
  });
});

test("the managed file takes precedence over the user's, and both over the environment", (t) => {
  const folder = folderWith(t, {
    "managed.json": '{"url":"http://managed.test"}',
    "user.json": '{"url":"http://user.test","api_key":"user"}',
    "bad.json": "{",
    "strange.json": '{"urls":"x"}',
  });
  const [managed, user] = ["managed.json", "user.json"].map((name) => join(folder, name)) as [string, string];
  const env = { ASSENT_URL: "http://env.test", ASSENT_API_KEY: "env", ASSENT_AGENT: "coder" };
  assert.deepEqual(loadConfig(env, [managed, user]), {
    url: "http://managed.test",
    apiKey: "user",
    agent: "coder",
    wait: null,
    sessions: false,
    authority: null,
    subAgents: new Map(),
    service: null,
  });
  assert.deepEqual(loadConfig(env, []), {
    url: "http://env.test",
    apiKey: "env",
    agent: "coder",
    wait: null,
    sessions: false,
    authority: null,
    subAgents: new Map(),
    service: null,
  });
  // The service that the hook may start comes from the file of the URL only.
  const withService = folderWith(t, {
    "managed.json": '{"url":"http://127.0.0.1:1","api_key":"k"}',
    "user.json": '{"service":"/home/ada/assent"}',
    "both.json": '{"url":"http://127.0.0.1:1","api_key":"k","service":"/home/ada/assent"}',
    "relative.json": '{"url":"http://127.0.0.1:1","api_key":"k","service":"assent"}',
  });
  const at = (...names: string[]) =>
    loadConfig(
      {},
      names.map((name) => join(withService, name)),
    );
  assert.equal(at("managed.json", "user.json").service, null);
  assert.equal(at("both.json").service, "/home/ada/assent");
  assert.throws(() => at("relative.json"), /service must be the absolute path of a folder/);
  // Variables that a repository can set change neither the service that gets a file's key, nor the service that
  // decides.
  const keyOnly = folderWith(t, { "key.json": '{"api_key":"user"}', "other.json": '{"url":"http://evil.test"}' });
  assert.throws(() => loadConfig(env, [join(keyOnly, "key.json")]), /has api_key but no url/);
  assert.throws(
    () => loadConfig({}, [join(keyOnly, "key.json"), join(keyOnly, "other.json")]),
    /has api_key but no url/,
  );
  assert.equal(loadConfig({ ASSENT_AGENT: "coder" }, [join(keyOnly, "key.json")]).url, "http://127.0.0.1:8000");
  const account = join(userInfo().homedir, ".config/assent/hook.json");
  const own = join(keyOnly, ".config/assent/hook.json");
  assert.deepEqual(configFiles({ HOME: keyOnly }), [...new Set(["/etc/assent/hook.json", account, own])]);
  for (const name of ["bad.json", "strange.json"])
    assert.throws(() => loadConfig(env, [join(folder, name)]), HookConfigError, name);
  assert.throws(() => loadConfig({}, []), /no api_key/);
});

test("a configuration with a byte order mark is read, and the error of one in UTF-16 names the cause", (t) => {
  const text = '{"api_key":"user","url":"http://127.0.0.1:9000"}';
  const folder = folderWith(t, { "mark.json": `\uFEFF${text}` });
  writeFileSync(join(folder, "wide.json"), Buffer.from(`\uFEFF${text}`, "utf16le"));
  assert.equal(loadConfig({}, [join(folder, "mark.json")]).apiKey, "user");
  assert.throws(
    () => loadConfig({}, [join(folder, "wide.json")]),
    /wide[.]json is encoded in UTF-16; save it as UTF-8/,
  );
});

test("the error of a configuration that cannot be read names the cause and the position, and no part of the key", (t) => {
  const folder = folderWith(t, {
    "empty.json": "\n",
    "comma.json": '{\n  "api_key": "secret",\n}',
    "value.json": '{"api_key": "secret", "sessions": tru}',
    "unended.json": '{"api_key": "secret"',
    "key.json": '{"url": "http://127.0.0.1:9000", "api_key": "secret\u200b"}',
  });
  mkdirSync(join(folder, "folder.json"));
  writeFileSync(join(folder, "wide.json"), Buffer.from('{"api_key":"secret"}', "utf16le"));
  for (const [name, cause] of Object.entries({
    empty: /is empty/,
    comma: /is not valid JSON: see line 3, column 1$/,
    value: /is not valid JSON: see line 1/,
    unended: /is not valid JSON: see line 1, column 21$/,
    key: /api_key has characters that no key has/,
    folder: /cannot be read: EISDIR/,
    wide: /is encoded in UTF-16/,
  }))
    assert.throws(
      () => loadConfig({}, [join(folder, `${name}.json`)]),
      ({ message }: Error) => cause.test(message) && !message.includes("secret"),
      name,
    );
});

describe("an approver's question", () => {
  const QUESTION = { number: 1, asked_by: "user:bob", question: "Which \u202ecustomer?", answer: null };

  test("is reported immediately, without waiting, with instructions to answer", async () => {
    const { stdout, calls } = await answer(
      "claude-code",
      BEFORE["claude-code"],
      verdict("pending_approval", { questions: [QUESTION] }),
    );
    const reason = JSON.parse(stdout).hookSpecificOutput.permissionDecisionReason as string;
    assert.match(
      reason,
      /the user bob asks about it \(question 1\): "Which customer\?" Answer it with the command: assent answer act_1/,
    );
    assert.equal(calls.length, 1);
  });

  test("is answered by the hook itself when the agent runs the command, which does not run", async () => {
    const call = (command: string) => ({
      ...(BEFORE["claude-code"] as object),
      tool_name: "Bash",
      tool_input: { command },
    });
    const { stdout, calls } = await answer("claude-code", call("assent answer act_1 'customer 4711'"), () => ({
      body: { id: "act_1", status: "pending_approval" },
    }));
    assert.match(stdout, /"permissionDecision":"deny".*was delivered to the approver; nothing was run/);
    assert.deepEqual(
      calls.map(({ method, path, body }) => [method, path, body["answer"]]),
      [["POST", "/v1/actions/act_1/answers", "customer 4711"]],
    );
    for (const command of [
      "assent answer act_1 $(rm x)",
      "assent answer act_1 a; rm x",
      "sudo assent answer act_1 a",
      "assent answer act_1 a > f",
    ]) {
      const other = await answer("claude-code", call(command), verdict("denied"));
      assert.match(other.calls[0]?.path ?? "", /^\/v1\/actions\?join=open/, command);
    }
  });
});
