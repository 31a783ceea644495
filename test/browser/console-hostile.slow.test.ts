/**
 * Requests that an agent wrote to freeze or mislead approvers.
 * @needs console
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Locator, Page } from "playwright-core";
import { withoutBrowser } from "../support/browser.ts";
import {
  openRequest,
  recordNow,
  requestPane,
  inboxRow,
  startConsole,
  voteNow,
  type Console,
} from "../support/console.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const POLICY = `policy: pay
rules:
  - { name: small, tool: stripe, when: params.amount <= 100, effect: allow }
  - name: large
    tool: stripe
    effect: require_approval
    reason: refunds above 100 need a person
    approval: { show: [params.destination] }
  - { name: mail, tool: email, effect: require_approval }
`;
const NOTE = Array.from({ length: 60 }, (_, i) => `line ${i + 1}`).join("\n");
const LIST = Array.from({ length: 30_000 }, (_, i) => i % 10);

describe("hostile requests in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let folder: string;
  let ada: string;
  before(async () => {
    folder = temporaryFolder("assent-hostile-");
    writeFileSync(join(folder, "pay.yaml"), POLICY);
    console_ = await startConsole({ policies: folder });
    ada = await console_.key("ada", { preset: "approver", owner: "Ada" });
  });
  after(async () => {
    await console_.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const submit = async (body: object): Promise<string> => {
    const request = { agent_id: "support-bot", tool: "stripe", operation: "refund", ...body };
    const { status, body: action } = await console_.service.call("POST", "/v1/actions", { body: request });
    assert.equal(status, 202, JSON.stringify(action));
    return action.id as string;
  };
  const statusOf = async (id: string): Promise<string> =>
    (await console_.service.call("GET", `/v1/actions/${id}`)).body.status as string;
  const nodes = (page: Page): Promise<number> => page.evaluate(() => document.querySelectorAll("*").length);
  const names = (scope: Locator): Promise<string[]> =>
    scope.locator("dl.params").first().locator("> div > dt").allTextContents();
  const cancel = async (...ids: string[]): Promise<void> => {
    for (const id of ids)
      await console_.service.call("POST", `/v1/actions/${id}/cancel`, { key: console_.service.admin, body: {} });
  };

  it("draws five lists of 30,000 items within a budget, and unfolds them step by step", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await submit({ params: { amount: 500 + i, list: LIST } }));
    const [first] = ids as [string];
    const { page, complaints } = await console_.visit(ada, "#/approvals");
    await inboxRow(page, ids[4] as string).waitFor();
    assert.ok((await nodes(page)) < 1000, `${await nodes(page)} nodes`);
    const pane = await openRequest(page, first);
    await pane.getByRole("button", { name: "… 29,995 more lines of list" }).click();
    await pane.getByText("… 29,945 more lines").waitFor();
    assert.ok((await nodes(page)) < 2000, `${await nodes(page)} nodes`);
    // The exact value is available as one string.
    await pane.getByText("As JSON").click();
    const json = await pane.getByRole("region", { name: "Parameters as JSON" }).textContent();
    assert.deepEqual(JSON.parse(json ?? ""), { amount: 500, list: LIST });
    await page.locator("[data-group]", { hasText: "5 requests" }).click();
    await page.getByRole("button", { name: "Deny 5" }).waitFor();
    assert.ok((await nodes(page)) < 2000, `${await nodes(page)} nodes`);
    await page.getByRole("button", { name: "Deny 5" }).click();
    await recordNow(page);
    for (const id of ids) await inboxRow(page, id).getByText("denied by you").waitFor();
    assert.deepEqual(complaints, []);
    await page.close();
  });

  it("does not let a long note push out what the policy names", async () => {
    const id = await submit({ params: { note: NOTE, memo: "m".repeat(9000), amount: 5000, destination: "acct_1" } });
    const { page } = await console_.visit(ada, `#/approvals/${id}`);
    const pane = requestPane(page, id);
    await pane.getByRole("button", { name: "… 54 more lines of note" }).waitFor();
    assert.deepEqual(await names(pane), ["destination", "amount", "note", "memo"]);
    for (const text of ["acct_1", "5000"]) {
      const shown = pane.locator("dd", { hasText: text }).first();
      assert.ok(((await shown.boundingBox())?.y ?? 9999) < 700, text);
    }
    await pane.getByRole("button", { name: "… 54 more lines of note" }).click();
    await pane.getByRole("button", { name: "… 4 more lines of note" }).click();
    await pane.getByText("line 60").waitFor();
    assert.ok(await page.getByLabel("Reason").isVisible());
    await page.close();
    await cancel(id);
  });

  it("shows both recipients of an e-mail and marks the one that is written with other letters", async () => {
    const to = ["ada@example.com", "eve@exаmple.net"];
    const id = await submit({ tool: "email", operation: "send", params: { to, subject: "hello", body: NOTE } });
    for (const viewport of [
      { width: 1440, height: 900 },
      { width: 390, height: 844 },
    ]) {
      const { page } = await console_.visit(ada, `#/approvals/${id}`, { viewport });
      const pane = requestPane(page, id);
      await pane.getByText("Cyrillic а U+0430").waitFor();
      for (const address of to)
        assert.equal(
          await pane.getByText(address).evaluate((node) => {
            const box = node.getBoundingClientRect();
            const dl = (node.closest("dl") as Element).getBoundingClientRect();
            return box.height > 0 && box.bottom <= dl.bottom + 1;
          }),
          true,
          address,
        );
      await page.close();
    }
    await cancel(id);
  });

  it("shows context, rule and reason, and keeps the reason field and the buttons in view on a phone", async () => {
    const id = await submit({ params: { amount: 900, note: NOTE }, context: { ticket: "T-1" } });
    const { page } = await console_.visit(ada, `#/approvals/${id}`, { viewport: { width: 390, height: 844 } });
    const pane = requestPane(page, id);
    for (const text of ["T-1", "refunds above 100 need a person", "large (policy pay)", "support-bot"])
      await pane.getByText(text).first().waitFor();
    for (const shown of [page.getByLabel("Reason"), page.getByRole("button", { name: "Approve", exact: true })])
      assert.ok(((await shown.boundingBox())?.y ?? 9999) < 844 - 30);
    await page.close();
    // At 200 % zoom the bar covers nothing: it is below the request.
    const zoomed = await console_.visit(ada, `#/approvals/${id}`, { viewport: { width: 720, height: 450 } });
    const [content, bar] = [
      await requestPane(zoomed.page, id).locator(".pane-scroll").boundingBox(),
      await requestPane(zoomed.page, id).locator(".pane-foot").boundingBox(),
    ];
    assert.ok((bar?.y ?? 0) >= (content?.y ?? 0) + (content?.height ?? 0) - 1);
    await zoomed.page.close();
    await cancel(id);
  });

  it("decides a batch with Ctrl+Enter only after a vote was chosen, and puts outliers first", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 12; i++)
      ids.push(await submit({ params: { amount: i === 7 ? 99_000 : 1000 + i, note: NOTE } }));
    const { page } = await console_.visit(ada, "#/approvals");
    for (const id of ids) await inboxRow(page, id).getByRole("checkbox").check();
    const table = page.getByRole("region", { name: "Requests of stripe refund" });
    await table.waitFor();
    assert.match((await table.locator("tbody tr").first().textContent()) ?? "", /99000.*unusual/);
    await page.keyboard.press("Control+Enter");
    await page.getByLabel("Reason").fill("all fine");
    await page.keyboard.press("Control+Enter");
    assert.deepEqual(
      await Promise.all(ids.map(statusOf)),
      ids.map(() => "pending_approval"),
    );
    // Opening a request keeps the selection and the reason.
    await openRequest(page, ids[3] as string);
    await page.getByRole("button", { name: "Go to the selection" }).click();
    assert.equal(await page.getByLabel("Reason").inputValue(), "all fine");
    await page.getByRole("button", { name: "Approve 12" }).click();
    await recordNow(page);
    for (const id of ids) await inboxRow(page, id).getByText("approved by you").waitFor();
    await page.close();
  });

  it("gives every row a name of its own", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push(await submit({ params: { amount: 2000, same: i } }));
    const { page } = await console_.visit(ada, "#/approvals");
    await inboxRow(page, ids[2] as string).waitFor();
    const labels = await page.locator("[data-id]").evaluateAll((rows) => rows.map((row) => row.textContent));
    assert.equal(new Set(labels).size, labels.length);
    assert.match(labels[0] ?? "", /^stripe refund 2000.*support-bot.*, [0-9a-f]{6}$/);
    const boxes = await page
      .locator(".rows")
      .getByRole("checkbox", { name: /^Select stripe/ })
      .evaluateAll((all) => all.map((box) => box.getAttribute("aria-label")));
    assert.equal(new Set(boxes).size, boxes.length);
    await page.close();
    await cancel(...ids);
  });

  it("keeps a typed reason when a vote does not arrive, or arrives too late", async () => {
    const [offline, late] = [await submit({ params: { amount: 3000 } }), await submit({ params: { amount: 3001 } })];
    const { page } = await console_.visit(ada, `#/approvals/${offline}`);
    await page.getByLabel("Reason").fill("use npm run ship instead");
    await page.context().setOffline(true);
    await voteNow(page, "Deny");
    await page.getByText(/^Denial of .*the service does not respond/).waitFor();
    await page.context().setOffline(false);
    await page.getByRole("button", { name: "Open the request" }).click();
    const reason = requestPane(page, offline).getByLabel("Reason");
    assert.equal(await reason.inputValue(), "use npm run ship instead");
    await voteNow(page, "Deny");
    await inboxRow(page, offline).locator(".settled-mark").waitFor();
    await openRequest(page, late);
    await page.getByLabel("Reason").fill("not today");
    await cancel(late);
    await page.getByText("Your vote was not recorded. Your reason is kept: “not today”.").waitFor();
    await page.close();
  });

  it("continues with other pending actions when all listed actions are settled", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 55; i++) ids.push(await submit({ params: { amount: 4000 + i } }));
    const { page } = await console_.visit(ada, "#/approvals");
    await page.getByText("55 pending").waitFor();
    await page.locator(".stream-status.live").waitFor();
    await page.getByRole("button", { name: "Show more (43 left)" }).waitFor();
    await cancel(...ids.slice(0, 50));
    await page.getByText("5 pending", { exact: true }).waitFor();
    // Settled requests leave the list after two steps.
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await inboxRow(page, ids[54] as string).waitFor();
    assert.equal(await page.getByText("No requests are waiting").count(), 0);
    await page.close();
    await cancel(...ids.slice(50));
  });
});
