/** The API's documentation, from the routes that are loaded: a document for machines, two pages for people. Nothing is fetched from elsewhere. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Host } from "../../src/contract/host.ts";
import type { Page } from "../../src/contract/page.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import { openApiDocument } from "../../src/http/openapi.ts";
import { definePlugin } from "../../src/plugin.ts";
import { Type } from "@sinclair/typebox";
import { errorsPage } from "./errors-page.ts";
import { html, redocPage, swaggerPage } from "./pages.ts";

const require = createRequire(import.meta.url);

/** Files that the pages load, by name. */
const ASSETS: Readonly<Record<string, { file: () => string; type: string; change?: (text: string) => string }>> = {
  "swagger-ui.css": { file: () => require.resolve("swagger-ui-dist/swagger-ui.css"), type: "text/css; charset=utf-8" },
  "swagger-ui-bundle.js": { file: () => require.resolve("swagger-ui-dist/swagger-ui-bundle.js"), type: "text/javascript; charset=utf-8" },
  "redoc.standalone.js": { file: () => require.resolve("redoc/bundles/redoc.standalone.js"), type: "text/javascript; charset=utf-8", change: ownLogo },
  "start-swagger.js": { file: own("start-swagger.js"), type: "text/javascript; charset=utf-8" },
  "docs.css": { file: own("docs.css"), type: "text/css; charset=utf-8" },
  "favicon.svg": { file: own("favicon.svg"), type: "image/svg+xml" },
};

const TAGS = {
  actions: "What agents want to do: submitted, decided, approved, carried out.",
  policies: "What is allowed, denied or asked for. Versions never change.",
  "api-keys": "Who may call, and what for.",
  deliveries: "Messages to people and programs: sent, waiting, given up.",
  agents: "Registered agents, their tools, and their suspension.",
  analytics: "Sums over a range.",
  events: "The ledger as a stream.",
  provenance: "Proofs for those who check the ledger.",
  replay: "Recorded decisions, made again.",
  health: "For supervisors and load balancers.",
  docs: "This document.",
};

const ABOUT = `Assent decides, before it happens, whether a software agent's action may go ahead; asks a person where policy says so; and keeps a record that anyone can verify.

Send an API key as \`Authorization: Bearer assent_…\`. Errors are \`application/problem+json\` with a stable \`code\`: [all of them](/docs/errors). Unknown members and parameters are refused.`;

export default definePlugin({
  name: "docs",
  setup(host) {
    let text: string | null = null;
    const document = async (): Promise<string> => (text ??= JSON.stringify(openApiDocument({ routes: host.routes, version: await version(), server: serverOf(host), tags: TAGS, description: ABOUT })));
    return {
      routes: [
        {
          method: "GET", path: "/openapi.json", tag: "docs", summary: "This API as OpenAPI 3.1", scope: null,
          responses: { 200: { description: "The document.", schema: Type.Object({ openapi: Type.Literal("3.1.1") }, { examples: [{ openapi: "3.1.1" }] }) } }, errors: [],
          handle: async () => ({ status: 200, text: await document(), headers: { "Content-Type": "application/json" } }),
        },
      ],
      pages: [
        { path: "/docs", title: "API", serve: () => html(swaggerPage()) },
        { path: "/redoc", title: "API reference", serve: () => html(redocPage(), { styles: true }) },
        { path: "/docs/errors", title: "Errors", serve: async () => html(await errorsPage()) },
        ...Object.entries(ASSETS).map(([name, { file, type, change }]): Page => ({ path: `/docs/assets/${name}`, title: name, serve: asset(file, type, change) })),
      ],
    };
  },
});

function own(name: string): () => string {
  return () => new URL(`./assets/${name}`, import.meta.url).pathname;
}

/** Redoc loads its maker's logo from another host; the name as a picture stands in for it. */
const MAKER = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="44" height="12"><text y="10" font-family="system-ui,sans-serif" font-size="10" font-weight="600" fill="#3b6fb6">Redocly</text></svg>')}`;

function ownLogo(bundle: string): string {
  return bundle.replaceAll(/https:\/\/cdn\.redoc\.ly\/redoc\/logo-[a-z-]+\.svg/g, MAKER);
}

async function version(): Promise<string> {
  const manifest = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };
  return manifest.version;
}

function serverOf(host: Host): string {
  return host.config.server.public_url?.replace(/\/$/, "") ?? "/";
}

/** Read at the first request and kept. */
function asset(file: () => string, type: string, change?: (text: string) => string): Page["serve"] {
  let loaded: Promise<{ bytes: Uint8Array; etag: string }> | null = null;
  return async (request) => {
    loaded ??= readFile(file()).then((buffer) => {
      const bytes = change === undefined ? new Uint8Array(buffer) : utf8(change(buffer.toString("utf8")));
      return { bytes, etag: `"${sha256Hex(bytes).slice(0, 32)}"` };
    });
    const { bytes, etag } = await loaded;
    const headers = { "Content-Type": type, ETag: etag, "Cache-Control": "public, max-age=3600" };
    if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers });
    return new Response(request.method === "HEAD" ? null : (bytes as BodyInit), { status: 200, headers });
  };
}
