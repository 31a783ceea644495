/** The console as people use it: a served runtime, signed-in pages. */
import type { Browser, Locator, Page } from "playwright-core";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { launch, open, type Watched } from "./browser.ts";
import { startService, type Service, type ServiceOptions } from "./service.ts";

export interface Console {
  service: Service;
  /** A test that takes it away puts another in its place. */
  server: RunningServer;
  browser: Browser;
  /** A key with these scopes; gives its value. */
  key(name: string, more: object): Promise<string>;
  /** A page of its own, signed in. `hash` such as "#/approvals". */
  visit(key: string, hash: string, options?: Parameters<Browser["newPage"]>[0]): Promise<Watched>;
  close(): Promise<void>;
}

export async function startConsole(options: ServiceOptions = {}): Promise<Console> {
  const service = await startService({
    ...options,
    change(config) {
      // The keys of these tests are all the admin's.
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
      const { status, body } = await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name, ...more },
      });
      if (status !== 201) throw new Error(`no key "${name}": ${JSON.stringify(body)}`);
      return body.key as string;
    },
    async visit(key, hash, page = {}) {
      const watched = await open(browser, `${made.server.url}/${hash}`, {
        viewport: { width: 1280, height: 900 },
        ...page,
      });
      await watched.page.getByLabel("API key").fill(key);
      await watched.page.getByRole("button", { name: "Sign in" }).click();
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

/** The inbox's row of a request. */
export const rowOf = (page: Page, id: string): Locator =>
  page.locator(".row-item", { has: page.locator(`[data-id="${id}"]`) });

/** The open request. */
export const paneOf = (page: Page, id: string): Locator => page.locator(`[data-pane="${id}"]`);

/** Opens a request in the inbox, as a link does. */
export async function openRequest(page: Page, id: string): Promise<Locator> {
  await page.evaluate((address) => void (location.hash = address), `#/approvals/${id}`);
  await paneOf(page, id).waitFor();
  return paneOf(page, id);
}

/** Votes on the open request, by its buttons. */
export async function vote(page: Page, verb: "Approve" | "Deny", reason = ""): Promise<void> {
  if (reason !== "") await page.getByLabel("Reason").fill(reason);
  await page.getByRole("button", { name: verb, exact: true }).click();
}

/** The text editor of a policy, or another one by its label. */
export const editorOf = (page: Page, label = "Policy, as YAML"): Locator =>
  page.getByRole("textbox", { name: label, exact: true });

/** Replaces the text of an editor by a paste, which the editor reads without indenting its lines. */
export async function fillEditor(page: Page, text: string, label?: string): Promise<void> {
  await editorOf(page, label).click();
  await page.keyboard.press("Control+a");
  await editorOf(page, label).evaluate((content, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    content.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

/** Returns the lines of an editor, joined by line feeds. Long texts are only partly rendered. */
export const readEditor = (page: Page, label?: string): Promise<string> =>
  editorOf(page, label).evaluate((content) =>
    [...content.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n"),
  );
