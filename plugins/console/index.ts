/** The console: a page at `/` and the files it loads. It holds no rights of its own: everything goes through the API with the visitor's key. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Page } from "../../src/contract/page.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import { definePlugin } from "../../src/plugin.ts";

const require = createRequire(import.meta.url);

/** Modules and styles of the application, by path under `assets/` and under `/console/`. */
const OWN = [
  "favicon.svg",
  "console.css",
  "main.js",
  "approve.js",
  "api.js",
  "backtest.js",
  "live.js",
  "text.js",
  "ui.js",
  "request.js",
  "verify.js",
  "forms.js",
  "chart.js",
  "proof.js",
  "yaml.js",
  "pages/action.js",
  "pages/actions.js",
  "pages/agents.js",
  "pages/analytics.js",
  "pages/approvals.js",
  "pages/backtest.js",
  "pages/deliveries.js",
  "pages/events.js",
  "pages/keys.js",
  "pages/policies.js",
  "pages/policy-editor.js",
  "pages/policy.js",
  "pages/provenance.js",
  "pages/queue.js",
  "pages/system.js",
  "pages/verdict.js",
];

/** Files of packages. Preact's hooks import "preact" by name, which no browser resolves without an import map: the address stands in for it. */
const VENDOR: Readonly<Record<string, () => string>> = {
  "preact.mjs": () => require.resolve("preact"),
  "hooks.mjs": () => require.resolve("preact/hooks"),
  "htm.mjs": () => new URL("htm.module.js", `file://${require.resolve("htm")}`).pathname,
  "uplot.mjs": () => beside("uPlot.esm.js"),
  "uplot.css": () => beside("uPlot.min.css"),
};

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  mjs: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  html: "text/html; charset=utf-8",
};

/** Nothing from elsewhere, no inline script or style, no frame, and no text that becomes markup: `innerHTML` throws. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const PAGE_HEADERS = {
  "Content-Security-Policy": POLICY,
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
};

export default definePlugin({
  name: "console",
  setup: () => ({
    pages: [
      { path: "/", title: "Console", serve: file(() => own("index.html"), PAGE_HEADERS) },
      { path: "/approve", title: "Approve or deny", serve: file(() => own("approve.html"), PAGE_HEADERS) },
      ...OWN.map((name): Page => ({ path: `/console/${name}`, title: name, serve: file(() => own(name)) })),
      ...Object.entries(VENDOR).map(([name, path]): Page => ({ path: `/console/vendor/${name}`, title: name, serve: file(path, {}, forBrowsers) })),
    ],
  }),
});

function own(name: string): string {
  return new URL(`./assets/${name}`, import.meta.url).pathname;
}

/** uPlot exports no more than its CommonJS build to `require`. */
function beside(name: string): string {
  return new URL(name, `file://${require.resolve("uplot")}`).pathname;
}

function forBrowsers(module: string): string {
  return module.replaceAll('from"preact"', 'from"/console/vendor/preact.mjs"').replaceAll(/^\/\/# sourceMappingURL=.*$/gm, "");
}

/** Read at the first request and kept. Asked for again at every visit: modules of two versions must not meet in one page. */
function file(path: () => string, headers: Record<string, string> = {}, change?: (text: string) => string): Page["serve"] {
  let loaded: Promise<{ bytes: Uint8Array; headers: Record<string, string> }> | null = null;
  return async (request) => {
    loaded ??= readFile(path()).then((buffer) => {
      const bytes = change === undefined ? new Uint8Array(buffer) : utf8(change(buffer.toString("utf8")));
      const type = TYPES[path().split(".").at(-1) as string] as string;
      return { bytes, headers: { ...headers, "Content-Type": type, ETag: `"${sha256Hex(bytes).slice(0, 32)}"`, "Cache-Control": "no-cache" } };
    });
    const answer = await loaded;
    if (request.headers.get("if-none-match") === answer.headers["ETag"]) return new Response(null, { status: 304, headers: answer.headers });
    return new Response(request.method === "HEAD" ? null : (answer.bytes as BodyInit), { status: 200, headers: answer.headers });
  };
}
