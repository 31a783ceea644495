/**
 * The console's inbox with 10,000 pending requests and 1,000,000 actions, in six tabs at 50 decisions per second: the time to
 * the first list (goal: under 1 s), the time from a key to the next request (goal: under 100 ms), the longest tasks of the
 * tabs (goal: none over 100 ms), nodes, requests per second (goal: 1, besides the one that a key needs), and how long decisions of the service take meanwhile.
 * BENCH_STORE names a folder that keeps the filled store for the next run. BENCH_ACTIONS and BENCH_PENDING change its size.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { BrowserContext, Page } from "playwright-core";
import { launch } from "../test/support/browser.ts";
import { fillStore, policiesOf, prepareFolder, refundBody } from "./fill.ts";
import { end, start, type Server } from "./load.ts";

const ACTIONS = Number(process.env["BENCH_ACTIONS"] ?? 1_000_000);
const PENDING = Number(process.env["BENCH_PENDING"] ?? 10_000);
const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 30);
const TABS = 6;
const PER_SECOND = 50;
/** Of ten requests, the third requires approval and the eighth cancels a pending one. */
const ROUND = 10;
const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const GOAL_LIST_MS = 1000;
const GOAL_TASK_MS = 100;
const GOAL_KEY_MS = 100;
/** Goal for the 99th percentile of decisions. */
const GOAL_DECISION_MS = 50;
const KEY_EVERY_MS = 700;
/** Counts as the time of a key that opens no other request within this time. */
const MAX_KEY_MS = 10_000;
/** Number of requests that must be listed before the first key. */
const FIRST_ROWS = 10;
/** Fewer than a page of the list has, so that each key opens a request. */
const MAX_KEYS = 40;

const print = (name: string, value: string): boolean => process.stdout.write(`${name.padEnd(34)}${value}\n`);

/** Records when the first row of the list is rendered, and every long task. */
const WATCH = `
  window.bench = { list: null, tasks: [] };
  new PerformanceObserver((found) => {
    for (const { startTime, duration } of found.getEntries()) window.bench.tasks.push({ startTime, duration });
  }).observe({ type: "longtask", buffered: true });
  new MutationObserver((_, watcher) => {
    if (document.querySelector("[data-group]") === null) return;
    window.bench.list = performance.now();
    watcher.disconnect();
  }).observe(document, { childList: true, subtree: true });
`;

interface Bench {
  list: number | null;
  tasks: { startTime: number; duration: number }[];
}

const readBench = (page: Page): Promise<Bench> => page.evaluate(() => (window as unknown as { bench: Bench }).bench);

async function prepare(): Promise<string> {
  const kept = process.env["BENCH_STORE"];
  const data = kept ?? mkdtempSync(join(tmpdir(), "assent-bench-"));
  if (existsSync(join(data, "filled"))) return data;
  prepareFolder(data);
  const from = performance.now();
  let shown = 0;
  const body = (n: number) => refundBody(n, n < ACTIONS - PENDING ? 1 + (n % 100) : 101 + (n % 900));
  await fillStore({ data, adminKey: ADMIN }, { count: ACTIONS, last: PENDING, body }, (done) => {
    if (done < shown) return;
    process.stderr.write(`filled ${done} of ${ACTIONS}\n`);
    shown += 100_000;
  });
  print("filled the store", `${((performance.now() - from) / 1000).toFixed(0)} s`);
  writeFileSync(join(data, "filled"), "");
  return data;
}

async function send(service: Server, method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(service.url + path, {
    method,
    headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const json = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(json)}`);
  return json;
}

/** Opens the tabs one after another, and returns them with the requests that each has sent. */
async function openTabs(context: BrowserContext, url: string, key: string): Promise<{ page: Page; sent: string[] }[]> {
  const tabs: { page: Page; sent: string[] }[] = [];
  for (let i = 0; i < TABS; i++) {
    const page = await context.newPage();
    // The first list after a start reads the entries of all pending requests.
    page.setDefaultTimeout(240_000);
    const sent: string[] = [];
    page.on("request", (request) => void sent.push(new URL(request.url()).pathname));
    await page.goto(`${url}/#/approvals`);
    if (i === 0) {
      await page.getByRole("button", { name: "Use an API key" }).click();
      await page.getByLabel("API key").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.locator("[data-group]").first().waitFor();
      // Reload, as a person who is already signed in opens the page.
      await page.reload();
    }
    await page.locator("[data-group]").first().waitFor();
    await page.locator(".stream-status.live").waitFor();
    tabs.push({ page, sent });
  }
  return tabs;
}

/** Sends decisions at a constant rate. Returns how long each took, in milliseconds. */
async function decide(service: Server, seconds: number): Promise<number[]> {
  const begun = performance.now();
  const pending: string[] = [];
  const open = new Set<Promise<unknown>>();
  const times: number[] = [];
  let sent = 0;
  for (; performance.now() - begun < seconds * 1000; sent++) {
    const n = ACTIONS + sent;
    const place = sent % ROUND;
    const id = place === 7 ? pending.shift() : undefined;
    const from = performance.now();
    const work =
      id === undefined
        ? send(service, "POST", "/v1/actions", refundBody(n, place === 2 ? 500 : 50)).then((action) => {
            if (action["status"] === "pending_approval") pending.push(action["id"] as string);
          })
        : send(service, "POST", `/v1/actions/${id}/cancel`, {});
    open.add(work);
    void work
      .then(() => times.push(performance.now() - from))
      .finally(() => open.delete(work))
      .catch(() => undefined);
    await pause(Math.max(0, begun + ((sent + 1) * 1000) / PER_SECOND - performance.now()));
  }
  await Promise.all(open);
  return times;
}

