/** `assent/client` in a page of another origin, in a browser: what a custom page can do with a person's key. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { ROOT } from "../support/runtimes.ts";
import { approve, ASKED, startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

const PAGE = `<!doctype html><link rel="icon" href="data:,">
<script type="module">import * as client from "/index.js"; window.client = client;</script>`;

describe("assent/client in a browser", { skip: withoutBrowser }, () => {
  let service: Service;
  let listening: RunningServer;
  let pages: Server;
  let browser: Browser;
  let page: Page;
  let complaints: string[];
  const listen = (port: number): Promise<RunningServer> =>
    serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port });

  before(async () => {
    const { outputFiles } = await build({
      entryPoints: [join(ROOT, "clients/typescript/index.ts")],
      bundle: true,
      splitting: true,
      format: "esm",
      platform: "browser",
      target: "es2022",
      outdir: "/",
      write: false,
    });
    const scripts = new Map(outputFiles.map(({ path, text }) => [path, text]));
    pages = createServer((request, response) => {
      const script = scripts.get(request.url ?? "");
      response.setHeader("Content-Type", script === undefined ? "text/html" : "text/javascript");
      response.end(script ?? PAGE);
    });
    await new Promise<void>((done) => pages.listen(0, "127.0.0.1", done));
    const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
    service = await startService({ change: (config) => (config.server.cors_origins = [origin]) });
    listening = await listen(0);
    browser = await launch();
    ({ page, complaints } = await open(browser, origin));
    await page.waitForFunction(() => "client" in window);
    await page.evaluate(
      ([url, agent, admin, logKey]) => {
        const { createAssent } = (window as any).client;
        const keys = {
          assent: createAssent({ url, apiKey: agent }),
          admin: createAssent({ url, apiKey: admin, logKey }),
        };
        Object.assign(window, keys);
      },
      [listening.url, service.agent, service.admin, service.runtime.host.ledger.vkey] as const,
    );
  });
  after(async () => {
    await browser.close();
    await listening.stop(0);
    pages.close();
    pages.closeAllConnections();
    await service.close();
  });

  it("submits, waits for the approval, starts and reports", async () => {
    const submitted = await page.evaluate(async (request) => {
      const { assent } = window as any;
      const action = await assent.submit(request, { join: true, meta: { tab: "one" } });
      Object.assign(window, { verdict: assent.wait(action.id) });
      return action;
    }, ASKED);
    assert.equal(submitted.status, "pending_approval");
    const ended = page.evaluate(async () => {
      const { assent, verdict } = window as any;
      const { id, status } = await verdict;
      const { status: started } = await assent.start(id);
      const { status: reported } = await assent.result(id, { success: true });
      return [status, started, reported];
    });
    await until("the page waits", async () => (await service.call("GET", `/v1/actions/${submitted.id}`)).body.waiting);
    await approve(service, submitted.id);
    assert.deepEqual(await ended, ["approved", "executing", "succeeded"]);
  });

  it("follows the events on through a restart of the service, each once and in order", async () => {
    await page.evaluate(() => {
      const { admin } = window as any;
      const seen: number[] = [];
      Object.assign(window, { seen });
      void (async () => {
        for await (const event of admin.events({ after: -1 })) seen.push(event.seq);
      })();
    });
    const seen = (): Promise<number[]> => page.evaluate(() => (window as any).seen);
    const size = async (): Promise<number> => Number((await service.storage.head()).size);
    const all = async (): Promise<boolean> => (await seen()).length >= (await size());
    await until("the page has seen all that there was", all);
    const { port } = listening;
    await listening.stop(0);
    await service.restart();
    await service.call("POST", "/v1/actions", { body: { ...ASKED, params: { amount: 600, currency: "USD" } } });
    listening = await listen(port);
    await service.call("POST", "/v1/actions", { body: { ...ASKED, params: { amount: 700, currency: "USD" } } });
    await until("the page has seen what came after the restart", all);
    assert.deepEqual(await seen(), [...Array(await size()).keys()]);
    // The browser logs the connection that was refused in between, and nothing else.
    assert.deepEqual(
      complaints.filter((complaint) => !/ERR_(?:CONNECTION|INCOMPLETE|EMPTY)/.test(complaint)),
      [],
    );
  });

  it("verifies a proof with the pinned key, and rejects it with a different key", async () => {
    const other = (await startOther()).replace(/^[^+]+/, service.runtime.host.ledger.origin);
    const [entry, refusal] = await page.evaluate(
      async ([url, apiKey, logKey]) => {
        const { admin, client } = window as any;
        for await (const { decision_hash } of admin.actions({ limit: 1 })) {
          const proof = await admin.proof(decision_hash);
          const doubting = client.createAssent({ url, apiKey, logKey });
          return [proof.index, await doubting.proof(decision_hash).catch((error: Error) => error.name)];
        }
        return [];
      },
      [listening.url, service.admin, other] as const,
    );
    assert.deepEqual([typeof entry, refusal], ["number", "ProofInvalid"]);
  });

  async function startOther(): Promise<string> {
    const another = await startService();
    const { vkey } = another.runtime.host.ledger;
    await another.close();
    return vkey;
  }
});
