/** Counts and times what a person does in a page, for the walks of docs/console-walks.md. */
import { appendFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";

/**
 * Estimated seconds of a person: for a click (point and press), a key, a passkey gesture, and for reading what has
 * appeared before the next step. The first two are from the keystroke-level model, rounded up.
 */
const PERSON = { clicks: 1.5, keys: 0.3, gestures: 3, looks: 3 };

export class Hand {
  clicks = 0;
  keys = 0;
  gestures = 0;
  /** Number of times that the person reads what has appeared. */
  looks = 0;
  readonly page: Page;
  private since = performance.now();
  constructor(page: Page) {
    this.page = page;
    page.on("request", (request) => {
      if (request.method() === "POST" && /\/v1\/(?:votes|enrolment)$/.test(new URL(request.url()).pathname))
        this.gestures++;
    });
  }
  /** Starts the time of the walk, at `since` (of `performance.now()`) if it began before the page was opened. */
  begin(since = performance.now()): void {
    this.since = since;
  }
  async click(target: Locator): Promise<void> {
    this.clicks++;
    this.looks++;
    await target.click();
  }
  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      this.keys++;
      await this.page.keyboard.press(key);
    }
  }
  /** Waits for what the person reads before the next step. */
  async read(target: Locator): Promise<void> {
    this.looks++;
    await target.waitFor();
  }
  get used(): [clicks: number, keys: number, gestures: number] {
    return [this.clicks, this.keys, this.gestures];
  }
  /**
   * Appends the measured time of the machine and the estimated time of the person to the file in `WALK_TIMES`.
   * @param waited seconds that the script did not wait, but a person does
   */
  report(walk: string, waited = 0): void {
    const file = process.env["WALK_TIMES"];
    if (file === undefined) return;
    const machine = (performance.now() - this.since) / 1000 + waited;
    const { clicks, keys, gestures, looks } = this;
    const counts = { clicks, keys, gestures, looks };
    const person = Object.entries(PERSON).reduce((sum, [name, s]) => sum + s * counts[name as keyof typeof PERSON], 0);
    const shown = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
    const sum = `${machine.toFixed(1)} + ${person.toFixed(1)} = ${(machine + person).toFixed(1)} s`;
    appendFileSync(file, `${walk}: ${sum} (machine + person), ${shown.join(", ")}\n`);
  }
}