/**
 * Opens one request after another with the key `j`, as a person does, until `isOver`. Returns the milliseconds from
 * each key to the displayed request with its buttons.
 */
async function step(page: Page, isOver: () => boolean): Promise<number[]> {
  const times: number[] = [];
  for (; times.length < MAX_KEYS && !isOver(); await pause(KEY_EVERY_MS)) {
    // The browser may handle a key before a script that was sent earlier. So listen first, then press the key.
    const opened = await page.evaluateHandle((most) => {
      const find = (): string | undefined =>
        document.querySelector<HTMLElement>("[data-pane]:has(.vote-bar)")?.dataset["pane"];
      const old = find();
      const ms = new Promise<number>((resolve) => {
        const onKey = ({ timeStamp }: KeyboardEvent): void => {
          const watch = (): void => {
            const now = find();
            if (now === undefined || now === old) requestAnimationFrame(watch);
            else resolve(performance.now() - timeStamp);
          };
          watch();
        };
        addEventListener("keydown", onKey, { once: true, capture: true });
        setTimeout(() => resolve(most), most);
      });
      return { ms };
    }, MAX_KEY_MS);
    await page.keyboard.press("j");
    times.push(await opened.evaluate(({ ms }) => ms));
  }
  return times;
}

const percentile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? NaN;

function report(name: string, value: number, goal: number, unit: string): void {
  print(name, `${value.toFixed(unit === "ms" ? 0 : 2)} ${unit} (goal: ${goal}; ${value <= goal ? "met" : "not met"})`);
}

const data = await prepare();
// Users need an address at which browsers permit passkeys.
const env = { ASSENT_ADMIN_KEY: ADMIN, ASSENT_PUBLIC_URL: "http://localhost" };
const service = await start("service", data, env, { policies: policiesOf(data) });
const browser = await launch();
try {
  // The admin submitted the requests, so another person votes.
  const name = `bench-${Date.now()}`;
  const { user } = await send(service, "POST", "/v1/users", { name, roles: ["approver"] });
  const owner = (user as { principal: string }).principal;
  const { key } = await send(service, "POST", "/v1/api-keys", { name, preset: "approver", owner });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await context.addInitScript(WATCH);
  const tabs = await openTabs(context, service.url, key as string);
  const lists = await Promise.all(tabs.map(async ({ page }) => (await readBench(page)).list ?? NaN));
  print("first list of each tab, ms", lists.map((ms) => ms.toFixed(0)).join(", "));
  report("slowest first list", Math.max(...lists), GOAL_LIST_MS, "ms");

  // A tab in the background renders no frames.
  await tabs[0]?.page.bringToFront();
  // Until the requests of the group are listed, `j` opens its first request only.
  await tabs[0]?.page.locator("[data-id]").nth(FIRST_ROWS).waitFor();
  await pause(3000);
  const before = await Promise.all(tabs.map(({ page }) => page.evaluate(() => performance.now())));
  const sentBefore = tabs.map(({ sent }) => sent.length);
  const from = performance.now();
  let isOver = false;
  const [decisions, keys] = await Promise.all([
    decide(service, SECONDS).finally(() => (isOver = true)),
    step((tabs[0] as (typeof tabs)[number]).page, () => isOver),
  ]);
  const seconds = (performance.now() - from) / 1000;
  print("decisions", `${(decisions.length / seconds).toFixed(1)} per second for ${seconds.toFixed(0)} s`);
  print("decisions, median", `${percentile(decisions, 0.5).toFixed(0)} ms`);
  report("decisions, 99th percentile", percentile(decisions, 0.99), GOAL_DECISION_MS, "ms");
  print("key to the next request, median", `${percentile(keys, 0.5).toFixed(0)} ms of ${keys.length} keys`);
  report("key to the next request, slowest", Math.max(...keys), GOAL_KEY_MS, "ms");
  const benches = await Promise.all(tabs.map(({ page }) => readBench(page)));
  const tasks = benches.map(({ tasks: all }, i) =>
    all.filter(({ startTime }) => startTime >= (before[i] ?? 0)).map(({ duration }) => duration),
  );
  print("longest task of each tab, ms", tasks.map((all) => Math.max(0, ...all).toFixed(0)).join(", "));
  print("tasks over 50 ms / over 100 ms", `${tasks.flat().length} / ${tasks.flat().filter((ms) => ms > 100).length}`);
  report("longest task", Math.max(0, ...tasks.flat()), GOAL_TASK_MS, "ms");
  const counts = tabs.map(({ sent }, i) => sent.length - (sentBefore[i] ?? 0));
  const [withKeys = 0, ...others] = counts;
  report("most requests of a tab without keys", Math.max(...others) / seconds, 1, "per second");
  // A key reads the request that it opens.
  report("the tab with keys, besides one per key", (withKeys - keys.length) / seconds, 1, "per second");
  const nodes = await Promise.all(tabs.map(({ page }) => page.evaluate(() => document.querySelectorAll("*").length)));
  report("most nodes of a tab", Math.max(...nodes), 2000, "nodes");
} finally {
  await browser.close();
  await end(service);
  if (process.env["BENCH_STORE"] === undefined) rmSync(data, { recursive: true, force: true });
}
