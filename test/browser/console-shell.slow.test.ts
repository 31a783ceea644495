/**
 * The console's frame: sign-in and sign-out, the menu, and the security headers.
 * @needs console
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { open, withoutBrowser } from "../support/browser.ts";
import { ASSENT, startCommand } from "../support/process.ts";
import { startConsole, type Console } from "../support/console.ts";
import { needs } from "../support/features.ts";
import denials from "../../docs/examples/resource-denials/index.ts";
import { ALLOWED, approve, ASKED, DENIED } from "../support/service.ts";

describe("the console's shell", { skip: withoutBrowser }, () => {
  let console_: Console;
  before(async () => {
    console_ = await startConsole();
  });
  after(() => console_.close());

  it("keeps the key only in open tabs, passes it to a new tab, and signs out all tabs", async () => {
    const context = await console_.browser.newContext({ viewport: { width: 1280, height: 900 } });
    const { page, complaints, strayed } = await open(context, console_.server.url);
    await page.getByLabel("API key").fill(console_.service.admin);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Approvals" }).waitFor();
    const kept = (where: Page) =>
      where.evaluate(() => [sessionStorage.getItem("assent.key"), localStorage.length, document.cookie]);
    assert.deepEqual(await kept(page), [console_.service.admin, 0, ""]);
    const other = await context.newPage();
    await other.goto(console_.server.url);
    await other.getByRole("heading", { name: "Approvals" }).waitFor();
    assert.deepEqual(await kept(other), [console_.service.admin, 0, ""]);
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).click();
    for (const one of [page, other]) {
      await one.getByRole("button", { name: "Sign in" }).waitFor();
      assert.deepEqual(await kept(one), [null, 0, ""]);
    }
    // Signing in in one tab also signs in the tabs that wait for a key.
    await other.getByLabel("API key").fill(console_.service.admin);
    await other.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Approvals" }).waitFor();
    // Closing the last tab deletes the key.
    await page.close();
    await other.close();
    const later = await context.newPage();
    await later.goto(console_.server.url);
    await later.getByRole("button", { name: "Sign in" }).waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
    await context.close();
  });

  it("has no page, command, panel or link of a feature that the service has not loaded", async () => {
    const smaller = await startConsole({ without: ["stop", "agents", "provenance"] });
    try {
      const { page, complaints } = await smaller.visit(smaller.service.admin, "#/actions");
      await smaller.service.call("POST", "/v1/actions", { body: ALLOWED });
      await page.getByRole("link", { name: "Analytics" }).waitFor();
      const menu = page.getByRole("navigation");
      for (const name of ["Agents", "Provenance"])
        assert.equal(await menu.getByRole("link", { name }).count(), 0, name);
      assert.equal(await menu.getByRole("button", { name: "Stop…" }).count(), 0);
      await page.getByText(ALLOWED.agent_id).first().waitFor();
      await page.evaluate(() => void (location.hash = "#/system"));
      await page.getByRole("heading", { name: "Timeline" }).waitFor();
      await page
        .getByRole("list", { name: "Timeline" })
        .getByText(/API key/)
        .first()
        .waitFor();
      await page.evaluate(() => void (location.hash = "#/agents"));
      await page.getByRole("heading", { name: "Page not found" }).waitFor();
      assert.equal(await page.locator('a[href*="#/agents"], a[href*="#/provenance"]').count(), 0);
      assert.deepEqual(complaints, []);
    } finally {
      await smaller.close();
    }
  });

  it("has the page of a plugin that is not built in, under the same Content-Security-Policy", async () => {
    const larger = await startConsole({ plugins: [{ plugin: denials, options: {}, origin: "docs/examples" }] });
    try {
      await larger.service.call("POST", "/v1/actions", { body: DENIED });
      const { page, complaints, strayed } = await larger.visit(larger.service.admin, "#/approvals");
      await page.getByRole("navigation").getByRole("link", { name: "Denials" }).click();
      await page.getByRole("region", { name: "Denials" }).getByRole("cell", { name: DENIED.agent_id }).waitFor();
      const approver = await larger.key("ben", { preset: "approver", owner: "Ben" });
      const other = await larger.visit(approver, "#/denials");
      await other.page.getByText("it needs the scope analytics:read").waitFor();
      assert.deepEqual([complaints, strayed], [[], []]);
    } finally {
      await larger.close();
    }
  });

  it("shows in its menu what the key may see, under names and not ids", async () => {
    const approver = await console_.key("ada's laptop", { preset: "approver", owner: "Ada" });
    const { page, complaints } = await console_.visit(approver, "");
    await page.getByRole("heading", { name: "Approvals" }).waitFor();
    const menu = page.getByRole("navigation").getByRole("link");
    assert.deepEqual(await menu.allTextContents(), [
      "Approvals",
      "Plans",
      "Actions",
      "Grants",
      "Policies",
      "Limits",
      "Suggestions",
      "Agents",
      "Groups and rotas",
      "Break-glass",
      "Events",
      "System",
      "API",
    ]);
    for (const name of [
      "Approvals",
      "Plans",
      "Actions",
      "Grants",
      "Policies",
      "Limits",
      "Suggestions",
      "Events",
      "System",
    ]) {
      await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
      await page.getByRole("main").getByRole("heading", { name, exact: true }).waitFor();
      assert.equal(await page.getByRole("alert").count(), 0, name);
    }
    await page.getByText("Key: ada's laptop").waitFor();
    await page.evaluate(() => void (location.hash = "#/keys"));
    await page.getByText("it needs the scope keys:manage").waitFor();
    assert.deepEqual(complaints, []);
    // A key without access to actions and approvals starts on the first page that it can read.
    const counting = await console_.key("counting", { scopes: ["analytics:read"] });
    const narrow = await console_.visit(counting, "");
    await narrow.page.getByRole("heading", { name: "Analytics", exact: true }).waitFor();
  });

  it("finds agents, actions, policies and rules with the keyboard, and runs commands", async () => {
    const { service } = console_;
    await service.call("POST", "/v1/agents", { key: service.admin, body: { id: "finder-bot" } });
    const body = { ...ASKED, agent_id: "finder-bot", params: { ...ASKED.params, order: "ord-4711" } };
    const { id } = (await service.call("POST", "/v1/actions", { key: service.agent, body })).body;
    const { page, complaints } = await console_.visit(service.admin, "#/system");
    await page.getByRole("heading", { name: "System", exact: true }).waitFor();
    const find = async (text: string, title: RegExp, address: string | RegExp): Promise<void> => {
      await page.keyboard.press("Control+k");
      await page.keyboard.type(text);
      await page.locator(".palette button.chosen").filter({ hasText: title }).waitFor();
      await page.keyboard.press("Enter");
      await page.waitForURL(address);
    };
    await find("4711", /action of finder-bot, pending/, `**/#/actions/${id}`);
    await find("finder-bot", /finder-bot.*agent/, "**/#/agents/finder-bot");
    const { policies } = (await service.call("GET", "/v1/policies", { key: service.admin })).body;
    const [{ name, rule_names }] = policies as [{ name: string; rule_names: string[] }];
    await find(rule_names[0] as string, /rule of|policy/, new RegExp(`#/policies/`));
    await page.keyboard.press("Control+k");
    await page.getByLabel("Page, command or object").fill(name);
    await page.locator(".palette").getByText("policy", { exact: true }).first().waitFor();
    await page.getByLabel("Page, command or object").fill("stop everything at once");
    await page.getByText("Nothing matches.").waitFor();
    await page.keyboard.press("Escape");
    await find("policy new", /New policy/, "**/#/policies/new");
    // A form opens as often as it is asked for.
    for (let i = 0; i < 2; i++) {
      await find("new key", /New key/, "**/#/keys");
      await page.getByRole("dialog").waitFor();
      await page.keyboard.press("Escape");
    }
    await page.keyboard.press("Control+k");
    await page.keyboard.type("sign out");
    await page.keyboard.press("Enter");
    await page.getByLabel("API key").waitFor();
    assert.deepEqual(complaints, []);
    await page.close();
  });

  it("signs in once with the link of assent demo --serve", async () => {
    const demo = await startCommand(
      [process.execPath, [...ASSENT, "demo", "--serve", "--port", "0"]],
      {},
      {
        listening: /(http:\S+\/demo#\S+)/,
      },
    );
    try {
      const { page, complaints } = await open(console_.browser, demo.url);
      await page.getByRole("heading", { name: "Approvals" }).waitFor();
      await page.getByText(/\d+ pending/).waitFor();
      assert.equal(new URL(page.url()).hash, "#/approvals");
      assert.match(await page.evaluate(() => sessionStorage.getItem("assent.agent-key") ?? ""), /^assent_/);
      assert.deepEqual(complaints, []);
      const later = await open(console_.browser, demo.url);
      await later.page.getByText("This link was used already.").waitFor();
      assert.equal(await later.page.evaluate(() => sessionStorage.length), 0);
      const other = await open(
        console_.browser,
        demo.url.replace(/.$/, (last) => (last === "A" ? "B" : "A")),
      );
      await other.page.getByText("This is not the link that the demo printed.").waitFor();
      for (const one of [page, later.page, other.page]) await one.close();
      demo.child.kill("SIGINT");
      assert.equal(await demo.ended, 0, demo.output());
    } finally {
      demo.child.kill("SIGKILL");
    }
  });

  it("says of an address that is none of its own that nothing is there", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/aprovals/12");
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    await page.getByText("#/aprovals/12").waitFor();
    await page.getByRole("link", { name: "To the first page" }).click();
    await page.getByRole("heading", { name: "Approvals" }).waitFor();
  });

  it("reports why a key is not accepted", async () => {
    const { page } = await open(console_.browser, console_.server.url);
    await page.getByLabel("API key").fill(`assent_${"x".repeat(43)}000000`);
    await page.keyboard.press("Enter");
    assert.match((await page.getByRole("alert").textContent()) ?? "", /key/);
    await page.getByLabel("API key").fill("schlüssel");
    await page.keyboard.press("Enter");
    await page.getByText("this is not an API key").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length + localStorage.length), 0);
  });

  it("signs out when the key is revoked, and says so", async () => {
    const { body } = await console_.service.call("POST", "/v1/api-keys", {
      key: console_.service.admin,
      body: { name: "short", preset: "approver" },
    });
    const { page } = await console_.visit(body.key, "");
    await console_.service.call("DELETE", `/v1/api-keys/${body.id}`, { key: console_.service.admin });
    await page.getByText(/You were signed out/).waitFor();
  });

  it("lists the keys of each page with ?, and lets single letters be turned off", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/approvals");
    const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    const keysOn = async (address: string, heading: string) => {
      await page.evaluate((to) => (location.hash = to), address);
      await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
      await page.keyboard.press("?");
      await dialog.waitFor();
      const text = (await dialog.textContent()) ?? "";
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      assert.match(text, /Ctrl \+ K/, address);
      return text;
    };
    assert.match(await keysOn("#/approvals", "Approvals"), /j \/ kNext, previous request.*On every page/);
    const actions = await keysOn("#/actions", "Actions");
    assert.match(actions, /Search all actions/);
    assert.doesNotMatch(actions, /previous request/, "keys of another page");
    for (const link of await page.getByRole("navigation").locator('a[href^="#/"]').all()) {
      const [address, heading] = [(await link.getAttribute("href")) ?? "", (await link.textContent()) ?? ""];
      if (!/approvals|actions/.test(address))
        assert.match(await keysOn(address, heading), /no keys of its own/, address);
    }
    await page.evaluate(() => (location.hash = "#/actions"));
    await page.getByRole("heading", { name: "Actions", level: 1 }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("?");
    assert.equal(await page.getByLabel("Search", { exact: true }).inputValue(), "?", "typing is no shortcut");
    await page.getByRole("heading", { level: 1 }).focus();
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
    await dialog.getByRole("checkbox", { name: "Single-letter shortcuts" }).uncheck();
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.keyboard.press("Control+k");
    await page.getByLabel("Page, command or object").waitFor();
    assert.equal(await dialog.count(), 0);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("has a menu that a phone opens and a keyboard reaches", async () => {
    const { page } = await console_.visit(console_.service.admin, "", { viewport: { width: 390, height: 844 } });
    const link = page.getByRole("link", { name: "Approvals", exact: true });
    assert.equal(await link.isVisible(), false);
    await page.getByRole("button", { name: "Menu" }).focus();
    await page.keyboard.press("Enter");
    assert.equal(await link.isVisible(), true);
  });

  it(
    "hides a dismissed suggestion after a reload too, and activates one in shadow mode",
    needs("suggestions"),
    async () => {
      const work = await startConsole({
        policy: "policy: work\nrules: [{ name: refunds, tool: stripe, operation: refund, effect: require_approval }]\n",
      });
      try {
        const { service } = work;
        const approvers = [
          await work.key("ann", { preset: "approver", owner: "ann" }),
          await work.key("bo", { preset: "approver", owner: "bo" }),
        ];
        const agents: { agent_id: string; key: string }[] = [];
        for (const agent_id of ["bot-1", "bot-2"])
          agents.push({ agent_id, key: await work.key(agent_id, { preset: "agent", agent_id }) });
        for (let i = 0; i < 24; i++) {
          const { agent_id, key } = agents[i % 2] as (typeof agents)[number];
          const body = { agent_id, tool: "stripe", operation: "refund", params: { amount: i + 1, currency: "EUR" } };
          const { id } = (await service.call("POST", "/v1/actions", { key, body })).body;
          service.clock.now += 10_000;
          await approve(service, id, approvers[i < 12 ? 0 : 1]);
          service.clock.now += 4 * 3_600_000;
        }
        const { page } = await work.visit(service.admin, "#/suggestions");
        await page.getByRole("button", { name: "Dismiss" }).click();
        const hidden = page.getByText("1 dismissed suggestion in this browser.");
        await hidden.waitFor();
        await page.reload();
        await hidden.waitFor();
        assert.equal(await page.getByRole("button", { name: "Dismiss" }).count(), 0);
        await page.getByRole("button", { name: "Show again" }).click();
        await page.getByRole("button", { name: "Activate in shadow mode" }).click();
        await page.getByText(/is active in shadow mode/).waitFor();
      } finally {
        await work.close();
      }
    },
  );

  it("is served with a content security policy that blocks inline markup and other hosts", async () => {
    const { status, headers } = await console_.service.call("GET", "/", { key: null });
    assert.equal(status, 200);
    const policy = headers.get("content-security-policy") ?? "";
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "require-trusted-types-for 'script'",
      "frame-ancestors 'none'",
    ])
      assert.ok(policy.includes(part), part);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    const { page } = await open(console_.browser, console_.server.url);
    const refused = await page.evaluate(() => {
      try {
        document.body.innerHTML = "<p>markup</p>";
        return "taken";
      } catch (error) {
        return String(error);
      }
    });
    assert.match(refused, /TrustedHTML/);
  });
});
