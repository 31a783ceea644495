/**
 * Bundles the modules of the service. Without bundles, a start loads 500 files, which takes a third of its CPU time.
 * Each module can still be imported by its own path: its file exports the bindings of the only instance of the module,
 * which is in a bundle.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { buildSync } from "esbuild";
import { listModules } from "./bundle.mjs";

const { dirname, join, relative } = posix;
/** Entry points of separate processes and threads. Each gets a small bundle, because it needs little of the service. */
const ENTRIES = ["clients/hook/worker.js", "clients/hook/daemon.js", "src/policies/trial-thread.js"];
/**
 * Roots of the modules that remain separate files, because they load before the rest or without it: the list of
 * commands, the heap settings, and the hook.
 */
const SEPARATE =
  /^src\/(?:cli\/(?:main|serve-command)|serve\/v8-flags)\.js$|^(?:plugins|clients)\/[\w-]+\/commands\/[\w-]+\.js$|^clients\/hook\/launcher\.js$/;
/**
 * Roots of the bundles. A bundle contains its roots and their imports, and imports the previous bundles. So a client
 * command or a ledger test does not load all bundles.
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
 * Bundles the service in a build.
 * @param folder has the layout of dist/, with its packages bundled into ./vendor
 * @param clients folders of the clients. This module cannot import them from build.mjs, which waits for this module
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
    for (const path of found) {
      writeFileSync(join(folder, path), facadeOf(path, modules.get(path), exportsOf.get(path), name));
      // The map of the bundle replaces it.
      rmSync(join(folder, `${path}.map`), { force: true });
    }
  }
  // Undo `keepLocation` in the modules that remain separate files.
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

/** Returns the modules, and all modules that they import statically, directly or indirectly. */
function withImports(roots, modules) {
  const found = new Set(roots);
  for (const path of found)
    for (const [, name] of modules.get(path).matchAll(IMPORT)) {
      const imported = join(dirname(path), name);
      if (modules.has(imported)) found.add(imported);
    }
  return [...found];
}

/** Resolves `import.meta.url` to the path of the module's own file instead of the bundle. */
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
