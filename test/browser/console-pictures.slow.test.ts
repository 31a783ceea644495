/**
 * Opens each page with a week of actions, in light and dark mode and at a phone's width. No element overflows, nothing
 * is logged, and no page has more than 2,000 nodes. `SCREENSHOTS=docs/images` with only this file creates the images of
 * the documentation.
 * @needs console, evidence, grants, users
 */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { renderVerificationPage } from "../../plugins/evidence/page.ts";
import { createPackWriter } from "../../plugins/evidence/pack-writer.ts";
import { writePack } from "../../plugins/evidence/write-pack.ts";
import { NotifierError, type ApprovalMessage } from "../../src/contract/notifier.ts";
import { open, withoutBrowser } from "../support/browser.ts";
import { fillEditor, signInWithKey, startConsole, type Console } from "../support/console.ts";
import { testNotifier } from "../support/notifier.ts";
import { usersPlugin } from "../support/people.ts";
import { ASKED, POLICIES, waitForSignature, person } from "../support/service.ts";
import { fillWeek, type Week, WEEK } from "../support/week.ts";

const pictures = process.env["SCREENSHOTS"];
if (pictures !== undefined) mkdirSync(pictures, { recursive: true });

const FORMS = [
  { form: "light", colorScheme: "light", viewport: { width: 1200, height: 720 } },
  { form: "dark", colorScheme: "dark", viewport: { width: 1200, height: 720 } },
  { form: "phone", colorScheme: "light", viewport: { width: 390, height: 844 } },
] as const;

const DRAFT = `policy: payments
description: Refunds by amount.
rules:
  - name: small refunds
    tool: stripe
    operation: refund
    when: params.amount <= 60
    effect: allow
  - name: other refunds
    tool: stripe
    operation: refund
    effect: require_aproval
    risk: medium
`;

interface Shown {
  name: string;
  /** The part of the address after the origin. */
  hash: string;
  /** Takes only the picture in light mode, for a secondary state of a page. */
  light?: true;
  /** Operates the page until it displays what the picture needs. */
  until(page: Page): Promise<unknown>;
}

