/** A real browser, where the machine has one. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium, type Browser, type BrowserContext, type BrowserServer, type Page } from "playwright-core";

const NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/** Path of the machine's browser; null when there is none. */
export function browserPath(): string | null {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    for (const name of NAMES) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Not here.
      }
    }
  }
  return null;
}

/** For `skip` of a test: false, or why it cannot run. */
export const withoutBrowser: string | false =
  browserPath() === null ? "no browser on this machine: install chromium to run the browser tests" : false;

function options(): { executablePath: string; args: string[] } {
  const path = browserPath();
  if (path === null) throw new Error(withoutBrowser || "no browser");
  return { executablePath: path, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] };
}

/** One that several processes may share. */
export const startBrowser = (): Promise<BrowserServer> => chromium.launchServer(options());

/** The one that the run shares, or one of the test's own. To close it closes what was opened here. */
export function launch(): Promise<Browser> {
  const shared = process.env["ASSENT_TEST_BROWSER"];
  return shared === undefined ? chromium.launch(options()) : chromium.connect(shared);
}

/** Bounds each wait in a page, so that a file whose tests all fail still ends before the runner stops it. */
const PAGE_BOUND_MS = 60_000;

export interface Watched {
  page: Page;
  /** Console errors, uncaught exceptions and violations of the page's policy. */
  complaints: string[];
  /** Addresses outside the origin that the page asked for. */
  strayed: string[];
}

/** @param browser or a context of one, for tabs that share what a browser keeps */
export async function open(
  browser: Pick<Browser, "newPage"> | Pick<BrowserContext, "newPage">,
  url: string,
  options: Parameters<Browser["newPage"]>[0] = {},
): Promise<Watched> {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PAGE_BOUND_MS);
  // How many times slower the page is to run, to find tests that rely on a fast machine.
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
