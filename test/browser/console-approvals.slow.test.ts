/** The queue of approvals as people work with it: alone, against each other, against the clock and against a hostile agent. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { withoutBrowser } from "../support/browser.ts";
import { startConsole, type Console } from "../support/console.ts";
import { ASKED, ASKED_TWO } from "../support/service.ts";

const HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\u202egnp.exe\u200b\u0007";

describe("approvals in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let folder: string;
  let ada: string;
  let grace: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "assent-console-"));
    writeFileSync(
      join(folder, "asked.yaml"),
      `policy: asked
rules:
  - { name: short, operation: short, effect: require_approval, approval: { expires_in: 8s } }
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
  const card = (page: Page, id: string) => page.locator("article", { has: page.locator(`[data-id="${id}"]`) });

  it("shows what comes in while one looks, whole, and approves it with a reason", async () => {
    const { page, complaints, strayed } = await console_.visit(ada, "#/approvals");
    await page.getByText("Nothing waits for a person.").waitFor();
    await page.locator(".live.live").waitFor();
    const long = "x".repeat(20_000);
    const id = await submit({
      ...ASKED,
      params: { amount: 500, note: `start ${long} end` },
      context: { ticket: "T-1" },
    });
    await page.locator(`[data-id="${id}"]`).click();
    const shown = card(page, id);
    await shown.getByText("computed in this browser").waitFor();
    const text = (await shown.textContent()) ?? "";
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
    await shown.getByRole("button", { name: "Approve…" }).click();
    await page.getByLabel("Reason").fill("looks right");
    await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await shown.getByText("You approved it.").waitFor();
    const decided = await read(id);
    assert.deepEqual([decided["status"], decided["approvals"][0].reason], ["approved", "looks right"]);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("is worked through with the keyboard alone: j, k, a, d", async () => {
    const ids = [await submit({ ...ASKED, operation: "first" }), await submit({ ...ASKED, operation: "second" })];
    const { page } = await console_.visit(ada, "#/approvals");
    await page.locator(`[data-id="${ids[1]}"]`).waitFor();
    await page.keyboard.press("j");
    // Keys go to whatever has the focus: on a busy machine it moves a moment after the key.
    const focused = (id: string | undefined) =>
      page.waitForFunction((wanted) => document.activeElement?.getAttribute("data-id") === wanted, id);
    await focused(ids[0]);
    await page.keyboard.press("x");
    await page.getByText("1 selected").waitFor();
    await page.keyboard.press("x");
    await page.getByText("1 selected").waitFor({ state: "detached" });
    await page.keyboard.press("j");
    await focused(ids[1]);
    await page.keyboard.press("d");
    await page.getByLabel("Reason").fill("ajkd are letters here");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await card(page, ids[1] as string)
      .getByText("You denied it.")
      .waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await focused(ids[1]);
    await page.keyboard.press("k");
    await focused(ids[0]);
    await page.keyboard.press("a");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal((await read(ids[0] as string))["status"], "pending_approval", "Escape decides nothing");
    await focused(ids[0]);
    await page.keyboard.press("a");
    await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await card(page, ids[0] as string)
      .getByText("You approved it.")
      .waitFor();
    assert.deepEqual(await Promise.all(ids.map(async (id) => (await read(id))["status"])), ["approved", "denied"]);
  });

  it("decides a batch of what was selected and of nothing else", async () => {
    const ids = await Promise.all(
      ["one", "two", "three"].map((operation, i) =>
        submit({ ...ASKED, operation, params: { amount: 101 + i, note: `${"n".repeat(500)} end of ${operation}` } }),
      ),
    );
    const { page } = await console_.visit(ada, "#/approvals");
    for (const id of ids.slice(0, 2)) await card(page, id).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Deny selected…" }).click();
    await page.getByRole("dialog").getByRole("listitem").nth(1).waitFor();
    assert.equal(await page.getByRole("dialog").getByRole("listitem").count(), 2);
    // Nobody decides by a hash alone: what each asks for stands there, to its end.
    const shown = (await page.getByRole("dialog").textContent()) ?? "";
    for (const [part, there] of [
      ["101", true],
      ["end of one", true],
      ["102", true],
      ["end of two", true],
      ["end of three", false],
    ] as const)
      assert.equal(shown.includes(part), there, part);
    // What comes in while one reads is not in it.
    const late = await submit({ ...ASKED, operation: "late" });
    await page.locator(`[data-id="${late}"]`).waitFor();
    await page.getByRole("button", { name: "Deny all 2" }).click();
    await page.getByText("2 denied.").waitFor();
    assert.deepEqual(await Promise.all([...ids, late].map(async (id) => (await read(id))["status"])), [
      "denied",
      "denied",
      "pending_approval",
      "pending_approval",
    ]);
  });

  it("counts two people where two are asked for", async () => {
    const id = await submit(ASKED_TWO);
    const first = await console_.visit(ada, `#/approvals/${id}`);
    await card(first.page, id).getByRole("button", { name: "Approve…" }).click();
    await first.page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await card(first.page, id).getByText("1 of 2 approvals").waitFor();
    await card(first.page, id).getByText("Your approval is recorded. It waits for 1 more person.").waitFor();
    await first.page.getByText("1 has your approval and waits for others.").waitFor();
    const second = await console_.visit(grace, `#/approvals/${id}`);
    await card(second.page, id).getByText("ada approved").waitFor();
    await card(second.page, id).getByRole("button", { name: "Approve…" }).click();
    await second.page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await card(second.page, id).getByText("You approved it.").waitFor();
    await card(first.page, id).getByText("grace approved it.").waitFor();
    assert.equal((await read(id))["status"], "approved");
  });

  it("lets two browsers race: one decides, the other learns who did", async () => {
    const id = await submit({ ...ASKED, operation: "race" });
    const [one, other] = await Promise.all([
      console_.visit(ada, `#/approvals/${id}`),
      console_.visit(grace, `#/approvals/${id}`),
    ]);
    for (const { page } of [one, other]) await card(page, id).getByRole("button", { name: "Approve…" }).click();
    await other.page.getByRole("button", { name: "Cancel" }).click();
    await card(other.page, id).getByRole("button", { name: "Deny…" }).click();
    await Promise.all([
      one.page.getByRole("dialog").getByRole("button", { name: "Approve" }).click(),
      other.page.getByRole("dialog").getByRole("button", { name: "Deny" }).click(),
    ]);
    for (const { page } of [one, other])
      await card(page, id)
        .getByText(/ecided by you|You (approved|denied)/)
        .waitFor();
    const { status } = (await read(id)) as { status: string };
    const [winner, loser, verb, name] =
      status === "approved" ? [one, other, "approved", "ada"] : [other, one, "denied", "grace"];
    await card(winner.page, id).getByText(`You ${verb} it.`).waitFor();
    await card(loser.page, id).getByText(`Not decided by you. ${name} ${verb} it.`).waitFor();
    await loser.page.getByText("somebody else was faster").waitFor();
    assert.equal((await read(id))["approvals"].length, 1);
  });

  it("says so when time runs out under one's eyes", async () => {
    // Everything that takes its time comes before the seconds run.
    const { page } = await console_.visit(ada, "#/approvals");
    await page.locator(".live.live").waitFor();
    const id = await submit({ ...ASKED, operation: "short" });
    await page.evaluate((which) => void (location.hash = `#/approvals/${which}`), id);
    const shown = card(page, id);
    await shown.getByText(/\d s left/).waitFor();
    await shown.getByRole("button", { name: "Approve…" }).click();
    await shown.getByText(/Time is up|It expired/).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await page.getByText(/0 approved; 1 not/).waitFor();
    await shown.getByText("It expired").waitFor();
    assert.equal(await shown.getByRole("button", { name: "Approve…" }).count(), 0);
    assert.equal((await read(id))["status"], "expired");
  });

  it("renders a hostile action inert, and shows what hides in it", async () => {
    // Names that hide something are refused; markup is text.
    const visible = HOSTILE.replaceAll(/[\p{Cc}\p{Cf}]/gu, "");
    const id = await submit({
      agent_id: "support-bot",
      tool: visible,
      operation: visible,
      params: { [HOSTILE]: HOSTILE, ["__proto__"]: { x: HOSTILE } },
      context: { note: HOSTILE },
    });
    const { page, complaints, strayed } = await console_.visit(ada, `#/approvals/${id}`);
    const shown = card(page, id);
    await shown.getByText("computed in this browser").waitFor();
    assert.equal(await page.evaluate(() => Reflect.get(globalThis, "pwned")), undefined);
    const text = (await shown.textContent()) ?? "";
    assert.ok(text.includes("<script>window.pwned=1</script>"));
    assert.doesNotMatch(text, /\p{Cf}/u);
    assert.ok(!text.includes("\u0007"));
    assert.equal(
      await shown.locator(".hidden-character[title='right-to-left override']").first().textContent(),
      "U+202E",
    );
    await shown.getByRole("button", { name: "Deny…" }).click();
    assert.doesNotMatch((await page.getByRole("dialog").textContent()) ?? "", /[\u202e\u200b]/);
    await page.getByRole("dialog").getByRole("button", { name: "Deny" }).click();
    await shown.getByText("You denied it.").waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("says that a key which stands behind the request cannot decide it", async () => {
    const body = await console_.service.call("POST", "/v1/actions", {
      key: console_.service.admin,
      body: { ...ASKED, operation: "own" },
    });
    const { page } = await console_.visit(console_.service.admin, `#/approvals/${body.body.id}`);
    await card(page, body.body.id).getByText("This key cannot decide it").waitFor();
    assert.equal(await card(page, body.body.id).getByRole("button", { name: "Approve…" }).count(), 0);
  });

  it("looks again every few seconds where the key may not read events", async () => {
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
    await page.getByText("This one is settled").waitFor();
  });
});
