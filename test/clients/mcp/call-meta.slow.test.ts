/** The `_meta` of a call: a server gets only members that were decided. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startStdioProxy, setUp, SERVER, type Proxied, type Refused, type Setup } from "../../support/mcp.ts";

const POLICY = `policy: mcp
rules:
  - name: the home tenant
    tool: mcp.notes
    operation: [echo, resources/read]
    when: "!has(context.mcp) || !has(context.mcp.meta) || context.mcp.meta['com.example/tenant'] == 'home'"
    effect: allow
  - { name: writing, tool: mcp.notes, operation: write, effect: require_approval }
`;
const TRACE = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "a=b" };
const TENANT = "com.example/tenant";

for (const era of ["2025-11-25", "2026-07-28"] as const)
  describe(`_meta of a client of ${era}`, () => {
    let setup: Setup;
    let proxy: Proxied;
    before(async () => {
      setup = await setUp(POLICY);
      const file = join(setup.folder, "assent-mcp.yaml");
      const [command, ...args] = SERVER;
      const notes = { command, args, meta: ["com.example/*", "traceparent", "progressToken"] };
      writeFileSync(file, JSON.stringify({ wait: 0, servers: { notes } }));
      proxy = await startStdioProxy(setup, {
        flags: ["--config", file],
        server: [],
        client: { versionNegotiation: { mode: era === "2025-11-25" ? "legacy" : { pin: "2026-07-28" } } },
      });
    });
    after(async () => {
      await proxy?.close();
      await setup?.close();
    });
    const call = async (name: string, _meta: Record<string, unknown>): Promise<Refused> =>
      (await proxy.client.callTool({ name, arguments: { n: 1 }, _meta })) as unknown as Refused;
    const arrived = (): Record<string, unknown>[] => setup.record().map(({ meta }) => meta ?? {});

    test("reaches the server if it is configured or the trace context, and the rest is recorded", async () => {
      const other = { "com.other/role": "admin", baggage: "role=admin", "client/toolUseId": "t1" };
      assert.equal((await call("echo", { ...TRACE, ...other, [TENANT]: "home" })).isError, undefined);
      const { progressToken: _ours, ...meta } = arrived().at(-1) as Record<string, unknown>;
      assert.deepEqual(meta, { ...TRACE, [TENANT]: "home" });
      const [action = {}] = await setup.actions();
      const { mcp, traceparent } = action["meta"] as { mcp: { meta: unknown }; traceparent: string };
      assert.deepEqual([mcp.meta, traceparent], [{ ...other, tracestate: TRACE.tracestate }, TRACE.traceparent]);
      const { annotations, definition, ...context } = (action["context"] as { mcp: Record<string, unknown> }).mcp;
      assert.ok(annotations !== undefined && definition !== undefined);
      assert.deepEqual(context, { meta: { [TENANT]: "home" } });
    });

    test("is decided if it is configured, whatever the arguments are", async () => {
      const calls = arrived().length;
      assert.equal((await call("echo", { [TENANT]: "other" })).structuredContent?.status, "denied");
      await assert.rejects(proxy.client.readResource({ uri: "note://one", _meta: { [TENANT]: "other" } }), /denied/);
      assert.equal(arrived().length, calls);
      await proxy.client.readResource({ uri: "note://one", _meta: { "com.other/role": "admin" } });
    });

    test("an approval covers the configured members, and the same call can be repeated with another trace", async () => {
      const asked = await call("write", { [TENANT]: "home", ...TRACE, "client/toolUseId": "t2" });
      assert.equal(asked.structuredContent?.status, "pending_approval");
      await setup.decide(true);
      const calls = arrived().length;
      const other = await call("write", { [TENANT]: "other" });
      assert.equal(other.structuredContent?.status, "pending_approval");
      assert.notEqual(other.structuredContent?.action_id, asked.structuredContent?.action_id);
      assert.equal(arrived().length, calls);
      const again = { ...TRACE, traceparent: TRACE.traceparent.replace("b7ad", "c7ad") };
      const made = await call("write", { [TENANT]: "home", ...again, "client/toolUseId": "t3" });
      assert.equal(made.isError, undefined);
      assert.equal(arrived().at(-1)?.["traceparent"], again.traceparent);
    });
  });
