/**
 * The list of deliveries displays failed deliveries, and a button sends them again.
 * @needs console
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { NotifierError } from "../../../src/contract/notifier.ts";
import { withoutBrowser } from "../../support/browser.ts";
import { startConsole, type Console } from "../../support/console.ts";
import { testNotifier, type TestNotifier } from "../../support/notifier.ts";
import { ASKED, person } from "../../support/service.ts";

describe("deliveries in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let pigeon: TestNotifier;
  before(async () => {
    pigeon = testNotifier();
    console_ = await startConsole({
      plugins: [pigeon.plugin],
      change: (config) =>
        (config.channels = {
          finance: {
            notifier: "pigeon",
            people: [
              { owner: person("Anna"), to: "anna@example.com" },
              { owner: person("Ben"), to: "ben@example.com" },
            ],
            remind_before: "1h",
          },
        }),
    });
  });
  after(() => console_.close());

  it("lists them, filters them and sends a dead one again", async () => {
    pigeon.plans.push(() => Promise.reject(new NotifierError("no such <b>mailbox</b>", { permanent: true })));
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/deliveries");
    await page.getByText("No messages were sent yet").waitFor();
    const id = (await console_.service.call("POST", "/v1/actions", { body: ASKED })).body.id as string;
    await page.getByText("no such <b>mailbox</b>").waitFor();
    await page.getByRole("cell", { name: "delivered" }).first().waitFor();
    await page.getByLabel("State").selectOption("dead");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL(/state=dead/);
    await page.getByRole("cell", { name: "delivered" }).first().waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Try again" }).waitFor();
    assert.equal(await page.getByRole("row").count(), 2);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.goto(`${console_.server.url}/#/deliveries?action_id=${id}`);
    await page.getByRole("cell", { name: "scheduled" }).first().waitFor();
    await page
      .getByRole("row", { name: "Anna" })
      .filter({ hasText: "request" })
      .getByRole("cell", { name: "2", exact: true })
      .waitFor();
    const rows = (await console_.service.call("GET", `/v1/deliveries?action_id=${id}`, { key: console_.service.admin }))
      .body.deliveries as { kind: string; state: string; attempts: number }[];
    assert.deepEqual(
      rows
        .filter(({ kind }) => kind === "approval_requested")
        .map(({ state, attempts }) => [state, attempts])
        .sort(),
      [
        ["delivered", 1],
        ["delivered", 2],
      ],
    );
    assert.deepEqual([complaints, strayed], [[], []]);
    await page.close();
  });
});
