/**
 * Delegations, emergency approvals with their reviews, and the access review in the console.
 * @needs break-glass, console, users
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { accessibilityFindings } from "../support/axe.ts";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { openRequest, requestPane, inboxRow, voteNow } from "../support/console.ts";
import { startPeople } from "../support/people.ts";
import { person, type Service } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { eventually } from "../support/wait.ts";
import { addAuthenticator } from "../support/virtual-authenticator.ts";

const POLICY = `
policy: ask
rules:
  - { name: finance, tool: stripe, effect: require_approval, approval: { approvers: [{ group: finance }] } }
  - { name: nights, tool: backup, effect: require_approval, approval: { approvers: [{ group: night }] } }
  - { name: two, tool: postgres, effect: require_approval, approval: { quorum: 2, signature: passkey } }
`;
const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1440, height: 900 };

/** Writes pictures for both sizes into the folder that ASSENT_PICTURES names. */
async function pictures(page: Page, name: string): Promise<void> {
  const folder = process.env["ASSENT_PICTURES"];
  if (folder === undefined) return;
  for (const [size, viewport] of [
    ["phone", PHONE],
    ["desktop", DESKTOP],
  ] as const) {
    await page.setViewportSize(viewport);
    await page.screenshot({ path: join(folder, `${name}-${size}.png`) });
  }
}

interface SignedIn {
  id: string;
  page: Page;
  context: BrowserContext;
}

