/**
 * The walks of docs/console-walks.md: how many clicks, keys and passkey gestures people need. `sign-in.slow.test.ts`
 * counts the walk of 20 decisions. `WALK_TIMES=file` appends how long each walk takes.
 * @needs console, users
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, BrowserContext } from "playwright-core";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { inboxRow, requestPane } from "../support/console.ts";
import { startPeople } from "../support/people.ts";
import { startCommand, stopProcess } from "../support/process.ts";
import type { Service } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { addAuthenticator } from "../support/virtual-authenticator.ts";
import { Hand } from "../support/walk.ts";

const POLICY = `policy: payments
rules:
  - name: payouts
    tool: stripe
    operation: payout
    effect: require_approval
    risk: high
    reason: a payout needs finance, then a director
    approval:
      preview: "Pay out {params.amount} {params.currency} for the order {params.order}"
      signature: passkey
      stages:
        - { approvers: [{ group: finance }] }
        - { approvers: [{ group: directors }] }
`;
const DESKTOP = { width: 1440, height: 900 };

describe("walks through the console", { skip: withoutBrowser }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launch();
  });
  after(() => browser.close());

  it("the first minute: from the link of the first start to a verified proof on defaults", async () => {
    const data = temporaryFolder("assent-first-minute-");
    const began = performance.now();
    // What `npm start` runs.
    const service = await startCommand([process.execPath, ["src/cli/assent.mjs", "serve"]], {
      ASSENT_DATA: join(data, "store"),
      ASSENT_AGENTS: "",
    });
    const context = await browser.newContext({ viewport: DESKTOP });
    try {
      const link = /http:\/\/\S+#enrol=\S+/.exec(service.output())?.[0] ?? "";
      const { page, complaints, strayed } = await open(context, link);
      await addAuthenticator(context, page);
      const hand = new Hand(page);
      hand.begin(began);
      await hand.click(page.getByRole("button", { name: "Create a passkey" }));
      await hand.click(page.getByRole("link", { name: "Continue" }));
      await hand.click(page.getByRole("button", { name: "Create an agent key" }));
      await hand.click(page.getByRole("button", { name: "Send a test request" }));
      await hand.click(page.getByRole("button", { name: "Approve", exact: true }));
      await hand.read(page.getByText("Verified in this browser."));
      hand.report("the first minute");
      assert.deepEqual(hand.used, [5, 0, 2]);
      assert.deepEqual([complaints.filter((line) => !/401/.test(line)), strayed], [[], []]);
    } finally {
      await context.close();
      await stopProcess(service);
    }
  });

  describe("of approvers and auditors", () => {
    let service: Service;
    let server: RunningServer;
    let origin = "";
    let id = "";
    before(async () => {
      service = await startPeople({ policy: POLICY });
      server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
      service.runtime.listensAt(server.port);
      origin = service.runtime.host.origin() ?? "";
    });
    after(async () => {
      await server.stop(1000);
      await service.close();
    });

    async function signIn(
      name: string,
      roles: string[],
      groups: string[],
    ): Promise<{ hand: Hand; context: BrowserContext }> {
      const { body } = await service.call("POST", "/v1/users", {
        key: service.admin,
        body: { name, roles, groups },
        headers: { host: new URL(origin).host },
      });
      const context = await browser.newContext({ viewport: DESKTOP });
      const { page } = await open(context, body.link.url as string);
      await addAuthenticator(context, page);
      await page.getByRole("button", { name: "Create a passkey" }).click();
      await page.getByRole("link", { name: "Continue" }).click();
      await page.getByText(`User: ${name}`).waitFor();
      return { hand: new Hand(page), context };
    }

    it("a staged payout whose second approver is absent", async () => {
      const [ada, grace, jonas] = [
        await signIn("Ada", ["approver"], ["finance"]),
        await signIn("Grace", ["approver"], ["directors"]),
        await signIn("Jonas", ["approver"], []),
      ];
      // Grace leaves: Jonas votes in her place.
      const away = grace.hand;
      away.begin();
      await away.click(away.page.getByRole("link", { name: "Delegations" }));
      await away.click(away.page.getByRole("button", { name: "Delegate…" }));
      await away.page.getByLabel("Who approves on your behalf").selectOption({ label: "Jonas" });
      away.clicks++;
      await away.click(away.page.getByRole("dialog").getByRole("button", { name: "Delegate" }));
      await away.read(away.page.getByText("Jonas can approve on your behalf until"));
      away.report("a staged payout: the absent approver delegates");
      assert.deepEqual(away.used, [4, 0, 0]);
      const params = { amount: 18_400, currency: "EUR", order: "4711", account: "DE02 1203 0000 0000 2020 51" };
      const body = { agent_id: "billing-bot", tool: "stripe", operation: "payout", params };
      id = (await service.call("POST", "/v1/actions", { key: service.agent, body })).body.id;
      // Ada sees the request at once, and approves it with one key for the request and one for the vote.
      const first = ada.hand;
      await inboxRow(first.page, id).waitFor();
      first.begin();
      await first.press("j");
      await first.read(requestPane(first.page, id).getByText("one of the group directors"));
      await first.page.getByLabel("Reason").fill("matches the invoice");
      await first.click(requestPane(first.page, id).getByRole("button", { name: "Approve", exact: true }));
      await requestPane(first.page, id).getByText("Your approval is recorded").waitFor();
      first.report("a staged payout: the first approver");
      assert.deepEqual(first.used, [1, 1, 1]);
      // Jonas sees for whom he votes, and who has agreed.
      const second = jonas.hand;
      second.begin();
      await second.click(second.page.getByRole("link", { name: "Approvals" }));
      await inboxRow(second.page, id).waitFor();
      await second.press("j");
      const pane = requestPane(second.page, id);
      await second.read(pane.getByText("You vote on behalf of Grace"));
      await second.read(pane.getByText("Ada approved, signed with a passkey"));
      await second.press("a");
      await inboxRow(second.page, id).getByText("approved by you").waitFor();
      second.report("a staged payout: the substitute");
      assert.deepEqual(second.used, [1, 2, 1]);
      for (const { context } of [ada, grace, jonas]) await context.close();
    });

    it("who approved order 4711, on what grounds, and what did they see", async () => {
      const { hand, context } = await signIn("Audra", ["auditor"], []);
      const { page } = hand;
      hand.begin();
      await hand.press("Control+k");
      await hand.press("4", "7", "1", "1", "Enter");
      await hand.read(page.locator("h1", { hasText: 'Pay out 18400 "EUR" for the order "4711"' }));
      const main = page.getByRole("main");
      await hand.read(main.getByText("a payout needs finance, then a director").first());
      const votes = main.getByRole("region", { name: "Approvals" });
      await hand.read(votes.getByText("by Ada, signed with a passkey (1 of 2): matches the invoice"));
      await hand.read(votes.getByText("by Jonas, signed with a passkey, on behalf of Grace (2 of 2)"));
      hand.report("who approved order 4711");
      assert.deepEqual(hand.used, [0, 6, 0]);
      // The export says the same.
      await page.evaluate(() => void (location.hash = "#/actions?q=4711"));
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Export CSV" }).click(),
      ]);
      const file = join(temporaryFolder("assent-export-"), "actions.csv");
      await saved.saveAs(file);
      const csv = readFileSync(file, "utf8");
      assert.match(csv, /Pay out 18400 ""EUR"" for the order ""4711""/);
      assert.match(csv, /approved by Ada, signed with a passkey, [^;]*: matches the invoice; /);
      assert.match(csv, /approved by Jonas, on behalf of Grace, signed with a passkey, /);
      await context.close();
    });
  });
});
