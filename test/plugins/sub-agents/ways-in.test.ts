/**
 * Each way in names the authority under which an agent acts: the client, the command line, the hook with the keys of
 * sub-agents, the MCP proxy, and gateways.
 * @needs authzen, hook, mcp
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { decideHookCall } from "../../../clients/hook/decide-tool-call.ts";
import { HookConfigError, loadConfig } from "../../../clients/hook/hook-config.ts";
import { HookState } from "../../../clients/hook/hook-state.ts";
import { CallGate } from "../../../clients/mcp/decisions/decide-call.ts";
import { readCallMeta } from "../../../clients/mcp/decisions/call-meta.ts";
import type { Caller } from "../../../clients/mcp/clients/caller.ts";
import { createAssent, govern } from "../../../clients/typescript/index.ts";
import authzen from "../../../plugins/authzen/index.ts";
import { serve } from "../../../src/serve/index.ts";
import { clientOf } from "../../support/assent-client.ts";
import { assentInProcessWithEnv } from "../../support/cli.ts";
import { makeKey, startService, type Service } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** The worker may do everything, the boss only little, so a call is denied exactly if the boss counts. */
const POLICY = `policy: work
rules:
  - { name: the boss may not, agent: boss, operation: forbidden, effect: deny, reason: not for the boss }
  - { name: ask, operation: ask, effect: require_approval }
  - { name: the rest, effect: allow }
`;

let service: Service;
let worker: string;
let authority: string;
before(async () => {
  service = await startService({
    policy: POLICY,
    plugins: [{ plugin: authzen, options: { enabled: true }, origin: "test" }],
  });
  worker = (await makeKey(service, { name: "worker", preset: "agent", agent_id: "worker" })).key;
  const boss = (await makeKey(service, { name: "boss", preset: "agent", agent_id: "boss" })).key;
  const body = { agent_id: "worker", for: "2h", tools: ["*"] };
  const given = await service.call("POST", "/v1/authorities", { key: boss, body });
  assert.equal(given.status, 201, JSON.stringify(given.body));
  authority = given.body.id;
});
after(() => service.close());

async function withUrl(use: (url: string) => Promise<void>): Promise<void> {
  const server = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
  try {
    await use(server.url);
  } finally {
    await server.stop();
  }
}

let n = 0;
const forbidden = (): { agent_id: string; tool: string; operation: string; params: Record<string, unknown> } => ({
  agent_id: "worker",
  tool: "mail",
  operation: "forbidden",
  params: { n: ++n },
});

describe("the client", () => {
  test("sends the authority of its options with actions, plans and previews, and a call can name another or none", async () => {
    const bound = clientOf(service, { apiKey: worker, authority });
    assert.match((await bound.submit(forbidden())).reason, /for "boss".*not for the boss/);
    assert.equal((await bound.submit(forbidden(), { authority: null })).status, "allowed");
    assert.equal((await bound.gate(forbidden())).decision, "deny");
    assert.equal((await bound.submitPlan([forbidden()])).actions[0]?.status, "denied");
    await assert.rejects(govern(() => 1, { tool: "mail", operation: "forbidden", assent: bound })({ n: ++n }), /boss/);
    const free = clientOf(service, { apiKey: worker, authority: null });
    assert.equal((await free.submit(forbidden())).status, "allowed");
    assert.equal((await free.submit(forbidden(), { authority })).status, "denied");
    assert.equal((await free.submitPlan([forbidden()], { authority })).actions[0]?.status, "denied");
  });

  test("does not accept a response about another authority", async () => {
    const mixing = createAssent({
      url: "http://assent.test",
      apiKey: worker,
      authority,
      retries: 0,
      fetch: async (input, init) => {
        const { authority: _, ...body } = JSON.parse(init?.body as string) as Record<string, unknown>;
        return service.runtime.fetch(new Request(input, { ...init, body: JSON.stringify(body) }));
      },
    });
    await assert.rejects(mixing.submit(forbidden()), /not the requested action/);
  });

  test("reports usage", async () => {
    const client = clientOf(service, { apiKey: worker });
    const { id } = await client.submit({ agent_id: "worker", tool: "mail", operation: "send" });
    await client.start(id);
    await client.result(id, { success: true, usage: { cost_usd: 0.5 } });
    const rows = await service.runtime.host.storage.entriesOfAction(id);
    assert.ok(rows.some(({ bytes }) => Buffer.from(bytes).toString().includes('"cost_usd":0.5')));
  });
});

