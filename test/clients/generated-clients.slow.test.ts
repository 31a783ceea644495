/**
 * Clients that third-party generators create from the served document: they compile in strict mode, and their calls
 * work.
 * @needs events, replay
 */
import assert from "node:assert/strict";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { execFile } from "node:child_process";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { ROOT } from "../support/process.ts";
import { startService, type Service } from "../support/service.ts";

const run = promisify(execFile);
const MODULES = join(ROOT, "node_modules");
/** The generators need a TypeScript with a compiler API, which this project's compiler no longer has. */
const RESOLVE = `export const resolve = (name, context, next) => next(name === "typescript" ? "typescript-5" : name, context);`;
const HOOK = `data:text/javascript,${encodeURIComponent(
  `import { register } from "node:module"; register("data:text/javascript," + encodeURIComponent(${JSON.stringify(RESOLVE)}), ${JSON.stringify(`file://${ROOT}/`)});`,
)}`;

/** The program that uses each client: it prints the responses. */
const COMMON = `
const baseUrl = process.env["ASSENT_URL"] as string;
const as = (name: string) => ({ authorization: \`Bearer \${process.env[name] as string}\` });
const ask = { agent_id: "test-bot", tool: "stripe", operation: "refund", params: { amount: 120, currency: "USD" } };
`;
const WITH_FETCH = `
import createClient from "openapi-fetch";
import type { components, paths } from "./types.js";
${COMMON}
const agent = createClient<paths>({ baseUrl, headers: as("AGENT") });
const admin = createClient<paths>({ baseUrl, headers: as("ADMIN") });
function sure<T>({ data, error }: { data?: T; error?: { code: string; detail: string } }): T {
  if (data === undefined) throw new Error(error?.code ?? "no data");
  return data;
}
const submitted: components["schemas"]["Action"] = sure(await agent.POST("/v1/actions", { body: ask }));
const path = { id: submitted.id };
const { approval_token: token } = sure(await admin.GET("/v1/actions/{id}", { params: { path } }));
if (token === undefined) throw new Error("no token");
const approved = sure(await admin.POST("/v1/actions/{id}/approval", { params: { path }, body: { token, approve: true } }));
const replayed = sure(await admin.POST("/v1/replay", { body: { action_id: submitted.id } }));
const range = sure(await admin.POST("/v1/replay", { body: { policy_set: "current", limit: 10 } }));
const page = sure(await admin.GET("/v1/events/page", { params: { query: { after: -1, action_id: submitted.id } } }));
const refused = await admin.GET("/v1/actions/{id}", { params: { path: { id: "019346a0-0000-7000-8000-000000000000" } } });
console.log(JSON.stringify({
  submitted: submitted.status,
  approved: approved.status,
  equal: replayed.kind === "decision" ? replayed.equal : null,
  evaluated: range.kind === "backtest" ? range.evaluated : null,
  events: page.events.map(({ type, action_id }) => [type, action_id === submitted.id]),
  refused: refused.error?.code,
}));
`;
const WITH_HEY = `
import { createClient } from "./hey/client/index.js";
import {
  getActionsById, getEvents, getEventsPage, postActions, postActionsByIdApproval, postReplay,
} from "./hey/index.js";
${COMMON}
const agent = createClient({ baseUrl, headers: as("AGENT") });
const admin = createClient({ baseUrl, headers: as("ADMIN") });
const throwOnError = true;
const { data: submitted } = await postActions({ client: agent, body: ask, throwOnError });
const path = { id: submitted.id };
const { data: seen } = await getActionsById({ client: admin, path, throwOnError });
if (seen.approval_token === undefined) throw new Error("no token");
const body = { token: seen.approval_token, approve: true };
const { data: approved } = await postActionsByIdApproval({ client: admin, path, body, throwOnError });
const { data: replayed } = await postReplay({ client: admin, body: { action_id: submitted.id }, throwOnError });
const { data: range } = await postReplay({ client: admin, body: { policy_set: "current", limit: 10 }, throwOnError });
const query = { after: -1, action_id: submitted.id };
const { data: page } = await getEventsPage({ client: admin, query, throwOnError });
const over = new AbortController();
const { stream } = await getEvents({ client: admin, query, signal: over.signal });
const streamed: string[] = [];
for await (const event of stream) {
  streamed.push(event.type);
  if (streamed.length === 3) break;
}
over.abort();
const refused = await getActionsById({ client: admin, path: { id: "019346a0-0000-7000-8000-000000000000" } });
console.log(JSON.stringify({
  submitted: submitted.status,
  approved: approved.status,
  equal: replayed.kind === "decision" ? replayed.equal : null,
  evaluated: range.kind === "backtest" ? range.evaluated : null,
  events: page.events.map(({ type, action_id }) => [type, action_id === submitted.id]),
  streamed,
  refused: refused.error?.code,
}));
`;

describe("a client that is generated from the served document", () => {
  let service: Service;
  let server: RunningServer;
  let folder: string;
  before(async () => {
    service = await startService();
    server = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
    folder = temporaryFolder("assent-clients-");
    symlinkSync(MODULES, join(folder, "node_modules"));
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const document = await fetch(`${server.url}/openapi.json`);
    writeFileSync(join(folder, "openapi.json"), await document.text());
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          target: "ES2022",
          module: "nodenext",
          strict: true,
          noUncheckedIndexedAccess: true,
          lib: ["ES2023", "DOM", "DOM.Iterable", "DOM.AsyncIterable"],
          types: ["node"],
          skipLibCheck: true,
          outDir: "out",
          rootDir: ".",
        },
        include: ["*.ts", "hey"],
      }),
    );
  });
  after(async () => {
    service.runtime.beginStop();
    await server.stop(1000);
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const generate = (script: string, ...args: string[]): Promise<unknown> =>
    run(process.execPath, ["--import", HOOK, join(MODULES, script), ...args], { cwd: folder });

  async function outputOf(program: string): Promise<Record<string, unknown>> {
    await run(process.execPath, [join(MODULES, "typescript", "bin", "tsc"), "-p", folder], { cwd: folder }).catch(
      (failure: { stdout: string }) => assert.fail(failure.stdout),
    );
    const { stdout } = await run(process.execPath, [join(folder, "out", program)], {
      env: { ...process.env, ASSENT_URL: server.url, AGENT: service.agent, ADMIN: service.admin },
      timeout: 120_000,
    });
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  it("by openapi-typescript", async () => {
    await generate("openapi-typescript/bin/cli.js", "openapi.json", "-o", "types.ts");
    writeFileSync(join(folder, "fetch.ts"), WITH_FETCH);
    assert.deepEqual(await outputOf("fetch.js"), {
      submitted: "pending_approval",
      approved: "approved",
      equal: true,
      evaluated: 1,
      events: [
        ["decision", true],
        ["approval", true],
      ],
      refused: "ACTION_NOT_FOUND",
    });
  });

  it("by @hey-api/openapi-ts", async () => {
    await generate(
      "@hey-api/openapi-ts/dist/run.mjs",
      "-i",
      "openapi.json",
      "-o",
      "hey",
      "-c",
      "@hey-api/client-fetch",
    );
    writeFileSync(join(folder, "hey.ts"), WITH_HEY);
    assert.deepEqual(await outputOf("hey.js"), {
      submitted: "pending_approval",
      approved: "approved",
      equal: true,
      evaluated: 2,
      events: [
        ["decision", true],
        ["approval", true],
      ],
      streamed: ["position", "decision", "approval"],
      refused: "ACTION_NOT_FOUND",
    });
  });
});
