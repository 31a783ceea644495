/**
 * Grants in the console: offered with a vote, listed, and revoked.
 * @needs console
 */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { withoutBrowser } from "../../support/browser.ts";
import { requestPane, startConsole, type Console } from "../../support/console.ts";
import { until } from "../../support/wait.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const PHONE = { width: 390, height: 844 };

describe("grants in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let folder: string;
  let ada: string;
  before(async () => {
    folder = temporaryFolder("assent-console-grants-");
    writeFileSync(
      join(folder, "deploys.yaml"),
      "policy: deploys\nrules:\n  - { name: all, tool: ci, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }\n  - { name: none, effect: require_approval }\n",
    );
    console_ = await startConsole({ policies: folder });
    ada = await console_.key("ada", { preset: "approver", owner: "Ada" });
  });
  after(async () => {
    await console_.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const submit = async (params: object, tool = "ci"): Promise<Record<string, any>> =>
    (
      await console_.service.call("POST", "/v1/actions", {
        body: { agent_id: "release-bot", tool, operation: "deploy", params },
      })
    ).body as Record<string, any>;
  const statusOf = async (id: string): Promise<string> =>
    (await console_.service.call("GET", `/v1/actions/${id}`, { key: ada })).body.status as string;
  /** Saves a picture if `ASSENT_GRANT_PICTURES` names a folder. */
  const picture = async (page: Page, name: string): Promise<void> => {
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= (page.viewportSize()?.width ?? 0), `${name} is ${width} wide`);
    const place = process.env["ASSENT_GRANT_PICTURES"];
    if (place === undefined) return;
    mkdirSync(place, { recursive: true });
    await page.screenshot({ path: join(place, `${name}.png`) });
  };

  it("offers scopes with what they would have covered, and grants the chosen one with the vote", async () => {
    for (const n of [1, 9]) {
      const path = `/v1/actions/${(await submit({ repo: "web", n }))["id"] as string}`;
      const { approval_token: token } = (await console_.service.call("GET", path, { key: ada })).body;
      await console_.service.call("POST", `${path}/approval`, { key: ada, body: { token, approve: true } });
    }
    await submit({ repo: "api", n: 3 });
    const { id } = await submit({ repo: "web", n: 4 });
    for (const viewport of [PHONE, { width: 1440, height: 900 }]) {
      const { page, complaints, strayed } = await console_.visit(ada, `#/approvals/${id as string}`, { viewport });
      const pane = requestPane(page, id as string);
      await pane.getByText("Also allow later requests").click();
      await pane.getByText("Tried on the agent's last 3 requests of this kind").waitFor();
      await pane.getByText("Equal requests, with the same parameters and context").waitFor();
      assert.deepEqual(await pane.locator(".grant-varying li").allInnerTexts(), ["params.n may be from 1 to 9"]);
      await pane.getByText("Show the newest 2").click();
      await pane.getByRole("link", { name: '{"repo":"web","n":9}' }).waitFor();
      await picture(page, `offer-${viewport.width}`);
      if (viewport === PHONE) {
        await page.close();
        continue;
      }
      await pane.getByRole("radio").nth(2).check();
      await pane.getByLabel("Up to").fill("51");
      await pane.getByText("Enter a number from 1 to 50.").waitFor();
      await page.getByRole("button", { name: "Approve and grant" }).waitFor({ state: "detached" });
      await pane.getByLabel("Up to").fill("3");
      await page.getByRole("button", { name: "Approve and grant" }).click();
      await until("the vote is recorded", async () => (await statusOf(id as string)) === "approved");
      assert.deepEqual([complaints, strayed], [[], []]);
      await page.close();
    }
    const statuses: string[] = [];
    for (const params of [
      { repo: "web", n: 2 },
      { repo: "web", n: 10 },
      { repo: "web", n: 2, again: true },
      { repo: "api", n: 2 },
    ])
      statuses.push((await submit(params))["status"] as string);
    assert.deepEqual(statuses, ["allowed", "pending_approval", "pending_approval", "pending_approval"]);
  });

  it("a denial grants nothing, whatever is chosen, and rules without grants offer none", async () => {
    const { id } = await submit({ app: "shop" });
    const { page } = await console_.visit(ada, `#/approvals/${id as string}`);
    await requestPane(page, id as string)
      .getByText("Also allow later requests")
      .click();
    await requestPane(page, id as string)
      .getByRole("radio")
      .nth(1)
      .check();
    await page.getByRole("button", { name: "Approve and grant" }).waitFor();
    // A scope of their own can be granted only after its effect was displayed.
    await page.getByLabel("Requests that match a condition of your own").check();
    await page.getByRole("button", { name: "Approve and grant" }).waitFor({ state: "detached" });
    await page.getByLabel("Condition, in CEL").fill('params.app == "shop"');
    await page.getByRole("button", { name: "Check it" }).click();
    await page.getByText("Leaves free: any other parameter, any other context.").waitFor();
    await page.getByRole("button", { name: "Approve and grant" }).waitFor();
    await page.getByRole("button", { name: "Deny", exact: true }).click();
    await until("the denial is recorded", async () => (await statusOf(id as string)) === "denied");
    const grants = await console_.service.call("GET", "/v1/grants?agent_id=release-bot&active=true", { key: ada });
    assert.deepEqual(grants.body.grants, []);
    const other = (await submit({}, "shell"))["id"] as string;
    await page.evaluate((address) => void (location.hash = address), `#/approvals/${other}`);
    await requestPane(page, other).getByLabel("Reason").waitFor();
    assert.equal(await page.getByText("Also allow later requests").count(), 0);
    await page.close();
  });

  it("lists grants with their uses, revokes one, and shows why one ended", async () => {
    const body = {
      agent_id: "night-bot",
      tool: "ci",
      operation: "deploy",
      for: "1h",
      count: 5,
      scope: 'params.repo == "a"',
    };
    const granted = await console_.service.call("POST", "/v1/grants", { key: ada, body });
    await console_.service.call("POST", "/v1/actions", {
      body: { agent_id: "night-bot", tool: "ci", operation: "deploy", params: { repo: "a" } },
    });
    for (const viewport of [PHONE, { width: 1440, height: 900 }]) {
      const { page, complaints, strayed } = await console_.visit(ada, "#/grants", { viewport });
      const row = page.getByRole("row", { name: /night-bot/ });
      await (viewport === PHONE ? page.getByText("night-bot") : row.getByText("1 of 5")).waitFor();
      await page.getByText("any other parameter, any other context").waitFor();
      await picture(page, `grants-${viewport.width}`);
      if (viewport === PHONE) {
        await page.close();
        continue;
      }
      await page.getByRole("link", { name: "1 of 5" }).click();
      const uses = page.getByRole("region", { name: "Actions" }).locator("tbody tr");
      await uses.first().waitFor();
      assert.equal(await uses.count(), 1, "the link lists the uses of this grant only");
      await page.goBack();
      await page.getByRole("button", { name: "Revoke the grant for night-bot" }).click();
      await page.getByLabel("Reason").fill("the night is over");
      await picture(page, "revoke");
      await page.getByRole("button", { name: "Revoke", exact: true }).click();
      await page.getByText("is revoked.").waitFor();
      await page.getByText("No grants are active.").waitFor();
      await picture(page, "empty");
      await page.getByRole("button", { name: "Ended" }).click();
      await page.getByText("the night is over").waitFor();
      await picture(page, "ended");
      assert.deepEqual([complaints, strayed], [[], []]);
      await page.close();
    }
    const { body: after } = await console_.service.call("GET", `/v1/grants/${granted.body.id as string}`, { key: ada });
    assert.equal(after.status, "ended");
  });

  it("flags a use of a grant on the action's page, which ends the grant", async () => {
    const terms = { agent_id: "odd-bot", tool: "ci", operation: "deploy", for: "1h", count: 5 };
    const { id } = (await console_.service.call("POST", "/v1/grants", { key: ada, body: terms })).body;
    const body = { agent_id: "odd-bot", tool: "ci", operation: "deploy", params: { repo: "payroll" } };
    const use = (await console_.service.call("POST", "/v1/actions", { body })).body;
    const { page, complaints, strayed } = await console_.visit(ada, `#/actions/${use.id as string}`);
    await page.getByRole("button", { name: "Flag this use of the grant…" }).click();
    await page.getByLabel("Reason").fill("not this repository");
    await page.getByRole("button", { name: "Flag", exact: true }).click();
    await page.getByText("The use is flagged, and the grant has ended.").waitFor();
    const { body: grant } = await console_.service.call("GET", `/v1/grants/${id as string}`, { key: ada });
    assert.deepEqual([grant.ended.cause, grant.ended.comment], ["flag", "not this repository"]);
    assert.deepEqual([complaints, strayed], [[], []]);
    await page.close();
  });

  it("shows an error with a button to try again", async () => {
    const { page } = await console_.visit(ada, "#/actions");
    let isBroken = true;
    await page.route("**/v1/grants?*", (route) =>
      isBroken ? route.fulfill({ status: 500, body: "{}" }) : route.continue(),
    );
    await page.evaluate(() => void (location.hash = "#/grants"));
    await page.getByRole("alert").waitFor();
    await picture(page, "error");
    isBroken = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("No grants are active.").waitFor();
    await page.close();
  });
});
