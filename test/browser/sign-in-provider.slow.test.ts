/**
 * Sign-in at an OpenID Connect provider, in a browser.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { startIdentityProvider, type IdentityProvider } from "../support/identity-provider.ts";
import { startPeople } from "../support/people.ts";
import type { Service } from "../support/service.ts";

describe("sign-in at an OpenID Connect provider", { skip: withoutBrowser }, () => {
  let provider: IdentityProvider;
  let service: Service;
  let server: RunningServer;
  let browser: Browser;
  let origin = "";
  before(async () => {
    // The provider and the service must know each other's address, so the server starts first.
    server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
    origin = `http://assent.localhost:${server.port}`;
    provider = await startIdentityProvider(() => `${origin}/v1/sign-in/company/callback`);
    service = await startPeople({
      users: {
        providers: [
          {
            id: "company",
            name: "Company",
            issuer: provider.issuer,
            client_id: "assent",
            client_secret: "secret",
            everyone: ["viewer"],
            groups: { fin: ["finance"] },
            roles: { fin: ["approver"] },
          },
        ],
      },
    });
    service.runtime.listensAt(server.port);
    browser = await launch();
  });
  after(async () => {
    await browser.close();
    await server.stop(1000);
    await service.close();
    await provider.close();
  });

  async function signInThere(page: Page, name: string): Promise<void> {
    await page.locator("input[name=login]").fill(name);
    await page.locator("input[name=password]").fill("any");
    await page.locator("button[type=submit]").click();
    await page.getByRole("button", { name: "Continue" }).click();
  }

  const session = (page: Page): Promise<{ user: Record<string, unknown> }> =>
    page.evaluate(async () => {
      const token = localStorage.getItem("assent.key")?.replace("session.", "") ?? "";
      return (await fetch("/v1/session", { headers: { "Assent-Session": token } })).json();
    });

  it("creates a user with the mapped roles and groups, and opens the console", async () => {
    provider.accounts.set("ada", { name: "Ada Lovelace", groups: ["fin", "other"] });
    const context = await browser.newContext();
    const { page } = await open(context, `${origin}/#/actions`);
    await page.getByRole("link", { name: "Sign in with a passkey or Company" }).click();
    await page.getByRole("link", { name: "Company" }).click();
    await signInThere(page, "ada");
    await page.getByText("User: Ada Lovelace").waitFor();
    assert.equal(page.url(), `${origin}/#/actions`);
    const { user } = await session(page);
    assert.deepEqual(
      [user["name"], user["roles"], user["groups"], user["managed_by"]],
      ["Ada Lovelace", ["approver", "viewer"], ["finance"], "oidc:company"],
    );
    await context.close();
  });

  it("explains on the sign-in page that the person cancelled at the provider", async () => {
    const context = await browser.newContext();
    const { page } = await open(context, `${origin}/sign-in`);
    await page.getByRole("link", { name: "Company" }).click();
    await page.getByRole("link", { name: /Cancel/ }).click();
    await page.getByText("The identity provider refused the sign-in.").waitFor();
    await context.close();
  });
});
