/**
 * The inbox as approvers use it: alone, together with other approvers, close to a deadline, and with hostile requests.
 * @needs console
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { defaultConfig } from "../../src/index.ts";
import { withoutBrowser } from "../support/browser.ts";
import {
  openRequest,
  requestPane,
  inboxRow,
  startConsole,
  vote,
  voteNow,
  recordNow,
  type Console,
} from "../support/console.ts";
import { ASKED, ASKED_TWO, POLICIES } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\u202egnp.exe\u200b\u0007";

/** With the default configuration and policies, which the other tests change. */
describe("the first steps on a new installation", { skip: withoutBrowser }, () => {
  let console_: Console;
  before(async () => {
    const { agents, approvals } = defaultConfig({ data: "", policies: "" });
    console_ = await startConsole({
      policies: POLICIES,
      change: (config) => Object.assign(config, { agents, approvals }),
    });
  });
  after(() => console_.close());

  it("create an agent's key, send a test request, approve it and verify the proof, without an error", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/approvals");
    await page.getByRole("button", { name: "Create an agent key" }).click();
    await page.getByRole("button", { name: "Send a test request" }).click();
    await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
    const id = page.url().replace(/.*\//, "");
    await voteNow(page, "Approve", "it is a test");
    await page.getByText("Verified in this browser.").waitFor();
    await page.evaluate((address) => void (location.hash = address), `#/actions/${id}`);
    await page
      .getByRole("region", { name: "Approvals" })
      .getByText(/by the key admin, with an API key \(1 of 1\): it is/)
      .waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
    await page.close();
  });
});

