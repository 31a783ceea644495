/**
 * A plan in the console: a person removes an action and approves the rest with one vote, including on a phone.
 * @needs console
 */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { withoutBrowser } from "../../support/browser.ts";
import { startConsole, type Console } from "../../support/console.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

describe("plans in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let folder: string;
  let ada: string;
  before(async () => {
    folder = temporaryFolder("assent-console-plans-");
    const rules =
      "  - { name: read, tool: db, operation: read, effect: allow }\n  - { name: ask, tool: db, effect: require_approval }\n";
    writeFileSync(join(folder, "db.yaml"), `policy: db\nrules:\n${rules}`);
    console_ = await startConsole({ policies: folder });
    ada = await console_.key("ada", { preset: "approver", owner: "Ada" });
  });
  after(async () => {
    await console_.close();
    rmSync(folder, { recursive: true, force: true });
  });

  let run = 0;
  const submit = async (): Promise<any> => {
    run += 1;
    const actions = ["read", "backup", "drop", "migrate"].map((operation, n) => ({
      agent_id: "db-bot",
      tool: "db",
      operation,
      params: { table: `orders_${n}`, run, note: "a longer text that has to wrap on a small screen ".repeat(3) },
    }));
    const body = { actions, ordered: true, stop_on_failure: true };
    return (await console_.service.call("POST", "/v1/plans", { body })).body;
  };
  const statuses = async (id: string): Promise<string[]> =>
    (await console_.service.call("GET", `/v1/plans/${id}`, { key: ada })).body.actions.map(({ status }: any) => status);
  /** Saves a picture if `ASSENT_PLAN_PICTURES` names a folder. */
  const picture = async (page: Page, name: string): Promise<void> => {
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= (page.viewportSize()?.width ?? 0), `${name} is ${width} wide`);
    const place = process.env["ASSENT_PLAN_PICTURES"];
    if (place === undefined) return;
    mkdirSync(place, { recursive: true });
    await page.screenshot({ path: join(place, `${name}.png`) });
  };

  for (const viewport of [
    { width: 390, height: 844 },
    { width: 1440, height: 900 },
  ])
    it(`strikes out an action and approves the rest once, ${viewport.width} pixels wide`, async () => {
      const plan = await submit();
      const { page, complaints, strayed } = await console_.visit(ada, `#/approvals/${plan.actions[1].id}`, {
        viewport,
      });
      await page.getByRole("link", { name: "Open the plan" }).click();
      await page.getByRole("button", { name: "Strike out" }).nth(2).waitFor();
      assert.equal(await page.getByRole("button", { name: "Strike out" }).count(), 3, "the allowed one has none");
      await page.getByRole("button", { name: "Strike out" }).nth(1).click();
      await picture(page, `struck-${viewport.width}`);
      await page.getByLabel("Reason (recorded)").fill("no drop");
      await page.getByRole("button", { name: "Approve 2 actions, reject 1" }).click();
      await page.getByText("struck out").waitFor({ state: "detached" });
      await picture(page, `voted-${viewport.width}`);
      assert.deepEqual(await statuses(plan.id), ["allowed", "approved", "denied", "approved"]);
      assert.deepEqual([complaints, strayed], [[], []]);
      await page.close();
    });

  it("refuses a vote on a list that has changed since the page was read, and rejects all", async () => {
    const plan = await submit();
    const { page } = await console_.visit(ada, `#/plans/${plan.id}`, {});
    await page.getByRole("button", { name: "Approve 3 actions" }).waitFor();
    await console_.service.call("POST", `/v1/actions/${plan.actions[2].id}/cancel`, { body: {} });
    await page.getByRole("button", { name: "Approve 3 actions" }).click();
    await page.getByText("the token does not match").waitFor();
    assert.deepEqual(await statuses(plan.id), ["allowed", "pending_approval", "cancelled", "pending_approval"]);
    await page.reload();
    await page.getByRole("button", { name: "Reject all 2" }).click();
    await page.getByText("pending", { exact: true }).first().waitFor({ state: "detached" });
    assert.deepEqual(await statuses(plan.id), ["allowed", "denied", "cancelled", "denied"]);
  });

  it("lists plans, and the admin cancels one", async () => {
    const plan = await submit();
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/plans", {});
    await page.getByText("3 pending").first().waitFor();
    await page.locator("tbody tr a").first().click();
    await page.getByRole("button", { name: "Cancel the plan…" }).click();
    await page.getByLabel("Reason (recorded)").last().fill("not today");
    await page.getByRole("button", { name: "Cancel the plan", exact: true }).click();
    await page.getByRole("button", { name: "Cancel the plan…" }).waitFor({ state: "detached" });
    assert.deepEqual(await statuses(plan.id), ["cancelled", "cancelled", "cancelled", "cancelled"]);
    assert.deepEqual([complaints, strayed], [[], []]);
  });
});
