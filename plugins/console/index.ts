/**
 * The console: a page at `/` and the files that it loads. It has no privileges: it sends every request through the API,
 * with the visitor's credential.
 */
import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type AssetFile, createAssets, createDocument } from "../../src/core.ts";
import { definePlugin, type Host, type Page } from "../../src/plugin.ts";

const ICONS = ["favicon.svg", "icon-192.png", "icon-512.png"];
/** The documents, and the icons. */
const STATIC = fileURLToPath(new URL("./static/", import.meta.url));
/**
 * The folder of the application's bundle, which the build (.ci/pages.mjs) writes. A service that runs from its sources
 * uses the same bundle.
 */
const BUNDLE = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../dist/plugins/console/bundle/" : "./bundle/", import.meta.url),
);

/**
 * The worker that reads one stream for all tabs. The response with its file carries a separate Content-Security-Policy.
 */
const WORKER = "stream-worker.js";
const WORKER_POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'";

/** The worker that shows notifications. It is at the root, because its address must be the same in every version. */
const SERVICE_WORKER = "service-worker.js";
const SERVICE_WORKER_POLICY = "default-src 'none'; img-src 'self'";

/**
 * Content-Security-Policy of the pages. Forbids other origins, inline scripts and styles, frames, and text as markup
 * (`innerHTML` throws).
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  // script-address.ts creates this policy once, for the addresses of the workers.
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
  setup({ plugins }) {
    const files = { ...bundleFiles(), ...pluginPages(plugins) };
    const assets = createAssets("/console", files);
    /**
     * Returns a document of `static/`, with the asset addresses of this version. The browser preloads all modules of
     * the document's script (`entry`), and then those of the most used page (`next`).
     */
    const page = (name: string, entry: string, next?: string): Page["serve"] =>
      createDocument(async () => {
        if (!(entry in files))
          throw new Error(`the console is not built: ${BUNDLE} has no ${entry}; run "npm run build"`);
        const [html, base, now, later] = await Promise.all([
          readFile(`${STATIC}${name}`, "utf8"),
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
        return html
          .replaceAll("{base}", base)
          .replace("{preload}", links.join("\n"))
          .replace("{plugins}", formatNames(plugins))
          .replace("{pages}", formatNames(plugins.filter(({ page }) => page !== null)));
      }, PAGE_HEADERS);
    /** Serves a text file in which only the addresses of assets change with the version. */
    const text = (path: string, headers: Record<string, string>): Page["serve"] =>
      createDocument(async () => (await readFile(path, "utf8")).replaceAll("{base}", await assets.base()), headers);
    return {
      pages: [
        { path: "/", title: "Console", serve: page("index.html", "main.js", "approvals.js") },
        { path: "/approve", title: "Approve or deny", serve: page("approve.html", "approve.js") },
        {
          path: "/manifest.webmanifest",
          title: "Manifest of the console as an app",
          serve: text(`${STATIC}manifest.webmanifest`, { "Content-Type": "application/manifest+json" }),
        },
        {
          path: `/${SERVICE_WORKER}`,
          title: "Service worker that shows notifications",
          serve: text(`${BUNDLE}${SERVICE_WORKER}`, {
            "Content-Type": "text/javascript; charset=utf-8",
            "Content-Security-Policy": SERVICE_WORKER_POLICY,
          }),
        },
        assets.page,
      ],
    };
  },
});

/** Joins the names of plugins with spaces, as the value of an HTML attribute. */
function formatNames(plugins: readonly { name: string }[]): string {
  return plugins.map(({ name }) => encodeURIComponent(name)).join(" ");
}

/**
 * Returns the modules that third-party plugins add. Browsers cannot resolve package names, so the import of
 * `assent/console` becomes the address of the kit.
 */
function pluginPages(plugins: Host["plugins"]): Record<string, AssetFile> {
  return Object.fromEntries(
    plugins.flatMap(({ name, page }): [string, AssetFile][] =>
      page === null
        ? []
        : [
            [
              `pages/${encodeURIComponent(name)}.js`,
              {
                path: () => page,
                change: (text) => text.replaceAll(/(\bfrom\s*)(["'])assent\/console\2/g, '$1"../kit.js"'),
              },
            ],
          ],
    ),
  );
}

/**
 * Returns the modules and styles of the application, and the icons. If there is no bundle, only the documents fail, and
 * they report why.
 */
function bundleFiles(): Record<string, AssetFile> {
  const names = existsSync(BUNDLE) ? readdirSync(BUNDLE) : [];
  const worker = { "Content-Security-Policy": WORKER_POLICY };
  return {
    ...Object.fromEntries(ICONS.map((name) => [name, { path: () => `${STATIC}${name}` }])),
    ...Object.fromEntries(
      names.map((name) => [name, { path: () => `${BUNDLE}${name}`, ...(name === WORKER ? { headers: worker } : {}) }]),
    ),
  };
}
