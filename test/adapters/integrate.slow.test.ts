/** The examples of docs/integrate.md: the first one runs, and the others compile with the real packages. */
import assert from "node:assert/strict";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { transformSync } from "esbuild";
import { serve } from "../../src/serve/index.ts";
import { boundKey } from "../support/assent-client.ts";
import { ROOT } from "../support/process.ts";
import { approve, startService } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { packages } from "./packages.ts";

const PAGE = readFileSync(join(ROOT, "docs/integrate.md"), "utf8");
const BLOCKS = [...PAGE.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, block]) => block as string);
const blockOf = (name: string): string => {
  const block = BLOCKS.find((text) => text.includes(`"${name}"`));
  assert.ok(block !== undefined, `the page has no block of ${name}`);
  return block;
};
const EXTENSION = import.meta.url.slice(import.meta.url.lastIndexOf("."));

test("your own code: an allowed call runs immediately, and another one runs once after the approval", async () => {
  const folder = temporaryFolder("assent-integrate-");
  const service = await startService();
  const server = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
  const refunds: unknown[] = [];
  try {
    const client = new URL(`../../clients/typescript/index${EXTENSION}`, import.meta.url).href;
    const { code } = transformSync(blockOf("assent/client").replace('"assent/client"', JSON.stringify(client)), {
      loader: "ts",
      format: "esm",
    });
    writeFileSync(join(folder, "own.mjs"), code);
    Object.assign(process.env, { ASSENT_URL: server.url, ASSENT_API_KEY: await boundKey(service, "support-bot") });
    Object.assign(globalThis, { stripe: { refund: async (...given: unknown[]) => refunds.push(given) } });
    const over = import(pathToFileURL(join(folder, "own.mjs")).href);
    let id = "";
    await until("it waits for approval", async () => {
      const { body } = await service.call("GET", "/v1/approvals", { key: service.admin });
      id = body.actions[0]?.id ?? "";
      return id !== "";
    });
    assert.deepEqual(refunds, [["ch_1", 50]]);
    await approve(service, id);
    await over;
    assert.deepEqual(refunds, [
      ["ch_1", 50],
      ["ch_2", 500],
    ]);
    assert.equal((await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body.status, "succeeded");
  } finally {
    await server.stop(0);
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

const ZOD = `import { z } from "zod";\nconst parameters = z.object({ amount: z.number() });\n`;
/** Code that precedes each block in a program. If the page has only a row of its table, this is the whole program. */
const PROGRAMS: { name: string; versions: Record<string, string>; text: string }[] = [
  {
    name: "Vercel AI SDK 6",
    versions: { ai: "6.0.326", zod: "4.3.6" },
    text: `import { generateText, tool, type LanguageModel, type ModelMessage } from "ai";
${ZOD}declare const model: LanguageModel;
declare const messages: ModelMessage[];
const refund = tool({ description: "", inputSchema: parameters, execute: async ({ amount }) => amount });
const search = tool({ description: "", inputSchema: z.object({ query: z.string() }), execute: async ({ query }) => query });
${blockOf("assent/adapters/ai-sdk")}
export const text: string = result.text;`,
  },
  {
    name: "LangChain",
    versions: { langchain: "1.5.14", "@langchain/core": "1.4.0", "@langchain/langgraph": "1.7.3", zod: "4.3.6" },
    text: `import { createAgent, createMiddleware, tool } from "langchain";
import { ToolMessage } from "@langchain/core/messages";
import { interrupt, MemorySaver } from "@langchain/langgraph";
${ZOD}const model = "some:model";
const tools = [tool(({ amount }) => String(amount), { name: "refund", description: "", schema: parameters })];
const checkpointer = new MemorySaver();
${blockOf("assent/adapters/langchain")}
export const run = agent.invoke({ messages: [] });`,
  },
  {
    name: "OpenAI Agents",
    versions: { "@openai/agents": "0.20.0", zod: "4.3.6" },
    text: `import { Agent, tool } from "@openai/agents";
import { governTool } from "assent/adapters/openai-agents";
${ZOD}const refund = tool(
  governTool({ name: "refund", description: "", parameters, execute: async ({ amount }: { amount: number }) => amount }, { tool: "stripe" }),
);
export const agent = new Agent({ name: "support", tools: [refund] });`,
  },
  {
    name: "Google ADK",
    versions: { "@google/adk": "2.0.0", zod: "4.3.6" },
    text: `import { FunctionTool, LlmAgent } from "@google/adk";
import { assentCallbacks } from "assent/adapters/google-adk";
${ZOD}const refund = new FunctionTool({ name: "refund", description: "", parameters, execute: ({ amount }) => amount });
export const agent = new LlmAgent({ name: "support", model: "gemini", tools: [refund], ...assentCallbacks({ tool: "stripe" }) });`,
  },
];

const installed = await Promise.all(
  PROGRAMS.map(async ({ versions, ...program }) => ({ ...program, ...(await packages(versions)) })),
);
/** Contains a folder for each program, because frameworks need different versions of the same packages. */
const workplace = temporaryFolder("assent-integrate-");
after(() => rmSync(workplace, { recursive: true, force: true }));

/** Compiles all programs at once, because the sources take longer than the programs. Returns the compiler's output. */
async function compilePrograms(): Promise<string> {
  for (const [i, { folder, text, skip }] of installed.entries()) {
    if (skip !== false) continue;
    const place = join(workplace, `program-${i}`);
    mkdirSync(place);
    symlinkSync(join(folder, "node_modules"), join(place, "node_modules"));
    writeFileSync(join(place, "program.ts"), text);
  }
  const tsconfig = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: {
      noEmit: true,
      skipLibCheck: true,
      rootDir: "/",
      typeRoots: [join(ROOT, "node_modules/@types")],
      paths: {
        "assent/client": [join(ROOT, "clients/typescript/index.ts")],
        "assent/adapters/*": [join(ROOT, "clients/typescript/adapters/*.ts")],
      },
    },
    // The sources take the types of responses from the plugins' routes.
    include: ["program-*/program.ts", join(ROOT, "plugins/*/index.ts")],
  };
  writeFileSync(join(workplace, "package.json"), '{"type":"module"}');
  writeFileSync(join(workplace, "tsconfig.json"), JSON.stringify(tsconfig));
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  return promisify(execFile)(process.execPath, [compiler, "-p", workplace, "--pretty", "false"]).then(
    () => "",
    ({ stdout, message }: { stdout: string; message: string }) => stdout || message,
  );
}

let compiled: Promise<string> | null = null;
for (const [i, { name, skip }] of installed.entries())
  test(`${name}: the example compiles with the package's types`, { skip }, async () => {
    const output = await (compiled ??= compilePrograms());
    const programs = /(?:^|\/)program-(\d+)\//;
    // An error outside of the programs fails each of them.
    // The further lines of an error are indented.
    const errors = output.split(/\n(?=\S)/).filter((error) => (programs.exec(error)?.[1] ?? `${i}`) === `${i}`);
    assert.deepEqual(
      errors.filter((error) => error.trim() !== ""),
      [],
    );
  });
