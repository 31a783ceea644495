/**
 * A server that speaks both revisions like the official Python SDK (`test/support/mcp-python-server.py`): through the
 * proxy a client gets the same as without it.
 */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { startHttpProxy, startStdioProxy, setUp, type Refused, type Setup } from "../../support/mcp.ts";
import { findProgram } from "../../support/proxy.ts";
import { ROOT } from "../../support/runtimes.ts";
import { until } from "../../support/wait.ts";

const SCRIPT = `${ROOT}test/support/mcp-python-server.py`;
const PYTHON = findProgram("python3");
const ERAS = { "2025-11-25": "legacy", "2026-07-28": { pin: "2026-07-28" } } as const;
const POLICY = `policy: all
rules:
  - { name: all, tool: mcp.notes, operation: "*", effect: allow }
`;

const optionsFor = (era: keyof typeof ERAS): ClientOptions => ({
  capabilities: { elicitation: { form: {} }, sampling: {} },
  versionNegotiation: { mode: ERAS[era] },
});

function prepare(client: Client): void {
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { name: "Ada" } }));
  client.setRequestHandler("sampling/createMessage", () => ({
    role: "assistant",
    content: { type: "text", text: "Hello." },
    model: "fixture",
  }));
}

interface Connected {
  client: Client;
  close(): Promise<void>;
}

async function clientAt(url: string, era: keyof typeof ERAS): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" }, optionsFor(era));
  prepare(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

async function proxiedAt(setup: Setup, url: string, era: keyof typeof ERAS): Promise<Connected> {
  const proxy = await startHttpProxy(setup, ["--name", "notes", "--http", url, "--listen", "0"], {}, []);
  const client = await clientAt(proxy.url, era);
  return {
    client,
    async close() {
      await client.close();
      await proxy.close();
    },
  };
}

async function answersOf(client: Client): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {
    tools: (await client.listTools()).tools.map(({ name }) => name),
  };
  for (const name of ["echo", "elicit", "sample", "resolve"]) {
    const { isError, content } = (await client.callTool({ name, arguments: { a: "ä" } })) as unknown as Refused;
    answers[name] = { isError: isError === true, text: content[0]?.text };
  }
  return answers;
}

describe("a server of the Python SDK", { skip: PYTHON === null ? "no python3 on this machine" : false }, () => {
  let setup: Setup;
  let server: ChildProcess;
  let url: string;
  before(async () => {
    setup = await setUp(POLICY);
    server = spawn(PYTHON as string, [SCRIPT, "http"], { env: setup.env, stdio: ["ignore", "pipe", "inherit"] });
    const [port] = (await once(server.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    url = `http://127.0.0.1:${port.toString().trim()}/mcp`;
  });
  after(async () => {
    server.kill();
    await setup.close();
  });

  for (const era of ["2025-11-25", "2026-07-28"] as const)
    for (const carrier of ["stdio", "http"] as const)
      test(`over ${carrier} answers a client of ${era} behind the proxy as it does without`, async () => {
        const isLocal = carrier === "stdio";
        const [command, args] = [PYTHON as string, [SCRIPT, "stdio"]];
        const direct = isLocal
          ? new Client({ name: "test", version: "1.0.0" }, optionsFor(era))
          : await clientAt(url, era);
        if (isLocal) {
          prepare(direct);
          await direct.connect(new StdioClientTransport({ command, args, env: setup.env }));
        }
        const proxy = isLocal
          ? await startStdioProxy(setup, { server: [command, ...args], client: optionsFor(era), prepare })
          : await proxiedAt(setup, url, era);
        try {
          const expected = await answersOf(direct);
          assert.deepEqual(await answersOf(proxy.client), expected);
          assert.deepEqual(expected["elicit"], {
            isError: era === "2026-07-28",
            text:
              era === "2025-11-25"
                ? "accept Ada"
                : "Error executing tool elicit: Cannot send 'elicitation/create': this transport context has no back-channel",
          });
          assert.deepEqual(expected["resolve"], { isError: false, text: "accept Ada" });
          // The SDK returns an unknown tool as an error that the model sees.
          const unknown = (await proxy.client.callTool({ name: "nothing", arguments: {} })) as unknown as Refused;
          assert.equal(unknown.isError, true);
          assert.match(unknown.content[0]?.text ?? "", /no tool "nothing"/);
        } finally {
          await direct.close();
          await proxy.close();
        }
      });

  test("of 2026-07-28 over HTTP detects a cancellation by the end of the stream, and gets no message", async () => {
    const proxy = await proxiedAt(setup, url, "2026-07-28");
    try {
      const cancel = new AbortController();
      const running = proxy.client.callTool({ name: "slow", arguments: {} }, { signal: cancel.signal });
      const names = (): string[] => setup.record().map(({ name }) => name);
      await until("the tool runs", () => names().includes("slow"));
      cancel.abort();
      await assert.rejects(running);
      await until("the server has noticed", () => names().includes("slow was cancelled"));
      assert.ok(!names().includes("notifications/cancelled"));
    } finally {
      await proxy.close();
    }
  });
});
