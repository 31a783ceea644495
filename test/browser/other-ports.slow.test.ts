/**
 * A hostile program on another port of this machine: it serves pages under every name of the machine, and reads what
 * the browser of a signed-in person sends to it.
 * @needs console, users
 */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { launch, open, withoutBrowser } from "../support/browser.ts";
import { addUser, startPeople } from "../support/people.ts";
import { ASKED, type Answer, type Service } from "../support/service.ts";
import { addAuthenticator } from "../support/virtual-authenticator.ts";
import { serve, type RunningServer } from "../../src/serve/index.ts";

/** Signs a challenge in the page with any passkey for the console's host. Returns the response as JSON. */
const SIGN = `async (options) => {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  return (await navigator.credentials.get({ publicKey })).toJSON();
}`;

describe("a program on another port", { skip: withoutBrowser }, () => {
  let service: Service;
  let server: RunningServer;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let origin = "";
  let hostile: Server;
  let port = 0;
  /** Cookies that the hostile program received, by the host of the request. */
  const received = new Map<string, string>();
  /** Cookies that the hostile program sets with its next responses. */
  let planted: string[] = [];

  before(async () => {
    service = await startPeople();
    server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
    service.runtime.listensAt(server.port);
    origin = service.runtime.host.origin() ?? "";
    hostile = createServer(({ headers: { host = "", cookie = "" } }, response) => {
      received.set(host, cookie);
      response.writeHead(200, { "Content-Type": "text/html", "Set-Cookie": planted }).end("<title>hostile</title>");
    });
    await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
    port = (hostile.address() as AddressInfo).port;
    browser = await launch();
    context = await browser.newContext();
    const { link } = await addUser(service, { name: "Ada", roles: ["admin"] });
    ({ page } = await open(context, link.url));
    await addAuthenticator(context, page);
    await page.getByRole("button", { name: "Create a passkey" }).click();
    await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
  });
  after(async () => {
    await browser.close();
    hostile.close();
    await server.stop(0);
    await service.close();
  });

  const nameOf = (host: string): string => `http://${host}:${port}`;
  const console_ = (): string => new URL(origin).hostname;
  /** Sends a request as the hostile program, which can set every header. */
  const send = (method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<Answer> =>
    service.call(method, path, { key: null, headers, ...(body === undefined ? {} : { body }) });
  const forged = (): Record<string, string> => ({ host: new URL(origin).host, origin, "assent-session": "1" });
  const signedInUser = async (): Promise<void> => {
    await page.goto(`${origin}/#/approvals`);
    await page.getByText("User: Ada").waitFor();
  };

  it("receives the session's cookie under the console's name only, and can do nothing with it", async () => {
    const names = [console_(), `x.${console_()}`, "localhost", "other.localhost", "127.0.0.1"];
    for (const host of names) await page.goto(nameOf(host));
    assert.deepEqual(
      names.map((host) => (received.get(`${host}:${port}`) ?? "") !== ""),
      [true, false, false, false, false],
    );
    const cookie = received.get(`${console_()}:${port}`) ?? "";
    assert.match(cookie, new RegExp(`^assent_session_${server.port}=`));
    const { body: action } = await service.call("POST", "/v1/actions", { key: service.agent, body: ASKED });
    for (const token of ["1", "", cookie.split(".").at(-1) ?? ""])
      for (const [method, path, body] of [
        ["GET", "/v1/session"],
        ["GET", `/v1/actions/${action.id}`],
        ["POST", `/v1/actions/${action.id}/approval`, { approve: true, token: "x".repeat(40) }],
        ["POST", "/v1/api-keys", { name: "stolen", preset: "admin" }],
        ["DELETE", "/v1/session"],
      ] as const) {
        const headers = { ...forged(), cookie, "assent-session": token };
        const { status, body: refused } = await send(method, path, headers, body);
        assert.deepEqual([status, refused.code], [401, "MISSING_CREDENTIAL"], `${method} ${path}`);
      }
    await signedInUser();
  });

  it("reads neither the storage of the console nor its responses", async () => {
    for (const host of [console_(), "localhost"]) {
      await page.goto(nameOf(host));
      const seen = await page.evaluate(async (target) => {
        const fetched = await fetch(`${target}/v1/session`, { credentials: "include" }).then(
          ({ status }) => status,
          (error: Error) => error.name,
        );
        const posted = await fetch(`${target}/v1/session`, {
          method: "DELETE",
          credentials: "include",
          headers: { "Assent-Session": "1" },
        }).then(
          ({ status }) => status,
          (error: Error) => error.name,
        );
        return { stored: localStorage.length + sessionStorage.length, fetched, posted };
      }, origin);
      assert.deepEqual(seen, { stored: 0, fetched: "TypeError", posted: "TypeError" });
    }
    await signedInUser();
  });

  it("obtains gestures under the console's name that the service refuses, whatever host the program names", async () => {
    const { body } = await send("POST", "/v1/session/passkey/options", forged());
    for (const host of [console_(), `x.${console_()}`]) {
      await page.goto(nameOf(host));
      const response = await page.evaluate(`(${SIGN})(${JSON.stringify(body.options)})`);
      for (const named of [new URL(origin).host, `${host}:${port}`])
        for (const claimed of [origin, nameOf(host)]) {
          const headers = { ...forged(), host: named, origin: claimed };
          const refused = await send("POST", "/v1/session/passkey", headers, { response });
          assert.match(refused.body.code, /^USERS_(PASSKEY_INVALID|CROSS_SITE)$/, JSON.stringify(headers));
        }
    }
    for (const host of ["localhost", "other.localhost", "127.0.0.1"]) {
      await page.goto(nameOf(host));
      await assert.rejects(
        page.evaluate(`(${SIGN})(${JSON.stringify(body.options)})`),
        /relying party|RP ID|invalid domain/i,
      );
    }
  });

  it("cannot have the person act in a session that it plants", async () => {
    const { link } = await addUser(service, { name: "Mallory", roles: ["viewer"] });
    const mallory = await browser.newContext();
    const { page: own } = await open(mallory, link.url);
    await addAuthenticator(mallory, own);
    await own.getByRole("button", { name: "Create a passkey" }).click();
    await own.getByRole("heading", { name: "Recovery codes" }).waitFor();
    const [cookie] = await mallory.cookies(origin);
    const token = await own.evaluate(() => localStorage.getItem("assent.key")?.replace("session.", "") ?? "");
    await mallory.close();

    for (const [host, attributes] of [
      [console_(), "Path=/"],
      [`x.${console_()}`, `Path=/; Domain=${console_()}`],
    ] as const) {
      planted = [`${cookie?.name}=${cookie?.value}; ${attributes}`];
      await page.goto(nameOf(host));
      planted = [];
      // The address of a finished sign-in at a provider, with the token of the planted session.
      await page.goto(`${origin}/sign-in?return_to=%2F#session=${token}`);
      await page.getByText("The sign-in did not start in this tab. Start again.").waitFor();
      assert.notEqual(await page.evaluate(() => localStorage.getItem("assent.key")), `session.${token}`);
      await page.goto(`${origin}/#/approvals`);
      assert.equal(await page.getByText("User: Mallory").count(), 0);
    }
    // A planted cookie with the console's host replaces the cookie of the session, and one of a name below does not.
    await page.goto(`${origin}/sign-in`);
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.getByText("User: Ada").waitFor();
    assert.equal((await context.cookies(origin)).length, 2);
  });
});
