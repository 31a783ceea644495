/** The queue where much waits: what is first, what is seen of each, what stays where it is, and what is said of many. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { withoutBrowser } from "../support/browser.ts";
import { startConsole, type Console } from "../support/console.ts";
import { ASKED } from "../support/service.ts";
import { until } from "../support/wait.ts";

const POLICY = `policy: asked
rules:
  - { name: soon, operation: soon, effect: require_approval, reason: a person looks, approval: { expires_in: 20m } }
  - { name: two, operation: two, effect: require_approval, approval: { quorum: 2, expires_in: 2h } }
  - { name: one, effect: require_approval, approval: { expires_in: 1h } }
`;

describe("a long queue in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let folder: string;
  let ada: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "assent-queue-"));
    writeFileSync(join(folder, "asked.yaml"), POLICY);
    console_ = await startConsole({ policies: folder });
    ada = await console_.key("ada", { preset: "approver", owner: "Ada" });
  });
  after(async () => {
    await console_.close();
    rmSync(folder, { recursive: true, force: true });
  });

  // Also after a failure: the next test starts with an empty queue.
  afterEach(() => cancelAll());

  const submit = async (body: object): Promise<string> =>
    (await console_.service.call("POST", "/v1/actions", { body: { ...ASKED, ...body } })).body.id as string;
  const read = async (id: string) => (await console_.service.call("GET", `/v1/actions/${id}`)).body;
  const card = (page: Page, id: string) => page.locator("article", { has: page.locator(`[data-id="${id}"]`) });
  const inView = (page: Page, id: string) =>
    page.waitForFunction((wanted) => {
      const button = document.querySelector(`[data-id="${wanted}"]`);
      const box = button?.closest("article")?.getBoundingClientRect();
      return box !== undefined && document.activeElement === button && box.top >= 0 && box.top < innerHeight - 100;
    }, id);
  const cancelAll = async (): Promise<void> => {
    const key = console_.service.admin;
    for (let left = Infinity; ;) {
      const { actions, total } = (await console_.service.call("GET", "/v1/approvals?limit=1000", { key })).body;
      if (total === 0) return;
      assert.ok(total < left, `${total} cannot be withdrawn`);
      left = total;
      const ids = (actions as { id: string }[]).map(({ id }) => id);
      await Promise.all(ids.map((id) => console_.service.call("POST", `/v1/actions/${id}/cancel`, { key, body: {} })));
    }
  };

  it("says of each whether its agent waits, and when it last asked where nobody does", async () => {
    const [left, waited] = [await submit({ params: { n: 1 } }), await submit({ params: { n: 2 } })];
    const gone = new AbortController();
    const wait = console_.service.runtime.fetch(
      new Request(`http://test/v1/actions/${waited}?wait=60`, {
        headers: { authorization: `Bearer ${console_.service.agent}` },
        signal: gone.signal,
      }),
    );
    await until("the wait is seen", async () => (await read(waited)).waiting === true);
    const { page } = await console_.visit(ada, "#/approvals");
    await card(page, waited).getByText("The agent waits.").waitFor();
    await card(page, left)
      .getByText(/Nobody waits; last asked/)
      .waitFor();
    gone.abort();
    await wait;
    await page.close();
  });

  it("shows first what expires first, counts all, and decides each on its own page", async () => {
    // The oldest of more than a list of the newest can show, and the one with the least time.
    const urgent = await submit({ operation: "soon", params: { amount: 1 } });
    let last = "";
    for (let i = 0; i < 101; i++)
      last = (await Promise.all(Array.from({ length: 10 }, (_, n) => submit({ params: { amount: i * 10 + n } })))).at(
        -1,
      ) as string;
    const { page } = await console_.visit(ada, "#/approvals");
    await page.getByText("1,011 wait", { exact: true }).waitFor();
    assert.equal(await page.locator("[data-id]").first().getAttribute("data-id"), urgent);
    await page.getByText("50 shown, 1,011 wait").waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText("100 shown, 1,011 wait").waitFor();
    // A link leads to one that no page has shown yet.
    await page.evaluate((id) => void (location.hash = `#/approvals/${id}`), last);
    await inView(page, last);
    await card(page, last).getByRole("button", { name: "Approve…" }).click();
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Control+Enter");
    await card(page, last).getByText("You approved it.").waitFor();
    await page.getByText("1,010 wait", { exact: true }).waitFor();
    assert.equal((await read(last)).status, "approved");
    // And so does the action's own page.
    await page.evaluate((id) => void (location.hash = `#/actions/${id}`), urgent);
    await page.getByRole("button", { name: "Deny…" }).click();
    await page.getByLabel("Reason").fill("too late in the day");
    await page.getByRole("dialog").getByRole("button", { name: "Deny" }).click();
    await page.getByText("1 denied.").waitFor();
    await page.getByText("too late in the day").first().waitFor();
    assert.equal((await read(urgent)).status, "denied");
  });

  it("tells two refunds apart by what they are, in the order and the lines of their author", async () => {
    const note = "first line\n  second line";
    const [small, large] = [
      await submit({ params: { to: "cus_1", amount: 120, currency: "USD", note } }),
      await submit({ params: { to: "cus_1", amount: 980, currency: "USD", note, code: "120" } }),
    ];
    const { page } = await console_.visit(ada, "#/approvals");
    for (const [id, amount, names] of [
      [small, "120", ["to", "amount", "currency", "note"]],
      [large, "980", ["to", "amount", "currency", "note", "code"]],
    ] as const) {
      const folded = card(page, id).locator(".brief");
      await folded.waitFor();
      assert.deepEqual(await folded.locator("dt").allTextContents(), names);
      assert.equal(await folded.locator("dd").nth(1).innerText(), amount);
      await page.locator(`[data-id="${id}"]`).click();
      await card(page, id).getByRole("button", { name: "Approve…" }).click();
      const asked = page.getByRole("dialog").getByRole("group", { name: /Parameters of/ });
      await asked.waitFor();
      assert.deepEqual(await asked.locator("dt").allTextContents(), names);
      assert.equal(await asked.locator("dd").nth(1).innerText(), amount);
      assert.equal(await asked.locator("dd").nth(3).innerText(), note);
      // What is to be done stands above what binds the verdict to it.
      const [params, hash] = [
        await asked.boundingBox(),
        await page.getByRole("dialog").locator(".bound").boundingBox(),
      ];
      assert.ok((params?.y ?? 0) < (hash?.y ?? 0));
      await page.keyboard.press("Escape");
    }
    // A text that looks like a number is told from one.
    await card(page, large).getByText("“120”").waitFor();
  });

  it("brings what a link names into view, and keeps it there with j and k", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 14; i++)
      ids.push(await submit({ params: { amount: i, note: "line\n".repeat(i % 3 === 0 ? 30 : 2) } }));
    const { page } = await console_.visit(ada, `#/approvals/${ids[9]}`);
    await inView(page, ids[9] as string);
    for (const [key, at] of [
      ["j", 10],
      ["j", 11],
      ["j", 12],
      ["k", 11],
      ["k", 10],
      ["k", 9],
      ["k", 8],
    ] as const) {
      await page.keyboard.press(key);
      await inView(page, ids[at] as string);
    }
    await page.keyboard.press("d");
    await page.getByLabel("Reason").fill("no");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.textContent?.trim()), "Deny");
    await page.keyboard.press("Escape");
  });

  it("leaves what is read where it is when something comes in or is decided", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await submit({ params: { amount: i } }));
    const { page } = await console_.visit(ada, `#/approvals/${ids[2]}`);
    await inView(page, ids[2] as string);
    await page.locator(".live.live").waitFor();
    await card(page, ids[2] as string)
      .getByText("computed in this browser")
      .waitFor();
    const top = async () => Math.round((await card(page, ids[2] as string).boundingBox())?.y ?? -1);
    const before = await top();
    const sooner = await submit({ operation: "soon" });
    const bar = page.getByRole("button", { name: /^Show 1 new, the first ends in (19|20) min/ });
    await bar.waitFor();
    assert.equal(await top(), before);
    assert.equal(await page.locator(`[data-id="${sooner}"]`).count(), 0);
    await console_.service.call("POST", `/v1/actions/${ids[0]}/cancel`, { body: {} });
    await card(page, ids[0] as string)
      .getByText("withdrawn it")
      .waitFor();
    assert.equal(await top(), before);
    // What ends later than all that is shown stands below it at once.
    const later = await submit({ operation: "two" });
    await page.locator(`[data-id="${later}"]`).waitFor();
    assert.equal(await top(), before);
    await bar.click();
    await page.locator(`[data-id="${sooner}"]`).waitFor();
    assert.equal(await page.locator("[data-id]").first().getAttribute("data-id"), sooner);
  });

  it("marks what I voted on, and says of many what became of them", async () => {
    const twos = [await submit({ operation: "two" }), await submit({ operation: "two" })];
    const one = await submit({});
    const { page } = await console_.visit(ada, "#/approvals");
    for (const id of [...twos, one]) await card(page, id).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Approve selected…" }).click();
    await page.getByRole("button", { name: "Approve all 3" }).click();
    await page.getByText("1 approved; 2 have your approval and wait for others.").waitFor();
    for (const id of twos) {
      await card(page, id).getByText("you approved").waitFor();
      assert.equal(await card(page, id).getByRole("checkbox").isDisabled(), true);
    }
    // Also for a tab that is opened later.
    const later = await console_.visit(ada, "#/approvals");
    for (const id of twos) await card(later.page, id).getByText("you approved").waitFor();
  });

  it("names keys, and never their ids", async () => {
    const nobody = await console_.key("the night desk", { preset: "approver", owner: "the night desk" });
    const bot = await console_.service.call("POST", "/v1/api-keys", {
      key: console_.service.admin,
      body: { name: "support key", preset: "agent" },
    });
    const { body } = await console_.service.call("POST", "/v1/actions", {
      key: bot.body.key,
      body: { ...ASKED, operation: "two" },
    });
    const { page } = await console_.visit(nobody, `#/approvals/${body.id}`);
    await card(page, body.id).getByText("support key").waitFor();
    await card(page, body.id).getByRole("button", { name: "Approve…" }).click();
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Control+Enter");
    await card(page, body.id).getByText("the night desk approved").waitFor();
    assert.doesNotMatch((await card(page, body.id).innerText()) ?? "", new RegExp(bot.body.id));
    await page.getByRole("link", { name: "History and proof" }).click();
    await page.getByText("by the night desk").waitFor();
  });
});
