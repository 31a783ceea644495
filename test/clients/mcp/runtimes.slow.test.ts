/** `assent mcp proxy` on Deno and Bun: the same calls are made and refused. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { startHttpProxy, startStdioProxy, setUp, type Refused, type Setup } from "../../support/mcp.ts";
import { withoutRuntime } from "../../support/runtimes.ts";
import { until } from "../../support/wait.ts";

for (const runtime of ["deno", "bun"] as const)
  describe(`on ${runtime}`, { skip: withoutRuntime(runtime) }, () => {
    let setup: Setup;
    before(async () => {
      setup = await setUp();
    });
    after(() => setup?.close());
    const flags = ["--name", "notes", "--wait", "600"];
    const isMade = (n: number): boolean =>
      setup.record().some(({ given }) => (given as { n?: number } | null)?.n === n);
    const call = async (client: Client, name: string, given: Record<string, unknown> = {}): Promise<Refused> =>
      (await client.callTool({ name, arguments: given }, { timeout: 600_000 })) as unknown as Refused;

    /** Checks for a client over any transport; `another` is one that disconnects. */
    async function holds(client: Client, another: () => Promise<Client>, hears: () => Promise<unknown>, n: number) {
      assert.equal((await call(client, "write", { n: n - 100 })).isError, undefined);
      assert.ok(isMade(n - 100));
      assert.equal((await call(client, "forbidden")).structuredContent?.status, "denied");
      const running = call(client, "write", { n });
      await until("the call is pending approval", setup.waits(n));
      await setup.decide(true);
      assert.equal((await running).isError, undefined);
      const other = await another();
      call(other, "write", { n: n + 1 }).catch(() => undefined);
      await until("the call is pending approval", setup.waits(n + 1));
      await other.close();
      await hears();
      await setup.decide(true);
      assert.equal((await call(client, "echo")).isError, undefined);
      assert.ok(!isMade(n + 1));
      assert.ok(!setup.record().some(({ name }) => name === "forbidden"));
    }

    test("over standard input and output", async () => {
      const proxy = await startStdioProxy(setup, { flags, runtime });
      try {
        const another = async (): Promise<Client> => (await startStdioProxy(setup, { flags, runtime })).client;
        await holds(proxy.client, another, () => Promise.resolve(), 150);
      } finally {
        await proxy.close();
      }
    });

    for (const [era, mode, n] of [
      ["2025-11-25", "legacy", 160],
      ["2026-07-28", { pin: "2026-07-28" }, 170],
    ] as const)
      test(`over HTTP, of ${era}`, async () => {
        const proxy = await startHttpProxy(setup, [...flags, "--listen", "0"], {}, undefined, runtime);
        const another = async (): Promise<Client> => {
          const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
          await client.connect(new StreamableHTTPClientTransport(new URL(proxy.url)));
          return client;
        };
        const client = await another();
        try {
          const hears = () => until("the proxy hears of it", () => /the call does not run/.test(proxy.log()));
          await holds(client, another, hears, n);
        } finally {
          await client.close();
          await proxy.close();
        }
      });
  });
