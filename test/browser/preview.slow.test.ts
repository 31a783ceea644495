/**
 * A request's preview, and its comparison with earlier actions, in the console and on the approval page.
 * @needs console
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import type { ApprovalMessage } from "../../src/contract/notifier.ts";
import { open, withoutBrowser } from "../support/browser.ts";
import { requestPane, startConsole, vote, voteNow, type Console } from "../support/console.ts";
import { testNotifier, type TestNotifier } from "../support/notifier.ts";
import { person } from "../support/service.ts";

const POLICY = `policy: pay
rules:
  - { name: small, when: params.amount <= 100, effect: allow }
  - { name: large, effect: require_approval, approval: { preview: "Pay {params.amount} to {params.to}", notify: [finance] } }
`;
const HOSTILE = "<img src=x onerror=window.pwned=1>\u202e";
const SCREENS = { desktop: { width: 1280, height: 900 }, phone: { width: 360, height: 740 } };

describe("a request with a preview", { skip: withoutBrowser }, () => {
  let console_: Console;
  let pigeon: TestNotifier;
  before(async () => {
    pigeon = testNotifier();
    console_ = await startConsole({
      policy: POLICY,
      plugins: [pigeon.plugin],
      change: (config) =>
        (config.channels = { finance: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }] } }),
    });
  });
  after(() => console_.close());

  const submit = async (agent_id: string, params: object): Promise<string> =>
    (await console_.service.call("POST", "/v1/actions", { body: { agent_id, tool: "bank", operation: "pay", params } }))
      .body.id as string;

  /** Submits a large payment by an agent that has made six small ones. */
  async function submitUnusual(agent: string): Promise<string> {
    for (let i = 0; i < 6; i++) await submit(agent, { amount: 10, to: "cus_1" });
    return submit(agent, { amount: 900, to: HOSTILE });
  }

  async function checkPage(page: Page, text: string, width: number): Promise<void> {
    assert.match(text, /Pay 900 to "<img/);
    assert.match(text, /params\.amount 900 is above 10, the 99th percentile of 6 earlier values\./);
    assert.match(text, /is new among 6 earlier values\./);
    const state = await page.evaluate(() => ({
      pwned: Reflect.get(globalThis, "pwned") as unknown,
      images: document.images.length,
      wide: document.documentElement.scrollWidth,
    }));
    assert.deepEqual([state.pwned, state.images], [undefined, 0]);
    assert.ok(state.wide <= width, `the page is ${state.wide} pixels wide`);
    assert.doesNotMatch(text, /\u202e/);
  }

  for (const [name, viewport] of Object.entries(SCREENS)) {
    it(`is complete and inert in the console, and can be voted on (${name})`, async () => {
      const id = await submitUnusual(`console-${name}`);
      const { page, complaints, strayed } = await console_.visit(console_.service.admin, `#/approvals/${id}`, {
        viewport,
      });
      const pane = requestPane(page, id);
      await pane.getByText("the 99th percentile").waitFor();
      await checkPage(page, (await pane.textContent()) ?? "", viewport.width);
      await pane.getByText("2 differences").click();
      await pane.getByText("(last time").first().waitFor();
      await voteNow(page, "Deny");
      await pane.getByText("You denied it.").waitFor();
      assert.deepEqual([complaints, strayed], [[], []]);
      await page.close();
    });

    it(`is complete and inert on the page of a link (${name})`, async () => {
      const id = await submitUnusual(`link-${name}`);
      const message = (await pigeon.next(
        (one) => one.kind === "approval_requested" && one.action.id === id,
      )) as ApprovalMessage;
      const link = `${console_.server.url}/approve${new URL(message.link).hash}`;
      const { page, complaints, strayed } = await open(console_.browser, link, { viewport });
      await page.getByText("the 99th percentile").waitFor();
      await checkPage(page, (await page.locator("main").textContent()) ?? "", viewport.width);
      await vote(page, "Deny");
      await page.getByText("You denied it.").waitFor();
      assert.deepEqual([complaints, strayed], [[], []]);
      await page.close();
    });
  }
});
