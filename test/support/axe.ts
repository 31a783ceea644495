/** axe-core in a page, at its strictest. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Frame, Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

/**
 * Returns what axe-core finds in a page or a frame, minor findings included: one text for each rule that is violated.
 * The context needs `bypassCSP: true`, because the pages' own policy refuses axe's functions.
 */
export async function accessibilityFindings(page: Page | Frame): Promise<string[]> {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } };
    return (await axe.run()).violations;
  });
  return violations.map(
    ({ id, impact, nodes }) =>
      `${id} (${impact}): ${nodes.map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`).join("\n")}`,
  );
}
