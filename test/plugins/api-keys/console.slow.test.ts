/**
 * Keys and agents in the console.
 * @needs console, users
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { withoutBrowser } from "../../support/browser.ts";
import { startConsole, type Console } from "../../support/console.ts";
import { usersPlugin } from "../../support/people.ts";
import { ALLOWED } from "../../support/service.ts";

describe("keys and agents in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  before(async () => {
    console_ = await startConsole({ plugins: [usersPlugin()] });
  });
  after(() => console_.close());

  it("makes a key, shows its value once, and revokes it after saying what stops", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/keys");
    await page.getByText("(yours)").waitFor();
    await page.getByRole("button", { name: "New key…" }).click();
    await page.getByLabel("Name").fill("helpdesk");
    await page.getByLabel("For", { exact: true }).selectOption("agent");
    await page.getByLabel("Agent", { exact: true }).fill("support-bot");
    await page.getByRole("button", { name: "Create the key" }).click();
    const value = (await page.locator(".made .hash").textContent()) ?? "";
    assert.equal((await console_.service.call("POST", "/v1/actions", { key: value, body: ALLOWED })).status, 200);
    await page.getByText("helpdesk", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "I have it" }).click();
    assert.ok(!(await page.content()).includes(value), "the value is gone from the page");
    await page.getByRole("button", { name: "Revoke helpdesk" }).click();
    const dialog = page.getByRole("dialog");
    const said = (await dialog.textContent()) ?? "";
    for (const part of ["helpdesk", "support-bot", "submit actions", "start what was allowed"])
      assert.ok(said.includes(part), part);
    await dialog.getByRole("button", { name: "Revoke" }).click();
    await page.getByText("“helpdesk” is revoked.").waitFor();
    assert.equal((await console_.service.call("POST", "/v1/actions", { key: value, body: ALLOWED })).status, 401);
    await page.getByRole("button", { name: "Revoked or expired" }).click();
    await page.getByText("helpdesk", { exact: true }).first().waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("makes a key of chosen scopes, and says what is wrong with a name", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/keys");
    await page.getByRole("button", { name: "New key…" }).click();
    await page.getByLabel("Name").fill("admin");
    await page.getByLabel("For", { exact: true }).selectOption("");
    await page.getByRole("checkbox", { name: /analytics:read/ }).check();
    await page.getByRole("button", { name: "Create the key" }).click();
    await page.getByRole("dialog").getByRole("alert").waitFor();
    await page.getByLabel("Name").fill("figures");
    await page.getByRole("button", { name: "Create the key" }).click();
    const value = (await page.locator(".made .hash").textContent()) ?? "";
    assert.deepEqual(
      [
        (await console_.service.call("GET", "/v1/analytics", { key: value })).status,
        (await console_.service.call("GET", "/v1/policies", { key: value })).status,
      ],
      [200, 403],
    );
  });

  it("says so where the key may not", async () => {
    const key = await console_.key("only approves", { preset: "approver", owner: "only approves" });
    const { page } = await console_.visit(key, "#/keys");
    await page.getByText("it needs the scope keys:manage").waitFor();
  });

  it("registers, changes, suspends and resumes an agent", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/agents");
    await page.getByText("No agent is registered.").waitFor();
    await page.getByRole("button", { name: "Register an agent…" }).click();
    await page.getByLabel("Id").fill("support-bot");
    await page.getByLabel("Only these tools").check();
    await page.getByLabel("Tools", { exact: true }).fill("crm.*");
    await page.getByRole("button", { name: "Register", exact: true }).click();
    await page.getByText("“support-bot” is registered.").waitFor();
    const submitted = async () =>
      (await console_.service.call("POST", "/v1/actions", { body: ALLOWED })).body.reason_code as string;
    assert.equal(await submitted(), "TOOL_NOT_ALLOWED");
    await page.getByRole("button", { name: "Commands for support-bot" }).click();
    await page.getByRole("button", { name: "Change support-bot" }).click();
    await page.getByLabel("Tools", { exact: true }).fill("crm.* stripe");
    await page.getByLabel("Description").fill("Answers tickets.");
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByText("“support-bot” is changed.").waitFor();
    assert.equal(await submitted(), "POLICY_RULE");
    await page.getByRole("button", { name: "Commands for support-bot" }).click();
    await page.getByRole("button", { name: "Suspend support-bot" }).click();
    await page.getByLabel("Reason").fill("asks for too much");
    await page.getByRole("button", { name: "Suspend", exact: true }).click();
    await page.getByText("asks for too much").waitFor();
    assert.equal(await submitted(), "AGENT_SUSPENDED");
    await page.getByRole("button", { name: "Commands for support-bot" }).click();
    await page.getByRole("button", { name: "Resume support-bot" }).click();
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    await page.getByText("“support-bot” can submit again.").waitFor();
    assert.equal(await submitted(), "POLICY_RULE");
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("does not overwrite another person's change", async () => {
    await console_.service.call("POST", "/v1/agents", { key: console_.service.admin, body: { id: "shared" } });
    const { page } = await console_.visit(console_.service.admin, "#/agents");
    await page.getByRole("button", { name: "Commands for shared" }).click();
    await page.getByRole("button", { name: "Change shared" }).click();
    await console_.service.call("PATCH", "/v1/agents/shared", {
      key: console_.service.admin,
      body: { description: "by another" },
    });
    await page.getByLabel("Description").fill("by me");
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByRole("dialog").getByRole("alert").waitFor();
    assert.equal(
      (await console_.service.call("GET", "/v1/agents/shared", { key: console_.service.admin })).body.description,
      "by another",
    );
  });

  it("shows one agent: figures with links, typical values, votes, grants, keys and the timeline", async () => {
    const { service } = console_;
    const bot = await console_.key("of page-bot", { preset: "agent", agent_id: "page-bot" });
    const submit = async (amount: number): Promise<string> => {
      const body = { ...ALLOWED, agent_id: "page-bot", params: { amount, currency: "USD" } };
      return (await service.call("POST", "/v1/actions", { key: bot, body })).body.id as string;
    };
    for (const amount of [10, 20, 30]) await submit(amount);
    const asked = await submit(500);
    const ada = await console_.key("ada of page-bot", { preset: "approver", owner: "Ada" });
    const { body } = await service.call("GET", `/v1/actions/${asked}`, { key: ada });
    const vote = { token: body.approval_token, approve: true, reason: "the customer is right" };
    assert.equal((await service.call("POST", `/v1/actions/${asked}/approval`, { key: ada, body: vote })).status, 200);
    const { page, complaints, strayed } = await console_.visit(service.admin, "#/agents/page-bot");
    const part = (name: string) => page.getByRole("region", { name, exact: true });
    await part("Status").getByText("not registered", { exact: true }).waitFor();
    // The first action is new, so the activity begins with it instead of with 30 empty days.
    await part("Last 30 days").getByText("All actions so far are in the table below.").waitFor();
    await page.getByText("10 – 20 – 500").waitFor();
    await page.getByText("USD ×4").waitFor();
    await page.getByRole("link", { name: "100 % Approval rate" }).waitFor();
    await part("Grants in use").getByText("No grant is active").waitFor();
    await part("Keys").getByText("of page-bot").waitFor();
    const timeline = page.getByRole("list", { name: "Timeline" });
    await timeline.getByText("the customer is right").waitFor();
    // Four decisions and the vote.
    await timeline.getByRole("link", { name: "stripe refund" }).nth(4).waitFor();
    await timeline.getByRole("link", { name: "Ada" }).click();
    await page.getByRole("heading", { name: "Ada", level: 1 }).waitFor();
    await page.getByRole("list", { name: "Votes" }).getByText("the customer is right").waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "1 required approval" }).click();
    await page.waitForURL(/#\/actions/);
    await page.getByRole("button", { name: "Stop…", exact: true }).waitFor();
    await page.getByRole("region", { name: "Actions" }).locator("tbody tr").waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "Stop this agent…" }).click();
    assert.equal(await page.getByLabel("Agents", { exact: true }).inputValue(), "page-bot");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Register an agent…" }).click();
    await page.getByRole("button", { name: "Register", exact: true }).click();
    await part("Status").getByText("active").waitFor();
    await page.evaluate(() => void (location.hash = "#/agents/nobody"));
    await page.getByText("none has submitted an action").waitFor();
    assert.deepEqual([complaints.filter((line) => !line.includes("404")), strayed], [[], []]);
  });
});
