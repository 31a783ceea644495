/**
 * Every console page is accessible (axe-core, in light and dark mode and at a phone's width), and no page interprets
 * hostile content as markup or script.
 * @needs break-glass, console, grants, users
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { accessibilityFindings } from "../support/axe.ts";
import { withoutBrowser } from "../support/browser.ts";
import { startConsole, type Console } from "../support/console.ts";
import { usersPlugin } from "../support/people.ts";
import { ASKED, DENIED, waitForSignature } from "../support/service.ts";

const HOSTILE = "<img src=x onerror=pwned=1>\u202e<script>pwned=1</script>\u200b";
/** Names of agents, tools and operations may not hide anything. */
const NAME = HOSTILE.replaceAll(/\p{Cf}/gu, "");
const MARKS = /[\u202a-\u202e\u2066-\u2069\u200b]/;

describe("every page of the console", { skip: withoutBrowser }, () => {
  let console_: Console;
  let asked: string;
  let hash: string;
  before(async () => {
    console_ = await startConsole({
      plugins: [usersPlugin()],
      change(config) {
        config.require_registered_agents = false;
      },
    });
    const call = async (path: string, body: object) => {
      const answer = await console_.service.call("POST", path, { key: console_.service.admin, body });
      assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    };
    await call("/v1/policies?activate=true", {
      policy: "hostile",
      description: HOSTILE,
      rules: [{ name: HOSTILE, tool: `*onerror*`, effect: "require_approval", risk: "critical", reason: HOSTILE }],
    });
    await call("/v1/agents", { id: NAME, name: HOSTILE, description: HOSTILE, allowed_tools: ["*", NAME] });
    await call("/v1/api-keys", { name: HOSTILE, preset: "approver" });
    const agent = (await call("/v1/api-keys", { name: "hostile agent", preset: "agent" })).key as string;
    const { body } = await console_.service.call("POST", "/v1/actions", {
      key: agent,
      body: {
        agent_id: NAME,
        tool: NAME,
        operation: NAME,
        params: { [HOSTILE]: [HOSTILE] },
        context: { [HOSTILE]: HOSTILE },
      },
    });
    asked = body.id;
    hash = body.decision_hash;
    // The policy is not active. The tests display what it would have changed.
    const rules = [{ name: `${HOSTILE}!`, tool: "*onerror*", effect: "deny", reason: HOSTILE }];
    await console_.service.call("PUT", "/v1/policies/hostile", {
      key: console_.service.admin,
      body: { policy: "hostile", description: HOSTILE, rules },
    });
    await call("/v1/policies?activate=true", { policy: "hostile-shadow", mode: "shadow", rules });
    await console_.service.call("POST", "/v1/actions", {
      key: agent,
      body: { agent_id: NAME, tool: NAME, operation: NAME },
    });
    for (const more of [ASKED, DENIED]) await console_.service.call("POST", "/v1/actions", { key: agent, body: more });
    await waitForSignature(console_.service);
  });
  after(() => console_.close());

  const pages = (): [string, string][] => [
    ["#/approvals", "critical risk"],
    [`#/approvals/${asked}`, "computed in this browser"],
    ["#/plans", "No agent has submitted several actions"],
    ["#/actions", "delete_customer"],
    [`#/actions/${asked}`, "Decision as recorded"],
    ["#/grants", "No grants are active."],
    ["#/suggestions", "Activated rules"],
    ["#/policies", "payments"],
    ["#/policies/hostile", "Digest"],
    ["#/policies/hostile-shadow", "1 of 1 past decisions"],
    ["#/policies/new", "No problems."],
    ["#/agents", NAME],
    [`#/agents/${encodeURIComponent(NAME)}`, "Approval rate"],
    ["#/keys", "(yours)"],
    ["#/users", "invited"],
    ["#/delegations", "No delegation is active or scheduled."],
    ["#/break-glass", "No review is open."],
    ["#/access-review", "Approvers and voters"],
    ["#/analytics", "By rule"],
    ["#/provenance", "no key is pinned"],
    [`#/provenance/${hash}`, "Entry"],
    ["#/evidence", "Make the pack"],
    ["#/coverage", "No log has been compared"],
    ["#/events?after=-1", "active policies"],
    ["#/deliveries", "No messages were sent yet"],
    ["#/system", "Ready"],
  ];

  it("has no finding of axe-core, minor ones included, in light, dark and narrow", async () => {
    const { page } = await console_.visit(console_.service.admin, "", { bypassCSP: true });
    const findings: Record<string, string[]> = {};
    for (const look of ["light", "dark", "narrow"]) {
      await page.emulateMedia({ colorScheme: look === "dark" ? "dark" : "light" });
      await page.setViewportSize(look === "narrow" ? { width: 390, height: 844 } : { width: 1280, height: 900 });
      for (const [address, text] of pages()) {
        await page.evaluate((to) => (location.hash = to), address);
        await page.getByText(text).first().waitFor({ state: "attached" });
        // Dark mode differs from light mode only in its colors.
        const found = await accessibilityFindings(page, look === "dark" ? "colors" : "all");
        if (found.length > 0) findings[`${look} ${address}`] = found;
      }
    }
    assert.deepEqual(findings, {});
  });

  it("has a page to sign in without a finding, too", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await console_.browser.newPage({ bypassCSP: true, colorScheme });
      await page.goto(console_.server.url);
      await page.getByRole("heading", { level: 1 }).waitFor();
      assert.deepEqual(await accessibilityFindings(page), []);
      await page.close();
    }
  });

  it("has a selection and dialogs without a finding, too", async () => {
    const approver = await console_.key("ada", { preset: "approver", owner: "Ada" });
    const two = await console_.visit(console_.service.admin, "#/keys", { bypassCSP: true });
    await two.page.getByRole("button", { name: "New key…" }).click();
    await two.page.getByLabel("For", { exact: true }).selectOption("");
    assert.deepEqual(await accessibilityFindings(two.page), []);
    const three = await console_.visit(approver, "#/approvals", { bypassCSP: true });
    await three.page.locator("[data-group][aria-expanded]").first().click();
    await three.page.getByRole("button", { name: /^Approve \d/ }).waitFor();
    assert.deepEqual(await accessibilityFindings(three.page), []);
    await three.page.getByRole("button", { name: "Keyboard shortcuts" }).click();
    await three.page.getByRole("dialog").waitFor();
    assert.deepEqual(await accessibilityFindings(three.page), []);
    await three.page.keyboard.press("Escape");
    await three.page.keyboard.press("Control+k");
    await three.page.getByLabel("Page, command or object").waitFor();
    assert.deepEqual(await accessibilityFindings(three.page), []);
    for (const colorScheme of ["light", "dark"] as const) {
      const four = await console_.visit(console_.service.admin, "#/policies/hostile", { bypassCSP: true, colorScheme });
      await four.page.getByRole("button", { name: "Activate version 2" }).click();
      await four.page
        .getByRole("dialog")
        .getByText(/^2 of \d+ past decisions would flip/)
        .waitFor();
      assert.deepEqual(await accessibilityFindings(four.page), []);
    }
  });

  it("renders what a hostile rule and action would flip inert", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/policies/hostile", {
      viewport: { width: 360, height: 740 },
    });
    await page.getByRole("button", { name: "Activate version 2" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/^2 of \d+ past decisions would flip/).waitFor();
    const state = await dialog.evaluate((node) => ({
      pwned: Reflect.get(globalThis, "pwned") as unknown,
      images: document.images.length,
      text: [
        node.textContent,
        ...[...node.querySelectorAll("[aria-label], [title]")].map(
          (part) => `${part.getAttribute("aria-label")} ${part.getAttribute("title")}`,
        ),
      ].join("\n"),
      over: node.scrollWidth - node.clientWidth,
    }));
    assert.deepEqual([state.pwned, state.images, state.over], [undefined, 0, 0]);
    assert.ok(state.text.includes("<script>pwned=1</script>"));
    assert.doesNotMatch(state.text, MARKS);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("renders what is hostile inert, and fits a phone", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "", {
      viewport: { width: 360, height: 740 },
    });
    for (const [address, text] of pages()) {
      await page.evaluate((to) => (location.hash = to), address);
      await page.getByText(text).first().waitFor({ state: "attached" });
      const state = await page.evaluate(() => ({
        pwned: Reflect.get(globalThis, "pwned") as unknown,
        images: document.images.length,
        scripts: document.scripts.length,
        text: [
          document.body.innerText,
          ...[...document.querySelectorAll("[aria-label], [title]")].map(
            (node) => `${node.getAttribute("aria-label")} ${node.getAttribute("title")}`,
          ),
          document.title,
        ].join("\n"),
        wide: document.documentElement.scrollWidth,
      }));
      assert.deepEqual([state.pwned, state.images, state.scripts], [undefined, 0, 1], address);
      assert.doesNotMatch(state.text, MARKS, address);
      assert.ok(state.wide <= 360, `${address} is ${state.wide} wide`);
    }
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("shows the missing scope on every page that the key cannot see, without sending requests", async () => {
    const key = await console_.key("nothing but metrics", { scopes: ["metrics:read"] });
    const { page, complaints } = await console_.visit(key, "");
    for (const [address] of pages().filter(([address]) => !/system/.test(address))) {
      await page.evaluate((to) => (location.hash = to), address);
      await page.getByText(/it needs the scope \w+/).waitFor();
    }
    // The browser would log a rejected request as a console error.
    assert.deepEqual(complaints, []);
  });
});
