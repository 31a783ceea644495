/** Requests that an agent wrote to freeze or mislead approvers. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { withoutBrowser } from "../support/browser.ts";
import { startConsole, type Console } from "../support/console.ts";

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
    folder = mkdtempSync(join(tmpdir(), "assent-hostile-"));
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
  const card = (page: Page, id: string) => page.locator("article", { has: page.locator(`[data-id="${id}"]`) });
  const dialogOf = (page: Page) => page.getByRole("dialog");
  const nodes = (page: Page): Promise<number> => page.evaluate(() => document.querySelectorAll("*").length);
  const names = (scope: ReturnType<typeof card>): Promise<string[]> =>
    scope.locator("dl.params").first().locator("> div > dt").allTextContents();
  const cancel = async (...ids: string[]): Promise<void> => {
    for (const id of ids)
      await console_.service.call("POST", `/v1/actions/${id}/cancel`, { key: console_.service.admin, body: {} });
  };

  it("draws five lists of 30,000 items within a budget, and unfolds them step by step", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await submit({ params: { amount: 500 + i, list: LIST } }));
    const { page, complaints } = await console_.visit(ada, "#/approvals");
    await card(page, ids[4] as string)
      .getByText("… 29,998 more lines")
      .waitFor();
    assert.ok((await nodes(page)) < 1000, `${await nodes(page)} nodes`);
    await page.locator(`[data-id="${ids[0]}"]`).click();
    await card(page, ids[0] as string)
      .getByRole("button", { name: "… 29,995 more lines of list" })
      .click();
    await card(page, ids[0] as string)
      .getByText("… 29,945 more lines")
      .waitFor();
    assert.ok((await nodes(page)) < 2000, `${await nodes(page)} nodes`);
    // The exact value is there, in one text.
    await card(page, ids[0] as string)
      .getByText("As JSON")
      .click();
    const json = await card(page, ids[0] as string)
      .getByRole("region", { name: "Parameters as JSON" })
      .textContent();
    assert.deepEqual(JSON.parse(json ?? ""), { amount: 500, list: LIST });
    for (const id of ids) await card(page, id).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Deny selected…" }).click();
    await dialogOf(page).waitFor();
    assert.ok((await nodes(page)) < 4000, `${await nodes(page)} nodes`);
    await page.getByRole("button", { name: "Deny all 5" }).click();
    await page.getByText("5 denied.").waitFor();
    assert.deepEqual(complaints, []);
    await page.close();
  });

  it("does not let a long note push out what the policy names, in the card and in the dialog", async () => {
    const id = await submit({ params: { note: NOTE, memo: "m".repeat(9000), amount: 5000, destination: "acct_1" } });
    const { page } = await console_.visit(ada, "#/approvals");
    const first = ["destination", "amount", "note", "memo"];
    await card(page, id).getByText("… 57 more lines").waitFor();
    assert.deepEqual(await names(card(page, id)), first);
    for (const text of ["acct_1", "5000"]) {
      const shown = card(page, id).locator("dd", { hasText: text }).first();
      assert.ok(((await shown.boundingBox())?.y ?? 9999) < 900, text);
    }
    await page.locator(`[data-id="${id}"]`).click();
    await card(page, id).getByRole("button", { name: "Approve…" }).click();
    const dialog = dialogOf(page);
    await dialog.getByRole("button", { name: "… 54 more lines of note" }).waitFor();
    assert.deepEqual(await names(dialog), first);
    await dialog.getByRole("button", { name: "… 54 more lines of note" }).click();
    await dialog.getByRole("button", { name: "… 4 more lines of note" }).click();
    await dialog.getByText("line 60").waitFor();
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
      const { page } = await console_.visit(ada, "#/approvals", { viewport });
      await card(page, id).getByText("Cyrillic а U+0430").waitFor();
      for (const address of to)
        assert.equal(
          await card(page, id)
            .getByText(address)
            .evaluate((node) => {
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

  it("shows context, rule and reason in the dialog, and keeps the reason field and the buttons in view", async () => {
    const id = await submit({ params: { amount: 900, note: NOTE }, context: { ticket: "T-1" } });
    const { page } = await console_.visit(ada, `#/approvals/${id}`, { viewport: { width: 390, height: 844 } });
    await card(page, id).getByRole("button", { name: "Approve…" }).click();
    const dialog = dialogOf(page);
    for (const text of ["T-1", "refunds above 100 need a person", "large (policy pay)", "support-bot"])
      await dialog.getByText(text).first().waitFor();
    for (const shown of [dialog.getByLabel("Reason"), dialog.getByRole("button", { name: "Approve", exact: true })])
      assert.ok(((await shown.boundingBox())?.y ?? 9999) < 844 - 30);
    assert.equal(await dialog.getByRole("region", { name: "What is asked for" }).evaluate((node) => node.scrollTop), 0);
    await page.close();
    await cancel(id);
  });

  it("opens a batch at its first request, and lets no key decide it", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 12; i++) ids.push(await submit({ params: { amount: 1000 + i, note: NOTE } }));
    const { page } = await console_.visit(ada, "#/approvals");
    for (const id of ids) await card(page, id).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Approve selected…" }).click();
    const region = dialogOf(page).getByRole("region", { name: "What is asked for" });
    assert.equal(await region.evaluate((node) => [node.scrollTop, node.closest("dialog")?.scrollTop].join()), "0,0");
    assert.ok(await region.getByText("1000", { exact: true }).first().isVisible());
    await page.keyboard.press("Control+Enter");
    await dialogOf(page).getByLabel("Reason").fill("all fine");
    await page.keyboard.press("Control+Enter");
    assert.deepEqual(
      await Promise.all(ids.map(statusOf)),
      ids.map(() => "pending_approval"),
    );
    // Cancel keeps the selection.
    await dialogOf(page).getByRole("button", { name: "Cancel" }).click();
    await page.getByText("12 selected").waitFor();
    await page.getByRole("button", { name: "Approve selected…" }).click();
    await page.getByRole("button", { name: "Approve all 12" }).click();
    await page.getByText("12 approved.").waitFor();
    await page.close();
  });

  it("gives every row a name of its own", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push(await submit({ params: { amount: 2000, same: i } }));
    const { page } = await console_.visit(ada, "#/approvals");
    await card(page, ids[2] as string).waitFor();
    const labels = await page
      .locator("article")
      .evaluateAll((rows) => rows.map((row) => row.getAttribute("aria-label")));
    assert.equal(new Set(labels).size, labels.length);
    assert.match(labels[0] ?? "", /^stripe refund by support-bot, amount 2000, [0-9a-f]{6}$/);
    await page.close();
    await cancel(...ids);
  });

  it("keeps a typed reason when a vote does not arrive, and says so when it comes too late", async () => {
    const [offline, late] = [await submit({ params: { amount: 3000 } }), await submit({ params: { amount: 3001 } })];
    const { page } = await console_.visit(ada, `#/approvals/${offline}`);
    await card(page, offline).getByRole("button", { name: "Deny…" }).click();
    await dialogOf(page).getByLabel("Reason").fill("use npm run ship instead");
    await page.context().setOffline(true);
    await dialogOf(page).getByRole("button", { name: "Deny", exact: true }).click();
    await page.getByText("1 refused: see there").waitFor();
    await page.context().setOffline(false);
    await card(page, offline).getByRole("button", { name: "Deny…" }).click();
    assert.equal(await dialogOf(page).getByLabel("Reason").inputValue(), "use npm run ship instead");
    await dialogOf(page).getByRole("button", { name: "Deny", exact: true }).click();
    await card(page, offline).getByText("You denied it").waitFor();
    await page.evaluate((id) => void (location.hash = `#/approvals/${id}`), late);
    await card(page, late).getByRole("button", { name: "Deny…" }).click();
    await dialogOf(page).getByLabel("Reason").fill("not today");
    await cancel(late);
    await dialogOf(page).getByRole("button", { name: "Deny", exact: true }).click();
    await page.getByText("Your reason was not recorded: “not today”.").waitFor();
    await page.close();
  });

  it("goes on with what is pending when all that was shown is cleared", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 55; i++) ids.push(await submit({ params: { amount: 4000 + i } }));
    const { page } = await console_.visit(ada, "#/approvals");
    await card(page, ids[49] as string).waitFor();
    await page.locator(".live.live").waitFor();
    await cancel(...ids.slice(0, 50));
    await page.getByRole("button", { name: "Clear 50 settled" }).click();
    await card(page, ids[54] as string).waitFor();
    assert.equal(await page.getByText("Nothing waits for a person").count(), 0);
    await page.close();
    await cancel(...ids.slice(50));
  });
});
