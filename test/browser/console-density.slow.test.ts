/**
 * Every list shows at least 18 rows at 1440×900, each on one line. `SCREENSHOTS=folder` with only this file takes
 * pictures of every page in four forms: desktop and phone, light and dark.
 * @needs break-glass, console, grants, plans, users
 */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { NotifierError } from "../../src/contract/notifier.ts";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { COMPANY_AGE, COMPANY_POLICY, configureCompany, fillCompany, type Company } from "../support/company.ts";
import { testNotifier } from "../support/notifier.ts";
import { addUser, usersPlugin } from "../support/people.ts";
import { person, startService, waitForSignature, type Service } from "../support/service.ts";
import { addAuthenticator } from "../support/virtual-authenticator.ts";

const pictures = process.env["SCREENSHOTS"];
if (pictures !== undefined) mkdirSync(pictures, { recursive: true });
const DESKTOP = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };
/** Maximum height of a row: two lines of small text, as in the inbox. */
const MAX_ROW = 40;
/** Minimum number of rows on the screen of a phone, without scrolling. */
const MIN_ROWS_PHONE = 4;
const RAW_ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}/;
const ABSOLUTE_TIME = /\d{2}:\d{2}:\d{2}/;
const WRONG_PLURAL = /\b1 (?:actions|approvals|days|people|passkeys|requests|uses|versions)\b|\(s\)/;

