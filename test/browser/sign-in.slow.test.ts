/**
 * Passkeys in a real browser, with its virtual authenticator.
 * @needs users
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { needs } from "../support/features.ts";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { signInTerminal } from "../../plugins/actions/cli/watch/terminal-session.ts";
import type { ApprovalMessage } from "../../src/contract/notifier.ts";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { accessibilityFindings } from "../support/axe.ts";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { openRequest, recordNow, requestPane, inboxRow, signInWithKey, vote, voteNow } from "../support/console.ts";
import { voteByLink } from "../support/link-vote.ts";
import { testNotifier, type TestNotifier } from "../support/notifier.ts";
import { startPeople } from "../support/people.ts";
import { ASKED, makeKey, type Service, person } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/wait.ts";
import { Hand } from "../support/walk.ts";
import { addAuthenticator, attachAuthenticator, type VirtualAuthenticator } from "../support/virtual-authenticator.ts";

/** Writes a picture into the folder that ASSENT_PICTURES names. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env["ASSENT_PICTURES"];
  if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

describe("the sign-in page", { skip: withoutBrowser }, () => {
  let service: Service;
  let pigeon: TestNotifier;
  let server: RunningServer;
  let browser: Browser;
  /** Passkeys need a host name. */
  let origin = "";
  before(async () => {
    pigeon = testNotifier();
    service = await startPeople({
      plugins: [pigeon.plugin],
      change(config) {
        config.channels = { desk: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }] } };
      },
    });
    server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
    service.runtime.listensAt(server.port);
    origin = service.runtime.host.origin() ?? "";
    browser = await launch();
    const policy = {
      policy: "signed",
      rules: [
        {
          name: "session",
          tool: "editor",
          effect: "require_approval",
          approval: { mode: "self_confirm", grants: { for: "8h", count: 20 } },
        },
        { name: "deletions", tool: "postgres", effect: "require_approval", approval: { signature: "passkey" } },
        {
          name: "drops",
          tool: "warehouse",
          effect: "require_approval",
          approval: { signature: "passkey", notify: ["desk"], preview: "Archive the table {params.table}" },
        },
      ],
    };
    const { status } = await service.call("POST", "/v1/policies?activate=true", { key: service.admin, body: policy });
    assert.equal(status, 201);
  });
  after(async () => {
    await browser.close();
    await server.stop(1000);
    await service.close();
  });

  async function invite(name: string, roles: string[]): Promise<string> {
    const { status, body } = await service.call("POST", "/v1/users", {
      key: service.admin,
      body: { name, roles },
      headers: { host: new URL(origin).host },
    });
    assert.equal(status, 201, JSON.stringify(body));
    return body.link.url as string;
  }
  /** Returns the principal of the user with this name. */
  async function principalOf(name: string): Promise<string> {
    const { users } = (await service.call("GET", "/v1/users?limit=1000", { key: service.admin })).body;
    return (users as { name: string; principal: string }[]).find((user) => user.name === name)?.principal ?? "";
  }

  it("enrols a passkey with a link, shows recovery codes, signs out and in again, and all tabs share the session", async () => {
    const link = await invite("Ada", ["viewer"]);
    assert.ok(link.startsWith(`${origin}/sign-in#enrol=`), link);
    const context = await browser.newContext();
    const { page, complaints, strayed } = await open(context, link);
    await addAuthenticator(context, page);
    await page.getByText("Hello Ada").waitFor();
    assert.equal(new URL(page.url()).hash, "", "the token left the address");
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
    const codes = await page.locator("#list li").allTextContents();
    assert.equal(new Set(codes).size, 10);
    const overlaps = await page.locator("#list").evaluate((list) => {
      const edge = list.getBoundingClientRect().right;
      const starts = [...list.children].map((code) => code.getBoundingClientRect().left);
      return [...list.children].filter((code) => {
        const range = document.createRange();
        range.selectNodeContents(code);
        const { left, right } = range.getBoundingClientRect();
        return right > edge || starts.some((start) => start > left && start < right);
      }).length;
    });
    assert.equal(overlaps, 0, "codes that overlap others, or leave the box");
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy" }).click();
    await page.getByText("The codes are copied.").waitFor();
    assert.equal(await page.evaluate("navigator.clipboard.readText()"), codes.join("\n"));
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as a file" }).click(),
    ]);
    assert.equal(saved.suggestedFilename(), "assent-recovery-codes.txt");
    const file = join(temporaryFolder("assent-codes-"), "codes.txt");
    await saved.saveAs(file);
    for (const code of codes) assert.ok(readFileSync(file, "utf8").includes(code));

    const cookies = await context.cookies();
    const [session] = cookies;
    assert.deepEqual([session?.httpOnly, session?.sameSite], [true, "Strict"]);
    assert.equal(await page.evaluate("document.cookie"), "");

    const tab = await context.newPage();
    await tab.goto(`${origin}/sign-in`);
    await tab.getByText("You are signed in as Ada").waitFor();
    await tab.getByRole("button", { name: "Sign out" }).click();
    await tab.getByRole("button", { name: "Sign in with a passkey" }).waitFor();

    await page.goto(`${origin}/sign-in?return_to=/sign-in`);
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.getByText("You are signed in as Ada").waitFor();
    await tab.goto(`${origin}/sign-in`);
    await tab.getByText("You are signed in as Ada").waitFor();

    // `assent watch` asks this browser to confirm its sign-in, with a passkey. The link changes only the fragment of the open page.
    let shown = "";
    const show = (text: string): void => void (shown += text);
    const signedIn = signInTerminal(
      { url: server.url, pollMs: 20 },
      { out: show, err: show, fancy: false, watched: false },
    );
    await until("the link is printed", () => shown.includes("#terminal="));
    const [, code = "", terminalLink = ""] = /the code (\S+):\s+(\S+)/.exec(shown) ?? [];
    await page.goto(terminalLink);
    await page.getByText("wants to vote as Ada").waitFor();
    await page.getByLabel("Code that the terminal shows").fill("2222-2222");
    await page.getByRole("button", { name: "Sign in the terminal" }).click();
    await page.getByText("this is not the code that the terminal shows").waitFor();
    await page.getByLabel("Code that the terminal shows").fill(code);
    await page.getByRole("button", { name: "Sign in the terminal" }).click();
    await page.getByText("The terminal is signed in.").waitFor();
    assert.equal((await signedIn).user, "Ada");
    await (await signedIn).end();

    // The browser logs the 401 of `GET /v1/session` before the sign-in, and the 403 of the wrong code.
    assert.deepEqual(
      complaints.filter((text) => !/40[13]/.test(text)),
      [],
    );
    assert.deepEqual(strayed, []);
    await context.close();
  });

  it("adds and removes a passkey and replaces the codes with a passkey's confirmation, and a code adds one on another device", async () => {
    const context = await browser.newContext();
    const { page, complaints } = await open(context, await invite("Bob", ["viewer"]));
    const first = await addAuthenticator(context, page);
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
    const [replaced = ""] = await page.locator("#list li").allTextContents();
    await page.goto(`${origin}/sign-in`);
    const setVerified = (isUserVerified: boolean) =>
      first.cdp.send("WebAuthn.setUserVerified", { authenticatorId: first.id, isUserVerified });
    await setVerified(false);
    await page.getByRole("button", { name: "Add another passkey" }).click();
    await page.getByRole("alert").filter({ visible: true }).waitFor();
    await setVerified(true);
    await page.getByRole("button", { name: "Replace the recovery codes" }).click();
    await page.getByRole("heading", { name: "Recovery codes", exact: true }).waitFor();
    const [code = ""] = await page.locator("#list li").allTextContents();
    assert.notEqual(code, replaced);
    await page.goto(`${origin}/sign-in`);
    await page.getByRole("button", { name: "Add another passkey" }).click();
    await page.getByRole("heading", { name: "New passkey" }).waitFor();
    // A device enrols one passkey of a user: the second one needs another device.
    await first.cdp.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId: first.id });
    await attachAuthenticator(first.cdp);
    await page.getByRole("button", { name: "Create the passkey" }).click();
    await page.getByText("You have 2 passkeys").waitFor();
    await picture(page, "signed-in");
    await page
      .getByRole("button", { name: /^Remove Passkey/ })
      .first()
      .click();
    await page.getByText("Passkey was removed.").waitFor();
    assert.equal(await page.locator("#passkeys li").count(), 1);
    await page.getByRole("button", { name: /^Remove Passkey/ }).click();
    await page.getByText("this is your last passkey").waitFor();
    // The browser logs the 401 of `GET /v1/session` before the sign-in, and the 409 of the last passkey.
    assert.deepEqual(
      complaints.filter((text) => !/40[19]/.test(text)),
      [],
    );
    await context.close();

    const other = await browser.newContext();
    const phone = await open(other, `${origin}/sign-in?return_to=/sign-in`);
    await addAuthenticator(other, phone.page);
    await phone.page.getByText("Use a recovery code").click();
    await phone.page.getByLabel("Recovery code").fill(code.toLowerCase());
    await phone.page.getByRole("button", { name: "Continue" }).click();
    await phone.page.getByText("Hello Bob").waitFor();
    await phone.page.getByRole("button", { name: "Create a passkey" }).click();
    await phone.page.getByText("You are signed in as Bob").waitFor();
    await other.close();
  });

  it("signs a vote, which the service and the audit accept", async () => {
    const context = await browser.newContext();
    const { page } = await open(context, await invite("Dora", ["approver"]));
    await addAuthenticator(context, page);
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
    const { body } = await service.call("POST", "/v1/actions", { key: service.agent, body: ASKED });
    const votes = [{ action_id: body.id as string, approve: true, reason: "checked" }];
    const answer = await page.evaluate(`(async () => {
      const votes = ${JSON.stringify(votes)};
      const post = async (path, body) => {
        const token = localStorage.getItem("assent.key").replace("session.", "");
        const headers = { "Content-Type": "application/json", "Assent-Session": token };
        return (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
      };
      const { nonce, options } = await post("/v1/votes/challenge", { votes });
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
      const response = (await navigator.credentials.get({ publicKey })).toJSON();
      return post("/v1/votes", { nonce, votes, response });
    })()`);
    assert.deepEqual(answer, { results: [{ action_id: body.id, status: "approved", grant_id: null, error: null }] });
    await context.close();
  });

  describe("in the console", () => {
    let context: BrowserContext;
    let page: Page;
    let authenticator: VirtualAuthenticator;
    before(async () => {
      context = await browser.newContext();
      ({ page } = await open(context, await invite("Grace", ["approver"])));
      authenticator = await addAuthenticator(context, page);
      await page.getByRole("button", { name: "Create a passkey" }).click();
      await page.getByRole("link", { name: "Continue" }).click();
      await page.getByText("User: Grace").waitFor();
    });
    after(() => context.close());

    const submit = async (body: object): Promise<string> =>
      (await service.call("POST", "/v1/actions", { key: service.agent, body: { ...ASKED, ...body } })).body
        .id as string;
    const read = async (id: string) => (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
    const approvalEntries = async (id: string) =>
      (await service.call("GET", `/v1/events/page?type=approval&action_id=${id}`, { key: service.admin })).body
        .events as { entry: { gesture: { kind: string; votes: string[] } | null } }[];

    it("signs a vote where a rule requires it, and keeps the reason if the person does not confirm", async () => {
      const id = await submit({ tool: "postgres", operation: "archive" });
      await openRequest(page, id);
      const setVerified = (isUserVerified: boolean) =>
        authenticator.cdp.send("WebAuthn.setUserVerified", { authenticatorId: authenticator.id, isUserVerified });
      await setVerified(false);
      await voteNow(page, "Approve", "the table is a copy");
      await page.getByText("the passkey did not sign, so no vote is recorded").waitFor();
      await page.getByRole("button", { name: "Open the request" }).click();
      assert.equal(await requestPane(page, id).getByLabel("Reason").inputValue(), "the table is a copy");
      assert.deepEqual((await read(id)).approvals, []);
      await setVerified(true);
      await voteNow(page, "Approve");
      await inboxRow(page, id).locator(".settled-mark").waitFor();
      const { status, approvals } = await read(id);
      assert.deepEqual([status, approvals[0].reason], ["approved", "the table is a copy"]);
      assert.deepEqual(
        (await approvalEntries(id)).map(({ entry }) => entry.gesture?.kind),
        ["passkey"],
      );
    });

    it(
      "allows later requests of the person's own agent, with a signature that covers the grant",
      needs("grants"),
      async () => {
        const about = { name: "graces agent", owner: await principalOf("Grace"), preset: "agent", agent_id: "own-bot" };
        const { key } = await makeKey(service, about);
        const body = { agent_id: "own-bot", tool: "editor", operation: "write", params: { file: "a.ts" } };
        const ask = async () => (await service.call("POST", "/v1/actions", { key, body })).body;
        const { id } = await ask();
        await openRequest(page, id);
        await page.getByText("Also allow later requests").click();
        await page.getByRole("radio").nth(1).check();
        await page.getByRole("button", { name: "Approve and grant" }).click();
        await inboxRow(page, id).locator(".settled-mark").waitFor();
        const [{ entry }] = (await approvalEntries(id)) as unknown as [{ entry: { gesture: object; grant: object } }];
        assert.ok(entry.gesture !== null && entry.grant !== null, JSON.stringify(entry));
        assert.equal((await ask()).reason_code, "GRANTED");
      },
    );

    it("signs the votes on a selection with one gesture, and reports the one that came too late", async () => {
      const ids = [];
      for (let amount = 601; amount <= 603; amount++) ids.push(await submit({ params: { amount, currency: "USD" } }));
      // Requests that arrive while another one is open are held back.
      await page.goto(`${origin}/#/approvals`);
      await page.reload();
      for (const id of ids) await inboxRow(page, id).getByRole("checkbox").check();
      // Settled between the challenge and the vote.
      const [, , late] = ids as [string, string, string];
      await page.route("**/v1/votes", async (route) => {
        await service.call("POST", `/v1/actions/${late}/cancel`, { key: service.admin, body: {} });
        await route.continue();
      });
      await page.getByLabel("Reason").fill("three small refunds");
      await page.getByRole("button", { name: "Approve 3" }).click();
      await recordNow(page);
      await page.getByRole("alert").getByText("settled, or expired, before this vote arrived").waitFor();
      for (const id of ids.slice(0, 2)) await inboxRow(page, id).getByText("approved by you").waitFor();
      await page.getByRole("button", { name: "Open the request" }).click();
      await page.unroute("**/v1/votes");
      const [first, second] = await Promise.all(ids.slice(0, 2).map(async (id) => (await approvalEntries(id))[0]));
      assert.equal(first?.entry.gesture?.votes.length, 3);
      assert.deepEqual(first?.entry.gesture?.votes, second?.entry.gesture?.votes);
    });

    it("decides 20 different requests with 21 keys and one gesture, and takes an approval back before the start", async () => {
      const ids: string[] = [];
      for (let i = 0; i < 20; i++) {
        const params = { amount: 620 + i, currency: "USD", [`field_${i}`]: `value ${i}`, note: "twenty" };
        ids.push(await submit({ agent_id: `bot-${i}`, params }));
      }
      // The time until the held votes are recorded depends on the machine, so the test ends it.
      await page.addInitScript(() => {
        const { setTimeout } = globalThis;
        const held = { run: () => undefined as void };
        Object.assign(globalThis, { recordVotes: () => held.run() });
        const later = (run: () => void, ms?: number) => {
          if (ms !== 5000 || sessionStorage.getItem("test.hold") === null) return setTimeout(run, ms);
          held.run = run;
          return 0;
        };
        Object.assign(globalThis, { setTimeout: later });
      });
      await page.evaluate(() => sessionStorage.setItem("test.hold", "1"));
      await page.goto(`${origin}/#/approvals?q=twenty`);
      await page.reload();
      await page.getByText("20 match", { exact: true }).waitFor();
      // The earliest deadline first. The list shows more rows of an open group as the person goes on.
      const order = ids;
      await inboxRow(page, order[0] ?? "").waitFor();
      const hand = new Hand(page);
      await hand.press("j");
      for (const [i, id] of order.entries()) {
        await hand.read(requestPane(page, id ?? "").getByRole("button", { name: "Approve", exact: true }));
        await hand.press(i % 5 === 1 ? "d" : "a");
      }
      await page.getByText(/^16 approvals and 4 denials, recorded in/).waitFor();
      await page.evaluate("recordVotes()");
      await inboxRow(page, order[19] ?? "")
        .getByText("approved by you")
        .waitFor();
      await page.evaluate(() => sessionStorage.removeItem("test.hold"));
      assert.deepEqual(hand.used, [0, 21, 1]);
      hand.report("20 decisions", 5);
      const votes = await Promise.all(
        order.map(async (id) => (await approvalEntries(id ?? "")).map(({ entry }) => entry.gesture?.votes)),
      );
      for (const [given] of votes) assert.deepEqual([given?.length, given], [20, votes[0]?.[0]]);
      const statuses = async () => Promise.all(order.map(async (id) => (await read(id ?? "")).status));
      const decided = order.map((_, i) => (i % 5 === 1 ? "denied" : "approved"));
      assert.deepEqual(await statuses(), decided);
      // A vote can be taken back while the action has not started.
      const [started, recalled] = [order[18] ?? "", order[19] ?? ""];
      await requestPane(page, recalled).getByRole("button", { name: "Withdraw my approval" }).click();
      await requestPane(page, recalled).getByText("You withdrew your approval, so the action is cancelled.").waitFor();
      const { status } = await service.call("POST", `/v1/actions/${started}/start`, { body: {} });
      assert.equal(status, 200);
      await openRequest(page, started);
      await requestPane(page, started)
        .getByRole("button", { name: "Withdraw my approval" })
        .waitFor({ state: "detached" });
      assert.deepEqual(await statuses(), [...decided.slice(0, 18), "executing", "cancelled"]);
      await openRequest(page, order[16] ?? "");
      await requestPane(page, order[16] ?? "")
        .getByRole("button", { name: "Lift the rejection" })
        .click();
      await requestPane(page, order[16] ?? "")
        .getByText("The rejection is lifted.")
        .waitFor();
    });

    it("signs the votes on a selection with one gesture on a phone", async () => {
      const ids = [];
      for (let amount = 611; amount <= 612; amount++) ids.push(await submit({ params: { amount, currency: "USD" } }));
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(`${origin}/#/approvals`);
      await page.reload();
      for (const id of ids) await inboxRow(page, id).getByRole("checkbox").check();
      await page.getByRole("button", { name: "Show 2 selected" }).click();
      await page.getByRole("button", { name: "All requests" }).click();
      // The selection can be changed before the vote.
      await inboxRow(page, ids[0] as string).waitFor();
      await page.getByRole("button", { name: "Show 2 selected" }).click();
      await page.getByRole("button", { name: "Approve 2" }).waitFor();
      await picture(page, "batch-phone");
      await page.getByRole("button", { name: "Approve 2" }).click();
      await recordNow(page);
      await inboxRow(page, ids[0] as string)
        .getByText("approved by you")
        .waitFor();
      assert.ok(await page.evaluate("document.documentElement.scrollWidth <= 390"), "nothing is wider than the phone");
      const votes = await Promise.all(ids.map(async (id) => (await approvalEntries(id))[0]?.entry.gesture?.votes));
      assert.equal(votes[0]?.length, 2);
      assert.deepEqual(votes[0], votes[1]);
      await page.setViewportSize({ width: 1280, height: 900 });
    });

    it("votes without a signature for a user who has no passkey, unless a rule requires one", async () => {
      const [plainVote, signedVote] = [await submit({ params: { amount: 700 } }), await submit({ tool: "postgres" })];
      await page.route("**/v1/votes/challenge", (route) =>
        route.fulfill({ status: 403, json: { status: 403, code: "VOTE_SIGNATURE_INVALID", detail: "no passkey" } }),
      );
      await openRequest(page, plainVote);
      await voteNow(page, "Approve", "small");
      await inboxRow(page, plainVote).locator(".settled-mark").waitFor();
      await openRequest(page, signedVote);
      await voteNow(page, "Approve", "a copy");
      await page.getByRole("alert").getByText("signature").waitFor();
      await page.unroute("**/v1/votes/challenge");
      assert.deepEqual(
        [(await read(plainVote)).status, (await read(signedVote)).status],
        ["approved", "pending_approval"],
      );
    });

    it(
      "signs nothing if a question was asked after the page read the request, and before the service chose what is signed",
      needs("questions"),
      async () => {
        const id = await submit({ tool: "postgres", operation: "copy" });
        await openRequest(page, id);
        await page.route("**/v1/votes/challenge", async (route) => {
          const body = { question: "Which table?" };
          const asked = await service.call("POST", `/v1/actions/${id}/questions`, { key: service.admin, body });
          assert.equal(asked.status, 200, JSON.stringify(asked.body));
          await route.continue();
        });
        await voteNow(page, "Approve", "a copy");
        await page.getByText("a question was asked or answered since").waitFor();
        await page.unroute("**/v1/votes/challenge");
        assert.deepEqual([(await read(id)).status, await approvalEntries(id)], ["pending_approval", []]);
      },
    );

    it("tells a person with an API key to sign in if a rule requires a signature", async () => {
      const id = await submit({ tool: "postgres", operation: "archive old" });
      await invite("Desk", ["approver"]);
      const { body } = await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "desk", preset: "approver", owner: await principalOf("Desk") },
      });
      const desk = await open(browser, `${origin}/#/approvals/${id}`);
      await signInWithKey(desk.page, body.key as string);
      await requestPane(desk.page, id).getByText("an API key cannot sign").waitFor();
      assert.equal(await desk.page.getByRole("button", { name: "Approve", exact: true }).count(), 0);
      const link = await requestPane(desk.page, id)
        .getByRole("link", { name: "Sign in as a user" })
        .getAttribute("href");
      assert.equal(link, `/sign-in?return_to=${encodeURIComponent(`/#/approvals/${id}`)}`);
      await desk.page.close();
    });
  });

  describe("on the page of a link", () => {
    /** Submits, and returns the action's id and the link that was sent to Anna. */
    async function ask(table: string): Promise<{ id: string; link: string }> {
      const action = { agent_id: "support-bot", tool: "warehouse", operation: "archive", params: { table } };
      const id = (await service.call("POST", "/v1/actions", { key: service.agent, body: action })).body.id as string;
      const message = (await pigeon.next(
        (one) => one.kind === "approval_requested" && one.action.id === id,
      )) as ApprovalMessage;
      return { id, link: `${origin}/approve${new URL(message.link).hash}` };
    }
    const read = async (id: string) => (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;

    it("signs in and signs the vote on a phone, and no address has the token", async () => {
      const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true });
      const { page } = await open(context, await invite("Harriet", ["approver"]));
      await addAuthenticator(context, page);
      await page.getByRole("button", { name: "Create a passkey" }).click();
      await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
      await page.goto(`${origin}/sign-in`);
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("button", { name: "Sign in with a passkey" }).waitFor();

      const { id, link } = await ask("invoices_2019");
      const addresses: string[] = [];
      page.on("request", (sent) => addresses.push(sent.url()));
      await page.goto(link);
      await page.getByText("accepts only votes that are signed with a passkey").waitFor();
      assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
      await page.getByRole("link", { name: "Sign in as a user" }).click();
      await page.getByRole("button", { name: "Sign in with a passkey" }).click();
      await page.getByText("You vote as Harriet").waitFor();
      assert.equal(page.url(), `${origin}/approve`);
      const token = new URL(link).hash.slice(1);
      assert.deepEqual(
        addresses.filter((url) => url.includes(token.slice(0, 40)) || url.includes("return_to=%2Fapprove%23")),
        [],
      );
      await picture(page, "approve-phone");
      const width = await page.evaluate("document.documentElement.scrollWidth");
      assert.ok((width as number) <= 390, "nothing is wider than the phone");
      await vote(page, "Approve", "nobody reads it");
      await page.getByText("You approved it.").waitFor();
      assert.equal((await read(id)).approvals[0].reason, "nobody reads it");
      const { body } = await service.call("GET", `/v1/events/page?type=approval&action_id=${id}`, {
        key: service.admin,
      });
      const [{ entry }] = body.events;
      assert.match(entry.by.principal, /^user:/);
      assert.match(entry.gesture.preview, /^[0-9a-f]{64}$/);
      await page.setViewportSize({ width: 1280, height: 900 });
      await picture(page, "approve-desktop");
      await context.close();
    });

    it("preserves the reason if the person does not confirm, and a link without a session cannot vote", async () => {
      const { id, link } = await ask("invoices_2020");
      const context = await browser.newContext();
      const { page } = await open(context, await invite("Ines", ["approver"]));
      const authenticator = await addAuthenticator(context, page);
      await page.getByRole("button", { name: "Create a passkey" }).click();
      await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
      await authenticator.cdp.send("WebAuthn.setUserVerified", {
        authenticatorId: authenticator.id,
        isUserVerified: false,
      });
      await page.goto(link);
      await page.getByText("You vote as Ines").waitFor();
      await vote(page, "Approve", "old data");
      await page.getByText("the passkey did not sign, so no vote is recorded").waitFor();
      assert.equal(await page.getByLabel("Reason").inputValue(), "old data");
      const forced = await voteByLink(service, new URL(link).hash.slice(1), true);
      assert.equal(forced.body.code, "VOTE_SIGNATURE_REQUIRED");
      assert.equal((await read(id)).status, "pending_approval");
      await context.close();
    });
  });

  it("opens the console with the session in every tab, on a phone too, and ends it in every tab", async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const { page, complaints } = await open(context, await invite("Edith", ["approver"]));
    await addAuthenticator(context, page);
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
    const signOut = page.getByRole("button", { name: "Sign out" });

    await page.getByRole("link", { name: "Continue" }).click();
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByText("User: Edith").waitFor();
    await page.setViewportSize({ width: 1280, height: 900 });
    const tab = await context.newPage();
    await tab.setViewportSize({ width: 1280, height: 900 });
    await tab.goto(`${origin}/#/actions`);
    await tab.getByText("User: Edith").waitFor();

    const cookie = (await context.cookies(origin)).map(({ name, value }) => `${name}=${value}`).join("; ");
    const stored = await page.evaluate(() => localStorage.getItem("assent.key") ?? "");
    const headers = { cookie, "assent-session": stored.replace("session.", "") };
    const readSession = async (): Promise<number> =>
      (await service.call("GET", "/v1/session", { key: null, headers })).status;
    assert.equal(await readSession(), 200);
    await signOut.click();
    await page.getByRole("link", { name: "Sign in with a passkey" }).waitFor();
    await tab.getByRole("link", { name: "Sign in with a passkey" }).waitFor();
    assert.equal(await readSession(), 401, "the session itself ended");
    await tab.close();

    await page.goto(`${origin}/#/actions`);
    await page.reload();
    // One click: the page behind the link asks for the passkey at once.
    await page.getByRole("link", { name: "Sign in with a passkey" }).click();
    await page.getByRole("heading", { name: "Actions", level: 1 }).waitFor();

    await context.clearCookies();
    await page.reload();
    await page.getByText("You were signed out: your session has ended").waitFor();
    await page.getByRole("link", { name: "Sign in with a passkey" }).waitFor();
    // The browser logs each 401: `GET /v1/session` without a session, and the session that ended.
    assert.deepEqual(
      complaints.filter((text) => !/401/.test(text)),
      [],
    );
    await context.close();
  });

  it("keeps the person signed in to the console if the service cannot end the session", async () => {
    const context = await browser.newContext();
    const { page } = await open(context, await invite("Frances", ["approver"]));
    await addAuthenticator(context, page);
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("link", { name: "Continue" }).click();
    await page.getByText("User: Frances").waitFor();
    await page.route("**/v1/session", (route) => route.fulfill({ status: 503, json: { detail: "the disk is full" } }));
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("alert").getByText("the disk is full").waitFor();
    await page.getByText("User: Frances").waitFor();
    await context.close();
  });

  it("has no finding of axe-core, minor ones included, before a sign-in, while enrolling and after it", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      const context = await browser.newContext({ bypassCSP: true, colorScheme, viewport: { width: 390, height: 844 } });
      const { page } = await open(context, `${origin}/sign-in`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      assert.deepEqual(await accessibilityFindings(page), [], `${colorScheme}, signed out`);
      await page.goto("about:blank");
      await addAuthenticator(context, page);
      await page.goto(await invite(`Axe ${colorScheme}`, ["viewer"]));
      await page.getByRole("button", { name: "Create a passkey" }).waitFor();
      assert.deepEqual(await accessibilityFindings(page), [], `${colorScheme}, enrolling`);
      await page.getByRole("button", { name: "Create a passkey" }).click();
      await page.getByText("recovery codes").first().waitFor();
      assert.deepEqual(await accessibilityFindings(page), [], `${colorScheme}, enrolled`);
      await page.goto(`${origin}/sign-in`);
      await page.getByRole("button", { name: "Add another passkey" }).waitFor();
      assert.deepEqual(await accessibilityFindings(page), [], `${colorScheme}, signed in`);
      assert.ok(
        await page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        "nothing is wider than a phone",
      );
      await page.goto(`${origin}/sign-in#terminal=${"a".repeat(43)}`);
      await page.getByLabel("Code that the terminal shows").waitFor();
      assert.deepEqual(await accessibilityFindings(page), [], `${colorScheme}, confirming a terminal`);
      await context.close();
    }
  });

  it("returns only to paths of the service after a sign-in", async () => {
    const context = await browser.newContext();
    const { page } = await open(context, await invite("Carol", []));
    await addAuthenticator(context, page);
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
    for (const target of [
      "https://evil.example/",
      "//evil.example/",
      "/\\evil.example",
      "javascript:alert(1)",
      "/%0a/evil.example",
    ]) {
      await context.clearCookies();
      await page.goto(`${origin}/sign-in?return_to=${encodeURIComponent(target)}`);
      await page.getByRole("button", { name: "Sign in with a passkey" }).click();
      await page.waitForURL((url) => url.pathname !== "/sign-in");
      assert.equal(new URL(page.url()).origin, origin, target);
    }
    await context.close();
  });

  it("opens at the service's own name, under whichever name of this machine a person opens it", async () => {
    const { port } = new URL(server.url);
    for (const host of ["127.0.0.1", "localhost", "[::1]", "other.localhost"])
      for (const path of ["/", "/sign-in?return_to=%2F#enrol=abc", "/docs?a=b"]) {
        const { page } = await open(browser, `http://${host}:${port}${path}`);
        await page.waitForURL((url) => url.origin === origin);
        await page.close();
      }
  });

  it("shows where people sign in if they come through another port", async () => {
    const other = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
    try {
      const { page } = await open(browser, `${other.url}/sign-in`);
      await page.getByRole("alert").getByText(`People sign in at ${origin}, not at this address.`).waitFor();
      assert.ok(await page.getByRole("button", { name: "Sign in with a passkey" }).isDisabled());
      await page.close();
    } finally {
      await other.stop(0);
    }
  });
});
