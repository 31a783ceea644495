/**
 * The API's documentation, generated from the loaded routes: an OpenAPI document, and two pages for people. The pages
 * load nothing from other hosts.
 */
import { fileURLToPath } from "node:url";
import { type AssetFile, createAssets, createDocument } from "../../src/core.ts";
import { definePlugin, defineRoute, type Page } from "../../src/plugin.ts";
import { Type } from "@sinclair/typebox";
import { errorsPage } from "./errors-page.ts";
import {
  FRAMED_ASSET_HEADERS,
  frameHeaders,
  renderFramedPage,
  DOC_PAGE_HEADERS,
  renderRedocFrame,
  renderSwaggerFrame,
} from "./doc-pages.ts";

/**
 * Folder with the output of the build: the scripts in app/ (.ci/pages.mjs) and files of other packages
 * (.ci/vendor.mjs). A service that runs from its sources also uses this folder.
 */
const BUILT = new URL(import.meta.url.endsWith(".ts") ? "../../dist/plugins/docs/" : "./", import.meta.url);

/** Files that the pages load, keyed by name. */
const ASSETS: Readonly<Record<string, AssetFile>> = {
  "swagger-ui.css": { path: builtPath("vendor/swagger-ui.css"), headers: FRAMED_ASSET_HEADERS },
  "swagger-ui-bundle.js": { path: builtPath("vendor/swagger-ui-bundle.js"), headers: FRAMED_ASSET_HEADERS },
  "redoc.standalone.js": { path: builtPath("vendor/redoc.standalone.js"), headers: FRAMED_ASSET_HEADERS },
  "start-swagger.js": { path: builtPath("bundle/start-swagger.js"), headers: FRAMED_ASSET_HEADERS },
  "start-redoc.js": { path: builtPath("bundle/start-redoc.js"), headers: FRAMED_ASSET_HEADERS },
  "docs.css": { path: assetPath("docs.css"), headers: FRAMED_ASSET_HEADERS },
  "favicon.svg": { path: assetPath("favicon.svg"), headers: FRAMED_ASSET_HEADERS },
  "relay.js": { path: builtPath("bundle/relay.js") },
};

const TAGS = {
  actions: "Actions that agents request: submit, decide, approve, run.",
  policies: "What is allowed, denied, or requires approval. Versions never change.",
  "api-keys": "Credentials of programs, and their scopes.",
  claims: "Who is looking at a pending request.",
  devices: "Machines whose hooks report to the service.",
  stop: "Deny all actions, with precedence over policies.",
  coverage: "Results of comparisons between the logs of other systems and the ledger.",
  deliveries: "Messages to people and programs: sent, waiting, abandoned.",
  agents: "Registered agents, their tools, and their suspension.",
  authority: "What an agent may do, and the rules that it proposes to people.",
  groups: "Groups of people, and rotas of who is on call.",
  analytics: "Counts of actions over time.",
  evidence: "Packs of evidence for auditors.",
  flags: "Reports that an action should not have been let through.",
  events: "The ledger's entries, as a stream or in pages.",
  provenance: "Proofs for verifiers of the ledger.",
  replay: "Evaluation of recorded decisions, with the same or with other policies.",
  "well-known": "Keys and metadata for tools that verify permits. No key is needed.",
  "workload-identity": "The exchange of an ID-JAG for an access token. Present if an issuer of ID-JAGs is configured.",
  health: "Checks and metrics for supervisors, load balancers and monitoring.",
  docs: "This document.",
};

const ABOUT = `Assent decides, before it happens, whether a software agent's action may go ahead; asks a person where policy says so; and keeps a record that anyone can verify.

Send an API key as \`Authorization: Bearer assent_…\`. Errors are \`application/problem+json\` with a stable \`code\`: [all of them](/docs/errors). Unknown members and parameters are rejected.`;

export default definePlugin({
  name: "docs",
  setup(host) {
    const assets = createAssets("/docs/assets", ASSETS);
    const serve = (page: (base: string) => string | Promise<string>, headers = DOC_PAGE_HEADERS): Page["serve"] =>
      createDocument(async () => page(await assets.base()), headers);
    let text: string | null = null;
    const document = (): string => (text ??= JSON.stringify(host.openapi({ tags: TAGS, description: ABOUT })));
    return {
      routes: [
        defineRoute({
          method: "GET",
          path: "/openapi.json",
          tag: "docs",
          summary: "This API as OpenAPI 3.1",
          scope: null,
          responses: {
            200: {
              description: "The document.",
              schema: Type.Object({ openapi: Type.Literal("3.1.1") }, { examples: [{ openapi: "3.1.1" }] }),
            },
          },
          handle: () => ({
            status: 200,
            text: document(),
            headers: { "Content-Type": "application/json" },
          }),
        }),
      ],
      pages: [
        { path: "/docs", title: "API", serve: serve((base) => renderFramedPage(base, "API", "/docs/frame")) },
        { path: "/docs/frame", title: "API, in its frame", serve: serve(renderSwaggerFrame, frameHeaders()) },
        {
          path: "/redoc",
          title: "API reference",
          serve: serve((base) => renderFramedPage(base, "API reference", "/redoc/frame")),
        },
        {
          path: "/redoc/frame",
          title: "API reference, in its frame",
          serve: serve(renderRedocFrame, frameHeaders({ styles: true })),
        },
        { path: "/docs/errors", title: "Errors", serve: serve((base) => errorsPage(base, host.errors)) },
        assets.page,
      ],
    };
  },
});

function assetPath(name: string): () => string {
  return () => fileURLToPath(new URL(`./assets/${name}`, import.meta.url));
}

function builtPath(name: string): () => string {
  return () => fileURLToPath(new URL(name, BUILT));
}
