/** The worker for managed agents, against a look-alike of the vendor's sessions built from its published pages. */
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { createAssent } from "../../../clients/typescript/index.ts";
import { createVendorApi } from "../../../plugins/managed-agents/vendor-api.ts";
import { Worker } from "../../../plugins/managed-agents/worker.ts";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { assentInProcessWithEnv } from "../../support/cli.ts";
import { Vendor } from "../../support/managed-agents-vendor.ts";
import { approve, makeKey, startService, type Service } from "../../support/service.ts";

const POLICY = `
policy: managed
rules:
  - { name: reading, tool: claude, operation: read, effect: allow }
  - { name: bash by a person, tool: claude, operation: bash, effect: require_approval }
  - { name: our notes, tool: mcp.notes, operation: search, effect: allow }
`;
describe("the worker for managed agents", () => {
  let service: Service;
  let listening: RunningServer;
  let listeningVendor: RunningServer;
  let vendor: Vendor;
  let key: string;
  let lines: string[];
  before(async () => {
    service = await startService({ policy: POLICY });
    listening = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
    ({ key } = await makeKey(service, { name: "worker", preset: "agent", agent_id: "cloud" }));
  });
  after(async () => {
    await listening.stop(0);
    await service.close();
  });
  beforeEach(async () => {
    lines = [];
    vendor = new Vendor();
    listeningVendor = await serve(vendor.serve, { host: "127.0.0.1", port: 0 });
  });
  afterEach(() => listeningVendor.stop(0));

  const createWorker = (url = listening.url, apiKey = key, timeout = 5): Worker =>
    new Worker({
      vendor: createVendorApi(listeningVendor.url, "vendor-key", new AbortController().signal),
      assent: createAssent({ url, apiKey, timeout, retries: 0 }),
      agent: "cloud",
      vendorAgent: undefined,
      tool: "claude",
      log: (line) => void lines.push(line),
    });
  const newest = async () => (await service.call("GET", "/v1/actions?limit=1", { key: service.admin })).body.actions[0];
  const total = async (): Promise<number> =>
    (await service.call("GET", "/v1/actions?limit=200", { key: service.admin })).body.actions.length;

  it("allows a call after its start is recorded, and denies one with the reason", async () => {
    const [read, removed] = vendor.call("s1", { name: "read", input: { path: "a" } }, { name: "remove", input: {} });
    const [searched] = vendor.call("s2", {
      type: "agent.mcp_tool_use",
      mcp_server_name: "notes",
      name: "search",
      input: {},
    });
    vendor.call("s3", { type: "agent.custom_tool_use", name: "ours", input: {} });
    await createWorker().runOnce();
    assert.deepEqual(vendor.ran, [read, searched]);
    const denied = vendor.answers("s1").find(({ tool_use_id }) => tool_use_id === removed);
    assert.equal(denied?.["result"], "deny");
    assert.match(String(denied?.["deny_message"]), /^Not run: .*\(action [\w-]+\)\.$/);
    assert.deepEqual(vendor.answers("s3"), []);
    const { body } = await service.call("GET", "/v1/actions?operation=read&limit=1", { key: service.admin });
    assert.deepEqual([body.actions[0].status, body.actions[0].params], ["executing", { path: "a" }]);
  });

  it("keeps a session waiting for an approval, as one request, and answers once it is decided", async () => {
    const [id] = vendor.call("s1", { name: "bash", input: { command: "make deploy" } });
    const worker = createWorker();
    await worker.runOnce();
    const before = await total();
    await worker.runOnce();
    await createWorker().runOnce();
    assert.deepEqual([vendor.answers("s1"), await total()], [[], before]);
    assert.equal(lines.filter((line) => line.includes("waits for approval")).length, 2);
    await approve(service, (await newest()).id);
    await createWorker().runOnce();
    assert.deepEqual(vendor.ran, [id]);
    await worker.runOnce();
    assert.equal(vendor.answers("s1").length, 1);
  });

  it("does not decide an MCP call as a tool of the vendor, and answers the other calls of its session", async () => {
    const mcp = { type: "agent.mcp_tool_use", name: "read", input: {} };
    const [, , , , , good] = vendor.call(
      "s1",
      mcp,
      { ...mcp, mcp_server_name: "" },
      { ...mcp, mcp_server_name: ["notes"] },
      { name: "read", input: {}, mcp_server_name: "notes" },
      { name: "", input: {} },
      { name: "read", input: { path: "good" } },
    );
    await createWorker().runOnce();
    assert.deepEqual(vendor.ran, [good]);
    assert.equal(vendor.answers("s1").length, 1);
    assert.equal(lines.filter((line) => line.includes("does not name its MCP server; it keeps waiting")).length, 3);
    assert.equal(lines.filter((line) => line.includes("names an MCP server; it keeps waiting")).length, 1);
  });

  it("answers a sub-agent's call in the thread of the sub-agent", async () => {
    const [own, sub] = vendor.call(
      "s1",
      { name: "read", input: { path: "own" } },
      { name: "read", input: { path: "sub" }, session_thread_id: "sthr_1" },
    );
    await createWorker().runOnce();
    assert.deepEqual(vendor.ran, [own, sub]);
  });

  it("doctor finds tools that run without a confirmation, also of sub-agents, and keys that do not work", async () => {
    const env = { ANTHROPIC_BASE_URL: listeningVendor.url, ASSENT_URL: listening.url, ASSENT_API_KEY: key };
    const doctor = (vendorKey = "vendor-key", more: string[] = []) =>
      assentInProcessWithEnv({ ...env, ANTHROPIC_API_KEY: vendorKey }, "managed-agents", "doctor", ...more);
    const empty = await doctor();
    assert.equal(empty.code, 0, empty.out);
    assert.match(empty.out, /^note +vendor +without a session, the permission policies were not checked$/m);
    assert.match(empty.out, /^ok +policies +calls of "claude" that the policies may let through: bash, read$/m);
    vendor.call("s1", { name: "read", input: { path: "doctor" } });
    const asks = { permission_policy: { type: "always_ask" } };
    const sub = { id: "agent_2", name: "helper", tools: [{ type: "agent_toolset_20260401" }] };
    const tools = [
      { type: "agent_toolset_20260401", default_config: asks, configs: [{ name: "bash", enabled: false }] },
      { type: "mcp_toolset", mcp_server_name: "notes" },
      { type: "custom", name: "ours" },
    ];
    vendor.agent = { id: "agent_1", name: "coder", tools };
    const good = await doctor();
    assert.equal(good.code, 0, good.out);
    assert.match(good.out, /^ok +vendor +each tool has always_ask$/m);
    const auto = { name: "search", permission_policy: { type: "auto" } };
    vendor.agent = {
      ...vendor.agent,
      tools: [...tools, { type: "mcp_toolset", mcp_server_name: "crm", configs: [auto] }],
      multiagent: { type: "coordinator", agents: [sub] },
    };
    const bad = await doctor();
    assert.equal(bad.code, 1);
    assert.match(bad.out, /^problem +vendor +calls of the agent coder \(agent_1\) .*: search \(auto\) of crm\./m);
    assert.match(bad.out, /helper \(agent_2\) .*: all tools \(always_allow\) of agent_toolset_20260401\./);
    assert.deepEqual(vendor.answers("s1"), []);
    assert.match((await doctor("wrong")).out, /^problem +vendor +GET \/v1\/sessions.*status 401/m);
    assert.match((await doctor("vendor-key", ["--tool", "other"])).out, /^problem +policies +the policies deny every/m);
  });

  it("decides events with the same id in two sessions separately", async () => {
    const call = { name: "read", input: {}, id: "sevt_same" };
    vendor.call("s1", call);
    vendor.call("s2", { ...call, name: "remove" });
    vendor.call("s3", call);
    const before = await total();
    await createWorker().runOnce();
    const results = ["s1", "s2", "s3"].map((session) => vendor.answers(session)[0]?.["result"]);
    assert.deepEqual([results, await total()], [["allow", "deny", "allow"], before + 3]);
  });

  it("sends the vendor's key only over https, or to this machine", async () => {
    const run = (url: string) =>
      assentInProcessWithEnv(
        {
          ANTHROPIC_API_KEY: "vendor-key",
          ANTHROPIC_BASE_URL: url,
          ASSENT_URL: listening.url,
          ASSENT_API_KEY: key,
        },
        "managed-agents",
        "--once",
      );
    for (const url of ["http://vendor.example", "http://127.0.0.1.vendor.example", "vendor.example", ""]) {
      const { code, err } = await run(url);
      assert.equal(code, 2, err);
      assert.match(err, /ANTHROPIC_BASE_URL must begin with https:\/\//);
    }
    // The vendor of this test does not know a session by its encoded id.
    vendor.call("s1\u001b[2J\nforged", { name: "read", input: {} });
    const { code, err } = await run(listeningVendor.url);
    assert.equal(code, 0, err);
    assert.match(err, /^assent managed-agents: session s1\ufffd\[2J\ufffdforged: .*status 404.*; it keeps waiting\n$/);
  });

  it("repeats an answer that was lost, without a second action", async () => {
    const [id] = vendor.call("s1", { name: "read", input: { path: "lost" } });
    const { serve: answer } = vendor;
    const session = vendor.sessions.get("s1");
    const listed = session?.events.slice() ?? [];
    await createWorker().runOnce();
    // The vendor forgets the answer, as if it had never arrived.
    if (session !== undefined) Object.assign(session, { status: "idle", events: listed, open: new Set([id]) });
    const before = await total();
    await createWorker().runOnce();
    assert.deepEqual([vendor.ran, await total()], [[id, id], before]);
    assert.equal(typeof answer, "function");
  });

  it("answers nothing while the service is down or rejects the key, or the vendor answers garbage", async () => {
    const [id] = vendor.call("s1", { name: "read", input: { path: "b" } });
    await createWorker("http://127.0.0.1:1").runOnce();
    await createWorker(listening.url, "not-a-key").runOnce();
    assert.deepEqual([vendor.ran, lines.length], [[], 2]);
    for (const broken of [
      new Response("<html>", { status: 200 }),
      Response.json([], { status: 200 }),
      Response.json({ data: "x" }),
      new Response(null, { status: 503 }),
    ]) {
      vendor.broken = broken;
      await assert.rejects(createWorker().runOnce());
    }
    vendor.broken = null;
    vendor.call("s2", { name: 5, input: "x" });
    await createWorker().runOnce();
    assert.deepEqual(vendor.ran, [id]);
    assert.ok(lines.some((line) => line.startsWith("session s2:") && line.endsWith("it keeps waiting")));
  });

  it("answers nothing while the service is slow or answers garbage, and runs a call once after a restart", async () => {
    const [id] = vendor.call("s1", { name: "bash", input: { command: "make slow" } });
    const lie = { agent_id: "cloud", tool: "claude", operation: "read", params: {}, context: {}, status: "allowed" };
    const faults: (() => Response | Promise<Response>)[] = [
      () => new Promise(() => {}),
      () => new Response("<html>"),
      () => Response.json({}),
      () => Response.json({ id: "x", ...lie }),
    ];
    for (const fault of faults) {
      const broken = await serve(async () => fault(), { host: "127.0.0.1", port: 0 });
      await createWorker(broken.url, key, 0.3).runOnce();
      assert.match(lines.at(-1) ?? "", /; it keeps waiting$/);
      await broken.stop(0);
    }
    assert.deepEqual(vendor.answers("s1"), []);
    const restarted = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
    const worker = createWorker(restarted.url);
    await worker.runOnce();
    await restarted.stop(0);
    await approve(service, (await newest()).id);
    await worker.runOnce();
    assert.deepEqual(vendor.answers("s1"), []);
    const again = await serve(service.runtime.fetch, { host: "127.0.0.1", port: restarted.port });
    await worker.runOnce();
    await worker.runOnce();
    await again.stop(0);
    assert.deepEqual([vendor.ran, vendor.answers("s1").length], [[id], 1]);
  });

  it("answers nothing if the answer to a start is lost, and the next round repeats the same start", async () => {
    const [id] = vendor.call("s1", { name: "read", input: { path: "start" } });
    let isCut = true;
    const cutting = await serve(
      async (request, info) => {
        const response = await service.runtime.fetch(request, info);
        return isCut && request.url.endsWith("/start") ? new Response("garbage") : response;
      },
      { host: "127.0.0.1", port: 0 },
    );
    const worker = createWorker(cutting.url);
    await worker.runOnce();
    assert.deepEqual([vendor.ran, (await newest()).status], [[], "executing"]);
    isCut = false;
    await worker.runOnce();
    assert.deepEqual(vendor.ran, [id]);
    await cutting.stop(0);
  });
});
