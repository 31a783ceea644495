/** Passkeys in a real browser, with its virtual authenticator. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, BrowserContext, CDPSession, Page } from "playwright-core";
import { serve, type Listening } from "../../src/serve/index.ts";
import { accessibilityFindings } from "../support/axe.ts";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { startPeople } from "../support/people.ts";
import { ASKED, type Service } from "../support/service.ts";

describe("the sign-in page", { skip: withoutBrowser }, () => {
  let service: Service;
  let server: Listening;
  let browser: Browser;
  /** Passkeys need a host name. */
  let origin = "";
  before(async () => {
    service = await startPeople();
    server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
    origin = server.url.replace("127.0.0.1", "localhost");
    browser = await launch();
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

  async function attach(cdp: CDPSession): Promise<string> {
    const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    return authenticatorId;
  }

  /** A device with a fingerprint reader, in this page. */
  async function addAuthenticator(context: BrowserContext, page: Page): Promise<{ cdp: CDPSession; id: string }> {
    const cdp = await context.newCDPSession(page);
    await cdp.send("WebAuthn.enable");
    return { cdp, id: await attach(cdp) };
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
    // A 401 of `GET /v1/session` before the sign-in is logged by the browser.
    assert.deepEqual(
      complaints.filter((text) => !/401/.test(text)),
      [],
    );
    assert.deepEqual(strayed, []);
    await context.close();
  });

  it("adds a second passkey, and a recovery code adds one on another device", async () => {
    const context = await browser.newContext();
    const { page } = await open(context, await invite("Bob", ["viewer"]));
    const first = await addAuthenticator(context, page);
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
    const [code = ""] = await page.locator("#list li").allTextContents();
    await page.goto(`${origin}/sign-in`);
    // A device enrols one passkey of a user: the second one needs another device.
    await first.cdp.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId: first.id });
    await attach(first.cdp);
    await page.getByRole("button", { name: "Add another passkey" }).click();
    await page.getByText("You have 2 passkeys").waitFor();
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
        const headers = { "Content-Type": "application/json", "Assent-Session": "1" };
        return (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
      };
      const { nonce, options } = await post("/v1/votes/challenge", { votes });
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
      const response = (await navigator.credentials.get({ publicKey })).toJSON();
      return post("/v1/votes", { nonce, votes, response });
    })()`);
    assert.deepEqual(answer, { results: [{ action_id: body.id, status: "approved", error: null }] });
    await context.close();
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

    await signOut.click();
    await page.getByRole("link", { name: "Sign in as a user" }).waitFor();
    await tab.getByRole("link", { name: "Sign in as a user" }).waitFor();
    assert.equal((await context.request.get(`${origin}/v1/session`)).status(), 401, "the session itself ended");
    await tab.close();

    await page.goto(`${origin}/#/actions`);
    await page.reload();
    await page.getByRole("link", { name: "Sign in as a user" }).click();
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.getByRole("heading", { name: "Actions", level: 1 }).waitFor();

    await context.clearCookies();
    await page.reload();
    await page.getByText("You were signed out: your session has ended").waitFor();
    await page.getByRole("link", { name: "Sign in as a user" }).waitFor();
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
      assert.ok(
        await page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        "nothing is wider than a phone",
      );
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

  it("says at another address than localhost where people can sign in", async () => {
    const { page } = await open(browser, `${server.url}/sign-in`);
    await page
      .getByRole("alert")
      .getByText(`http://localhost:${new URL(server.url).port}`)
      .waitFor();
    assert.ok(await page.getByRole("button", { name: "Sign in with a passkey" }).isDisabled());
    await page.close();
  });
});
