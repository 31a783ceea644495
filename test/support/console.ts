/** Starts a service with its console, and operates the console in a browser. */
import type { Browser, Locator, Page } from "playwright-core";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { launch, open, type Watched } from "./browser.ts";
import { makeKey, startService, type Service, type ServiceOptions } from "./service.ts";

export interface Console {
  service: Service;
  /** A test that stops this server assigns its replacement here. */
  server: RunningServer;
  browser: Browser;
  /** Creates an API key and returns its value. @param more the key's preset or scopes, and other fields */
  key(name: string, more: object): Promise<string>;
  /**
   * Opens a new page, signed in with `key`. @param hash the part of the address that selects the view, such as
   * "#/approvals"
   */
  visit(key: string, hash: string, options?: Parameters<Browser["newPage"]>[0]): Promise<Watched>;
  close(): Promise<void>;
}

export async function startConsole(options: ServiceOptions = {}): Promise<Console> {
  const service = await startService({
    ...options,
    change(config) {
      // All API keys of these tests are created by the admin. Without this setting, their votes would not count as
      // different people.
      config.approvals.trust_key_makers = true;
      options.change?.(config);
    },
  });
  const listening = await serve((request, info) => service.runtime.fetch(request, info), {
    host: "127.0.0.1",
    port: 0,
  });
  const browser = await launch();
  const made: Console = {
    service,
    server: listening,
    browser,
    async key(name, more) {
      return (await makeKey(service, { name, ...more })).key;
    },
    async visit(key, hash, page = {}) {
      const watched = await open(browser, `${made.server.url}/${hash}`, {
        viewport: { width: 1280, height: 900 },
        ...page,
      });
      await signInWithKey(watched.page, key);
      await watched.page.getByRole("navigation").waitFor();
      return watched;
    },
    async close() {
      await browser.close();
      await made.server.stop(1000);
      await service.close();
    },
  };
  return made;
}

/** Signs in with an API key. The form is behind a button if people can sign in with passkeys. */
export async function signInWithKey(page: Page, key: string): Promise<void> {
  const [button, field] = [page.getByRole("button", { name: "Use an API key" }), page.getByLabel("API key")];
  await button.or(field).first().waitFor();
  if (await button.isVisible()) await button.click();
  await field.fill(key);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Returns a request's row in the inbox. */
export const inboxRow = (page: Page, id: string): Locator =>
  page.locator(".row-item", { has: page.locator(`[data-id="${id}"]`) });

/** Returns the details pane of the open request. */
export const requestPane = (page: Page, id: string): Locator => page.locator(`[data-pane="${id}"]`);

/** Opens a request in the inbox by its address, as a link in a message does. */
export async function openRequest(page: Page, id: string): Promise<Locator> {
  await page.evaluate((address) => void (location.hash = address), `#/approvals/${id}`);
  await requestPane(page, id).waitFor();
  return requestPane(page, id);
}

/** Votes on the open request in the inbox, and records the vote without waiting for the time in which it can be undone. */
export async function voteNow(page: Page, verb: "Approve" | "Deny", reason = ""): Promise<void> {
  await vote(page, verb, reason);
  await recordNow(page);
}

/** Records the held votes without waiting for the time in which they can be undone. */
export async function recordNow(page: Page): Promise<void> {
  // Do not wait for the button: a slow machine can record the vote, which removes the button, before it is clicked.
  await page
    .getByRole("button", { name: "Record now" })
    .evaluateAll((buttons) => buttons.forEach((button) => (button as HTMLElement).click()));
}

/** Votes on the open request with its buttons. */
export async function vote(page: Page, verb: "Approve" | "Deny", reason = ""): Promise<void> {
  if (reason !== "") await page.getByLabel("Reason").fill(reason);
  await page.getByRole("button", { name: verb, exact: true }).click();
}

/** Returns a text editor by its label. Default: the policy editor. */
export const editorOf = (page: Page, label = "Policy, as YAML"): Locator =>
  page.getByRole("textbox", { name: label, exact: true });

/** Replaces the content of an editor by pasting, because an editor does not indent pasted lines. */
export async function fillEditor(page: Page, text: string, label?: string): Promise<void> {
  await editorOf(page, label).click();
  await page.keyboard.press("Control+a");
  await editorOf(page, label).evaluate((content, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    content.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

/** Returns the lines of an editor, joined by line feeds. The editor renders only a part of long documents. */
export const readEditor = (page: Page, label?: string): Promise<string> =>
  editorOf(page, label).evaluate((content) =>
    [...content.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n"),
  );
