/**
 * The API reference in a browser, with resources only from the service itself.
 * @needs docs
 */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { Browser, Frame, Page } from "playwright-core";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";

/** `SCREENSHOTS=folder` saves pictures for inspection. */
const pictures = process.env["SCREENSHOTS"];
if (pictures !== undefined) mkdirSync(pictures, { recursive: true });

/** Returns the frame that displays the reference. */
async function inside(page: Page): Promise<Frame> {
  const frame = await (await page.waitForSelector("iframe[src]", { state: "attached" })).contentFrame();
  assert.ok(frame !== null);
  return frame;
}

describe("the documentation in a browser", { skip: withoutBrowser }, () => {
  let service: Service;
  let server: RunningServer;
  let browser: Browser;
  let operations: string[];
  before(async () => {
    service = await startService();
    server = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
    browser = await launch();
    await service.call("POST", "/v1/actions", { body: ALLOWED });
    const { body } = await service.call("GET", "/openapi.json", { key: null });
    operations = Object.values(body.paths as Record<string, Record<string, { summary: string }>>).flatMap((methods) =>
      Object.values(methods).map(({ summary }) => summary),
    );
  });
  after(async () => {
    await browser.close();
    await server.stop(1000);
    await service.close();
  });

  it("/docs lists every operation, and tries one with a pasted key", async () => {
    const { page, complaints, strayed } = await open(browser, `${server.url}/docs`, {
      viewport: { width: 1280, height: 1000 },
    });
    const frame = await inside(page);
    await frame.waitForSelector(".opblock-tag");
    const listed: string[] = [];
    for (const tag of await frame.locator(".opblock-tag").all()) {
      await tag.click();
      await frame.waitForSelector(".opblock-summary-description");
      listed.push(...(await frame.locator(".opblock-summary-description").allTextContents()));
      await tag.click();
      await frame.waitForSelector(".opblock-summary-description", { state: "detached" });
    }
    assert.deepEqual(listed.sort(), [...operations].sort());
    await frame.locator("#operations-tag-actions").click();
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/docs.png` });
    await frame.locator(".btn.authorize").click();
    await frame.locator(".auth-container input").fill(service.agent);
    await frame.locator(".auth-btn-wrapper .authorize").click();
    await frame.locator(".auth-btn-wrapper .btn-done").click();
    const list = frame.locator("#operations-actions-getActions");
    await list.locator(".opblock-summary-control").click();
    await list.locator(".try-out__btn").click();
    await list.locator(".execute").click();
    const live = list.locator(".live-responses-table .response-col_status").first();
    await live.waitFor();
    assert.match(
      (await list
        .locator(
          ".live-responses-table .responses-table tbody .response-col_status, .live-responses-table .response .response-col_status",
        )
        .first()
        .textContent()) ?? "",
      /^200/,
    );
    assert.match(
      (await list.locator(".live-responses-table .microlight").first().textContent()) ?? "",
      /"agent_id": "support-bot"/,
    );
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/docs-try.png` });
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("/redoc shows every operation", async () => {
    const { page, complaints, strayed } = await open(browser, `${server.url}/redoc`, {
      viewport: { width: 1440, height: 1000 },
    });
    // The page renders sections when they come near the viewport, the last section last.
    const unseen = async (): Promise<string[]> => {
      const text = await frame.locator("body").innerText();
      return [...operations].filter((summary) => !text.includes(summary));
    };
    const frame = await inside(page);
    await frame.getByText("/v1/actions", { exact: true }).first().waitFor({ state: "attached" });
    await frame.waitForFunction(
      (summaries) => summaries.every((summary) => document.body.textContent?.includes(summary)),
      [...operations],
    );
    const missing = await unseen();
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/redoc.png` });
    assert.deepEqual(missing, []);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("links to one operation, and opens other pages in a new tab", async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 1000 } });
    const { page, complaints } = await open(context, `${server.url}/docs`);
    const frame = await inside(page);
    await frame.locator("#operations-tag-agents").click();
    await frame.locator("#operations-agents-getAgents .opblock-summary-control").click();
    await page.waitForURL(`${server.url}/docs#/agents/getAgents`);
    const address = page.url();
    const opened = context.waitForEvent("page");
    await frame.getByRole("link", { name: "all of them" }).click();
    await (await opened).waitForURL(`${server.url}/docs/errors`);
    assert.deepEqual(complaints, []);
    // Both references in one process would take a slow machine a minute.
    await page.close();
    const again = await open(context, address);
    await (await inside(again.page)).locator("#operations-agents-getAgents.is-open").waitFor();
    assert.deepEqual(again.complaints, []);
    await context.close();
  });

  for (const path of ["/docs", "/redoc", "/docs/frame", "/redoc/frame"]) {
    it(`${path} runs third-party scripts where they cannot get any key`, async () => {
      const context = await browser.newContext();
      // Any script in the frame has the same rights, and these two take most of the time.
      await context.route(/swagger-ui-bundle|redoc\.standalone/, (route) => route.abort());
      const { page: console_ } = await open(context, server.url);
      await console_.getByLabel("API key").fill(service.admin);
      await console_.getByRole("button", { name: "Sign in" }).click();
      await console_.getByRole("button", { name: "Sign out" }).waitFor();
      const { page } = await open(context, `${server.url}${path}`);
      const frame = path.endsWith("frame") ? page.mainFrame() : await inside(page);
      await frame.waitForURL(/frame$/);
      const seen = await frame.evaluate(async (key) => {
        const tried = async (what: () => unknown): Promise<unknown> => {
          try {
            return await what();
          } catch (error) {
            return (error as Error).name;
          }
        };
        const heard: unknown[] = Object.assign(globalThis, { heard: [] }).heard;
        const channel = Object.assign(globalThis, { channel: new BroadcastChannel("assent.session") }).channel;
        channel.onmessage = ({ data }) => heard.push(data.type);
        channel.postMessage({ type: "ask" });
        const fetched = await tried(() => fetch("/v1/me", { headers: { Authorization: `Bearer ${key}` } }));
        return { origin: self.origin, fetched, kept: await tried(() => localStorage.getItem("assent.key")) };
      }, service.admin);
      assert.deepEqual(seen, { origin: "null", fetched: "TypeError", kept: "SecurityError" });
      // Responses that the console sends to one tab are visible to every listener on its channel.
      const answers = await console_.evaluate(async () => {
        const channel = new BroadcastChannel("assent.session");
        const first = new Promise((resolve) => (channel.onmessage = ({ data }) => resolve(data.type)));
        channel.postMessage({ type: "ask" });
        return first;
      });
      assert.deepEqual(await frame.evaluate(() => (globalThis as unknown as { heard: unknown[] }).heard), []);
      assert.equal(answers, "key");
      await context.close();
    });
  }

  it("a problem's type leads to its row", async () => {
    const problem = (await service.call("POST", "/v1/actions", { body: {} })).body as { type: string };
    const { page, complaints, strayed } = await open(browser, `${server.url}${problem.type}`, {
      viewport: { width: 1280, height: 800 },
    });
    assert.match((await page.locator("tr:target").textContent()) ?? "", /^VALIDATION_FAILED422/);
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/errors.png` });
    assert.deepEqual([complaints, strayed], [[], []]);
  });
});