describe("lists of the console", { skip: withoutBrowser }, () => {
  let service: Service;
  let server: RunningServer;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let origin = "";
  let company: Company;
  before(async () => {
    const mail = testNotifier("mail");
    service = await startService({
      policy: COMPANY_POLICY,
      ahead: -COMPANY_AGE,
      plugins: [mail.plugin, usersPlugin()],
      change(config) {
        configureCompany(config);
        config.channels = {
          finance: {
            notifier: "mail",
            people: [{ owner: person("Ada"), to: "ada@example.com" }],
            places: [{ to: "finance@example.com" }],
          },
        };
        config.rota = {
          night: {
            members: [person("Ada"), person("Grace")],
            every: "7d",
            start: "2026-01-05T09:00",
            time_zone: "UTC",
          },
        };
      },
    });
    server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
    service.runtime.listensAt(server.port);
    origin = service.runtime.host.origin() ?? "";
    mail.plans.push(() => Promise.reject(new NotifierError("550 no such mailbox", { permanent: true })));
    company = await fillCompany(service, origin, mail);
    await waitForSignature(service);
    browser = await launch();
    context = await browser.newContext({ viewport: DESKTOP, locale: "en-GB", timezoneId: "Europe/Berlin" });
    const { link } = await addUser(
      service,
      { name: "Sam", roles: ["admin", "approver", "break_glass"], groups: ["finance"] },
      new URL(origin).host,
    );
    ({ page } = await open(context, link.url as string));
    await addAuthenticator(context, page);
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("link", { name: "Continue" }).click();
    await page.getByText("User: Sam").waitFor();
  });
  after(async () => {
    await browser?.close();
    await server?.stop(1000);
    await service?.close();
  });

  const settle = async (hash: string): Promise<void> => {
    await page.evaluate((to) => void (location.hash = to), hash);
    await page.locator("main h1").waitFor();
    await page.locator(".loading").first().waitFor({ state: "detached" });
  };

  it("show at least 18 rows at 1440 by 900, and fit on a phone", async () => {
    // The requests of an open group are rows as well.
    const { body } = await service.call("GET", "/v1/approvals/groups", { key: service.admin });
    const { id: refunds } = body.groups.find(({ rule }: { rule: string }) => rule === "refunds");
    const lists: [hash: string, rows: string][] = [
      [`#/approvals?view=all&group=${refunds}`, ".row-item"],
      ["#/actions", "tbody tr"],
      ["#/agents", "tbody tr"],
      ["#/keys", "tbody tr"],
      ["#/users", "tbody tr"],
      ["#/groups", "tbody tr"],
      ["#/grants", "tbody tr"],
      ["#/policies", "tbody tr"],
      ["#/policies/team-00", "tbody tr"],
      ["#/deliveries", "tbody tr"],
      ["#/events?after=-1", ".events > li"],
      ["#/access-review", "tbody tr"],
    ];
    const found: Record<string, { visible: number; highest: number; texts: string[] }> = {};
    const narrow: [hash: string, visible: number, width: number][] = [];
    const measure = (rows: string) =>
      page.locator(rows).evaluateAll((all) => {
        const boxes = all.map((row) => row.getBoundingClientRect());
        const visible = boxes.filter(({ top, bottom, height }) => height > 0 && top >= 0 && bottom <= innerHeight);
        const texts = all.map((row) => (row as HTMLElement).innerText);
        return { visible: visible.length, highest: Math.max(...boxes.map(({ height }) => height)), texts };
      });
    for (const [hash, rows] of lists) {
      await settle(hash);
      await page.locator(rows).nth(17).waitFor();
      found[hash] = await measure(rows);
      await page.setViewportSize(PHONE);
      const { visible } = await measure(rows);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (visible < MIN_ROWS_PHONE || width > PHONE.width) narrow.push([hash, visible, width]);
      await page.setViewportSize(DESKTOP);
    }
    assert.deepEqual(narrow, []);
    const few = Object.entries(found).filter(([, { visible, highest }]) => visible < 18 || highest > MAX_ROW);
    assert.deepEqual(
      few.map(([hash, { visible, highest }]) => [hash, visible, highest]),
      [],
    );
    const strange = Object.entries(found).flatMap(([hash, { texts }]) =>
      texts
        .filter((text) => RAW_ID.test(text) || ABSOLUTE_TIME.test(text) || WRONG_PLURAL.test(text))
        .map((text) => [hash, text]),
    );
    assert.deepEqual(strange, []);
  });

  it("has pictures", { skip: pictures === undefined }, async () => {
    const { settled, emergency, staged, long, plan, people } = company;
    const { decision_hash: hash } = (await service.call("GET", `/v1/actions/${settled}`, { key: service.admin })).body;
    const pages: [name: string, hash: string][] = [
      ["approvals", "#/approvals?view=all"],
      ["request", `#/approvals/${long}`],
      ["request-staged", `#/approvals/${staged}`],
      ["plans", "#/plans"],
      ["plan", `#/plans/${plan}`],
      ["actions", "#/actions"],
      ["action-settled", `#/actions/${settled}`],
      ["action-emergency", `#/actions/${emergency}`],
      ["action-staged", `#/actions/${staged}`],
      ["grants", "#/grants"],
      ["policies", "#/policies"],
      ["policy", "#/policies/operations"],
      ["policy-versions", "#/policies/team-00"],
      ["policy-shadow", "#/policies/team-03"],
      ["policy-new", "#/policies/new"],
      ["suggestions", "#/suggestions"],
      ["agents", "#/agents"],
      ["agent", "#/agents/support-bot"],
      ["agent-deploy", "#/agents/deploy-bot"],
      ["keys", "#/keys"],
      ["users", "#/users"],
      ["groups", "#/groups"],
      ["delegations", "#/delegations"],
      ["break-glass", "#/break-glass"],
      ["access-review", "#/access-review"],
      ["person", `#/people/${people[0]?.id}`],
      ["analytics", "#/analytics"],
      ["provenance", "#/provenance"],
      ["entry", `#/provenance/${hash}`],
      ["coverage", "#/coverage"],
      ["evidence", "#/evidence"],
      ["events", "#/events?after=-1"],
      ["deliveries", "#/deliveries"],
      ["system", "#/system"],
    ];
    const wide: string[] = [];
    for (const [name, address] of pages) {
      await settle(address);
      // Panels load one by one.
      await page.waitForTimeout(900);
      for (const [size, viewport] of [
        ["desktop", DESKTOP],
        ["phone", PHONE],
      ] as const) {
        await page.setViewportSize(viewport);
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme });
          await page.screenshot({
            path: `${pictures}/${name}-${size}-${colorScheme}.png`,
            caret: "hide",
            animations: "disabled",
            fullPage: size === "phone" || /action-|agent|person|policy|request/.test(name),
          });
        }
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        if (width > viewport.width) wide.push(`${name}: ${width}`);
      }
      await page.setViewportSize(DESKTOP);
      await page.emulateMedia({ colorScheme: "light" });
    }
    assert.deepEqual(wide, []);
  });
});
