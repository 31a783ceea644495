/** Runs axe-core in a page with all its rules enabled. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Frame, Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

interface Axe {
  run(options: object): Promise<{ violations: Violation[] }>;
}

/**
 * Returns what axe-core finds in a page or a frame, minor findings included: one string for each violated rule. The
 * context needs `bypassCSP: true`, because the Content Security Policy of the pages blocks axe-core.
 * @param rules `colors` runs only the rules that depend on colors, for a page that was already checked in other colors
 */
export async function accessibilityFindings(page: Page | Frame, rules: "all" | "colors" = "all"): Promise<string[]> {
  if (await page.evaluate(() => !("axe" in globalThis))) await page.evaluate(AXE);
  const violations = await page.evaluate(
    async (options) => {
      // A change of the color scheme is animated.
      await new Promise(requestAnimationFrame);
      const running = document.getAnimations().filter(({ effect }) => effect?.getComputedTiming().endTime !== Infinity);
      await Promise.all(running.map(({ finished }) => finished.catch(() => undefined)));
      const { axe } = globalThis as unknown as { axe: Axe };
      return (await axe.run(options)).violations;
    },
    {
      // Only violations are read.
      resultTypes: ["violations"],
      ...(rules === "all" ? {} : { runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } }),
    },
  );
  return violations.map(
    ({ id, impact, nodes }) =>
      `${id} (${impact}): ${nodes.map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`).join("\n")}`,
  );
}
