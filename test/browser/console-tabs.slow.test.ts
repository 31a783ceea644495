/**
 * How the console uses its connections with many tabs, slow networks and an unreachable service.
 * @needs console
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { serve } from "../../src/serve/index.ts";
import { open, withoutBrowser } from "../support/browser.ts";
import { openRequest, requestPane, inboxRow, startConsole, voteNow, type Console } from "../support/console.ts";
import { ASKED } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/**
 * A browser opens at most six HTTP/1.1 connections to a host: with one stream in each tab, requests of the seventh tab
 * would wait forever.
 */
const TABS = 8;

describe("the console in many tabs", { skip: withoutBrowser }, () => {
  let console_: Console;
  let folder: string;
  let ada: string;
  /** Number of requested streams, and of open streams. */
  const streams = { begun: 0, open: 0 };
  before(async () => {
    folder = temporaryFolder("assent-tabs-");
    writeFileSync(join(folder, "asked.yaml"), "policy: asked\nrules: [{ name: all, effect: require_approval }]\n");
    console_ = await startConsole({ policies: folder });
    ada = await console_.key("ada", { preset: "approver", owner: "Ada" });
    const { runtime } = console_.service;
    const answer = runtime.fetch.bind(runtime);
    Object.assign(runtime, {
      async fetch(request: Request, info: never) {
        const response = await answer(request, info);
        if (response.headers.get("content-type") !== "text/event-stream" || response.body === null) return response;
        streams.begun += 1;
        streams.open += 1;
        const counted = response.body.pipeThrough(new TransformStream());
        request.signal.addEventListener("abort", () => (streams.open -= 1), { once: true });
        return new Response(counted, { status: response.status, headers: response.headers });
      },
    });
  });
  after(async () => {
    await console_.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const submit = async (body: object): Promise<string> =>
    (await console_.service.call("POST", "/v1/actions", { body })).body.id as string;

  async function openTabs(context: BrowserContext, count: number): Promise<Page[]> {
    const first = await open(context, `${console_.server.url}/#/approvals`);
    await first.page.getByLabel("API key").fill(ada);
    await first.page.getByRole("button", { name: "Sign in" }).click();
    await first.page.locator(".stream-status.live").waitFor();
    const pages = [first.page];
    for (let i = 1; i < count; i++) {
      const page = await context.newPage();
      pages.push(page);
      await page.goto(`${console_.server.url}/#/approvals`);
      await page.locator(".stream-status.live").waitFor();
    }
    return pages;
  }

  async function decideIn(page: Page, id: string): Promise<void> {
    await openRequest(page, id);
    await voteNow(page, "Approve");
    await requestPane(page, id).getByText("You approved it.").waitFor();
  }

  it("reads one stream for all of them, and decides in each", async () => {
    const context = await console_.browser.newContext();
    const before = streams.begun;
    const pages = await openTabs(context, TABS);
    assert.equal(streams.begun - before, 1);
    const id = await submit(ASKED);
    for (const page of pages) await page.locator(`[data-id="${id}"]`).waitFor();
    await decideIn(pages.at(-1) as Page, id);
    for (const page of pages.slice(0, -1)) await inboxRow(page, id).locator(".settled-mark").waitFor();
    assert.equal(streams.begun - before, 1);
    await context.close();
  });

  it("reads one stream if the browser has no shared workers, and continues in another tab when its tab closes", async () => {
    const context = await console_.browser.newContext();
    await context.addInitScript(() => Reflect.deleteProperty(globalThis, "SharedWorker"));
    const before = streams.begun;
    const pages = await openTabs(context, 3);
    assert.equal(streams.begun - before, 1);
    await pages[0]?.close();
    const id = await submit({ ...ASKED, operation: "after" });
    for (const page of pages.slice(1)) await page.locator(`[data-id="${id}"]`).waitFor();
    await decideIn(pages[1] as Page, id);
    await inboxRow(pages[2] as Page, id)
      .locator(".settled-mark")
      .waitFor();
    assert.equal(streams.begun - before, 2);
    await context.close();
  });

  it("reports that a vote without an answer may have taken effect, and keeps its reason", async () => {
    const id = await submit({ ...ASKED, operation: "unanswered" });
    const { page } = await console_.visit(ada, `#/approvals/${id}`);
    await requestPane(page, id).getByRole("button", { name: "Approve" }).waitFor();
    await page.clock.install();
    // A request that gets neither a response nor an error.
    const held = new Promise<void>((resolve) => void page.route("**/approval", () => resolve()));
    await voteNow(page, "Approve", "typed once");
    await held;
    await page.getByText("Recording 1 approval…").waitFor();
    await page.clock.fastForward(21_000);
    await page
      .getByRole("alert")
      .getByText(/has not responded for 20 seconds; it may have taken effect/)
      .waitFor();
    await page.getByRole("button", { name: "Open the request" }).click();
    assert.equal(await requestPane(page, id).getByLabel("Reason").inputValue(), "typed once");
  });

  it("shows on every page that the service is down, and when it is back", async () => {
    const { page } = await console_.visit(ada, "#/actions");
    await page.locator(".stream-status.live").waitFor();
    const banner = page.locator(".banner").getByText("The service does not respond");
    const { port } = new URL(console_.server.url);
    await console_.server.stop(0);
    await banner.waitFor();
    await page.getByRole("link", { name: "Policies" }).click();
    await banner.waitFor();
    console_.server = await serve((request, info) => console_.service.runtime.fetch(request, info), {
      host: "127.0.0.1",
      port: Number(port),
    });
    await banner.waitFor({ state: "detached" });
    // Data that could not be read before is read then.
    await page.getByRole("heading", { name: "Policies" }).waitFor();
    await page.getByRole("link", { name: "asked" }).waitFor();
  });

  it("reads again what found no answer for a moment, while the service answers", async () => {
    const { page } = await console_.visit(ada, "#/actions");
    await page.locator(".stream-status.live").waitFor();
    let cut = 0;
    await page.route("**/v1/policies?*", (route) => (cut++ === 0 ? route.abort() : route.continue()));
    await page.getByRole("link", { name: "Policies" }).click();
    await page.getByRole("link", { name: "asked" }).waitFor();
    assert.equal(cut, 2);
  });
});

describe("the console over a slow line", { skip: withoutBrowser }, () => {
  let console_: Console;
  before(async () => {
    console_ = await startConsole();
  });
  after(() => console_.close());

  it("loads what the sign-in needs, compressed, and nothing of it a second time", async () => {
    const context = await console_.browser.newContext();
    const page = await context.newPage();
    const loaded: { path: string; bytes: number; encoding: string | null }[] = [];
    const sizes: Promise<unknown>[] = [];
    page.on("response", (response) => {
      const size = async (): Promise<void> => {
        const { responseBodySize } = await response.request().sizes();
        const encoding = await response.headerValue("content-encoding");
        loaded.push({ path: new URL(response.url()).pathname, bytes: responseBodySize, encoding });
      };
      sizes.push(size().catch(() => undefined));
    });
    // Wait for the inbox, which counts too, and which can still be loading when the form appears.
    await page.goto(console_.server.url, { waitUntil: "networkidle" });
    await page.getByLabel("API key").waitFor();
    await Promise.all(sizes);
    const files = loaded.filter(({ path }) => path.startsWith("/console/"));
    assert.ok(
      files.every(({ encoding }) => encoding === "gzip" || encoding === "br"),
      JSON.stringify(files),
    );
    // The inbox is loaded ahead, because it is the first page after a sign-in. No code of other pages is loaded.
    assert.ok(files.some(({ path }) => path.endsWith("/approvals.js")));
    const others = files.filter(({ path }) => /\/chunk-(?!chunk-)/.test(path));
    assert.deepEqual(others, []);
    const bytes = loaded.reduce((sum, file) => sum + file.bytes, 0);
    assert.ok(bytes > 5_000 && bytes < 90_000, `${bytes} bytes`);
    loaded.length = 0;
    const again = await context.newPage();
    const asked: string[] = [];
    again.on("response", (response) => {
      if (!response.fromServiceWorker()) asked.push(response.url());
    });
    const reached: string[] = [];
    const { runtime } = console_.service;
    const answer = runtime.fetch.bind(runtime);
    Object.assign(runtime, {
      fetch(request: Request, info: never) {
        reached.push(new URL(request.url).pathname);
        return answer(request, info);
      },
    });
    await again.goto(console_.server.url);
    await again.getByLabel("API key").waitFor();
    assert.ok(asked.length > 5);
    assert.deepEqual(reached, ["/"], "the page alone is asked for again");
    await context.close();
  });

  it("says that it loads, before its scripts are there and while a page is", async () => {
    const page = await console_.browser.newPage();
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    await page.route("**/main.js", async (route) => {
      await gate;
      await route.continue();
    });
    await page.goto(console_.server.url, { waitUntil: "commit" });
    await page.getByText("Loading the console…").waitFor();
    release();
    await page.getByLabel("API key").fill(console_.service.admin);
    assert.equal(await page.getByText("Loading the console…").count(), 0);
    let go: () => void = () => undefined;
    const later = new Promise<void>((resolve) => (go = resolve));
    await page.route(/\/v1\/approvals/, async (route) => {
      await later;
      await route.continue();
    });
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Loading requests…").waitFor();
    assert.equal(await page.getByText("No requests are waiting.").count(), 0);
    go();
    await page.getByText("No requests are waiting.").waitFor();
    await page.close();
  });
});
