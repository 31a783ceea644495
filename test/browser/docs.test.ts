/** The documentation as people see it: a real browser, the real server, nothing from elsewhere. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { Browser } from "playwright-core";
import { serve, type Listening } from "../../src/serve/index.ts";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";

/** `SCREENSHOTS=folder` keeps pictures for people. */
const pictures = process.env["SCREENSHOTS"];
if (pictures !== undefined) mkdirSync(pictures, { recursive: true });

describe("the documentation in a browser", { skip: withoutBrowser }, () => {
  let service: Service;
  let server: Listening;
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
    await page.waitForSelector(".opblock");
    assert.deepEqual(
      (await page.locator(".opblock-summary-description").allTextContents()).sort(),
      [...operations].sort(),
    );
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/docs.png` });
    await page.locator(".btn.authorize").click();
    await page.locator(".auth-container input").fill(service.agent);
    await page.locator(".auth-btn-wrapper .authorize").click();
    await page.locator(".auth-btn-wrapper .btn-done").click();
    const list = page.locator("#operations-actions-getActions");
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
    // It writes sections as they come near the window, the last one last.
    const unseen = async (): Promise<string[]> => {
      const text = await page.locator("body").innerText();
      return [...operations].filter((summary) => !text.includes(summary));
    };
    await page.getByText("/v1/actions", { exact: true }).first().waitFor({ state: "attached" });
    await page.waitForFunction(
      (summaries) => summaries.every((summary) => document.body.textContent?.includes(summary)),
      [...operations],
    );
    const missing = await unseen();
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/redoc.png` });
    assert.deepEqual(missing, []);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

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
