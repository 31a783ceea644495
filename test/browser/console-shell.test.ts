/** The console's shell: signing in and out, the menu, and the headers that hold it together. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { open, withoutBrowser } from "../support/browser.ts";
import { startConsole, type Console } from "../support/console.ts";

describe("the console's shell", { skip: withoutBrowser }, () => {
  let console_: Console;
  before(async () => {
    console_ = await startConsole();
  });
  after(() => console_.close());

  it("signs in with a key that the tab alone keeps, and out", { timeout: 60_000 }, async () => {
    const context = await console_.browser.newContext({ viewport: { width: 1280, height: 900 } });
    const { page, complaints, strayed } = await open(context, console_.server.url);
    await page.getByLabel("API key").fill(console_.service.admin);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Approvals" }).waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify([sessionStorage.getItem("assent.key"), localStorage.length, document.cookie])), JSON.stringify([console_.service.admin, 0, ""]));
    const other = await context.newPage();
    await other.goto(console_.server.url);
    await other.getByRole("button", { name: "Sign in" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.getItem("assent.key")), null);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("says why a key is not taken", { timeout: 60_000 }, async () => {
    const { page } = await open(console_.browser, console_.server.url);
    await page.getByLabel("API key").fill(`assent_${"x".repeat(43)}000000`);
    await page.keyboard.press("Enter");
    assert.match((await page.getByRole("alert").textContent()) ?? "", /key/);
    await page.getByLabel("API key").fill("schlüssel");
    await page.keyboard.press("Enter");
    await page.getByText("this is not an API key").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  });

  it("signs out when the key is revoked, and says so", { timeout: 60_000 }, async () => {
    const { body } = await console_.service.call("POST", "/v1/api-keys", { key: console_.service.admin, body: { name: "short", preset: "approver" } });
    const { page } = await console_.visit(body.key, "");
    await console_.service.call("DELETE", `/v1/api-keys/${body.id}`, { key: console_.service.admin });
    await page.getByText(/You were signed out/).waitFor();
  });

  it("has a menu that a phone opens and a keyboard reaches", { timeout: 60_000 }, async () => {
    const { page } = await console_.visit(console_.service.admin, "", { viewport: { width: 390, height: 844 } });
    const link = page.getByRole("link", { name: "Approvals", exact: true });
    assert.equal(await link.isVisible(), false);
    await page.getByRole("button", { name: "Menu" }).focus();
    await page.keyboard.press("Enter");
    assert.equal(await link.isVisible(), true);
  });

  it("is served under a policy that lets no markup and nothing from elsewhere in", async () => {
    const { status, headers } = await console_.service.call("GET", "/", { key: null });
    assert.equal(status, 200);
    const policy = headers.get("content-security-policy") ?? "";
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"]) assert.ok(policy.includes(part), part);
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

  it("answers with nothing new when the browser has the file", async () => {
    const first = await console_.service.call("GET", "/console/main.js", { key: null });
    assert.equal(first.headers.get("content-type"), "text/javascript; charset=utf-8");
    assert.equal((await console_.service.call("GET", "/console/main.js", { key: null, headers: { "if-none-match": first.headers.get("etag") as string } })).status, 304);
  });
});
