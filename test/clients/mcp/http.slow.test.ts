/** `assent mcp proxy` over Streamable HTTP, on both sides and in both protocol revisions. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { startHttpProxy, setUp, type ListeningProxy, type Refused, type Setup } from "../../support/mcp.ts";
import { server } from "../../support/mcp-server.ts";
import { until } from "../../support/wait.ts";

const ERAS = { "2025-11-25": "legacy", "2026-07-28": { pin: "2026-07-28" } } as const;

async function clientAt(url: string, era: keyof typeof ERAS, headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: ERAS[era] } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}

const call = async (client: Client, name: string, given: Record<string, unknown> = {}): Promise<Refused> =>
  (await client.callTool({ name, arguments: given }, { timeout: 600_000 })) as unknown as Refused;

for (const era of ["2025-11-25", "2026-07-28"] as const)
  describe(`a client of ${era} over HTTP`, () => {
    let setup: Setup;
    let proxy: ListeningProxy;
    let client: Client;
    before(async () => {
      setup = await setUp();
      proxy = await startHttpProxy(setup, ["--name", "notes", "--listen", "0", "--wait", "600"]);
      client = await clientAt(proxy.url, era);
    });
    after(async () => {
      await client?.close();
      await proxy?.close();
      await setup?.close();
    });

    test("lists and calls tools, and denied calls are refused", async () => {
      assert.equal((await client.listTools()).tools.length, 8);
      assert.equal((await call(client, "echo", { a: 1 })).content[0]?.text, '{"a":1}');
      assert.equal((await call(client, "forbidden")).structuredContent?.status, "denied");
    });

    test("waits for an approval, and the call is made then", async () => {
      const running = call(client, "write", { n: 100 });
      await until("the call is pending approval", setup.waits(100));
      await setup.decide(true);
      assert.equal((await running).isError, undefined);
    });

    test("a call that was cancelled while it waited is not made", async () => {
      const abort = new AbortController();
      const running = client.callTool(
        { name: "write", arguments: { n: 200 } },
        { signal: abort.signal, timeout: 600_000 },
      );
      running.catch(() => undefined);
      await until("the call is pending approval", setup.waits(200));
      abort.abort();
      await assert.rejects(running);
      await setup.decide(true);
      assert.equal((await call(client, "echo")).isError, undefined);
      assert.ok(!setup.record().some(({ given }) => (given as { n?: number } | undefined)?.n === 200));
    });

    test("a call whose connection has closed is not made", async () => {
      const other = await clientAt(proxy.url, era);
      other.callTool({ name: "write", arguments: { n: 300 } }, { timeout: 600_000 }).catch(() => undefined);
      await until("the call is pending approval", setup.waits(300));
      await other.close();
      const [action = {}] = (await setup.actions()).filter(({ params }) => (params as { n?: number }).n === 300);
      await until("the proxy hears of it", () => proxy.log().includes(String(action["id"])));
      await setup.decide(true);
      assert.equal((await call(client, "echo")).isError, undefined);
      assert.ok(!setup.record().some(({ given }) => (given as { n?: number } | undefined)?.n === 300));
    });

    test("progress reaches the client", async () => {
      const seen: number[] = [];
      await client.callTool({ name: "slow" }, { onprogress: ({ progress }) => void seen.push(progress) });
      assert.ok(seen.includes(1), String(seen));
    });
  });

describe("access to a proxy over HTTP", () => {
  let setup: Setup;
  let proxy: ListeningProxy;
  before(async () => {
    setup = await setUp();
    proxy = await startHttpProxy(setup, ["--name", "notes", "--listen", "0"], {
      ASSENT_MCP_TOKEN: "a-token-of-some-length",
    });
  });
  after(async () => {
    await proxy?.close();
    await setup?.close();
  });
  const greeting = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
  };
  const post = (
    headers: Record<string, string>,
    body: string = JSON.stringify(greeting),
    path = "/mcp",
  ): Promise<number> =>
    new Promise((resolve, reject) => {
      // Not fetch, which sets the Host header itself.
      void import("node:http").then(({ request }) => {
        const asking = request(
          new URL(path, proxy.url),
          {
            method: "POST",
            headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
          },
          (response) => {
            resolve(response.statusCode as number);
            response.destroy();
          },
        );
        asking.on("error", reject);
        asking.end(body);
      });
    });
  const authorization = "Bearer a-token-of-some-length";

  test("needs the token and a known host, and is closed to pages of other sites", async () => {
    assert.equal(await post({}), 401);
    assert.equal(await post({ authorization: "Bearer another-token-of-some" }), 401);
    assert.equal(await post({ authorization, host: "evil.example" }), 403);
    assert.equal(await post({ authorization, origin: "https://evil.example" }), 403);
    assert.equal(await post({ authorization }, undefined, "/other"), 404);
    assert.equal(await post({ authorization, "content-type": "text/plain" }), 415);
    assert.equal(await post({ authorization }), 200);
  });

  test("headers of 2026-07-28 must match the body", async () => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "echo", arguments: {}, _meta: meta },
    });
    const headers = {
      authorization,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "echo",
    };
    assert.equal(await post({ ...headers, "mcp-name": "write" }, body), 400);
    assert.equal(await post({ ...headers, "mcp-method": "tools/list" }, body), 400);
    const { "mcp-name": _, ...without } = headers;
    assert.equal(await post(without, body), 400);
    const placed = body.replace('"echo","arguments":{}', '"placed","arguments":{"region":"eu \u00e4"}');
    const named = { ...headers, "mcp-name": "placed" };
    assert.equal(await post(named, placed), 400);
    assert.equal(await post({ ...named, "mcp-param-region": "us" }, placed), 400);
    const nowhere = body.replace('"echo"', '"placed"');
    assert.equal(await post({ ...named, "mcp-param-region": "us" }, nowhere), 400);
    assert.deepEqual(setup.record(), []);
    const region = `=?base64?${Buffer.from("eu \u00e4").toString("base64")}?=`;
    assert.equal(await post({ ...named, "mcp-param-region": region }, placed), 200);
    await until("it was called", () => setup.record().some(({ name }) => name === "placed"));
    assert.equal(await post(headers, body), 200);
  });

  test("inexact arguments are rejected", async () => {
    assert.equal(await post({ authorization }, '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'), 400);
  });
});

describe("a server at a URL", () => {
  for (const era of ["2025-11-25", "2026-07-28"] as const)
    for (const side of ["2025-11-25", "2026-07-28"] as const)
      test(`of ${era}, and a client of ${side}: called with the server's own credentials, never the client's`, async () => {
        const seen: (string | null)[] = [];
        const handler = createMcpHandler(server, { legacy: "stateless" });
        const strict = createMcpHandler(server, { legacy: "reject" });
        const upstream: RunningServer = await serve(
          (request) => {
            seen.push(request.headers.get("authorization"));
            if (era === "2026-07-28") return strict.fetch(request);
            // A server without support for 2026-07-28.
            return request.headers.get("mcp-protocol-version") === "2026-07-28"
              ? Promise.resolve(new Response("unsupported version", { status: 400 }))
              : handler.fetch(request);
          },
          { host: "127.0.0.1", port: 0 },
        );
        const setup = await setUp();
        process.env["MCP_RECORD"] = setup.env["MCP_RECORD"] as string;
        const file = `${setup.folder}/assent-mcp.yaml`;
        const { writeFileSync } = await import("node:fs");
        writeFileSync(
          file,
          `listen: { port: 0 }\nwait: 0\nservers:\n  notes:\n    url: ${upstream.url}/mcp\n    headers: { Authorization: "Bearer of-the-server" }\n`,
        );
        const proxy = await startHttpProxy(setup, ["--config", file], {}, []);
        const client = await clientAt(proxy.url, side, { authorization: "Bearer of-the-client" });
        try {
          assert.equal((await client.listTools()).tools.length, 8);
          assert.equal((await call(client, "echo", { a: "ä" })).content[0]?.text, '{"a":"ä"}');
          assert.equal((await call(client, "write", { n: 100 })).structuredContent?.status, "pending_approval");
          assert.deepEqual([...new Set(seen)], ["Bearer of-the-server"]);
          // This server rejects a call whose headers do not match its arguments.
          assert.equal((await call(client, "placed", { region: "=?base64?eu ä?=" })).isError, undefined);
          if (era === "2026-07-28" && side === "2025-11-25") {
            const updated: string[] = [];
            client.setNotificationHandler(
              "notifications/resources/updated",
              ({ params }) => void updated.push(params.uri),
            );
            await client.subscribeResource({ uri: "note://one" });
            await until("the client hears of it", () => {
              strict.notify.resourceUpdated("note://one");
              strict.notify.resourceUpdated("note://two");
              return updated.length > 0;
            });
            assert.deepEqual([...new Set(updated)], ["note://one"]);
          }
        } finally {
          await client.close();
          await proxy.close();
          await upstream.stop(0);
          await setup.close();
        }
      });

  test("that ends its response early: the call is reported as lost, and is not repeated", async () => {
    let calls = 0;
    const upstream = await serve(
      async (request) => {
        if (request.method !== "POST") return new Response(null, { status: 405 });
        const { id, method } = (await request.json()) as { id?: number; method: string };
        if (id === undefined) return new Response(null, { status: 202 });
        const answer = (result: unknown) => Response.json({ jsonrpc: "2.0", id, result });
        const serverInfo = { name: "cuts", version: "1" };
        if (method === "initialize")
          return answer({ protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo });
        if (method === "tools/list") return answer({ tools: [{ name: "write", inputSchema: { type: "object" } }] });
        if (method !== "tools/call") return new Response(null, { status: 400 });
        calls++;
        return new Response(": it begins\n\n", { headers: { "content-type": "text/event-stream" } });
      },
      { host: "127.0.0.1", port: 0 },
    );
    const setup = await setUp();
    const proxy = await startHttpProxy(
      setup,
      ["--name", "notes", "--http", `${upstream.url}/mcp`, "--listen", "0"],
      {},
      [],
    );
    const client = await clientAt(proxy.url, "2025-11-25");
    try {
      const lost = await call(client, "write", { n: 1 });
      assert.match(lost.content[0]?.text as string, /answer was lost.*It may have taken effect/s);
      assert.equal(calls, 1);
      await until("it is recorded", async () => (await setup.actions())[0]?.["status"] === "failed");
    } finally {
      await client.close();
      await proxy.close();
      await upstream.stop(0);
      await setup.close();
    }
  });

  test("whose initialization fails occupies no session", async () => {
    const setup = await setUp();
    const proxy = await startHttpProxy(setup, ["--listen", "0"], {}, ["/no/such/program"]);
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    try {
      // More than the maximum number of sessions.
      for (let i = 0; i < 70; i++) {
        const response = await fetch(proxy.url, { method: "POST", headers, body });
        assert.equal(response.status, 200, `attempt ${i}`);
        assert.match(await response.text(), /cannot be started/);
      }
    } finally {
      await proxy.close();
      await setup.close();
    }
  });

  test("that is unreachable: the client cannot connect", async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as { port: number };
    await new Promise((resolve) => closed.close(resolve));
    const setup = await setUp();
    const proxy = await startHttpProxy(setup, ["--http", `http://127.0.0.1:${port}/mcp`, "--listen", "0"], {}, []);
    try {
      await assert.rejects(clientAt(proxy.url, "2025-11-25"), /cannot start the session/);
    } finally {
      await proxy.close();
      await setup.close();
    }
  });
});
