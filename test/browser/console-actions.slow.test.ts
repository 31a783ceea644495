/**
 * Actions in the console: search, live updates, details and replay.
 * @needs console
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { serve } from "../../src/serve/index.ts";
import { withoutBrowser } from "../support/browser.ts";
import { startConsole, type Console } from "../support/console.ts";
import { needs } from "../support/features.ts";
import { ALLOWED, ASKED, DENIED } from "../support/service.ts";

const idsOf = (from: Page) =>
  from
    .locator('tbody tr a[href^="#/actions/"]')
    .evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));

describe("actions in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let asked: string;
  before(async () => {
    console_ = await startConsole();
    for (const body of [ALLOWED, DENIED, { ...ALLOWED, agent_id: "other-bot" }])
      await console_.service.call("POST", "/v1/actions", { body });
    asked = (await console_.service.call("POST", "/v1/actions", { body: ASKED })).body.id;
  });
  after(() => console_.close());

  it("filters, and keeps the filter in the address", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/actions");
    const rows = page.locator("tbody tr");
    await rows.nth(3).waitFor();
    assert.equal(await rows.count(), 4);
    await page.getByLabel("Status").selectOption("denied");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByText("crm delete_customer").waitFor();
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
    assert.match(page.url(), /#\/actions\?status=denied$/);
    await page.getByRole("link", { name: "All", exact: true }).click();
    await page.getByRole("button", { name: "More…" }).click();
    await page.getByLabel("Agent").fill("other-bot");
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      () => document.querySelectorAll("tbody tr").length === 1 && document.body.textContent?.includes("other-bot"),
    );
    await page.getByLabel("Agent").fill("nobody");
    await page.keyboard.press("Enter");
    await page.getByText("No action matches.").waitFor();
    // The service searches. The view can be saved under a name, and its rows as a file.
    await page.getByLabel("Agent").fill("");
    await page.getByLabel("Search", { exact: true }).fill("DELETE_customer");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
    await page.getByLabel("Name of the view").fill("deletions");
    await page.getByRole("button", { name: "Save this view" }).click();
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export CSV" }).click();
    const stream = await (await saving).createReadStream();
    let csv = "";
    for await (const chunk of stream) csv += String(chunk);
    assert.match(csv, /^id,created_at,agent_id,/);
    assert.equal(csv.trimEnd().split("\r\n").length, 2);
    await page.getByText("1 action exported.").waitFor();
    await page.getByRole("link", { name: "Denied", exact: true }).click();
    await page.waitForFunction(() => location.hash === "#/actions?status=denied");
    await page.getByRole("link", { name: "deletions" }).click();
    await page.waitForFunction(() => location.hash === "#/actions?q=DELETE_customer");
    await page.getByRole("button", { name: "Remove the view deletions" }).click();
    assert.equal(await page.getByRole("link", { name: "deletions" }).count(), 0);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("answers from the search who approved an order, on what grounds, and what they saw", async () => {
    const { call } = console_.service;
    const people = { dora: "checked the receipt with the customer", emil: "counted the parcels" };
    for (const [i, [name, reason]] of Object.entries(people).entries()) {
      const body = { ...ASKED, params: { ...ASKED.params, order: `order-471${i + 1}` } };
      const { id } = (await call("POST", "/v1/actions", { body })).body as { id: string };
      const key = await console_.key(name, { preset: "approver", owner: name });
      const { approval_token: token } = (await call("GET", `/v1/actions/${id}`, { key })).body;
      await call("POST", `/v1/actions/${id}/approval`, { key, body: { token, approve: true, reason } });
    }
    const auditor = await console_.key("auditor", { scopes: ["actions:read", "users:read", "provenance:read"] });
    const { page, complaints, strayed } = await console_.visit(auditor, "#/actions");
    const rows = page.locator("tbody tr");
    const search = async (text: string, count: number) => {
      await page.getByLabel("Search", { exact: true }).fill(text);
      await page.keyboard.press("Enter");
      await page.waitForFunction((n) => document.querySelectorAll("tbody tr").length === n, count);
    };
    for (const [text, count] of [
      ["order-471", 2],
      ["dora", 1],
      ["counted parcels", 1],
      ["payments refunds order-4712", 1],
      ["4711", 1],
    ] as const)
      await search(text, count);
    await rows.first().getByRole("link").first().click();
    await page.getByText("checked the receipt with the customer").first().waitFor();
    // The names of people are loaded after the action.
    await page
      .getByText(/approved by dora/i)
      .first()
      .waitFor();
    const text = (await page.locator("main").textContent()) ?? "";
    assert.match(text, /approved by dora/i, "who");
    assert.match(text, /a person must approve refunds|payments/, "on what grounds: the rule");
    assert.match(text, /order-4711/, "what they saw");
    assert.match(text, /500/, "what they saw");
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("shows a new action without being asked, and older ones when asked", async () => {
    for (let i = 0; i < 60; i++)
      await console_.service.call("POST", "/v1/actions", { body: { ...ALLOWED, agent_id: "busy-bot" } });
    const { page } = await console_.visit(console_.service.admin, "#/actions?agent_id=busy-bot");
    await page.locator(".stream-status.live").waitFor();
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 50);
    await page.getByRole("button", { name: "Older" }).click();
    await page.getByText("51 – 60 of 60", { exact: true }).waitFor();
    assert.equal(await page.locator("tbody tr").count(), 10);
    const oldest = await idsOf(page);
    await console_.service.call("POST", "/v1/actions", {
      body: { ...ALLOWED, agent_id: "busy-bot", operation: "fresh" },
    });
    // The new action does not shift the page of older actions. The keyboard returns to the first page.
    await page.getByText("52 – 61 of 61", { exact: true }).waitFor();
    assert.deepEqual(await idsOf(page), oldest);
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByText("stripe fresh").waitFor();
    assert.equal(await page.locator("tbody tr").count(), 50);
  });

  it("fills the gap after the computer slept, and has at most 2,000 nodes on each page", async () => {
    const submit = async (count: number) => {
      for (let i = 0; i < count; i++)
        await console_.service.call("POST", "/v1/actions", { body: { ...ALLOWED, agent_id: "night-bot" } });
    };
    await submit(60);
    const { page } = await console_.visit(console_.service.admin, "#/actions?agent_id=night-bot");
    await page.locator(".stream-status.live").waitFor();
    await page.getByRole("button", { name: "Older" }).click();
    await page.getByText("51 – 60 of 60", { exact: true }).waitFor();
    const { port } = new URL(console_.server.url);
    await console_.server.stop(0);
    await page.locator(".banner").getByText("The service does not respond").waitFor();
    await submit(140);
    console_.server = await serve((request, info) => console_.service.runtime.fetch(request, info), {
      host: "127.0.0.1",
      port: Number(port),
    });
    await page.getByText("191 – 200 of 200", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Newer" }).focus();
    for (const from of [141, 91, 1]) {
      await page.keyboard.press("Enter");
      await page.getByText(new RegExp(`^${from} – `)).waitFor();
    }
    const [ids, nodes]: [string[], number[]] = [[], []];
    for (const from of [1, 51, 101, 151]) {
      await page.getByText(`${from} – ${from + 49} of 200`, { exact: true }).waitFor();
      ids.push(...(await idsOf(page)));
      nodes.push(await page.evaluate(() => document.querySelectorAll("*").length));
      await page.getByRole("button", { name: "Older" }).press("Enter");
    }
    assert.ok(Math.max(...nodes) <= 2000, `nodes of the pages: ${nodes.join()}`);
    const { body } = await console_.service.call("GET", "/v1/actions?agent_id=night-bot&limit=1000", {
      key: console_.service.admin,
    });
    const all = (body.actions as { id: string }[]).map(({ id }) => `#/actions/${id}`);
    assert.deepEqual(ids, all, "each action once, newest first");
  });

  it("shows who rejected an action and why, and lifts the rejection", async () => {
    const { call, admin } = console_.service;
    const body = { ...ASKED, params: { ...ASKED.params, order: "rejected" } };
    const { id } = (await call("POST", "/v1/actions", { body })).body as { id: string };
    const { approval_token: token } = (await call("GET", `/v1/actions/${id}`, { key: admin })).body;
    const vote = { token, approve: false, reason: "use npm run ship instead" };
    await call("POST", `/v1/actions/${id}/approval`, { key: admin, body: vote });
    const refused = (await call("POST", "/v1/actions", { body })).body;
    assert.equal(refused.denied_by, "earlier_rejection");
    const { page, complaints, strayed } = await console_.visit(admin, `#/actions/${refused.id}`);
    await page.getByText("“use npm run ship instead”").waitFor();
    assert.equal(await page.getByRole("button", { name: "Lift the rejection" }).count(), 0);
    await page.getByRole("link", { name: "The action that was rejected" }).click();
    await page.getByRole("button", { name: "Lift the rejection" }).click();
    await page.getByText("The same request can be submitted again.").waitFor();
    await page.getByText("rejection lifted", { exact: true }).waitFor();
    assert.equal((await call("POST", "/v1/actions", { body })).status, 202);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it(
    "shows that the request of an erased action was erased, and shows the other data",
    needs("retention"),
    async () => {
      const { call, admin } = console_.service;
      const body = { ...DENIED, params: { secret: "of Anna" } };
      const { id } = (await call("POST", "/v1/actions", { body })).body as { id: string };
      const { page, complaints, strayed } = await console_.visit(admin, `#/actions/${id}`);
      await page.getByText("of Anna").first().waitFor();
      await call("POST", `/v1/actions/${id}/erase`, { key: admin, body: { reason: "request 4711" } });
      await page.getByText("The request and its result were erased").waitFor();
      const text = (await page.locator("main").textContent()) ?? "";
      assert.ok(!text.includes("of Anna"));
      assert.match(text, /request 4711/);
      assert.match(text, /the decision cannot be made again/);
      assert.deepEqual([complaints, strayed], [[], []]);
    },
  );

  it("shows an action's history as it grows, and replays it", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, `#/actions/${asked}`);
    await page.locator(".stream-status.live").waitFor();
    const history = page.locator(".timeline li");
    assert.match((await history.allTextContents()).join("\n"), /requires approval/);
    const approver = await console_.key("grace", { preset: "approver", owner: "Grace" });
    const { body } = await console_.service.call("GET", `/v1/actions/${asked}`, { key: approver });
    await console_.service.call("POST", `/v1/actions/${asked}/approval`, {
      key: approver,
      body: { token: body.approval_token, approve: true, reason: "checked the order" },
    });
    // The names are loaded after the entry.
    const vote = history.nth(1);
    const named = /approved by Grace, with the API key grace \(1 of 1\): checked the order/;
    await vote.filter({ hasText: named }).waitFor();
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByText("The same decision, field by field.").waitFor();
    assert.ok((await page.getByRole("region", { name: "Fields" }).locator("tbody tr").count()) > 5);
    await page.getByText("Today's policies decide the same.").waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("shows that an action does not exist", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/actions/019346a0-0000-7000-8000-000000000000");
    await page.getByRole("alert").waitFor();
    assert.match((await page.getByRole("alert").textContent()) ?? "", /019346a0/);
  });
});