test("`assent submit` sends --authority, and ASSENT_AUTHORITY without it", async () => {
  await withUrl(async (url) => {
    const env = { ASSENT_URL: url, ASSENT_API_KEY: worker };
    const submit = ["submit", "--tool", "mail", "--operation", "forbidden"];
    const run = async (more: object, ...args: string[]): Promise<number | null> =>
      (await assentInProcessWithEnv({ ...env, ...more }, ...submit, ...args)).code;
    assert.equal(await run({}), 0);
    assert.equal(await run({}, "--authority", authority), 3);
    assert.equal(await run({ ASSENT_AUTHORITY: authority }), 3);
  });
});

describe("the hook", () => {
  const call = async (url: string, config: object, more: object, env = {}): Promise<string> => {
    const file = join(temporaryFolder("assent-ways-"), "hook.json");
    writeFileSync(file, JSON.stringify({ url, ...config }));
    const event = {
      hook_event_name: "PreToolUse",
      session_id: "s",
      cwd: "/work",
      tool_name: "mcp__mail__forbidden",
      tool_use_id: `call-${++n}`,
      tool_input: { n },
      ...more,
    };
    const { stdout } = await decideHookCall(
      {
        flag: "claude-code",
        payload: Buffer.from(JSON.stringify(event)),
        environment: { cwd: "/work", home: null, project: null, codexProgram: null },
        deadline: 20,
        maxWait: 0,
        signal: new AbortController().signal,
      },
      { config: () => loadConfig(env, [file]), state: new HookState(null) },
    );
    return stdout;
  };

  test("sends the authority of its configuration or of the environment", async () => {
    await withUrl(async (url) => {
      const key = { api_key: worker };
      assert.match(await call(url, key, {}), /"allow"/);
      assert.match(await call(url, { ...key, authority }, {}), /"deny".*not for the boss/);
      assert.match(await call(url, key, {}, { ASSENT_AUTHORITY: authority }), /"deny".*not for the boss/);
    });
  });

  test("submits the calls of a sub-agent with its key and authority, and records which one it was", async () => {
    await withUrl(async (url) => {
      const main = (await makeKey(service, { name: "main", preset: "agent", agent_id: "main" })).key;
      const config = { api_key: main, sub_agents: { reviewer: { api_key: worker, authority } } };
      const ofReviewer = { agent_id: "a1", agent_type: "reviewer" };
      assert.match(await call(url, config, {}), /"allow"/);
      assert.match(await call(url, config, { agent_type: "reviewer" }), /"allow"/, "the type of the main agent");
      assert.match(await call(url, config, { agent_id: "a2", agent_type: "other" }), /"allow"/);
      assert.match(await call(url, config, ofReviewer), /"deny".*not for the boss/);
      const { actions } = (await service.call("GET", "/v1/actions?limit=2", { key: service.admin })).body;
      assert.deepEqual(
        actions.map(({ agent_id, meta }: any) => [agent_id, meta.sub_agent, meta.sub_agent_id]),
        [
          ["worker", "reviewer", "a1"],
          ["main", "other", "a2"],
        ],
      );
      const all = { ...config, sub_agents: { "*": { api_key: worker, authority } } };
      assert.match(await call(url, all, { agent_id: "a2", agent_type: "__proto__" }), /"deny".*not for the boss/);
    });
  });

  test("rejects a configuration of sub-agents that it cannot use", () => {
    const file = join(temporaryFolder("assent-ways-"), "hook.json");
    for (const [sub_agents, words] of [
      [{ reviewer: {} }, /sub_agents\.reviewer has no api_key/],
      [{ reviewer: { api_key: "k", authorty: "a" } }, /member "authorty", which is unknown/],
      [[], /must be an object/],
    ] as const) {
      writeFileSync(file, JSON.stringify({ url: "http://127.0.0.1:1", api_key: "k", sub_agents }));
      assert.throws(
        () => loadConfig({}, [file]),
        (error: Error) => error instanceof HookConfigError && words.test(error.message),
      );
    }
    writeFileSync(file, JSON.stringify({ sub_agents: { "*": { api_key: "k" } } }));
    assert.throws(
      () => loadConfig({ ASSENT_URL: "http://evil.test", ASSENT_API_KEY: "x" }, [file]),
      /has sub_agents but no url/,
    );
  });
});

