/** Serves the page that a problem's `type` links to: the table of docs/errors.md, with an anchor for each code. */
import { readFile } from "node:fs/promises";
import type { ErrorKind } from "../../src/plugin.ts";
import { renderPage } from "./doc-pages.ts";

const ROW = /^\| `([A-Z_0-9]+)` \| (\d+) \| ([^|]+) \| ([^|]+) \|$/gm;

export async function errorsPage(base: string, pluginErrors: readonly ErrorKind[]): Promise<string> {
  const text = await readFile(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const rows = [
    ...[...text.matchAll(ROW)].map(([, ...cells]) => cells),
    ...pluginErrors.map(({ code, status, title }) => [
      code,
      String(status),
      title,
      "Returned by a plugin: see `detail`.",
    ]),
  ].map(
    ([code = "", status = "", title = "", remedy = ""]) =>
      `<tr id="${code.toLowerCase().replaceAll("_", "-")}"><td><code>${code}</code></td><td>${status}</td><td>${renderInline(title)}</td><td>${renderInline(remedy)}</td></tr>`,
  );
  return renderPage(
    base,
    "Errors",
    `<main class="errors">
<h1>Errors</h1>
<p>Every refusal is <code>application/problem+json</code> (RFC 9457). Programs branch on <code>code</code>, which is stable; <code>detail</code> is for people; <code>errors</code> names each fault by pointer or parameter.</p>
<table>
<thead><tr><th>code</th><th>status</th><th>what it says</th><th>what to do</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table>
</main>`,
  );
}

/** Renders code spans. Replaces links by their text, because the service does not serve the pages that they lead to. */
function renderInline(markdown: string): string {
  const text = markdown.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1");
  const safe = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return safe.replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}
