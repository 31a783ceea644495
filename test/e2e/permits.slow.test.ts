/** Runs the tool of docs/permits.md as printed: it executes exactly what the permit covers, once. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { transformSync } from "esbuild";
import { PermitRefused } from "../../clients/typescript/index.ts";
import { defaultConfig } from "../../src/config/index.ts";
import { serve } from "../../src/serve/index.ts";
import { ROOT } from "../support/runtimes.ts";
import { ALLOWED, startService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const page = readFileSync(join(ROOT, "docs/permits.md"), "utf8");

type Refund = (agent: string, params: Record<string, unknown>, permit: string) => Promise<void>;

/** Loads the page's code, with the client of this repository instead of the package's. */
async function tool(folder: string, url: string, key: string): Promise<{ refund: Refund; ran: unknown[] }> {
  const shown = /```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  const here = new URL(
    `../../clients/typescript/index${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
    import.meta.url,
  );
  const { code } = transformSync(
    shown.replace('"assent/client"', JSON.stringify(here.href)).replace('"./stripe.ts"', '"./stripe.mjs"'),
    { loader: "ts", format: "esm" },
  );
  writeFileSync(join(folder, "tool.mjs"), code);
  writeFileSync(
    join(folder, "stripe.mjs"),
    "export const ran = [];\nexport const stripe = { refund: async (params) => ran.push(params) };\n",
  );
  Object.assign(process.env, { ASSENT_URL: url, ASSENT_API_KEY: key });
  const load = (name: string): Promise<unknown> => import(pathToFileURL(join(folder, name)).href);
  const [{ refund }, { ran }] = (await Promise.all([load("tool.mjs"), load("stripe.mjs")])) as [
    { refund: Refund },
    { ran: unknown[] },
  ];
  return { refund, ran };
}

test("the page's tool runs what the permit covers, once, and nothing else", async () => {
  const folder = temporaryFolder("assent-permits-");
  const service = await startService();
  const server = await serve(service.runtime.fetch, { ...defaultConfig({ data: folder }).server, port: 0 });
  try {
    const { refund, ran } = await tool(folder, server.url, service.agent);
    const submit = async (): Promise<string> =>
      (await service.call("POST", "/v1/actions", { body: ALLOWED, headers: { prefer: "permit" } })).body
        .permit as string;
    const permit = await submit();
    const is = (reason: string) => (error: unknown) => error instanceof PermitRefused && error.reason === reason;
    await assert.rejects(refund("support-bot", { ...ALLOWED.params, amount: 5000 }, permit), is("wrong_request"));
    await assert.rejects(refund("other-bot", ALLOWED.params, permit), is("wrong_request"));
    assert.deepEqual(ran, []);
    await refund("support-bot", ALLOWED.params, permit);
    await assert.rejects(refund("support-bot", ALLOWED.params, permit), { code: "ACTION_NOT_STARTABLE" });
    assert.deepEqual(ran, [ALLOWED.params]);
    // The keys are cached. A key id that is not in the cache causes a refetch.
    const stranger = await startService();
    try {
      const theirs = await stranger.call("POST", "/v1/actions", { body: ALLOWED, headers: { prefer: "permit" } });
      await assert.rejects(refund("support-bot", ALLOWED.params, theirs.body.permit as string), is("unknown_key"));
    } finally {
      await stranger.close();
    }
    assert.equal(ran.length, 1);
  } finally {
    await server.stop();
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the page lists every reason for which a permit is refused", () => {
  const source = readFileSync(join(ROOT, "clients/typescript/permit.ts"), "utf8");
  const union = source.slice(
    source.indexOf("PermitRefusedReason ="),
    source.indexOf(";", source.indexOf("PermitRefusedReason =")),
  );
  const reasons = [...union.matchAll(/"(\w+)"/g)].map(([, reason]) => reason as string);
  assert.ok(reasons.length > 10);
  assert.deepEqual(
    reasons.filter((reason) => !page.includes(`\`${reason}\``)),
    [],
  );
});
