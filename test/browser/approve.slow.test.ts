/**
 * The approval page that notification links open, in a browser and for link previewers that only send GET requests.
 * @needs console
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { ApprovalMessage } from "../../src/contract/notifier.ts";
import { accessibilityFindings } from "../support/axe.ts";
import { open, withoutBrowser } from "../support/browser.ts";
import { startConsole, vote, type Console } from "../support/console.ts";
import { testNotifier, type TestNotifier } from "../support/notifier.ts";
import { person } from "../support/service.ts";

const HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\u202egnp.exe\u200b";

describe("the approval page", { skip: withoutBrowser }, () => {
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
              { owner: person("Anna"), to: "anna" },
              { owner: person("Ben"), to: "ben" },
            ],
            places: [{ to: "room" }],
          },
        }),
    });
  });
  after(() => console_.close());

  /** Submits a request. Returns its id and a function that returns the link sent to a person. */
  async function ask(body: object): Promise<{ id: string; link(to: string): Promise<string> }> {
    const id = (
      await console_.service.call("POST", "/v1/actions", {
        body: { agent_id: "support-bot", tool: "stripe", operation: "refund", ...body },
      })
    ).body.id as string;
    return {
      id,
      async link(to) {
        const message = (await pigeon.next(
          (one) => one.kind === "approval_requested" && one.action.id === id && one.to === to,
        )) as ApprovalMessage;
        return `${console_.server.url}/approve${new URL(message.link).hash}`;
      },
    };
  }
  const status = async (id: string): Promise<string> =>
    (await console_.service.call("GET", `/v1/actions/${id}`, { key: console_.service.admin })).body.status as string;

  it("the approval page shows the exact request, and votes only when a button is pressed", async () => {
    const { id, link } = await ask({
      params: { amount: 500, currency: "USD", note: "n".repeat(5000) },
      context: { ticket: "T-1" },
    });
    const { page, complaints, strayed } = await open(console_.browser, await link("anna"));
    await page.getByText("computed in this browser").waitFor();
    assert.equal(page.url(), `${console_.server.url}/approve`, "the token does not stay in the address");
    const text = (await page.locator("main").textContent()) ?? "";
    for (const part of [
      "Anna",
      "support-bot",
      "stripe",
      "n".repeat(600),
      "… 44 more lines",
      "T-1",
      "other refunds",
      "0 of 1",
    ])
      assert.ok(text.includes(part), part.slice(0, 50));
    assert.equal(await status(id), "pending_approval");
    await page.getByLabel("Reason").fill("ticket checked");
    assert.equal(await status(id), "pending_approval");
    await vote(page, "Approve");
    await page.getByText("You approved it.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
    const action = (await console_.service.call("GET", `/v1/actions/${id}`, { key: console_.service.admin })).body;
    assert.deepEqual(
      [action.status, action.approvals[0].approver, action.approvals[0].reason],
      ["approved", person("anna"), "ticket checked"],
    );
    assert.deepEqual([complaints, strayed], [[], []]);
    await page.close();
  });

  it("shows what a second link in the same tab is about, and says so of one that is broken", async () => {
    const [first, second] = [
      await ask({ params: { amount: 501, currency: "USD" } }),
      await ask({ params: { amount: 502, currency: "USD" } }),
    ];
    const { page } = await open(console_.browser, await first.link("anna"));
    await page.getByText("501").first().waitFor();
    await page.evaluate((to) => void (location.href = to), await second.link("anna"));
    await page.getByText("502").first().waitFor();
    assert.equal(await page.getByText("501").count(), 0);
    await page.evaluate(() => void (location.hash = "#apl1_%E0%A4%A"));
    await page.getByText("No vote was recorded.").waitFor();
    await page.close();
  });

  it("opening an approval link does not vote", async () => {
    const { id, link } = await ask({ params: { amount: 500, currency: "USD" } });
    const address = await link("anna");
    for (const method of ["GET", "HEAD"]) {
      const response = await fetch(address, { method });
      assert.equal(response.status, 200);
      assert.match(response.headers.get("content-security-policy") ?? "", /script-src 'self'/);
      assert.equal(response.headers.get("referrer-policy"), "no-referrer");
    }
    const posted = await fetch(address, { method: "POST", body: "" });
    assert.equal(posted.status, 405);
    assert.equal(await status(id), "pending_approval");
  });

  it("is honest to the second of two who race, and about time that ran out", async () => {
    const { id, link } = await ask({ params: { amount: 600, currency: "USD" } });
    const [anna, ben] = [
      await open(console_.browser, await link("anna")),
      await open(console_.browser, await link("ben")),
    ];
    await ben.page.getByLabel("Reason").fill("ben says no");
    await vote(anna.page, "Deny");
    await anna.page.getByText("You denied it.").waitFor();
    // The page reads the request again every few seconds, and then offers no vote.
    await ben.page.getByText("It was denied.").waitFor();
    await ben.page.getByText("Your reason is kept: “ben says no”").waitFor();
    assert.equal(await status(id), "denied");
    await anna.page.close();
    await ben.page.close();

    const late = await ask({ params: { amount: 700, currency: "USD" } });
    const { page } = await open(console_.browser, await late.link("anna"));
    await page.getByRole("button", { name: "Approve" }).waitFor();
    console_.service.clock.now += 9 * 3_600_000;
    await page.getByText("It expired before it was settled").waitFor();
    assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
    console_.service.clock.now = 0;
    await page.close();
  });

  it("says that a late vote was not recorded, with the reason that was typed", async () => {
    const { id, link } = await ask({ params: { amount: 510, currency: "USD" } });
    const [anna, ben] = [
      await open(console_.browser, await link("anna")),
      await open(console_.browser, await link("ben")),
    ];
    // Anna's page does not read the request again before her vote.
    await anna.page.route("**/v1/approval-link", (route) => route.abort());
    await vote(ben.page, "Approve");
    await ben.page.getByText("You approved it.").waitFor();
    await vote(anna.page, "Deny", "looks like fraud");
    await anna.page.getByText(/Your rejection was not recorded/).waitFor();
    await anna.page.getByText("Your reason is kept: “looks like fraud”").waitFor();
    assert.equal(await status(id), "approved");
    await anna.page.close();
    await ben.page.close();
  });

  it("renders a hostile request without running it, and the current state of a quorum", async () => {
    const { link } = await ask({
      params: { amount: 5000, currency: "USD", note: HOSTILE },
      context: { [HOSTILE]: HOSTILE },
    });
    const { page, complaints } = await open(console_.browser, await link("anna"));
    await page.getByText("0 of 2").waitFor();
    assert.equal(await page.evaluate("window.pwned"), undefined);
    assert.ok((await page.locator(".hidden-character").count()) >= 2);
    await vote(page, "Approve");
    await page.getByText("the request needs more approvals").waitFor();
    await page.getByText("1 of 2").waitFor();
    await page.reload();
    await page.getByText("You have approved it already").waitFor();
    assert.deepEqual(complaints, []);
    await page.close();
  });

  it("says what is wrong with a link, and sends those of a place to the console", async () => {
    const { id, link } = await ask({ params: { amount: 800, currency: "USD" } });
    const address = await link("anna");
    const altered = await open(console_.browser, `${address.slice(0, -2)}AA`);
    await altered.page.getByText("No vote was recorded.").waitFor();
    await altered.page.close();
    const bare = await open(console_.browser, `${console_.server.url}/approve`);
    await bare.page.getByText("needs the link that was sent to you").waitFor();
    await bare.page.close();
    const room = await open(console_.browser, await link("room"));
    await room.page.getByLabel("API key").waitFor();
    assert.equal(new URL(room.page.url()).hash, `#/approvals/${id}`);
    await room.page.close();
  });

  it("has no finding of axe-core, minor ones included", async () => {
    const { link } = await ask({ params: { amount: 500, currency: "USD" } });
    for (const colorScheme of ["light", "dark"] as const) {
      const context = await console_.browser.newContext({
        bypassCSP: true,
        colorScheme,
        viewport: { width: 390, height: 844 },
      });
      const { page } = await open(context, await link("anna"));
      await page.getByText("computed in this browser").waitFor();
      assert.deepEqual(await accessibilityFindings(page), []);
      assert.ok(
        await page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        "nothing is wider than a phone",
      );
      await context.close();
    }
  });
});