describe("pictures of the console", { skip: withoutBrowser }, () => {
  let console_: Console;
  let week: Week;
  let vkey: string;
  let link: string;
  before(async () => {
    const mail = testNotifier("mail");
    const people = [
      { owner: person("Ada"), to: "ada@example.com" },
      { owner: person("Grace"), to: "grace@example.com" },
    ];
    console_ = await startConsole({
      policies: POLICIES,
      ahead: -WEEK,
      plugins: [mail.plugin, usersPlugin()],
      change: (config) =>
        (config.channels = {
          finance: { notifier: "mail", people },
          support: { notifier: "mail", people },
          ops: { notifier: "mail", people, places: [{ to: "on-call@example.com" }] },
        }),
    });
    week = await fillWeek(console_);
    const { link: address } = (await mail.next(
      (one) => one.kind === "approval_requested" && one.action.id === week.waiting && one.to === "ada@example.com",
    )) as ApprovalMessage;
    link = new URL(address).hash;
    mail.plans.push(() => Promise.reject(new NotifierError("550 no such mailbox", { permanent: true })));
    await console_.service.call("POST", "/v1/actions", { body: ASKED });
    await waitForSignature(console_.service);
    vkey = (await console_.service.call("GET", "/v1/provenance/keys", { key: console_.service.admin })).body.keys[0]
      .vkey;
  });
  after(() => console_.close());

  const text = (wanted: string | RegExp) => (page: Page) => page.getByText(wanted).first().waitFor();
  const pages = (): Shown[] => [
    {
      name: "approvals",
      hash: "#/approvals",
      until: (page) => page.locator("[data-group]").first().waitFor(),
    },
    { name: "approval", light: true, hash: `#/approvals/${week.waiting}`, until: text("Who has to agree") },
    {
      name: "verdict",
      light: true,
      hash: `#/approvals/${week.waiting}`,
      until: async (page) => {
        await page.getByRole("button", { name: "Approve" }).waitFor();
        await page.getByLabel("Reason").fill("Fronts checked against the order: it is our mistake.");
      },
    },
    { name: "actions", hash: "#/actions", until: (page) => page.locator("tbody tr").nth(10).waitFor() },
    { name: "action", hash: `#/actions/${week.done}`, until: text("Decision as recorded") },
    { name: "grants", hash: "#/grants", until: text("No grants are active.") },
    { name: "suggestions", hash: "#/suggestions", until: text("Activated rules") },
    { name: "policies", hash: "#/policies", until: text("newsletter") },
    { name: "policy", hash: "#/policies/newsletter", until: text(/the effect of the rule/) },
    {
      name: "backtest",
      light: true,
      hash: "#/policies/newsletter",
      until: async (page) => {
        await page.getByRole("button", { name: "Activate version 2" }).click();
        await page
          .getByRole("dialog")
          .getByText(/past decisions would flip/)
          .waitFor();
        await page.getByRole("dialog").locator("progress").waitFor({ state: "detached" });
      },
    },
    {
      name: "shadow",
      light: true,
      hash: "#/policies/night-shift",
      until: async (page) => {
        await page.locator("#shadow ~ .flips").waitFor();
        await page.locator("#shadow").scrollIntoViewIfNeeded();
      },
    },
    {
      name: "policy-editor",
      light: true,
      hash: "#/policies/new",
      until: async (page) => {
        await fillEditor(page, DRAFT);
        await page.getByText(/^Line \d+/).waitFor();
      },
    },
    { name: "agents", hash: "#/agents", until: text("deploy-bot") },
    { name: "agent", hash: "#/agents/support-bot", until: (page) => page.locator(".timeline .step").nth(5).waitFor() },
    {
      name: "person",
      hash: `#/people/${person("Ada").slice("user:".length)}`,
      until: (page) => page.getByRole("list", { name: "Timeline" }).getByRole("listitem").first().waitFor(),
    },
    { name: "keys", hash: "#/keys", until: text("(yours)") },
    {
      name: "key",
      light: true,
      hash: "#/keys",
      until: async (page) => {
        await page.getByRole("button", { name: "New key…" }).click();
        await page.getByLabel("Name").fill("support-bot in staging");
        await page.getByLabel("For", { exact: true }).selectOption("agent");
        await page.getByLabel("Agent", { exact: true }).fill("support-bot");
      },
    },
    { name: "analytics", hash: "#/analytics", until: (page) => page.locator(".chart canvas").waitFor() },
    { name: "provenance", hash: "#/provenance", until: text(/for the first time|continues from/) },
    {
      name: "entry",
      light: true,
      hash: `#/provenance/${week.hash}`,
      until: async (page) => {
        await page.getByRole("button", { name: "Verify in this browser" }).click();
        await page.getByText("Verified in this browser.", { exact: true }).waitFor();
      },
    },
    { name: "deliveries", hash: "#/deliveries", until: text("550 no such mailbox") },
    { name: "approve", hash: `approve${link}`, until: text("computed in this browser") },
    {
      name: "events",
      hash: "#/events?after=-1&type=approval,execution",
      until: (page) => page.locator(`.events a[href="#/actions/${week.waiting}"]`).waitFor(),
    },
    { name: "system", hash: "#/system", until: text("Ready: actions are decided.") },
  ];

  for (const { form, colorScheme, viewport } of FORMS) {
    it(`fit and are quiet: ${form}`, async () => {
      const context = await console_.browser.newContext({
        colorScheme,
        viewport,
        locale: "en-GB",
        timezoneId: "Europe/Berlin",
      });
      const { page, complaints, strayed } = await open(context, console_.server.url);
      const [wide, large]: [string[], string[]] = [[], []];
      const show = async (name: string, kept: boolean) => {
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        if (width > viewport.width) wide.push(`${name}: ${width}`);
        const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
        if (nodes > 2000) large.push(`${name}: ${nodes}`);
        if (pictures !== undefined && kept)
          await page.screenshot({
            path: `${pictures}/console-${name}-${form}.png`,
            caret: "hide",
            animations: "disabled",
          });
      };
      await page.evaluate((pinned) => localStorage.setItem("assent.pinned", pinned), vkey);
      await page.getByRole("link", { name: "Sign in with a passkey" }).waitFor();
      await show("sign-in", true);
      await signInWithKey(page, console_.service.admin);
      await page.getByRole("main").getByRole("heading", { name: "Approvals" }).waitFor();
      for (const { name, hash, light, until } of pages()) {
        // Load each page from scratch, without state from the previous page.
        await page.goto("about:blank");
        await page.goto(`${console_.server.url}/${hash}`);
        await until(page);
        await page.getByText("connecting").waitFor({ state: "detached" });
        await show(name, light !== true || form === "light");
      }
      if (form === "phone") {
        await page.getByRole("button", { name: "Menu" }).click();
        await show("menu", true);
      }
      // The faulty draft gets a 422, which the browser logs by itself.
      assert.deepEqual([complaints.filter((line) => !/422/.test(line)), strayed, wide, large], [[], [], [], []]);
      await context.close();
    });
  }

  it("an auditor finds in the evidence pack who approved an action, on what grounds, and what they saw", async () => {
    const { service, browser } = console_;
    const folder = join(service.folder, "evidence");
    await writePack(service.storage, {
      writer: createPackWriter(folder),
      from: 0,
      to: Date.now() + service.clock.now + 3_600_000,
      checkpoint: null,
      witnesses: [],
      page: renderVerificationPage(),
      progress: () => undefined,
    });
    const context = await browser.newContext({ offline: true, viewport: { width: 1200, height: 1000 } });
    const page = await context.newPage();
    await page.goto(pathToFileURL(join(folder, "verify.html")).href);
    await page.getByLabel("Files of the pack").setInputFiles(readdirSync(folder).map((name) => join(folder, name)));
    await page.getByRole("heading", { name: "Verified", exact: true }).waitFor();
    await page.getByRole("searchbox", { name: "Search approvals" }).fill(`Ada ${week.done}`);
    const row = page.getByRole("row", { name: week.done });
    for (const part of ["Ada", "approved stripe refund", "agent support-bot", "policy ", "“"])
      assert.match((await row.textContent()) ?? "", new RegExp(part), part);
    assert.match((await row.locator("pre").textContent()) ?? "", /"order"/);
    if (pictures !== undefined)
      await page.screenshot({ path: `${pictures}/evidence-light.png`, caret: "hide", animations: "disabled" });
    await context.close();
  });
});
