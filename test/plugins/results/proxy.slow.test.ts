/** The MCP proxy passes on of a result only what rules allow, and nothing without a verdict. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "../../support/wait.ts";
import { UNREADABLE } from "../../support/mcp-broken-server.ts";
import { NODE, scriptOf } from "../../support/runtimes.ts";
import { setUp, startStdioProxy, type Proxied, type Setup } from "../../support/mcp.ts";

const POLICY = `policy: mcp
rules:
  - { name: after outside content, tool: mcp.notes, operation: write, when: '"outside" in session.labels', effect: require_approval }
  - { name: others, effect: allow }
results:
  - { name: outside, tool: mcp.notes, operation: typed, effect: allow, labels: [outside] }
  - { name: keys, tool: mcp.notes, match: { pattern: 'AKIA[0-9A-Z]{16}' }, effect: redact }
  - { name: internal, tool: mcp.notes, match: { pattern: 'INTERNAL' }, effect: withhold, reason: internal text }
`;
const KEY = "AKIAIOSFODNN7EXAMPLE";

let setup: Setup;
let proxied: Proxied;
before(async () => {
  setup = await setUp(POLICY);
  proxied = await startStdioProxy(setup);
});
after(async () => {
  await proxied.close();
  await setup.close();
});

async function echo(text: string): Promise<string> {
  return JSON.stringify(await proxied.client.callTool({ name: "echo", arguments: { text } }));
}

test("a result is passed on, redacted or withheld", async () => {
  assert.match(await echo("hello"), /hello/);
  const redacted = await echo(`key ${KEY}`);
  assert.ok(redacted.includes("key [redacted]") && !redacted.includes(KEY), redacted);
  const withheld = await echo("INTERNAL plan");
  assert.match(withheld, /its output is withheld: internal text \(action /);
  assert.ok(withheld.includes('"isError":true') && !withheld.includes("plan"), withheld);
});

test("without a verdict, a result is withheld, and its session is labelled", async () => {
  const runtime = setup.service.runtime as { fetch: Setup["service"]["runtime"]["fetch"] };
  const { fetch } = runtime;
  runtime.fetch = (request, info) =>
    new URL(request.url).pathname.endsWith("/inspect")
      ? Promise.resolve(new Response("down", { status: 503 }))
      : fetch(request, info);
  try {
    const withheld = await echo("hello again");
    assert.match(withheld, /its output is withheld: the service gave no verdict/);
    assert.ok(!withheld.includes("hello again"), withheld);
  } finally {
    runtime.fetch = fetch;
  }
});

test("of a reply that is not readable, nothing is passed on or reported, because it was not inspected", async () => {
  const broken = await startStdioProxy(setup, {
    server: [process.execPath, ...NODE, scriptOf("test/support/mcp-broken-server"), "stdio"],
  });
  try {
    for (const as of Object.keys(UNREADABLE)) {
      const lost = JSON.stringify(await broken.client.callTool({ name: "run", arguments: { as } }));
      assert.match(lost, /its answer was lost: the server did not complete it\./, as);
    }
    const runs = async () => (await setup.actions()).filter(({ operation }) => operation === "run");
    await until("all are reported", async () => (await runs()).every(({ result }) => result !== null));
    for (const { result } of await runs())
      assert.equal((result as { error: string }).error, "the answer was lost: the server did not complete it");
  } finally {
    await broken.close();
  }
});

test("a label from one tool changes the decision on another", async () => {
  const write = (n: number) => proxied.client.callTool({ name: "write", arguments: { n } });
  assert.ok(!JSON.stringify(await write(1)).includes("waits for a person"));
  await proxied.client.callTool({ name: "typed", arguments: {} });
  const [last] = await setup.actions();
  assert.equal(last?.["operation"], "typed");
  const waiting = write(2);
  await until("the call waits", setup.waits(2));
  await setup.decide(true);
  assert.ok(!JSON.stringify(await waiting).includes("withheld"));
});
