/** The sign-in page. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type Page } from "../../src/plugin.ts";
import { createAssets, createDocument } from "../../src/core.ts";

const FOLDER = fileURLToPath(new URL("./assets/", import.meta.url));
/**
 * The script and the style sheet of the page, which the build (.ci/pages.mjs) writes. A service that runs from its sources
 * also uses them.
 */
const BUNDLE = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../dist/plugins/users/bundle/" : "./bundle/", import.meta.url),
);
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

export function signInPages(): Page[] {
  const assets = createAssets("/sign-in-assets", {
    "sign-in.js": { path: () => `${BUNDLE}sign-in.js` },
    "sign-in.css": { path: () => `${BUNDLE}sign-in.css` },
  });
  const serve = createDocument(
    async () => (await readFile(`${FOLDER}sign-in.html`, "utf8")).replaceAll("{base}", await assets.base()),
    {
      "Content-Security-Policy": POLICY,
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Opener-Policy": "same-origin",
    },
  );
  return [{ path: "/sign-in", title: "Sign in", serve }, assets.page];
}
