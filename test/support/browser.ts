/** Finds and starts Chromium for browser tests. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium, type Browser, type BrowserContext, type BrowserServer, type Page } from "playwright-core";

const NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/** Returns the path of the installed browser, or null if there is none. */
export function browserPath(): string | null {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    for (const name of NAMES) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Try the next name.
      }
    }
  }
  return null;
}

/** Value for the `skip` option of a test: false, or the reason why browser tests cannot run here. */
export const withoutBrowser: string | false =
  browserPath() === null ? "no browser on this machine: install chromium to run the browser tests" : false;

function options(): { executablePath: string; args: string[] } {
  const path = browserPath();
  if (path === null) throw new Error(withoutBrowser || "no browser");
  return { executablePath: path, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] };
}

/** Starts a browser that several processes can share. */
export const startBrowser = (): Promise<BrowserServer> => chromium.launchServer(options());

/**
 * Connects to the browser that the test run shares, or starts a new one. Closing a shared browser closes only the pages
 * that were opened here.
 */
export function launch(): Promise<Browser> {
  const shared = process.env["ASSENT_TEST_BROWSER"];
  return shared === undefined ? chromium.launch(options()) : chromium.connect(shared);
}

/** Timeout of each wait in a page, so that a file whose tests all fail still ends before the runner stops it. */
const PAGE_BOUND_MS = 60_000;

export interface Watched {
  page: Page;
  /** Console errors, uncaught exceptions and violations of the Content Security Policy. */
  complaints: string[];
  /** Addresses outside the page's origin that the page requested. */
  strayed: string[];
}

/**
 * Opens a page and records its errors and its requests to other origins.
 * @param browser a browser, or a context for tabs that share cookies and storage
 */
export async function open(
  browser: Pick<Browser, "newPage"> | Pick<BrowserContext, "newPage">,
  url: string,
  options: Parameters<Browser["newPage"]>[0] = {},
): Promise<Watched> {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PAGE_BOUND_MS);
  // Factor by which the page is slowed down, to find tests that rely on a fast machine.
  const rate = Number(process.env["ASSENT_TEST_SLOWDOWN"] ?? 1);
  if (rate > 1) await (await page.context().newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate });
  const watched: Watched = { page, complaints: [], strayed: [] };
  const { origin } = new URL(url);
  page.on("console", (message) => {
    if (message.type() === "error" || /Content Security Policy/i.test(message.text()))
      watched.complaints.push(message.text());
  });
  page.on("pageerror", (error) => watched.complaints.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !/^(data|blob):/.test(request.url())) watched.strayed.push(request.url());
  });
  await page.goto(url);
  return watched;
}
