/** Measures the code that a page or a worker loads from `assent/client`. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "../support/runtimes.ts";

test("loads under 24,000 bytes at once, and no modules that only Node has", async () => {
  const { metafile } = await build({
    entryPoints: [join(ROOT, "clients/typescript/index.ts")],
    bundle: true,
    minify: true,
    splitting: true,
    format: "esm",
    // With this setting, an import of a node: module is an error.
    platform: "browser",
    target: "es2022",
    outdir: "out",
    write: false,
    metafile: true,
    external: ["jose"],
  });
  let bytes = 0;
  const seen = new Set<string>();
  const walk = (path: string): void => {
    const output = metafile.outputs[path];
    if (output === undefined || seen.has(path)) return;
    seen.add(path);
    bytes += output.bytes;
    for (const { path: next, kind } of output.imports) if (kind === "import-statement") walk(next);
  };
  walk("out/index.js");
  assert.ok(bytes > 5000 && bytes < 24_000, `${bytes} bytes`);
  const packages = Object.keys(metafile.inputs).filter((path) => path.includes("node_modules/"));
  assert.deepEqual(
    [...new Set(packages.map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]))].sort(),
    ["@noble/hashes", "canonicalize"],
  );
});
