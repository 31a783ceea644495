/**
 * The inbox with many requests: their order, stable positions, the data in the list, and the number of nodes and API
 * requests.
 * @needs console, questions
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { withoutBrowser } from "../support/browser.ts";
import { openRequest, requestPane, inboxRow, startConsole, vote, recordNow, type Console } from "../support/console.ts";
import { needs } from "../support/features.ts";
import { ASKED } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const POLICY = `policy: asked
rules:
  - { name: soon, operation: soon, effect: require_approval, reason: a person looks, approval: { expires_in: 20m } }
  - { name: dangerous, operation: dangerous, effect: require_approval, risk: critical, approval: { expires_in: 1h } }
  - { name: two, operation: two, effect: require_approval, approval: { quorum: 2, expires_in: 2h } }
  - { name: one, effect: require_approval, approval: { expires_in: 1h } }
`;

describe("a long inbox in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  let folder: string;
  let ada: string;
  before(async () => {
    folder = temporaryFolder("assent-queue-");
    writeFileSync(join(folder, "asked.yaml"), POLICY);
    console_ = await startConsole({ policies: folder });
    ada = await console_.key("ada", { preset: "approver", owner: "Ada" });
  });
  after(async () => {
    await console_.close();
    rmSync(folder, { recursive: true, force: true });
  });
  // Runs after failures too, so that the next test starts with an empty queue.
  afterEach(() => cancelAll());

  const submit = async (body: object): Promise<string> =>
    (await console_.service.call("POST", "/v1/actions", { body: { ...ASKED, ...body } })).body.id as string;
  const submitMany = async (count: number, operation = ASKED.operation): Promise<string[]> => {
    const ids: string[] = [];
    for (let i = 0; i < count; i += 10)
      ids.push(
        ...(await Promise.all(Array.from({ length: 10 }, (_, n) => submit({ operation, params: { amount: i + n } })))),
      );
    return ids;
  };
  /** Votes on a request that is being opened, with one key. */
  const voteHeld = async (page: Page, id: string, key: "a" | "d"): Promise<void> => {
    await requestPane(page, id).getByRole("button", { name: "Approve", exact: true }).waitFor();
    await page.keyboard.press(key);
    await inboxRow(page, id)
      .getByText(key === "a" ? "approving" : "denying")
      .waitFor();
  };
  const read = async (id: string) => (await console_.service.call("GET", `/v1/actions/${id}`)).body;
  const idsIn = (page: Page): Promise<string[]> =>
    page.locator("[data-id]").evaluateAll((rows) => rows.map((row) => row.getAttribute("data-id") as string));
  const cancelAll = async (): Promise<void> => {
    const key = console_.service.admin;
    for (let left = Infinity; ;) {
      const { actions, total } = (await console_.service.call("GET", "/v1/approvals?limit=1000", { key })).body;
      if (total === 0) return;
      assert.ok(total < left, `${total} cannot be cancelled`);
      left = total;
      const ids = (actions as { id: string }[]).map(({ id }) => id);
      await Promise.all(ids.map((id) => console_.service.call("POST", `/v1/actions/${id}/cancel`, { key, body: {} })));
    }
  };

  it("lists groups, which the service counts over the whole queue, and a vote on a group lists what it covers", async () => {
    await submitMany(60, "one");
    const critical = await submit({ operation: "dangerous", params: { command: "drop it" } });
    await submit({ operation: "dangerous", params: { command: "wipe it" } });
    await submit({ operation: "soon" });
    const { page } = await console_.visit(ada, "#/approvals");
    await page.getByText("63 pending", { exact: true }).waitFor();
    const groups = page.locator("[data-group]");
    const lines = (await groups.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " "));
    assert.equal(lines.length, 3);
    assert.match(lines[0] ?? "", /^stripe soon 500 .*(19|20)m left$/);
    assert.match(lines[1] ?? "", /^stripe one 0 to 59 support-bot 60 requests \d+m left$/);
    assert.match(
      lines[2] ?? "",
      /^stripe dangerous drop it or wipe it critical risk support-bot 2 requests \d+m left$/,
    );
    // A vote covers what the pane lists.
    await groups.nth(1).click();
    const pane = page.getByRole("region", { name: "Group of requests" });
    await pane.getByText("A vote covers the 50 requests listed here, the most urgent of 60").waitFor();
    assert.equal(await pane.locator("tbody tr").count(), 50);
    await pane.getByRole("button", { name: "Approve 50", exact: true }).waitFor();
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(nodes < 2000, `${nodes} nodes`);
    // Critical requests are not approved together.
    await page.locator("[data-group]", { hasText: "dangerous" }).click();
    await pane.getByText("2 listed requests are critical.").waitFor();
    assert.equal(await pane.getByRole("button", { name: "Approve 0" }).isDisabled(), true);
    await inboxRow(page, critical).waitFor();
    await page.keyboard.press("d");
    await pane.getByText("Enter denies 2 listed requests").waitFor();
    await page.keyboard.press("Control+Enter");
    await recordNow(page);
    await inboxRow(page, critical).getByText("denied by you").waitFor();
    await page.getByText("61 pending", { exact: true }).waitFor();
    await page.close();
  });

  it("votes on a group as it is listed: a new request joins only if the person asks for it", async () => {
    const first = await submitMany(10, "grouped");
    const { page } = await console_.visit(ada, "#/approvals");
    await page.locator(".stream-status.live").waitFor();
    const pane = page.getByRole("region", { name: "Group of requests" });
    await pane.getByRole("button", { name: "Approve 10", exact: true }).waitFor();
    const late = [
      await submit({ operation: "grouped", params: { amount: 9000 } }),
      await submit({ operation: "grouped", params: { amount: 9001 } }),
    ];
    for (const id of late) await inboxRow(page, id).waitFor();
    assert.equal(await pane.locator("tbody tr").count(), 10);
    await pane.getByRole("button", { name: "Approve 10", exact: true }).click();
    // One key takes the votes of the whole group back, before they are recorded.
    await page.getByText(/^10 approvals, recorded in \d s$/).waitFor();
    await page.keyboard.press("u");
    await pane.getByRole("button", { name: "Approve 10", exact: true }).click();
    await page.getByText(/^10 approvals, recorded in \d s$/).waitFor();
    await recordNow(page);
    await until("the votes are recorded", async () => (await read(first.at(-1) as string)).status === "approved");
    const status = async (id: string): Promise<string> => (await read(id)).status as string;
    assert.deepEqual(await Promise.all(first.map(status)), Array(10).fill("approved"));
    assert.deepEqual(await Promise.all(late.map(status)), Array(2).fill("pending_approval"));
    // A second click on the same place must not approve what the vote left.
    await pane.getByRole("button", { name: "List 2 other requests" }).waitFor();
    assert.equal(await pane.getByRole("button", { name: /^Approve/ }).count(), 0);
    await page.close();
  });

  it("undoes a vote on a group with a key after Ctrl and Enter, and opens the requests of the open group with j", async () => {
    await submit({ operation: "soon" });
    const ids = await submitMany(10, "keys");
    const { page } = await console_.visit(ada, "#/approvals");
    await page.locator("[data-group]", { hasText: "keys" }).click();
    const pane = page.getByRole("region", { name: "Group of requests" });
    await pane.getByRole("button", { name: "Approve 10", exact: true }).waitFor();
    for (const id of ids.slice(0, 2)) await inboxRow(page, id).getByRole("checkbox").check();
    await page.keyboard.press("a");
    await page.keyboard.press("Control+Enter");
    await page.getByText(/^2 approvals, recorded in \d s$/).waitFor();
    // The votes that are held are none of the others.
    await page.locator(".inbox:has(.held-tray)").getByText("A vote covers the 8 requests listed here.").waitFor();
    await page.keyboard.press("u");
    await pane.getByRole("button", { name: "Approve 10", exact: true }).waitFor();
    await page.keyboard.press("j");
    await requestPane(page, ids[0] as string).waitFor();
    await page.close();
  });

  it("lists no action of a plan for a vote on its group, and says so", needs("plans"), async () => {
    const alone = [await submit({ operation: "planned", params: { n: 1 } })];
    alone.push(await submit({ operation: "planned", params: { n: 2 } }));
    const actions = [3, 4].map((n) => ({ ...ASKED, operation: "planned", params: { n } }));
    const plan = (await console_.service.call("POST", "/v1/plans", { body: { actions } })).body;
    const { page } = await console_.visit(ada, "#/approvals?view=");
    const pane = page.getByRole("region", { name: "Group of requests" });
    await pane.getByRole("button", { name: "Approve 2", exact: true }).waitFor();
    await pane.getByText("2 requests of this group are not listed").waitFor();
    const planned = plan.actions[0].id as string;
    assert.equal(await inboxRow(page, planned).getByRole("checkbox").isDisabled(), true);
    await openRequest(page, planned);
    await requestPane(page, planned).getByRole("link", { name: /plan/i }).waitFor();
    await page.close();
    await Promise.all(alone.map(async (id) => assert.equal((await read(id)).approvals.length, 0)));
  });

  it("sorts the groups of another query, and shows all of them", async () => {
    await submit({ operation: "one", params: { amount: 1 } });
    const urgent = await submit({ operation: "soon", params: { amount: 2 } });
    const { page } = await console_.visit(ada, "#/approvals?q=stripe+one");
    await page.getByText("1 matches", { exact: true }).waitFor();
    await page.getByRole("searchbox", { name: "Search all pending requests" }).fill("");
    await page.getByText("2 pending", { exact: true }).waitFor();
    assert.equal((await idsIn(page))[0], urgent);
    await page.evaluate(() => void (location.hash = "#/approvals?sort=oldest"));
    await page.waitForFunction(
      (id) => document.querySelectorAll("[data-id]")[1]?.getAttribute("data-id") === id,
      urgent,
    );
    await page.close();
  });

  it("votes on nothing while the open request is being loaded, and keeps the reason of each group apart", async () => {
    const [slow] = await submitMany(10, "slow");
    await submitMany(10, "other");
    const { page } = await console_.visit(ada, "#/approvals");
    await page.locator("[data-group]", { hasText: "slow" }).click();
    const pane = page.getByRole("region", { name: "Group of requests" });
    await pane.getByRole("button", { name: "Approve 10", exact: true }).waitFor();
    await pane.getByLabel("Reason").fill("about the slow ones");
    const address = await pane.locator("tbody a").first().getAttribute("href");
    assert.match(address ?? "", /group=/);
    await page.locator("[data-group]", { hasText: "other" }).click();
    await page.locator("[data-group][aria-expanded=true]", { hasText: "other" }).waitFor();
    assert.equal(await pane.getByLabel("Reason").inputValue(), "");
    // The keys of a person who is faster than the service must not act on the whole group. The reload forgets the
    // requests of the first group.
    await page.reload();
    await pane.getByRole("button", { name: "Approve 10", exact: true }).waitFor();
    await page.route(`**/v1/actions/${slow}`, () => undefined);
    await page.evaluate((id) => void (location.hash = `#/approvals/${id}`), slow);
    await page.getByRole("region", { name: "Group of requests" }).waitFor({ state: "detached" });
    await page.keyboard.press("a");
    await page.keyboard.press("Control+Enter");
    assert.match(page.url(), new RegExp(slow as string));
    assert.equal(await page.getByLabel("Votes not recorded yet").count(), 0);
    await page.close();
  });

  it("casts no held vote after another person signed in, and reports votes that a sign-out drops", async () => {
    const [id] = await submitMany(10, "handover");
    const { page } = await console_.visit(ada, "#/approvals");
    const pane = page.getByRole("region", { name: "Group of requests" });
    await pane.getByRole("button", { name: "Approve 10", exact: true }).click();
    await page.evaluate((key) => sessionStorage.setItem("assent.key", key), console_.service.admin);
    await recordNow(page);
    await page.getByRole("alert").getByText("someone signed in again in another tab").waitFor();
    assert.deepEqual((await read(id as string)).approvals, []);
    // Another tab signs out.
    await page.evaluate(() =>
      new BroadcastChannel("assent.session").postMessage({ type: "out", key: sessionStorage["assent.key"], why: "" }),
    );
    await page.getByText("10 votes may not be recorded.").waitFor();
    await page.close();
  });

  it("removes a group that another person emptied while it was open, once another group is opened", async () => {
    const emptied = await submitMany(10, "emptied");
    const other = await submit({ operation: "other" });
    const { page } = await console_.visit(ada, "#/approvals");
    await page.locator(".stream-status.live").waitFor();
    const header = page.locator("[data-group]", { hasText: "emptied" });
    await header.click();
    const pane = page.getByRole("region", { name: "Group of requests" });
    await pane.getByRole("button", { name: "Approve 10", exact: true }).waitFor();
    const key = console_.service.admin;
    await Promise.all(
      emptied.map((id) => console_.service.call("POST", `/v1/actions/${id}/cancel`, { key, body: {} })),
    );
    await pane.getByText("No other request of this group waits for your vote.").waitFor();
    await page.getByText("1 pending", { exact: true }).waitFor();
    await openRequest(page, other);
    await header.waitFor({ state: "detached" });
    await page.close();
  });

  it("decides 20 ordinary requests with one key each", async () => {
    // A separate operation, because a rejection also denies equal requests.
    const ids = await submitMany(20, "keyboard");
    const listed = (await console_.service.call("GET", "/v1/approvals?limit=100", { key: console_.service.admin }))
      .body;
    const order = (listed.actions as { id: string }[]).map(({ id }) => id);
    const { page, complaints } = await console_.visit(ada, "#/approvals");
    await page.locator(".stream-status.live").waitFor();
    // Wait for the list, because the keyboard shortcut opens nothing before it is loaded.
    await inboxRow(page, order[0] as string).waitFor();
    await page.keyboard.press("j");
    for (const [i, id] of order.entries()) {
      // The next request opens by itself.
      await requestPane(page, id).getByRole("button", { name: "Approve" }).waitFor();
      await page.waitForFunction((wanted) => document.activeElement?.getAttribute("data-id") === wanted, id);
      await page.keyboard.press(i % 2 === 0 ? "a" : "d");
      await inboxRow(page, id)
        .getByText(i % 2 === 0 ? "approving" : "denying")
        .waitFor();
    }
    // The time in which the votes can be undone ends by itself.
    await inboxRow(page, order.at(-1) as string)
      .locator(".settled-mark")
      .waitFor();
    const statuses = await Promise.all(ids.map(async (id) => read(id)));
    assert.deepEqual(statuses.map(({ status }) => status).sort(), [
      ...Array.from({ length: 10 }, () => "approved"),
      ...Array.from({ length: 10 }, () => "denied"),
    ]);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  it("undoes the last vote, keeps its reason, and records nothing of it", async () => {
    const [first, second] = [await submit({ operation: "undone" }), await submit({ operation: "kept" })];
    const { page, complaints } = await console_.visit(ada, `#/approvals/${second}`);
    await voteHeld(page, second, "d");
    await openRequest(page, first);
    await page.getByLabel("Reason").fill("on second thoughts");
    await page.getByRole("button", { name: "Approve", exact: true }).click();
    await page.getByText(/^1 approval and 1 denial, recorded in \d s$/).waitFor();
    await page.keyboard.press("u");
    await requestPane(page, first).getByRole("button", { name: "Approve", exact: true }).waitFor();
    assert.equal(await page.getByLabel("Reason").inputValue(), "on second thoughts");
    await recordNow(page);
    await inboxRow(page, second).locator(".settled-mark").waitFor();
    assert.deepEqual([(await read(first)).status, (await read(second)).status], ["pending_approval", "denied"]);
    assert.deepEqual((await read(first)).approvals, []);
    assert.deepEqual(complaints, []);
    await page.close();
    await cancelAll();
  });

  it("records held votes when the person leaves the inbox, and leads back if one fails", async () => {
    const [plain, refused] = [await submit({ operation: "left" }), await submit({ operation: "refused" })];
    const { page } = await console_.visit(ada, `#/approvals/${plain}`);
    await voteHeld(page, plain, "a");
    await page.getByRole("link", { name: "Actions" }).click();
    await until("the vote is recorded", async () => (await read(plain)).status === "approved");
    await openRequest(page, refused);
    await voteHeld(page, refused, "a");
    // The request changes before the vote is cast.
    const body = { question: "Which one?" };
    await console_.service.call("POST", `/v1/actions/${refused}/questions`, { key: console_.service.admin, body });
    await page.getByRole("link", { name: "Actions" }).click();
    await page.getByRole("alert").getByText("a question was asked or answered since").waitFor();
    assert.match(page.url(), /#\/approvals$/);
    await page.getByRole("button", { name: "Open the request" }).click();
    await requestPane(page, refused).getByText("Which one?").waitFor();
    assert.equal((await read(refused)).status, "pending_approval");
    await page.close();
    await cancelAll();
  });

  it("shows whether each agent waits, and when it last asked if it does not", async () => {
    const [left, waited] = [await submit({ params: { n: 1 } }), await submit({ params: { n: 2 } })];
    const gone = new AbortController();
    const wait = console_.service.runtime.fetch(
      new Request(`http://test/v1/actions/${waited}?wait=60`, {
        headers: { authorization: `Bearer ${console_.service.agent}` },
        signal: gone.signal,
      }),
    );
    await until("the wait is seen", async () => (await read(waited)).waiting === true);
    const { page } = await console_.visit(ada, `#/approvals/${waited}`);
    await requestPane(page, waited).getByText("The agent is waiting for the answer.").waitFor();
    await (await openRequest(page, left)).getByText(/The agent is not waiting; it last asked/).waitFor();
    gone.abort();
    await wait;
    await page.close();
  });

  it("lists the earliest deadline first, counts all, and stays below 2,000 nodes and one request per second", async () => {
    // These two are on no page of the newest requests: the oldest one, and the one that expires first.
    const urgent = await submit({ operation: "soon", params: { amount: 1 } });
    const last = (await submitMany(1010)).at(-1) as string;
    const { page } = await console_.visit(ada, "#/approvals?view=all");
    await page.getByText("1,011 pending", { exact: true }).waitFor();
    assert.equal((await idsIn(page))[0], urgent);
    const group = page.locator("[data-group][aria-expanded]");
    assert.match((await group.innerText()).replaceAll(/\s+/g, " "), /^stripe refund 0 to 1009 .*1,010 requests/);
    await group.click();
    await page.getByRole("button", { name: "Show more (998 left)" }).waitFor();
    await page.getByRole("button", { name: "Approve 50", exact: true }).waitFor();
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(nodes < 2000, `${nodes} nodes`);
    // The service searches, sorts and selects requests that are on no loaded page.
    const field = page.getByRole("searchbox", { name: "Search all pending requests" });
    await page.keyboard.press("/");
    await page.keyboard.type("REFUND 1009");
    await page.getByText("1 matches", { exact: true }).waitFor();
    assert.deepEqual(await idsIn(page), [last]);
    assert.match(page.url(), /q=REFUND\+1009/);
    await field.fill("");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByLabel("Sort").selectOption("Newest");
    await page.locator("[data-group]").first().getByText("1,010 requests").waitFor();
    await page.getByLabel("Sort").selectOption("Earliest deadline");
    await page.locator(`[data-group][data-id="${urgent}"]`).waitFor();
    await page.getByRole("button", { name: "Filter" }).click();
    // A link leads to a request that is on no loaded page.
    await page.evaluate((id) => void (location.hash = `#/approvals/${id}?view=all`), last);
    const pane = requestPane(page, last);
    await pane.getByText("History", { exact: true }).click();
    await pane.getByRole("list", { name: "History" }).getByText("requires approval").waitFor();
    await vote(page, "Approve");
    await page.getByText("1,010 pending", { exact: true }).waitFor();
    assert.equal((await read(last)).status, "approved");

    await page.locator(".stream-status.live").waitFor();
    // Decisions and votes of other clients at full speed.
    let requests = 0;
    page.on("request", (request) => (requests += /\/v1\/(?!stop|events)/.test(request.url()) ? 1 : 0));
    const begun = performance.now();
    for (let i = 0; i < 20; i++) {
      const ids = await submitMany(10);
      await Promise.all(
        ids.map((id) =>
          console_.service.call("POST", `/v1/actions/${id}/cancel`, { key: console_.service.admin, body: {} }),
        ),
      );
    }
    const seconds = (performance.now() - begun) / 1000;
    assert.ok(requests <= 2 + seconds, `${requests} requests in ${seconds.toFixed(1)} s`);
    // The action's own page has the same vote bar.
    await page.evaluate((id) => void (location.hash = `#/actions/${id}`), urgent);
    await vote(page, "Deny", "too late in the day");
    await page.getByText("You denied it.").waitFor();
    await page.getByText("too late in the day").first().waitFor();
    assert.equal((await read(urgent)).status, "denied");
    await page.close();
  });

  it("distinguishes two refunds by their values, in the order and the lines of their author", async () => {
    const note = "first line\n  second line";
    const [small, large] = [
      await submit({ params: { amount: 120, to: "cus_1", currency: "USD", note } }),
      await submit({ params: { amount: 980, to: "cus_1", currency: "USD", note, code: "120" } }),
    ];
    const { page } = await console_.visit(ada, "#/approvals");
    for (const [id, amount, names] of [
      [small, "120 USD", ["amount", "to", "currency", "note"]],
      [large, "980 USD", ["amount", "to", "currency", "note", "code"]],
    ] as const) {
      await inboxRow(page, id).getByText(amount).waitFor();
      await inboxRow(page, id).locator("[data-id]").click();
      const params = requestPane(page, id).getByRole("group", { name: /Parameters of/ });
      await params.waitFor();
      assert.deepEqual(await params.locator("dt").allTextContents(), names);
      assert.equal(await params.locator("dd").nth(0).innerText(), amount);
      assert.equal(await params.locator("dd").nth(3).innerText(), note);
      // The request is above the hash that a vote is bound to.
      const [above, below] = [await params.boundingBox(), await requestPane(page, id).locator(".drawer").boundingBox()];
      assert.ok((above?.y ?? 0) < (below?.y ?? 0));
    }
    // A string that looks like a number is marked as a string.
    await requestPane(page, large).getByText("“120”").waitFor();
    await page.close();
  });

  it("scrolls to the request that a link names, and follows j and k", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 40; i++) ids.push(await submit({ params: { amount: i } }));
    const { page } = await console_.visit(ada, `#/approvals/${ids[30]}`);
    const focused = (id: string | undefined) =>
      page.waitForFunction((wanted) => {
        const row = document.querySelector(`[data-id="${wanted}"]`);
        const box = row?.getBoundingClientRect();
        return document.activeElement === row && box !== undefined && box.top >= 0 && box.bottom <= innerHeight;
      }, id);
    await focused(ids[30]);
    for (const [key, at] of [
      ["j", 31],
      ["j", 32],
      ["k", 31],
      ["k", 30],
      ["k", 29],
    ] as const) {
      // prettier-ignore
      await page.keyboard.press(key);
      await focused(ids[at]);
    }
    await requestPane(page, ids[29] as string)
      .getByRole("button", { name: "Deny" })
      .waitFor();
    await page.getByLabel("Reason").focus();
    await page.keyboard.type("ajkd are letters here");
    assert.equal(await page.getByLabel("Reason").inputValue(), "ajkd are letters here");
    await page.keyboard.press("Escape");
    await focused(ids[29]);
    await page.keyboard.press("/");
    await page.keyboard.type("39");
    await inboxRow(page, ids[39] as string).waitFor();
    await page.waitForFunction(() => document.querySelectorAll("[data-id]").length === 2);
    await page.close();
  });

  it("votes with keys on the selection, names it, and approves critical requests only one by one", async () => {
    const plain = [await submit({ params: { amount: 1 } }), await submit({ params: { amount: 2, to: "ada" } })];
    const critical = await submit({ operation: "dangerous", params: { command: "truncate it" } });
    const open = await submit({ params: { amount: 4 } });
    const { page, complaints } = await console_.visit(ada, `#/approvals/${open}`);
    await requestPane(page, open).getByRole("button", { name: "Approve" }).waitFor();
    // One key is not enough for a critical request.
    await openRequest(page, critical);
    await requestPane(page, critical).getByRole("button", { name: "Approve" }).waitFor();
    await page.keyboard.press("a");
    await page.getByText("Enter approves this request").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("[data-group]", { hasText: "3 requests" }).click();
    for (const id of plain) await inboxRow(page, id).getByRole("checkbox").check();
    const batch = page.getByRole("region", { name: "Group of requests" });
    // Each row has its risk and what would happen.
    for (const text of ["not rated", "2 selected", "ada"]) await batch.getByText(text).first().waitFor();
    await batch.getByRole("button", { name: "Approve 2", exact: true }).waitFor();
    // Opening a request keeps the selection.
    await openRequest(page, open);
    await requestPane(page, open).getByText("2 requests are selected. Votes and keys act on the selection.").waitFor();
    assert.equal(await requestPane(page, open).getByRole("button", { name: "Approve" }).count(), 0);
    await page.keyboard.press("a");
    await batch.getByText("Enter approves 2 selected requests").waitFor();
    await page.keyboard.type("read both");
    await page.keyboard.press("Control+Enter");
    await recordNow(page);
    for (const id of plain) await inboxRow(page, id).getByText("approved by you").waitFor();
    const statuses = await Promise.all([...plain, critical, open].map(async (id) => (await read(id)).status as string));
    assert.deepEqual(statuses, ["approved", "approved", "pending_approval", "pending_approval"]);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  it("keeps the open request and the list in place when requests arrive or are settled", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await submit({ params: { amount: i } }));
    const third = ids[2] as string;
    const { page } = await console_.visit(ada, `#/approvals/${third}`);
    await page.locator(".stream-status.live").waitFor();
    await requestPane(page, third).getByText("computed in this browser").waitFor({ state: "attached" });
    await page.getByLabel("Reason").fill("half a sen");
    const top = async () => Math.round((await inboxRow(page, third).boundingBox())?.y ?? -1);
    const before = await top();
    const sooner = await submit({ operation: "soon" });
    const bar = page.getByRole("button", { name: /^Show 1 new request, first deadline in (19|20) min/ });
    await bar.waitFor();
    assert.equal(await inboxRow(page, sooner).count(), 0);
    await console_.service.call("POST", `/v1/actions/${ids[0]}/cancel`, { body: {} });
    await inboxRow(page, ids[0] as string)
      .locator(".settled-mark")
      .waitFor();
    // A later deadline is below all others, so it appears at once.
    const later = await submit({ operation: "two" });
    await inboxRow(page, later).waitFor();
    assert.equal(await top(), before);
    await bar.click();
    await inboxRow(page, sooner).waitFor();
    assert.equal((await idsIn(page))[0], sooner);
    assert.equal(await page.getByLabel("Reason").inputValue(), "half a sen");
    // A reload keeps what was typed.
    await page.reload();
    await requestPane(page, third).waitFor();
    assert.equal(await page.getByLabel("Reason").inputValue(), "half a sen");
    await page.close();
  });

  it("marks own votes, and reports what became of several votes", async () => {
    const twos = [await submit({ operation: "two" }), await submit({ operation: "two" })];
    const { page } = await console_.visit(ada, "#/approvals");
    await inboxRow(page, twos[0] as string)
      .getByRole("checkbox")
      .check();
    // Shift-click selects the range.
    await inboxRow(page, twos[1] as string)
      .getByRole("checkbox")
      .click({ modifiers: ["Shift"] });
    await page.getByRole("button", { name: "Approve 2" }).click();
    await recordNow(page);
    for (const id of twos) await inboxRow(page, id).getByText("you approved").waitFor();
    await page.getByRole("button", { name: "All", exact: true }).click();
    for (const id of twos) {
      await inboxRow(page, id).getByText("you approved").waitFor();
      assert.equal(await inboxRow(page, id).getByRole("checkbox").isDisabled(), true);
    }
    await page.getByRole("button", { name: "Needs a second vote" }).click();
    for (const id of twos) await inboxRow(page, id).getByText("you approved").waitFor();
    // The setting also applies to a tab that is opened later.
    const later = await console_.visit(ada, "#/approvals?view=all");
    for (const id of twos) await inboxRow(later.page, id).getByText("you approved").waitFor();
    await page.close();
    await later.page.close();
  });

  it("names keys instead of their ids", async () => {
    const desk = await console_.key("the night desk", { preset: "approver" });
    const bot = await console_.service.call("POST", "/v1/api-keys", {
      key: console_.service.admin,
      body: { name: "support key", preset: "agent" },
    });
    const { body } = await console_.service.call("POST", "/v1/actions", {
      key: bot.body.key,
      body: { ...ASKED, operation: "two" },
    });
    const { page } = await console_.visit(desk, `#/approvals/${body.id}`);
    const pane = requestPane(page, body.id);
    await pane.getByText("Details and proof").click();
    await pane.getByText("support key").waitFor();
    await vote(page, "Approve");
    await pane.getByText("the night desk approved").waitFor();
    assert.doesNotMatch((await pane.innerText()) ?? "", new RegExp(bot.body.id));
    await page.getByRole("link", { name: "Show the action" }).click();
    await page
      .getByRole("region", { name: "Approvals" })
      .getByText("by the key the night desk, with an API key")
      .waitFor();
    await page.close();
  });
});
