/**
 * A person starts a task with the vote on a pending request, and ends it on the page about the agent.
 * @needs agents, console, grants, plans
 */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { withoutBrowser } from "../../support/browser.ts";
import { requestPane, startConsole, type Console } from "../../support/console.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/wait.ts";

const POLICY = `policy: deploys
rules:
  - { name: all, tool: ci, effect: require_approval, approval: { grants: { for: 8h, count: 50 }, editable: { params.replicas: { max: 9 } } } }
`;

describe("tasks in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let folder: string;
  let ada: string;
  before(async () => {
    folder = temporaryFolder("assent-console-tasks-");
    writeFileSync(join(folder, "deploys.yaml"), POLICY);
    console_ = await startConsole({ policies: folder });
    ada = await console_.key("ada", { preset: "approver", owner: "Ada" });
    const body = { id: "release-bot", allowed_tools: ["*"] };
    await console_.service.call("POST", "/v1/agents", { key: console_.service.admin, body });
  });
  after(async () => {
    await console_.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const submit = async (params: object): Promise<{ id: string; status: string }> =>
    (
      await console_.service.call("POST", "/v1/actions", {
        body: { agent_id: "release-bot", tool: "ci", operation: "deploy", params },
      })
    ).body;

  for (const viewport of [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ])
    it(`allows a request for a task, and ends the task, at ${viewport.width} pixels`, async () => {
      const repo = `web-${viewport.width}`;
      const title = `release <b>${viewport.width}</b>`;
      const { id } = await submit({ repo });
      const { page, complaints, strayed } = await console_.visit(ada, `#/approvals/${id}`, { viewport });
      const picture = async (name: string): Promise<void> => {
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= viewport.width, name);
        const place = process.env["ASSENT_TASK_PICTURES"];
        if (place === undefined) return;
        mkdirSync(place, { recursive: true });
        await page.screenshot({ path: join(place, `${name}-${viewport.width}.png`) });
      };
      const pane = requestPane(page, id);
      await pane.getByText("Also allow later requests").click();
      await pane.getByRole("radio").nth(1).check();
      await page.getByRole("button", { name: "Approve and grant" }).waitFor();
      await pane.getByLabel("Only for a task").fill(title);
      await page.getByRole("button", { name: "Approve and start the task" }).scrollIntoViewIfNeeded();
      await picture("offer");
      await page.getByRole("button", { name: "Approve and start the task" }).click();
      const later = { repo };
      await until("the task allows equal requests", async () => (await submit(later)).status === "allowed");
      assert.equal((await submit({ repo, force: true })).status, "pending_approval");
      await page.evaluate(() => void (location.hash = "#/agents/release-bot"));
      const card = page.getByRole("region", { name: "Tasks in progress" });
      await card.getByText(title).waitFor();
      await card.getByText("leaves free: nothing").waitFor();
      await card.scrollIntoViewIfNeeded();
      await picture("card");
      await card.getByRole("button", { name: "End the task" }).click();
      await until("the task has ended", async () => (await submit({ ...later })).status === "pending_approval");
      assert.deepEqual([complaints, strayed], [[], []]);
      await page.close();
    });

  for (const viewport of [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ])
    it(`starts a task from a plan at ${viewport.width} pixels`, async () => {
      const repo = `api-${viewport.width}`;
      const deploy = (note: string) => ({
        agent_id: "release-bot",
        tool: "ci",
        operation: "deploy",
        params: { repo, note },
      });
      const { body } = await console_.service.call("POST", "/v1/plans", {
        body: { actions: [deploy("first"), deploy("second")] },
      });
      const { page, complaints, strayed } = await console_.visit(ada, `#/plans/${body.id}`, { viewport });
      await page.getByRole("button", { name: "Start a task from this plan…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Task of the agent").fill("release api");
      await dialog.getByLabel("Maximum uses of each action").fill("3");
      await dialog.getByLabel("note").check();
      assert.equal(await dialog.getByLabel("Maximum uses of each action").inputValue(), "3");
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= viewport.width);
      const place = process.env["ASSENT_TASK_PICTURES"];
      if (place !== undefined) await page.screenshot({ path: join(place, `plan-${viewport.width}.png`) });
      await dialog.getByRole("button", { name: "Start the task" }).click();
      await page.getByText("The task has started.").waitFor();
      if (place !== undefined) await page.screenshot({ path: join(place, `plan-started-${viewport.width}.png`) });
      assert.equal((await submit({ repo, note: "third" })).status, "allowed");
      assert.equal((await submit({ repo, note: "third", force: true })).status, "pending_approval");
      assert.deepEqual([complaints, strayed], [[], []]);
      await page.close();
    });

  it("starts no task from a page that shows what an action was before an edit", async () => {
    const action = { agent_id: "release-bot", tool: "ci", operation: "deploy", params: { repo: "stale", replicas: 1 } };
    const { body: plan } = await console_.service.call("POST", "/v1/plans", { body: { actions: [action] } });
    const { page, complaints } = await console_.visit(ada, `#/plans/${plan.id}`);
    await page.getByRole("button", { name: "Start a task from this plan…" }).click();
    const key = console_.service.admin;
    const { body: shown } = await console_.service.call("GET", `/v1/actions/${plan.actions[0].id}`, { key });
    const edit = { token: shown.approval_token, changes: { "params.replicas": 9 } };
    const edited = await console_.service.call("POST", `/v1/actions/${shown.id}/edit`, { key, body: edit });
    assert.equal(edited.status, 200, JSON.stringify(edited.body));
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Task of the agent").fill("release api");
    await dialog.getByRole("button", { name: "Start the task" }).click();
    await dialog.getByText("read the plan again").waitFor();
    for (const replicas of [1, 9]) assert.equal((await submit({ repo: "stale", replicas })).status, "pending_approval");
    await page.reload();
    await page.getByRole("button", { name: "Start a task from this plan…" }).click();
    await dialog.getByLabel("Task of the agent").fill("release api");
    await dialog.getByRole("button", { name: "Start the task" }).click();
    await page.getByText("The task has started.").waitFor();
    assert.equal((await submit({ repo: "stale", replicas: 9 })).status, "allowed");
    assert.equal((await submit({ repo: "stale", replicas: 1 })).status, "pending_approval");
    assert.equal(complaints.filter((text) => !text.includes("409")).length, 0, complaints.join());
    await page.close();
  });
});