describe("approvals in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let folder: string;
  let ada: string;
  let grace: string;
  before(async () => {
    folder = temporaryFolder("assent-console-");
    writeFileSync(
      join(folder, "asked.yaml"),
      `policy: asked
rules:
  - { name: short, operation: short, effect: require_approval, approval: { expires_in: 8s } }
  - { name: bounded, operation: bounded, effect: require_approval, approval: { editable: { params.amount: { min: 1, max: 600 } }, expires_in: 1h } }
  - { name: two, tool: stripe, when: "params.amount > 1000", effect: require_approval, risk: high, reason: much money, approval: { quorum: 2, expires_in: 1h } }
  - { name: one, effect: require_approval, risk: medium, reason: a person looks, approval: { expires_in: 1h } }
`,
    );
    console_ = await startConsole({ policies: folder });
    ada = await console_.key("ada", { preset: "approver", owner: "Ada" });
    grace = await console_.key("grace", { preset: "approver", owner: "Grace" });
  });
  after(async () => {
    await console_.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const submit = async (body: object): Promise<string> =>
    (await console_.service.call("POST", "/v1/actions", { body })).body.id as string;
  const read = async (id: string): Promise<Record<string, any>> =>
    (await console_.service.call("GET", `/v1/actions/${id}`, { key: console_.service.admin })).body as Record<
      string,
      any
    >;

  it("shows an empty inbox how to submit, sends a test request, and verifies the proof of its vote", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/approvals");
    await page.getByText("No requests are waiting.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Send a test request" }).isDisabled(), true);
    await page.getByLabel("Agent key").fill(console_.service.agent);
    for (const label of ["From a terminal, with curl", "From TypeScript", "From a coding agent (Claude Code)"]) {
      const lines = (await page.getByRole("region", { name: label }).textContent()) ?? "";
      assert.ok(lines.includes(console_.server.url), label);
      assert.equal(lines.includes(console_.service.agent), !label.includes("coding agent"), label);
    }
    await page.getByRole("button", { name: "Send a test request" }).click();
    await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
    await voteNow(page, "Approve", "it is a test");
    await page.getByText("Verified in this browser.").waitFor();
    await page.getByText(/Your vote is entry \d+ of \d+ in the ledger/).waitFor();
    await page.getByRole("link", { name: "Show the entry" }).click();
    await page.getByRole("heading", { level: 1, name: /^Entry \d+$/ }).waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
    await page.close();
  });

  it("lists a new request, shows it completely, and approves it with a reason", async () => {
    const { page, complaints, strayed } = await console_.visit(ada, "#/approvals");
    await page.getByText("No requests are waiting.").waitFor();
    await page.locator(".stream-status.live").waitFor();
    const long = "x".repeat(20_000);
    const id = await submit({
      ...ASKED,
      params: { amount: 500, note: `start ${long} end` },
      context: { ticket: "T-1" },
    });
    await page.locator(`[data-id="${id}"]`).click();
    const pane = requestPane(page, id);
    await pane.getByText("computed in this browser").waitFor({ state: "attached" });
    const text = (await pane.textContent()) ?? "";
    const action = await read(id);
    for (const part of [
      `start ${long.slice(0, 594)}`,
      "… 195 more lines",
      "T-1",
      "a person looks",
      "medium risk",
      action["request_hash"] as string,
      " left",
      "support-bot",
      "asked, version 1",
    ])
      assert.ok(text.includes(part), part.slice(0, 80));
    await voteNow(page, "Approve", "looks right");
    await pane.getByText("You approved it.").waitFor();
    const decided = await read(id);
    assert.deepEqual([decided["status"], decided["approvals"][0].reason], ["approved", "looks right"]);
    assert.deepEqual([complaints, strayed], [[], []]);
    await page.close();
  });

  it("shows the preview first, then why, votes, parameters, context and proof", async () => {
    const id = await submit({ ...ASKED, operation: "ordered", params: { amount: 120 }, context: { ticket: "T-2" } });
    const { page } = await console_.visit(ada, `#/approvals/${id}`);
    const pane = requestPane(page, id);
    await pane.getByText("computed in this browser").waitFor({ state: "attached" });
    const tops = [];
    for (const text of [
      "amount 120",
      "Why approval is required",
      "Who has to agree",
      "Parameters",
      "Context",
      "Details and proof",
    ])
      tops.push((await pane.getByText(text, { exact: false }).first().boundingBox())?.y ?? -1);
    assert.deepEqual(
      tops,
      [...tops].sort((a, b) => a - b),
    );
    // The reason stays in view, however long the request is.
    assert.ok(await page.getByLabel("Reason").isVisible());
    await page.close();
  });

  it("votes on the selected requests and on no other", async () => {
    const ids = await Promise.all(
      [1, 2, 3].map((n) => submit({ ...ASKED, operation: "batch", params: { amount: 100 + n, note: `note ${n}` } })),
    );
    const { page } = await console_.visit(ada, "#/approvals");
    await page.locator("[data-group]", { hasText: "stripe batch" }).click();
    for (const id of ids.slice(0, 2)) await inboxRow(page, id).getByRole("checkbox").check();
    const batch = page.getByRole("region", { name: "Group of requests" });
    const shown = (await batch.textContent()) ?? "";
    for (const [part, isShown] of [
      ["101", true],
      ["note 1", true],
      ["102", true],
      ["note 2", true],
      ["note 3", false],
    ] as const)
      assert.equal(shown.includes(part), isShown, part);
    // A new request is not selected automatically.
    const late = await submit({ ...ASKED, operation: "late" });
    await page.locator(`[data-id="${late}"]`).waitFor();
    await page.getByRole("button", { name: "Deny 2" }).click();
    await recordNow(page);
    for (const id of ids.slice(0, 2)) await inboxRow(page, id).getByText("denied by you").waitFor();
    assert.deepEqual(await Promise.all([...ids, late].map(async (id) => (await read(id))["status"])), [
      "denied",
      "denied",
      "pending_approval",
      "pending_approval",
    ]);
    await page.close();
  });

  it("counts two people if a rule requires two", async () => {
    const id = await submit(ASKED_TWO);
    const first = await console_.visit(ada, `#/approvals/${id}`);
    await voteNow(first.page, "Approve");
    await inboxRow(first.page, id).getByText("you approved").waitFor();
    await openRequest(first.page, id);
    await requestPane(first.page, id).getByText("1 of 2 approvals").waitFor();
    await requestPane(first.page, id)
      .getByText("Your approval is recorded. The request needs 1 more approval.")
      .waitFor();
    const second = await console_.visit(grace, `#/approvals/${id}`);
    await requestPane(second.page, id).getByText("Ada approved").waitFor();
    await voteNow(second.page, "Approve");
    await requestPane(first.page, id).getByText("Grace approved it.").waitFor();
    assert.equal((await read(id))["status"], "approved");
    for (const { page } of [first, second]) await page.close();
  });

  it("lets two browsers race: one vote counts, the other reports who was first and keeps the reason", async () => {
    const id = await submit({ ...ASKED, operation: "race" });
    const [one, other] = await Promise.all([
      console_.visit(ada, `#/approvals/${id}`),
      console_.visit(grace, `#/approvals/${id}`),
    ]);
    await one.page.getByLabel("Reason").fill("fine");
    await other.page.getByLabel("Reason").fill("not fine");
    // The first vote's event can remove the other browser's button before it is clicked.
    await Promise.any([voteNow(one.page, "Approve"), voteNow(other.page, "Deny")]);
    await until("the race ends", async () => (await read(id))["status"] !== "pending_approval");
    const isOne = (await read(id))["status"] === "approved";
    const [loser, verb, name, kept] = isOne ? [other, "approved", "Ada", "not fine"] : [one, "denied", "Grace", "fine"];
    await openRequest(loser.page, id);
    await requestPane(loser.page, id).getByText(`${name} ${verb} it`).waitFor();
    await requestPane(loser.page, id).getByText(`Your reason is kept: “${kept}”`).waitFor();
    assert.equal((await read(id))["approvals"].length, 1);
    for (const { page } of [one, other]) await page.close();
  });

  it("keeps the reason of a held vote that arrives after another person's", async () => {
    const id = await submit({ ...ASKED, operation: "late" });
    const one = await console_.visit(ada, `#/approvals/${id}`);
    const other = await console_.visit(grace, `#/approvals/${id}`);
    await vote(other.page, "Deny", "not fine");
    await openRequest(other.page, id);
    await voteNow(one.page, "Approve");
    await requestPane(other.page, id).getByText("Ada approved it").waitFor();
    await requestPane(other.page, id).getByText("Your reason is kept: “not fine”").waitFor();
    for (const { page } of [one, other]) await page.close();
  });

  it("offers after a late vote what is still possible", async () => {
    const id = await submit({ ...ASKED, operation: "late cancel" });
    const [late, admin] = [
      await console_.visit(grace, `#/approvals/${id}`),
      await console_.visit(console_.service.admin, `#/approvals/${id}`),
    ];
    const first = await console_.visit(ada, `#/approvals/${id}`);
    await requestPane(admin.page, id).waitFor();
    await vote(late.page, "Deny", "not fine");
    await openRequest(late.page, id);
    await voteNow(first.page, "Approve");
    await requestPane(late.page, id).getByText("Ada approved it").waitFor();
    await requestPane(late.page, id).getByText("An admin can still cancel it").waitFor();
    await requestPane(late.page, id).getByRole("button", { name: "Flag…" }).click();
    await late.page.getByRole("dialog").getByLabel("Reason").fill("it is a duplicate");
    await late.page.getByRole("dialog").getByRole("button", { name: "Flag", exact: true }).click();
    await requestPane(late.page, id).getByText("You flagged it.").waitFor();
    const pane = requestPane(admin.page, id);
    await pane.getByText("Ada approved it").waitFor();
    await pane.getByRole("button", { name: "Stop this agent…" }).waitFor();
    await pane.getByRole("button", { name: "Cancel the action" }).click();
    await pane.getByText("You cancelled the action.").waitFor();
    assert.equal((await read(id))["status"], "cancelled");
    for (const { page } of [late, admin, first]) await page.close();
  });

  it("shows a stop before the vote, names the bound of a rejected change, and is not live while offline", async () => {
    const id = await submit({ ...ASKED, operation: "bounded" });
    const { page } = await console_.visit(ada, `#/approvals/${id}`);
    const pane = requestPane(page, id);
    await pane.waitFor();
    await page.locator(".stream-status.live").waitFor();
    const { call, admin } = console_.service;
    const stop = await call("POST", "/v1/stop", { key: admin, body: { tool: "stripe", reason: "the bank is down" } });
    await page.locator(".stopped").getByText("the bank is down").waitFor();
    await vote(page, "Approve");
    await recordNow(page);
    // Shows the stop as the reason, and does not claim that someone else was faster.
    await page
      .locator(".held-failure")
      .getByText(/the bank is down|stop/i)
      .first()
      .waitFor();
    assert.equal((await read(id))["status"], "pending_approval");
    await call("POST", `/v1/stop/${stop.body.id}/lift`, { key: admin, body: {} });
    await page.locator(".stopped").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Open the request" }).click();
    await pane.getByText("Change the request").click();
    await pane.getByText("from 1 to 600").waitFor();
    await pane.getByLabel("params.amount").fill("700");
    await pane.getByRole("button", { name: "Change", exact: true }).click();
    await pane.getByRole("alert").getByText("it must be at most 600").waitFor();
    await page.context().setOffline(true);
    await page.locator(".banner").getByText("The service does not respond").waitFor();
    await page.locator(".stream-status.waiting").waitFor();
    assert.equal(await page.locator(".stream-status.live").count(), 0);
    // A request that is opened meanwhile appears as soon as the service responds.
    const other = await submit({ ...ASKED, operation: "opened offline" });
    await page.evaluate((opened) => void (location.hash = `#/approvals/${opened}`), other);
    await page.locator(".pane").getByRole("alert").getByText("the service does not respond").waitFor();
    await page.context().setOffline(false);
    await page.locator(".stream-status.live").waitFor();
    await requestPane(page, other).waitFor();
    await page.locator(".banner").getByText("The service does not respond").waitFor({ state: "detached" });
    await page.close();
  });

  it("reports that the time is up while a request is open", async () => {
    // Complete the slow steps before the deadline is close.
    const { page } = await console_.visit(ada, "#/approvals");
    await page.locator(".stream-status.live").waitFor();
    const id = await submit({ ...ASKED, operation: "short" });
    const pane = await openRequest(page, id);
    await pane.getByText(/\d s left/).waitFor();
    await page.getByLabel("Reason").fill("almost");
    await pane.getByText("The deadline has passed").or(pane.getByText("It expired")).first().waitFor();
    await page.getByText("Your reason is kept: “almost”").waitFor();
    assert.equal(await pane.getByRole("button", { name: "Approve" }).count(), 0);
    await until("it is expired", async () => (await read(id))["status"] === "expired");
    await page.close();
  });

  it("renders a hostile action without running it, and marks its hidden characters", async () => {
    // Names with hidden characters are rejected; markup is displayed as text.
    const visible = HOSTILE.replaceAll(/[\p{Cc}\p{Cf}]/gu, "");
    const id = await submit({
      agent_id: "support-bot",
      tool: visible,
      operation: visible,
      params: { [HOSTILE]: HOSTILE, ["__proto__"]: { x: HOSTILE } },
      context: { note: HOSTILE },
    });
    const { page, complaints, strayed } = await console_.visit(ada, `#/approvals/${id}`);
    const shown = requestPane(page, id);
    await shown.getByText("computed in this browser").waitFor({ state: "attached" });
    assert.equal(await page.evaluate(() => Reflect.get(globalThis, "pwned")), undefined);
    const text = (await shown.textContent()) ?? "";
    assert.ok(text.includes("<script>window.pwned=1</script>"));
    assert.doesNotMatch(text, /\p{Cf}/u);
    assert.ok(!text.includes("\u0007"));
    assert.equal(
      await shown.locator(".hidden-character[title='right-to-left override']").first().textContent(),
      "U+202E",
    );
    await voteNow(page, "Deny");
    await inboxRow(page, id).locator(".settled-mark").waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("shows that a key of the submitter cannot vote", async () => {
    const body = await console_.service.call("POST", "/v1/actions", {
      key: console_.service.admin,
      body: { ...ASKED, operation: "own" },
    });
    const { page } = await console_.visit(console_.service.admin, `#/approvals/${body.body.id}`);
    await page.getByText("You cannot vote on this request").waitFor();
    assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
  });

  it("polls every few seconds if the key cannot read events", async () => {
    const key = await console_.key("no events", { owner: "no events", scopes: ["actions:read", "approvals:decide"] });
    const { page } = await console_.visit(key, "#/approvals");
    await page.getByText(/not live/).waitFor();
    const id = await submit({ ...ASKED, operation: "polled" });
    await page.locator(`[data-id="${id}"]`).waitFor();
  });

  it("leads from a link of something settled to its record", async () => {
    const id = await submit({ ...ASKED, operation: "withdrawn" });
    await console_.service.call("POST", `/v1/actions/${id}/cancel`, { body: {} });
    const { page } = await console_.visit(ada, `#/approvals/${id}`);
    await page.getByText("This request is settled").waitFor();
  });
});
