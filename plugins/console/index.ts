/** The console: a page at `/` and the files it loads. It holds no rights of its own: everything goes through the API with the visitor's key. */
import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { definePlugin, type Page } from "../../src/plugin.ts";
import { type AssetFile, createAssets, createDocument } from "../../src/core.ts";

const FOLDER = fileURLToPath(new URL("./assets/", import.meta.url));
/** Files of other packages, put there by the build (.ci/vendor.mjs), also for a service that runs from its sources. */
const VENDOR = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../dist/plugins/console/vendor/" : "./vendor/", import.meta.url),
);

/** Pure modules of the service that the console shares, as the compiler wrote them. */
const SHARED = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../dist/src/domain/" : "../../src/domain/", import.meta.url),
);

/** The one stream of all tabs runs in a worker, which takes its policy from its own file's headers. */
const WORKER = "stream-worker.js";
const WORKER_POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'";

/** Nothing from elsewhere, no inline script or style, no frame, and no text that becomes markup: `innerHTML` throws. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  // Made once, by live.js, for the address of the worker.
  "trusted-types assent-worker",
].join("; ");

const PAGE_HEADERS = {
  "Content-Security-Policy": POLICY,
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
};

export default definePlugin({
  name: "console",
  setup() {
    const assets = createAssets("/console", files());
    /** A page of `assets/`, with the addresses of this version. All that its script needs is asked for at once, and what comes next when that is there. */
    const page = (name: string, entry: string, next?: string): Page["serve"] =>
      createDocument(async () => {
        const [html, base, now, later] = await Promise.all([
          readFile(`${FOLDER}${name}`, "utf8"),
          assets.base(),
          assets.imports(entry),
          next === undefined ? [] : assets.imports(next),
        ]);
        const links = [
          ...now.map((module) => `<link rel="modulepreload" href="${base}/${module}">`),
          ...later
            .filter((module) => !now.includes(module))
            .map((module) => `<link rel="modulepreload" href="${base}/${module}" fetchpriority="low">`),
        ];
        return html.replaceAll("{base}", base).replace("{preload}", links.join("\n"));
      }, PAGE_HEADERS);
    return {
      pages: [
        { path: "/", title: "Console", serve: page("index.html", "main.js", "pages/approvals.js") },
        { path: "/approve", title: "Approve or deny", serve: page("approve.html", "approve.js") },
        assets.page,
      ],
    };
  },
});

/** Modules and styles of the application by their path under `assets/`, and what they load of packages. */
function files(): Record<string, AssetFile> {
  const own = readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => /\.(?:js|css|svg)$/.test(name));
  const worker = { "Content-Security-Policy": WORKER_POLICY };
  return {
    ...Object.fromEntries(
      own.map((name) => [name, { path: () => `${FOLDER}${name}`, ...(name === WORKER ? { headers: worker } : {}) }]),
    ),
    ...Object.fromEntries(
      ["outline.js", "text.js", "visible-text.js"].map((name) => [
        `domain/${name}`,
        { path: () => `${SHARED}${name}` },
      ]),
    ),
    ...Object.fromEntries(
      ["preact.mjs", "hooks.mjs", "htm.mjs", "uplot.mjs", "uplot.css"].map((name) => [
        `vendor/${name}`,
        { path: () => `${VENDOR}${name}` },
      ]),
    ),
  };
}