describe("the MCP proxy", () => {
  const decide = (named: unknown, configured: string | null) =>
    new CallGate({
      assent: clientOf(service, { apiKey: worker, authority: configured }),
      agentId: () => Promise.resolve("worker"),
      authority: configured,
      maxWait: () => 0,
      approvalPage: null,
      log: () => {},
    }).decide({ tool: "mail", operation: "forbidden", params: { n: ++n }, context: {}, meta: {}, authority: named }, {
      signal: new AbortController().signal,
      info: {},
      whenAttached: () => Promise.resolve(),
    } as unknown as Caller);

  test("acts under the authority of its configuration, or of the call, and lets no call name another", async () => {
    assert.equal((await decide(undefined, null)).mayRun, true);
    for (const [named, configured] of [
      [undefined, authority],
      [authority, null],
      [authority, authority],
    ] as const) {
      const decided = await decide(named, configured);
      assert.match(decided.mayRun ? "may run" : decided.refusal.text, /not for the boss/);
    }
    for (const [named, words] of [
      ["another", /acts under the authority/],
      [7, /must be the id of an authority/],
      ["", /must be the id of an authority/],
    ] as const) {
      const decided = await decide(named, authority);
      assert.match(decided.mayRun ? "may run" : decided.refusal.text, words);
    }
  });

  test("does not forward the authority to a server", () => {
    const { sent, decided, recorded } = readCallMeta({ "assent/authority-id": authority }, ["*"]);
    assert.deepEqual([sent, decided, recorded], [{}, {}, {}]);
  });
});

describe("AuthZEN", () => {
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    service.call("POST", `/access/v1/${path}`, { key: worker, body, headers });
  const subject = { type: "agent", id: "worker" };
  const evaluation = (name: string) => ({ subject, action: { name }, resource: { type: "mail", id: `${++n}` } });

  test("takes the authority from the header, as other gateways do", async () => {
    assert.equal((await post("evaluation", evaluation("forbidden"))).body.decision, true);
    const under = await post("evaluation", evaluation("forbidden"), { "assent-authority": authority });
    assert.match(under.body.context.reason_text, /not for the boss/);
    const empty = await post("evaluation", evaluation("forbidden"), { "assent-authority": "" });
    assert.equal(empty.status, 400);
  });

  test("rejects an access request whose actors are not those of the evaluation", async () => {
    const asked = { ...evaluation("ask"), subject: { ...subject, properties: { act: { sub: "worker" } } } };
    const { body } = await post("evaluation", asked, { "assent-authority": authority });
    const denial = { evaluation_id: body.context.evaluation_id };
    const request = (actor: unknown) =>
      post("requests", { ...asked, subject, denial, ...(actor === undefined ? {} : { client: { actor } }) });
    const chain = { id: "worker", act: { sub: "boss" } };
    assert.equal((await request(undefined)).status, 202);
    assert.equal((await request(chain)).status, 202);
    for (const actor of [
      { id: "worker" },
      { id: "boss" },
      { ...chain, act: { sub: "boss", act: { sub: "root" } } },
      {},
    ])
      assert.equal((await request(actor)).status, 400, JSON.stringify(actor));
  });
});
