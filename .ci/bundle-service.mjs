/**
 * Bundles the modules of the service, because a start would otherwise load 500 files, which takes a third of its CPU time.
 * Every module stays importable by its own path: its file becomes a facade that exports the bindings of the one instance in
 * the bundle.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { buildSync } from "esbuild";
import { listModules } from "./bundle.mjs";

const { dirname, join, relative } = posix;
/** Entry points of separate processes and threads. Each gets a small bundle, because it needs little of the service. */
const ENTRIES = ["clients/hook/worker.js", "clients/hook/daemon.js", "src/policies/trial-thread.js"];
/**
 * Roots of what remains separate files, because it must load before or without the rest: the list of commands, the heap
 * settings, and the hook.
 */
const SEPARATE =
  /^src\/(?:cli\/(?:main|serve-command)|serve\/heap-growth)\.js$|^(?:plugins|clients)\/[\w-]+\/commands\/[\w-]+\.js$|^clients\/hook\/launcher\.js$/;
/**
 * Roots of the bundles: each contains these modules and everything that they import. A bundle imports the previous
 * bundles, so a client command or a ledger test loads only a part.
 */
const BUNDLES = {
  commands:
    /^src\/(?:command|domain\/scopes|programs\/run-program|cli\/(?:schema|service-status|verify))\.js$|^plugins\/actions\/cli\/(?:actions|plan)\.js$/,
  domain: /^src\/domain\//,
  ledger: /^src\/(?:testing|ledger|storage)\/|^plugins\/storage-sqlite\//,
  // The plugins that test/support/service.ts imports.
  service: new RegExp(
    "^src/(?:runtime/|cli/serve\\.js$)|^plugins/(?:actions|agents|analytics|api-keys|console|coverage|deliveries|docs|events" +
      "|health|metrics|policies|policy-files|provenance|replay|results|stop|suggestions|throttle|well-known)/index\\.js$",
  ),
  plugins: /^plugins\/[\w-]+\/index\.js$/,
};
const IMPORT = /^(?:import|export)\b[^"';]*?"(\.[^"]*)";?$/gm;

/**
 * Bundles a build.
 * @param folder has the layout of dist/, with its packages bundled into ./vendor
 * @param clients folders of the clients. Not imported from build.mjs, because that waits for this module
 */
export function bundleService(folder, clients) {
  const modules = new Map(scriptsIn(folder, clients).map((path) => [path, readFileSync(join(folder, path), "utf8")]));
  for (const [path, text] of modules)
    if (text.includes("import.meta.url")) writeFileSync(join(folder, path), keepLocation(path, text));
  const exportsOf = listExports(folder, [...modules.keys()]);
  const entries = ENTRIES.filter((path) => modules.has(path));
  for (const path of entries) bundle(folder, { entryPoints: [path], outfile: path }, []);
  const waiting = new Set(modules.keys());
  const rootsOf = (pattern) => [...waiting].filter((path) => pattern.test(path));
  const separate = withImports(rootsOf(SEPARATE), modules);
  for (const path of [...entries, ...separate]) waiting.delete(path);
  for (const [name, roots] of Object.entries(BUNDLES)) {
    const found = withImports(rootsOf(roots), modules).filter((path) => waiting.delete(path));
    const loaders = found.map((path) => `"${path}": () => require("./${path}"),\n`).join("");
    const contents = `export const modules = {\n${loaders}};\n`;
    bundle(folder, { stdin: { contents, resolveDir: folder }, outfile: `bundles/${name}.js` }, [
      ...waiting,
      ...separate,
    ]);
    for (const path of found)
      writeFileSync(join(folder, path), facadeOf(path, modules.get(path), exportsOf.get(path), name));
  }
  // These modules remain separate files.
  for (const path of [...waiting, ...separate]) writeFileSync(join(folder, path), modules.get(path));
}

/**
 * Returns the paths of all modules, except the client, which imports nothing of the service, and the entry point of the
 * command line.
 */
function scriptsIn(folder, clients) {
  return listModules(folder, ["src", "plugins", ...clients.filter((client) => client !== "clients/typescript")]).filter(
    (path) => path !== "src/browser.js" && path !== "src/cli/bin.js",
  );
}

/** Returns the modules and all that they import statically. */
function withImports(roots, modules) {
  const found = new Set(roots);
  for (const path of found)
    for (const [, name] of modules.get(path).matchAll(IMPORT)) {
      const imported = join(dirname(path), name);
      if (modules.has(imported)) found.add(imported);
    }
  return [...found];
}

/** Makes a module find the files in its source folder, whichever bundle contains it. */
function keepLocation(path, text) {
  return text.replaceAll("import.meta.url", `new URL("${path}", assentBuild).href`);
}

/** Returns the names that each module exports, without those that it exports with `export *`. */
function listExports(folder, paths) {
  const { metafile } = buildSync({
    absWorkingDir: folder,
    entryPoints: paths,
    outdir: folder,
    write: false,
    format: "esm",
    metafile: true,
    logLevel: "error",
  });
  return new Map(Object.values(metafile.outputs).map(({ entryPoint, exports }) => [entryPoint, exports]));
}

/** Builds a bundle. @param others modules that the bundle must not contain; it can import them dynamically */
function bundle(folder, options, others) {
  buildSync({
    ...options,
    absWorkingDir: folder,
    allowOverwrite: true,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    packages: "external",
    external: ["./vendor/*", "./clients/typescript/*", "./bundles/*", ...[...others].map((path) => `./${path}`)],
    sourcemap: true,
    sourcesContent: false,
    logLevel: "error",
    banner: { js: `const assentBuild = new URL("${relative(dirname(options.outfile), ".")}/", import.meta.url);` },
  });
}

function facadeOf(path, text, exports, bundleName) {
  const names = exports.filter((name) => name !== "default");
  return [
    `import { modules as $modules } from "${relative(dirname(path), `bundles/${bundleName}.js`)}";`,
    `const $module = $modules["${path}"]();`,
    ...(names.length === 0 ? [] : [`export const { ${names.join(", ")} } = $module;`]),
    ...(exports.includes("default") ? ["export default $module.default;"] : []),
    ...(text.match(/^export \* from ".*";$/gm) ?? []),
    "",
  ].join("\n");
}
