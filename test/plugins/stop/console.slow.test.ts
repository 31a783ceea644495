/**
 * Stopping from the console: one button, a reason, and a red bar on every page until it is lifted.
 * @needs console
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { withoutBrowser } from "../../support/browser.ts";
import { startConsole, type Console } from "../../support/console.ts";
import { ALLOWED, setSection } from "../../support/service.ts";

const SHOTS = process.env["STOP_SHOTS"];

describe("a stop in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  before(async () => {
    console_ = await startConsole({ change: (config) => setSection(config, "stop", { lift_approvals: 2 }) });
  });
  after(() => console_.close());
  const submitted = async (): Promise<string> =>
    (await console_.service.call("POST", "/v1/actions", { body: ALLOWED })).body.reason_code as string;

  it("is placed with a reason, is displayed on every page to every user, and is lifted by two people", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/policies");
    await page.getByRole("button", { name: "Stop…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Stop everything" }).click();
    assert.equal(await submitted(), "POLICY_RULE", "not without a reason");
    await dialog.getByLabel("Reason").fill("refunds <b>nobody</b> asked for");
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/dialog.png` });
    await dialog.getByRole("button", { name: "Stop everything" }).click();
    const bar = page.locator(".stopped");
    await bar.getByText("Stopped: everything.").waitFor();
    await bar.getByText("refunds <b>nobody</b> asked for").waitFor();
    assert.equal(await submitted(), "STOPPED");
    await page.getByRole("link", { name: "Analytics" }).click();
    await page.getByRole("heading", { name: "Analytics" }).waitFor();
    await bar.getByText("Stopped: everything.").waitFor();
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/bar.png` });

    const approver = await console_.key("ben approves", { preset: "approver", owner: "Ben" });
    const other = await console_.visit(approver, "#/approvals", { viewport: { width: 390, height: 800 } });
    await other.page.locator(".stopped").getByText("Stopped: everything.").waitFor();
    assert.equal(
      await other.page.getByRole("button", { name: "Lift…" }).count(),
      0,
      "who may not lift is not asked to",
    );
    if (SHOTS) await other.page.screenshot({ path: `${SHOTS}/phone.png` });

    const lift = async (where: typeof page): Promise<void> => {
      await where.getByRole("button", { name: "Lift…" }).click();
      await where.getByRole("dialog").getByLabel("Reason").fill("the key was revoked");
      if (SHOTS) await where.screenshot({ path: `${SHOTS}/lift.png` });
      await where.getByRole("dialog").getByRole("button", { name: "Ask to lift it" }).click();
    };
    await lift(page);
    await bar.getByText("1 of 2 people requested to lift it").waitFor();
    await lift(page);
    await page.getByRole("dialog").getByRole("alert").waitFor();
    assert.equal(await submitted(), "STOPPED", "nobody lifts it alone");
    const second = await console_.visit(
      await console_.key("zoe", { scopes: ["stop:write"], owner: "Zoe" }),
      "#/system",
    );
    await lift(second.page);
    await second.page.locator(".stopped").waitFor({ state: "detached" });
    assert.equal(await submitted(), "POLICY_RULE");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    // The bar disappears without a reload.
    await bar.waitFor({ state: "detached" });
    assert.deepEqual([strayed, complaints.filter((text) => !text.includes("409"))], [[], []]);
  });

  it("can be limited to a tool, and reports an unknown policy", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/agents");
    await page.getByRole("button", { name: "Stop…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("What", { exact: true }).selectOption("policy");
    await dialog.getByLabel("Policy", { exact: true }).fill("opne");
    await dialog.getByLabel("Reason").fill("drill");
    await dialog.getByRole("button", { name: "Stop this" }).click();
    await dialog.getByText("there is no policy “opne”").or(dialog.getByText('there is no policy "opne"')).waitFor();
    await dialog.getByLabel("What", { exact: true }).selectOption("tool");
    await dialog.getByLabel("Tools", { exact: true }).fill("str*");
    await dialog.getByLabel("Ends").selectOption("1");
    await dialog.getByRole("button", { name: "Stop this" }).click();
    await page.locator(".stopped").getByText("tool str*").waitFor();
    assert.equal(await submitted(), "STOPPED");
    const [{ until }] = (await console_.service.call("GET", "/v1/stop", { key: console_.service.admin })).body.stops;
    assert.ok(Date.parse(until) > Date.now() + 3_000_000);
  });
});