describe("people in the console", { skip: withoutBrowser }, () => {
  let service: Service;
  let server: RunningServer;
  let browser: Browser;
  let origin = "";
  let ann: SignedIn;
  let bo: SignedIn;
  before(async () => {
    service = await startPeople({
      policy: POLICY,
      change(config) {
        config.groups = { "support-leads": { members: [person("Ada")], agents: ["support-*"] } };
        config.rota = { night: { members: [person("Ada")], every: "7d", start: "2026-01-05T09:00", time_zone: "UTC" } };
      },
    });
    server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
    service.runtime.listensAt(server.port);
    origin = service.runtime.host.origin() ?? "";
    browser = await launch();
    ann = await signIn("Ann", ["approver"], ["finance"]);
    bo = await signIn("Bo", ["break_glass"], []);
  });
  after(async () => {
    await browser.close();
    await server.stop(1000);
    await service.close();
  });

  async function signIn(name: string, roles: string[], groups: string[], bypassCSP = true): Promise<SignedIn> {
    const { status, body } = await service.call("POST", "/v1/users", {
      key: service.admin,
      body: { name, roles, groups },
      headers: { host: new URL(origin).host },
    });
    assert.equal(status, 201, JSON.stringify(body));
    const context = await browser.newContext({ bypassCSP, viewport: DESKTOP });
    const { page } = await open(context, body.link.url as string);
    await addAuthenticator(context, page);
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("link", { name: "Continue" }).click();
    await page.getByText(`User: ${name}`).waitFor();
    return { id: body.user.id as string, page, context };
  }

  async function visit(page: Page, address: string, title: string): Promise<void> {
    await page.evaluate((to) => void (location.hash = to), address);
    await page.getByRole("heading", { name: title, level: 1 }).waitFor();
    await page.getByRole("status").getByText("Loading").waitFor({ state: "detached" });
  }
  /** Opens the page about a person, whose parts load one by one. */
  async function visitPerson(page: Page, id: string, name: string): Promise<void> {
    await page.evaluate((to) => void (location.hash = to), `#/people/${id}`);
    await page.getByRole("heading", { name, level: 1 }).waitFor();
  }
  let n = 0;
  const submit = async (tool: string): Promise<string> => {
    const body = { agent_id: "support-bot", tool, operation: "refund", params: { n: ++n } };
    return (await service.call("POST", "/v1/actions", { key: service.agent, body })).body.id as string;
  };
  const read = async (id: string) => (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
  const fits = async (page: Page): Promise<void> => {
    const { width } = page.viewportSize() ?? { width: 0 };
    await page.setViewportSize(PHONE);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= PHONE.width, "wider than a phone");
    assert.deepEqual(await accessibilityFindings(page), []);
    await page.emulateMedia({ colorScheme: "dark" });
    assert.deepEqual(await accessibilityFindings(page), [], "dark");
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize(width === PHONE.width ? PHONE : DESKTOP);
  };

  it("delegates, keeps the form when the service refuses, and the delegate sees in whose place they vote", async () => {
    const { page } = ann;
    await visit(page, "#/delegations", "Delegations");
    await page.getByText("No delegation is active or scheduled.").waitFor();
    await fits(page);
    await page.getByRole("button", { name: "Delegate…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Who approves on your behalf").selectOption({ label: "Bo" });
    const until = await dialog.getByLabel("Until").inputValue();
    await dialog.getByLabel("Until").fill("2020-01-01T00:00");
    await dialog.getByLabel("Only some of what I can approve").check();
    await dialog.getByLabel("finance").check();
    await dialog.getByLabel("Tools").fill("stripe crm.*");
    await dialog.getByLabel("Comment").fill("on holiday");
    await dialog.getByRole("button", { name: "Delegate" }).click();
    await dialog.getByText("`until` must be after the start").waitFor();
    assert.equal(await dialog.getByLabel("Comment").inputValue(), "on holiday");
    await fits(page);
    await pictures(page, "delegate");
    await dialog.getByLabel("Until").fill(until);
    await dialog.getByRole("button", { name: "Delegate" }).click();
    await page.getByText("Bo can approve on your behalf until").waitFor();
    const row = page.getByRole("row", { name: "on holiday" });
    for (const text of ["Bo", "Ann (you)", "active", "finance", "stripe, crm.*"])
      await row.getByText(text, { exact: true }).first().waitFor();
    await fits(page);
    await pictures(page, "delegations");

    const id = await submit("stripe");
    await openRequest(bo.page, id);
    await requestPane(bo.page, id).getByText("You vote on behalf of Ann, who delegated to you.").waitFor();
    await voteNow(bo.page, "Approve", "checked");
    await inboxRow(bo.page, id).locator(".settled-mark").waitFor();
    const [given] = (await read(id)).approvals;
    assert.deepEqual([given.approver, given.on_behalf_of], [`user:${bo.id}`, `user:${ann.id}`]);
  });

  it("revokes a delegation, and lists it with its end", async () => {
    const { page } = ann;
    await visit(page, "#/delegations", "Delegations");
    await page.getByRole("button", { name: /^Revoke the delegation from Ann to Bo/ }).click();
    await page.getByRole("dialog").getByLabel("Comment").fill("back early");
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByText("Bo no longer approves on behalf of Ann.").waitFor();
    await page.getByText("No delegation is active or scheduled.").waitFor();
    await page.getByRole("button", { name: "Ended" }).click();
    await page.getByText("back early").waitFor();
    const id = await submit("stripe");
    await openRequest(bo.page, id);
    await requestPane(bo.page, id).getByText("You cannot approve it").waitFor();
  });

  it("approves in an emergency with a signed vote, and another person closes the review", async () => {
    const { page } = bo;
    const id = await submit("postgres");
    await openRequest(page, id);
    await requestPane(page, id).getByRole("button", { name: "Emergency approval…" }).click();
    const dialog = page.getByRole("dialog");
    assert.ok(await dialog.getByRole("button", { name: "Approve now" }).isDisabled(), "a reason is required");
    await dialog.getByLabel("Why can it not wait?").fill("the shop is down");
    await fits(page);
    await pictures(page, "break-glass-vote");
    await dialog.getByRole("button", { name: "Approve now" }).click();
    await inboxRow(page, id).locator(".settled-mark").waitFor();
    // The request stays open, because a phone does not show the list with the outcome.
    await requestPane(page, id).getByText("You approved it without other approvers.").waitFor();
    const { status, approvals } = await read(id);
    assert.deepEqual([status, approvals[0].break_glass, approvals[0].reason], ["approved", true, "the shop is down"]);
    const { body } = await service.call("GET", `/v1/events/page?type=approval&action_id=${id}`, { key: service.admin });
    assert.equal(body.events[0].entry.gesture.kind, "passkey");

    // The action's page says how the vote was given.
    await page.evaluate((address) => void (location.hash = address), `#/actions/${id}`);
    const approvals_ = page.getByRole("region", { name: "Approvals" });
    await approvals_.getByText("emergency: approved").waitFor();
    await approvals_
      .getByText(/by Bo, in an emergency, without the other approvers, signed with a passkey: the shop is down/)
      .waitFor();
    await page.getByRole("region", { name: "History" }).getByText("emergency: approved").waitFor();

    await visit(page, "#/break-glass", "Break-glass approvals");
    await page.getByText("the shop is down").waitFor();
    await page.getByText("You gave this approval, so someone else must review it.").waitFor();
    assert.equal(await page.getByRole("button", { name: `Review ${id.slice(-6)}` }).count(), 0);
    await fits(page);

    const reviewer = ann.page;
    await visit(reviewer, "#/break-glass", "Break-glass approvals");
    await reviewer.getByRole("article").getByText("Bo", { exact: true }).waitFor();
    await pictures(reviewer, "break-glass");
    await reviewer.getByRole("button", { name: `Review ${id.slice(-6)}` }).click();
    await reviewer.getByLabel("What did the review find?").fill("The outage was real.");
    await fits(reviewer);
    await reviewer.getByRole("button", { name: "Close the review" }).click();
    await reviewer.getByText("The review is closed.").waitFor();
    await reviewer.getByText("No review is open.").waitFor();
    await reviewer.getByRole("button", { name: "Reviewed" }).click();
    await reviewer.getByText("The outage was real.").waitFor();
    await reviewer.getByRole("article").getByText("Ann", { exact: true }).waitFor();
  });

  it("offers no emergency approval without the role, nor where an ordinary vote is enough", async () => {
    const [two, one] = [await submit("postgres"), await submit("stripe")];
    for (const id of [two, one]) {
      await openRequest(ann.page, id);
      await requestPane(ann.page, id).getByRole("button", { name: "Approve", exact: true }).waitFor();
      assert.equal(await ann.page.getByRole("button", { name: /Emergency approval/ }).count(), 0);
    }
  });

  it("reviews access, names what is open and unused, and saves CSV and JSON", async () => {
    const id = await submit("postgres");
    await openRequest(bo.page, id);
    await requestPane(bo.page, id).getByRole("button", { name: "Emergency approval…" }).click();
    await bo.page.getByLabel("Why can it not wait?").fill("again");
    await bo.page.getByRole("button", { name: "Approve now", exact: true }).click();
    await inboxRow(bo.page, id).locator(".settled-mark").waitFor();
    const { page } = await signIn("Audra", ["auditor"], []);
    await visit(page, "#/access-review", "Access review");
    await page.getByText("1 emergency approval without a review.").waitFor();
    const row = page.getByRole("row", { name: /^Bo / });
    await row.getByText("100 % approved").waitFor();
    await row.getByText("(3 of 3, 2 emergency approvals)").waitFor();
    await row.getByText("everything").waitFor();
    await page.getByRole("button", { name: "Unused (0)" }).click();
    await page.getByText("Everything was used.").waitFor();
    await page.getByRole("button", { name: /^All \(/ }).click();
    await page
      .getByRole("row", { name: /^Audra / })
      .getByText("nothing")
      .waitFor();
    await fits(page);
    await pictures(page, "access-review");
    await page.getByLabel("Period").selectOption("30");
    await page.waitForURL(/days=30$/);
    for (const [format, head] of [
      ["CSV", "kind,id,name,"],
      ["JSON", '{"since":'],
    ] as const) {
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: `Download ${format}` }).click(),
      ]);
      assert.match(saved.suggestedFilename(), new RegExp(`^access-review-[\\d-]+\\.${format.toLowerCase()}$`));
      const file = join(temporaryFolder("assent-download-"), saved.suggestedFilename());
      await saved.saveAs(file);
      const content = readFileSync(file, "utf8");
      assert.ok(content.startsWith(head) && content.includes("Audra"), content.slice(0, 100));
    }
  });

  it("lists users and their sessions, adds a user, ends a session, and deactivates and reactivates the user", async () => {
    const { page } = await signIn("Alma", ["admin"], []);
    const uma = await signIn("Uma", ["viewer"], ["finance"]);
    await visit(page, "#/users", "Users");
    const row = page.getByRole("row", { name: /^Uma / });
    for (const text of ["viewer", "finance", "1 passkey"]) await row.getByText(text).waitFor();
    await page
      .getByRole("row", { name: /^admin / })
      .getByText("never", { exact: true })
      .waitFor();
    await fits(page);
    await pictures(page, "users");
    await page.getByRole("button", { name: "Commands for Uma" }).click();
    await page.getByRole("button", { name: "Sessions of Uma" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("article").getByText("enrolment link").waitFor();
    await fits(page);
    await dialog.getByRole("button", { name: "End session 1" }).click();
    await dialog.getByText("No session is open.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    assert.equal(await uma.page.evaluate(() => fetch("/v1/session").then(({ status }) => status)), 401);

    await page.getByRole("button", { name: "Add a user…" }).click();
    await dialog.getByLabel("Name").fill(" ");
    await dialog.getByRole("button", { name: "Add the user" }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByLabel("Name").fill("Nell");
    await dialog.getByRole("checkbox", { name: /^approver/ }).check();
    await fits(page);
    await dialog.getByRole("button", { name: "Add the user" }).click();
    assert.match((await page.locator(".made .hash").textContent()) ?? "", /\/sign-in#enrol=/);
    await page.getByRole("button", { name: "I have it" }).click();
    await page
      .getByRole("row", { name: /^Nell / })
      .getByText("invited")
      .waitFor();

    await page.getByRole("button", { name: "Commands for Uma" }).click();
    await page.getByRole("button", { name: "Deactivate Uma" }).click();
    await dialog.getByLabel("Reason").fill("left the company");
    await fits(page);
    await dialog.getByRole("button", { name: "Deactivate the user" }).click();
    await page.getByText("Uma was deactivated.").waitFor();
    await row.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Deactivated" }).click();
    await row.getByText("deactivated", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Reactivate Uma" }).click();
    await dialog.getByRole("button", { name: "Reactivate" }).click();
    await page.getByText("Uma can sign in again.").waitFor();
    await page.getByText("No user has been deactivated.").waitFor();
    await page.getByRole("button", { name: "Active", exact: true }).click();
    await page.getByRole("button", { name: "Commands for Alma" }).click();
    await page.getByRole("button", { name: "Deactivate Alma" }).click();
    await dialog.getByText("This is you: you will be signed out.").waitFor();
  });

  it("shows a person: rights, pending requests, votes, absence and sessions, to themselves and to an auditor", async () => {
    const id = await submit("stripe");
    const { page } = ann;
    await page.getByRole("navigation").getByRole("link", { name: "Ann" }).click();
    await page.getByRole("heading", { name: "Ann", level: 1 }).waitFor();
    const part = (where: Page, name: string) => where.getByRole("region", { name, exact: true }).first();
    await part(page, "About").getByText("finance").waitFor();
    await part(page, "Can approve").getByText("Everything that requires approval.").waitFor();
    await part(page, "Requests to approve").locator(`a[href="#/approvals/${id}"]`).waitFor();
    await part(page, "Absence and delegations").getByText("back early").waitFor();
    await part(page, "Sessions").getByText("(this one)").waitFor();
    await page.getByRole("list", { name: "Timeline" }).getByText("delegation").first().waitFor();
    await fits(page);
    await pictures(page, "person");
    const { page: auditor } = await signIn("Aud", ["auditor"], []);
    await visit(auditor, "#/access-review", "Access review");
    await auditor.getByRole("link", { name: "Bo", exact: true }).click();
    await auditor.getByRole("heading", { name: "Bo", level: 1 }).waitFor();
    await auditor.getByRole("list", { name: "Votes" }).getByText("the shop is down").waitFor();
    assert.equal(await auditor.getByRole("button", { name: /^End the session/ }).count(), 0);
    // Bo is in no group, and so cannot approve this one.
    await part(auditor, "Requests to approve").getByRole("table").waitFor();
    assert.equal(await part(auditor, "Requests to approve").locator(`a[href="#/approvals/${id}"]`).count(), 0);
    await auditor.evaluate((to) => void (location.hash = to), `#/people/${ann.id}`);
    await auditor.getByRole("heading", { name: "Ann", level: 1 }).waitFor();
    await part(auditor, "Requests to approve").locator(`a[href="#/approvals/${id}"]`).waitFor();
  });

  it("notifies this device: a pushed request is shown and opens, and the card says what prevents it", async () => {
    // Without a bypass, because the page's policy restricts the address of the service worker.
    const { page, context, id } = await signIn("Dee", ["approver"], [], false);
    await context.addInitScript(simulatePushService);
    await page.reload();
    await visitPerson(page, id, "Dee");
    const card = page.getByRole("region", { name: "Notifications on your devices" });
    await card.getByText("No channel notifies you on your devices yet.").waitFor();
    const cdp = await context.newCDPSession(page);
    const registrations = new Promise<string>((resolve) =>
      cdp.on("ServiceWorker.workerRegistrationUpdated", ({ registrations: [registration] }) => {
        if (registration !== undefined) resolve(registration.registrationId);
      }),
    );
    await cdp.send("ServiceWorker.enable");
    await card.getByRole("button", { name: "Notify this device" }).click();
    await card.getByText("This device is notified.").waitFor();
    await card.getByRole("row").getByText("(this device)").waitFor();

    const notice = {
      title: "Approval needed: stripe refund",
      body: "Agent: support-bot",
      path: "/#/approvals/7",
      tag: "a:7",
    };
    const registrationId = await registrations;
    const [worker] = context.serviceWorkers();
    assert.ok(worker !== undefined);
    // The browser under test never allows notifications, and opens no window without a click of a person.
    await worker.evaluate(() => {
      const scope = globalThis as unknown as WorkerDoubles;
      scope.done = [];
      scope.registration.showNotification = async (title, options) => void scope.done.push([title, options]);
      scope.clients.openWindow = async (url) => void scope.done.push(["opened", url]);
    });
    for (const data of [JSON.stringify(notice), "not JSON"])
      await cdp.send("ServiceWorker.deliverPushMessage", { origin, registrationId, data });
    const done = (count: number) =>
      eventually(
        async () => {
          const found = await worker.evaluate(() => (globalThis as unknown as WorkerDoubles).done);
          return found.length === count ? found : undefined;
        },
        () => "the service worker did nothing",
      );
    const shown = (await done(2)) as [string, { body: string; tag: string; data: string; icon: string }][];
    assert.deepEqual(
      shown.map(([title, { body, tag, data }]) => [title, body, tag, data]),
      [
        [notice.title, notice.body, notice.tag, notice.path],
        ["Assent", "Open the console to see what is pending.", "unreadable", "/#/"],
      ],
    );
    assert.equal(
      await page.evaluate((icon) => fetch(icon).then(({ status }) => status), shown[0]?.[1].icon ?? ""),
      200,
    );
    for (const data of [notice.path, "https://evil.example/"])
      await worker.evaluate((path) => {
        const notification = { data: path, close: () => undefined };
        dispatchEvent(Object.assign(new Event("notificationclick"), { notification, waitUntil: () => undefined }));
      }, data);
    assert.deepEqual((await done(4)).slice(2), [
      ["opened", `${origin}${notice.path}`],
      ["opened", `${origin}/#/`],
    ]);

    await card.getByRole("button", { name: "Send a test this device" }).click();
    await card.getByRole("alert").getByText("localhost is not at a public address, or could not be reached").waitFor();

    await card.getByRole("button", { name: "Remove this device" }).click();
    await card.getByText("The device is no longer notified.").waitFor();
    await card.getByRole("button", { name: "Notify this device" }).waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem("test.push")), null, "unsubscribed in the browser");
  });

  it("says why a device cannot be notified", async () => {
    const { page } = ann;
    const card = page.getByRole("region", { name: "Notifications on your devices" });
    for (const [change, text] of [
      [() => void Object.defineProperty(Notification, "permission", { get: () => "denied" }), "are blocked"],
      [() => void Reflect.deleteProperty(globalThis, "PushManager"), "cannot show notifications here"],
    ] as const) {
      await page.evaluate(change);
      await visit(page, "#/delegations", "Delegations");
      await visitPerson(page, ann.id, "Ann");
      await card.getByText(text).waitFor();
      await fits(page);
    }
    await page.reload();
    await visitPerson(page, ann.id, "Ann");
  });

  it("says on each page what went wrong, and loads again", async () => {
    const { page } = await signIn("Anton", ["auditor", "approver"], []);
    for (const [address, title, api] of [
      ["#/users", "Users", "**/v1/users?*"],
      ["#/delegations", "Delegations", "**/v1/delegations*"],
      ["#/break-glass", "Break-glass approvals", "**/v1/break-glass*"],
      ["#/access-review", "Access review", "**/v1/access-review*"],
    ] as const) {
      await page.route(api, (route) =>
        route.fulfill({ status: 503, json: { status: 503, detail: "the disk is full" } }),
      );
      await visit(page, address, title);
      await page.getByRole("alert").getByText("the disk is full").waitFor();
      await page.unroute(api);
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByText("the disk is full").waitFor({ state: "detached" });
      await page.getByRole("status").getByText("Loading").waitFor({ state: "detached" });
    }
  });

  it("adds, changes and invites a user, and shows the groups and rotas", async () => {
    const { page, context } = await signIn("Root", ["admin"], []);
    await visit(page, "#/users", "Users");
    await page.getByRole("button", { name: "Add a user…" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Name", { exact: true }).fill("Quinn");
    await form.getByRole("checkbox", { name: /^approver/ }).check();
    await form.getByLabel("New group").fill("night-desk");
    await form.getByRole("button", { name: "Add the user" }).click();
    await page.getByRole("button", { name: "I have it" }).click();
    const row = page.getByRole("row", { name: /^Quinn/ });
    for (const badge of ["approver", "night-desk", "invited"])
      await row.locator(".badge", { hasText: badge }).waitFor();
    await row.getByRole("button", { name: "Commands for Quinn" }).click();
    await row.getByRole("button", { name: "Change Quinn" }).click();
    await form.getByLabel("Name", { exact: true }).fill("Quinn Two");
    await form.getByRole("checkbox", { name: /^auditor/ }).check();
    await form.getByRole("checkbox", { name: "night-desk" }).uncheck();
    await form.getByRole("checkbox", { name: "finance" }).check();
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText("Quinn Two was changed.").waitFor();
    assert.deepEqual(await row.locator(".badge").allTextContents(), ["approver", "auditor", "finance", "invited"]);
    // The configuration gives Ada this group.
    await page.getByRole("row", { name: /^Ada/ }).locator(".badge", { hasText: "support-leads" }).waitFor();
    await row.getByRole("button", { name: "Commands for Quinn Two" }).click();
    await row.getByRole("button", { name: "New link for Quinn Two" }).click();
    await page.getByRole("heading", { name: "Link for Quinn Two" }).waitFor();
    await pictures(page, "users");
    await fits(page);
    // The page about the person has the same commands.
    await row.getByRole("link", { name: "Quinn Two" }).click();
    const about = page.getByRole("region", { name: "About" });
    await about.locator(".badge", { hasText: "invited" }).waitFor();
    await page.getByRole("button", { name: "Commands for Quinn Two" }).click();
    await page.getByRole("button", { name: "New link for Quinn Two" }).click();
    await page.getByRole("heading", { name: "Link for Quinn Two" }).waitFor();

    await visit(page, "#/groups", "Groups and rotas");
    await page
      .getByRole("row", { name: /^finance/ })
      .getByRole("link", { name: "Quinn Two" })
      .waitFor();
    await page
      .getByRole("row", { name: /^support-leads/ })
      .getByText("agent support-*")
      .waitFor();
    await page
      .getByRole("row", { name: /^night/ })
      .getByRole("link", { name: "Ada" })
      .first()
      .waitFor();
    await page
      .getByRole("row", { name: /^night/ })
      .getByRole("link", { name: "nights" })
      .waitFor();
    await page.getByText(/asks 1 of night about .* Limits of groups hide some of these requests from Ada/).waitFor();
    await pictures(page, "groups");
    await fits(page);
    await context.close();
  });
});

/** Functions of the service worker that a test replaces. */
interface WorkerDoubles {
  done: unknown[];
  registration: { showNotification(title: string, options: object): Promise<void> };
  clients: { openWindow(url: string): Promise<void> };
}

/** Allows notifications, and subscribes without a push service, which the browser under test lacks. The service worker is real. */
function simulatePushService(): void {
  const NAME = "test.push";
  const read = (): PushSubscription | null => {
    const json = JSON.parse(localStorage.getItem(NAME) ?? "null") as PushSubscriptionJSON | null;
    if (json === null) return null;
    return {
      endpoint: json.endpoint,
      toJSON: () => json,
      unsubscribe: async () => (localStorage.removeItem(NAME), true),
    } as PushSubscription;
  };
  const encode = (bytes: Uint8Array): string =>
    btoa(String.fromCharCode(...bytes))
      .replaceAll("+", "-")
      .replaceAll("/", "_")
      .replaceAll("=", "");
  Object.defineProperty(Notification, "permission", { get: () => "granted" });
  Notification.requestPermission = async () => "granted";
  PushManager.prototype.getSubscription = async () => read();
  PushManager.prototype.subscribe = async (options) => {
    if (!(options?.applicationServerKey instanceof Uint8Array) || options.applicationServerKey.length !== 65)
      throw new TypeError("no key of the service");
    const pair = await crypto.subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]);
    const point = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
    const keys = { p256dh: encode(point), auth: encode(crypto.getRandomValues(new Uint8Array(16))) };
    const json = { endpoint: `https://localhost/${crypto.randomUUID()}`, expirationTime: null, keys };
    localStorage.setItem(NAME, JSON.stringify(json));
    return read() as PushSubscription;
  };
}
