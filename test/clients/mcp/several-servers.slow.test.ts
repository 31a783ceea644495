/**
 * Several servers behind one proxy: which server a name belongs to, and what happens when servers exit, return and
 * change.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { serve } from "../../../src/serve/index.ts";
import { assent } from "../../support/cli.ts";
import { startStdioProxy, setUp, SERVER, type Proxied, type Refused, type Setup } from "../../support/mcp.ts";
import { server as fixture } from "../../support/mcp-server.ts";
import { until } from "../../support/wait.ts";

const POLICY = `policy: mcp
rules:
  - { name: small, tool: [mcp.one, mcp.two], when: "!('n' in params) || params.n < 100", effect: allow }
  - { name: large, tool: [mcp.one, mcp.two], effect: require_approval }
  - { name: acceptance, tool: assent-mcp, effect: allow }
`;

describe("several servers in one assent-mcp.yaml", () => {
  let setup: Setup;
  let proxy: Proxied;
  const file = (name: string): string => join(setup.folder, name);
  const lines = (of: string): { name: string; given?: unknown }[] =>
    existsSync(file(of))
      ? readFileSync(file(of), "utf8")
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as { name: string })
      : [];
  const names = async (): Promise<string[]> => (await proxy.client.listTools()).tools.map(({ name }) => name).sort();
  const call = async (name: string, given: Record<string, unknown> = {}): Promise<Refused> =>
    (await proxy.client.callTool({ name, arguments: given }, { timeout: 600_000 })) as unknown as Refused;

  before(async () => {
    setup = await setUp(POLICY);
    const entry = (name: string, tools: string, more: Record<string, string> = {}) => ({
      command: SERVER[0],
      args: SERVER.slice(1),
      env: {
        MCP_TOOLS: tools,
        MCP_RECORD: file(`record-${name}`),
        MCP_DESCRIPTIONS: file(`descriptions-${name}`),
        MCP_AWAY: file(`away-${name}`),
        ...more,
      },
    });
    const servers = {
      one: entry("one", "echo,write"),
      two: entry("two", "echo"),
      mute: entry("mute", "echo", { MCP_NO_LIST: "1" }),
      absent: { command: "/no/such/program" },
    };
    writeFileSync(file("assent-mcp.yaml"), JSON.stringify({ wait: 600, servers }));
    proxy = await startStdioProxy(setup, { flags: ["--config", file("assent-mcp.yaml")], server: [] });
  });
  after(async () => {
    await proxy?.close();
    await setup?.close();
  });

  test("a name of two servers is prefixed; a server that does not start or gives no list hides no other", async () => {
    assert.deepEqual(await names(), ["one-echo", "two-echo", "write"], proxy.log());
    assert.match(proxy.log(), /"absent" cannot be started.*missing/s);
    assert.match(proxy.log(), /"mute" did not return its list/);
  });

  test("each call is an action of its server", async () => {
    await call("one-echo", { for: "one" });
    await call("two-echo", { for: "two" });
    assert.deepEqual(
      [lines("record-one"), lines("record-two")].map((record) => record.map(({ given }) => given)),
      [[{ for: "one" }], [{ for: "two" }]],
    );
    const actions = (await setup.actions()).map(({ tool, operation, params }) => [tool, operation, params]);
    assert.deepEqual(actions.reverse(), [
      ["mcp.one", "echo", { for: "one" }],
      ["mcp.two", "echo", { for: "two" }],
    ]);
    const unknown = await call("echo");
    assert.equal(unknown.isError, true);
    assert.match(unknown.content[0]?.text ?? "", /no tool "echo"/);
  });

  test("an approval for one server's tool does not cover another server's tool of the same name", async () => {
    const waiting = call("one-echo", { n: 100 });
    await until(
      "the call is pending approval",
      async () => (await setup.actions())[0]?.["status"] === "pending_approval",
    );
    const other = call("two-echo", { n: 100 });
    await until(
      "both wait",
      async () => (await setup.actions()).filter(({ status }) => status === "pending_approval").length === 2,
    );
    const ids = (await setup.actions()).slice(0, 2).map(({ id, tool }) => [tool, id]);
    assert.deepEqual(ids.map(([tool]) => tool).sort(), ["mcp.one", "mcp.two"]);
    // The newest is decided first.
    await setup.decide(false);
    assert.equal((await other).structuredContent?.status, "rejected");
    await setup.decide(true);
    assert.equal((await waiting).isError, undefined);
    assert.ok(!lines("record-two").some(({ given }) => (given as { n?: number }).n === 100));
  });

  test("a name is not reassigned to another server, and new tools there are not called", async () => {
    writeFileSync(file("descriptions-two"), "write Takes what is written.\n");
    assert.deepEqual(await names(), ["one-echo", "one-write", "two-echo", "two-write"]);
    assert.equal((await call("write", { n: 1 })).isError, undefined);
    assert.equal((await call("two-write", { n: 1 })).structuredContent?.code, "DEFINITION_NEW");
    assert.equal((await call("one-write", { n: 2 })).isError, undefined);
    const accepted = await assent(["mcp", "accept", "two", "--yes", "--config", file("assent-mcp.yaml")], {
      env: setup.env,
    });
    assert.equal(accepted.code, 0, accepted.err);
    assert.equal((await call("two-write", { n: 3 })).isError, undefined);
    assert.deepEqual(
      [...lines("record-one"), ...lines("record-two")].filter(({ name }) => name === "write").map(({ given }) => given),
      [{ n: 1 }, { n: 2 }, { n: 3 }],
    );
  });

  test("a definition changes while a call waits for approval: the approved call is not made", async () => {
    const running = call("one-write", { n: 200 });
    await until(
      "the call is pending approval",
      async () => (await setup.actions())[0]?.["status"] === "pending_approval",
    );
    writeFileSync(file("descriptions-one"), "write Writes, and sends a copy to somebody.\n");
    await setup.decide(true);
    const refused = await running;
    assert.equal(refused.structuredContent?.code, "DEFINITION_CHANGED", JSON.stringify(refused));
    assert.ok(!lines("record-one").some(({ given }) => (given as { n?: number }).n === 200));
    // The unchanged tool is the one that was approved, and the approval still exists.
    rmSync(file("descriptions-one"));
    await names();
    assert.equal((await call("one-write", { n: 200 })).isError, undefined);
  });

  test("a server that exits removes only its own tools; no other server gets their names, and it reconnects by itself", async () => {
    writeFileSync(file("away-one"), "");
    const lost = await call("one-echo", { die: true });
    assert.match(lost.content[0]?.text as string, /answer was lost.*It may have taken effect/s);
    assert.deepEqual(await names(), ["two-echo", "two-write"]);
    assert.equal((await call("two-echo", { n: 4 })).isError, undefined);
    const before = lines("record-two").length;
    for (const name of ["write", "one-write", "one-echo"]) {
      const refused = await call(name, { n: 5 });
      assert.equal(refused.structuredContent?.code, "SERVER_GONE", name);
      assert.equal(refused.structuredContent?.status, "unavailable");
    }
    assert.equal(lines("record-two").length, before);
    rmSync(file("away-one"));
    await until("it is there again", async () => (await names()).includes("one-echo"));
    assert.deepEqual(await names(), ["one-echo", "one-write", "two-echo", "two-write"]);
    assert.equal((await call("one-write", { n: 6 })).isError, undefined);
    assert.deepEqual(lines("record-one").at(-1)?.given, { n: 6 });
  });
});

describe("servers that hang", () => {
  test("a client with a timeout of 20 seconds gets the tools of the other servers, and later those of a slow one", async () => {
    const setup = await setUp(POLICY);
    const [hangs, away, config] = ["hangs", "not-yet", "assent-mcp.yaml"].map((name) => join(setup.folder, name)) as [
      string,
      string,
      string,
    ];
    const entry = (tools: string) => ({
      command: SERVER[0],
      args: SERVER.slice(1),
      env: { MCP_TOOLS: tools, MCP_RECORD: join(setup.folder, "record") },
    });
    const servers = {
      one: entry("echo"),
      two: { ...entry("echo,write"), env: { ...entry("echo,write").env, MCP_HANGS: hangs } },
      silent: { command: process.execPath, args: ["-e", "process.stdin.resume()"] },
      // Starts when the test says.
      late: {
        ...entry("typed"),
        command: "/bin/sh",
        args: ["-c", 'while [ -e "$MCP_NOT_YET" ]; do sleep 0.1; done; exec "$@"', "sh", ...SERVER],
        env: { ...entry("typed").env, MCP_NOT_YET: away },
      },
    };
    writeFileSync(hangs, "");
    writeFileSync(away, "");
    writeFileSync(config, JSON.stringify({ wait: 600, servers }));
    let changes = 0;
    const changed = new Set<string>();
    const proxy = await startStdioProxy(setup, {
      flags: ["--config", config],
      server: [],
      patience: 20_000,
      prepare(client) {
        client.setNotificationHandler("notifications/tools/list_changed", () => void changes++);
        client.setNotificationHandler("notifications/prompts/list_changed", () => void changed.add("prompts"));
        client.setNotificationHandler("notifications/resources/list_changed", () => void changed.add("resources"));
      },
    });
    const list = async () =>
      (await proxy.client.listTools(undefined, { timeout: 20_000 })).tools.map(({ name }) => name).sort();
    const call = async (name: string, given = {}): Promise<Refused> =>
      (await proxy.client.callTool({ name, arguments: given }, { timeout: 20_000 })) as unknown as Refused;
    try {
      assert.equal(proxy.client.getServerCapabilities()?.tools?.listChanged, true);
      assert.deepEqual(await list(), ["echo"], proxy.log());
      assert.equal((await call("echo", { n: 1 })).isError, undefined);
      // The hanging server does not keep the level from the other one.
      await proxy.client.setLoggingLevel("debug", { timeout: 20_000 });
      const levels = (): unknown[] =>
        readFileSync(join(setup.folder, "record"), "utf8")
          .split("\n")
          .filter((line) => line.includes('"level"'))
          .map((line) => (JSON.parse(line) as { given: unknown }).given);
      assert.deepEqual(levels(), ["debug"]);
      changed.clear();
      rmSync(away);
      await until("the client is told of the late one's prompts and resources", () => changed.size === 2);
      const prompts = (await proxy.client.listPrompts()).prompts.map(({ name }) => name);
      assert.deepEqual(prompts.sort(), ["late-greet", "one-greet", "two-greet"]);
      assert.equal((await proxy.client.listResources()).resources.length, 3);
      await until("the late one is told the level", () => levels().length === 2);
      const earlier = changes;
      rmSync(hangs);
      await until("the client is told", () => changes > earlier);
      assert.deepEqual(await list(), ["one-echo", "two-echo", "typed", "write"]);
      // The name that the client got before refers to the same tool.
      assert.equal((await call("echo", { n: 2 })).isError, undefined);
      assert.equal((await call("write", { n: 2 })).isError, undefined);
      // Slow again: the previous list is used, and the client is not notified because nothing changed.
      const later = changes;
      writeFileSync(hangs, "");
      assert.deepEqual(await list(), ["one-echo", "two-echo", "typed", "write"]);
      rmSync(hangs);
      assert.deepEqual(await list(), ["one-echo", "two-echo", "typed", "write"]);
      assert.equal(changes, later);
      const tools = new Set(
        (await setup.actions()).map(({ tool, operation }) => `${String(tool)} ${String(operation)}`),
      );
      assert.deepEqual([...tools].sort(), ["mcp.one echo", "mcp.two write"]);
    } finally {
      await proxy.close();
      await setup.close();
    }
  });
});

describe("a server at a URL that forgets its sessions", () => {
  test("is initialized again, and the affected call is reported as lost", async () => {
    const setup = await setUp();
    process.env["MCP_RECORD"] = setup.env["MCP_RECORD"] as string;
    const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
    const upstream = await serve(
      async (request) => {
        const id = request.headers.get("mcp-session-id");
        if (request.headers.get("mcp-protocol-version") === "2026-07-28") return new Response(null, { status: 400 });
        if (id !== null && !sessions.has(id)) return new Response(null, { status: 404 });
        if (id !== null) return (sessions.get(id) as WebStandardStreamableHTTPServerTransport).handleRequest(request);
        const transport = new WebStandardStreamableHTTPServerTransport({
          sessionIdGenerator: () => crypto.randomUUID(),
          onsessioninitialized: (fresh) => void sessions.set(fresh, transport),
        });
        await fixture().connect(transport);
        return transport.handleRequest(request);
      },
      { host: "127.0.0.1", port: 0 },
    );
    try {
      const config = join(setup.folder, "assent-mcp.yaml");
      writeFileSync(config, JSON.stringify({ servers: { notes: { url: `${upstream.url}/mcp` } } }));
      const other = await startStdioProxy(setup, { flags: ["--config", config], server: [] });
      const call = async (n: number): Promise<Refused> =>
        (await other.client.callTool({ name: "write", arguments: { n } })) as unknown as Refused;
      try {
        assert.equal((await call(1)).isError, undefined);
        for (const transport of sessions.values()) await transport.close();
        sessions.clear();
        assert.match((await call(2)).content[0]?.text as string, /answer was lost/);
        await until("it is greeted anew", () => sessions.size > 0);
        await until("calls go through", async () => (await call(3)).isError === undefined);
        assert.ok(!setup.record().some(({ given }) => (given as { n: number }).n === 2));
      } finally {
        await other.close();
      }
    } finally {
      await upstream.stop(0);
      await setup.close();
    }
  });
});
