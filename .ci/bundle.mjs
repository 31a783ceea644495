/**
 * Bundles dependencies into dist/vendor/, one file per import name, and writes their licences and a bill of materials
 * (CycloneDX 1.6). The service then reads 30 files at startup instead of 700, and the package depends only on packages
 * whose types it exports.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { bundlePages } from "./pages.mjs";
import { VENDORED } from "./vendor.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Not bundled: for one runtime only, with different files on each, or optional. */
const LEFT = new Set([
  "@photostructure/sqlite",
  "tsx/esm/api",
  "srvx",
  // The optional SDK of OpenTelemetry, which the operator installs.
  "@opentelemetry/sdk-trace-base",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
]);

/** `import … from "x"` and `export … from "x"`; `import("x")`. */
const STATIC = /^((?:import|export)\b([^"';=]*?)\bfrom\s*)"([^."][^"]*)"/gm;
const DYNAMIC = /\b(import\()"([^."][^"]*)"/g;

const byName = (a, b) => (a < b ? -1 : 1);
const isOthers = (name) => !name.startsWith("node:") && !LEFT.has(name);
const packageOf = (name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)[0];
const fileOf = (name) => `${name.replace(/^@/, "").replace(/\.js$/, "").replaceAll("/", "-")}.js`;

/**
 * Bundles the packages that the JavaScript in a folder imports, and rewrites its imports. The folder has the layout of dist/.
 * @param beside other folders that import from the same bundles, so that each package exists once
 */
export function bundlePackages(folder, beside = []) {
  const own = scriptsIn(folder, ["src", "plugins", "clients"]);
  const names = namesIn(own);
  const packages = new Set([...names.keys()].map(packageOf));
  const isBundled = (name) => isOthers(name) && packages.has(packageOf(name));
  const files = [...own, ...scriptsIn(folder, beside)];
  const inputs = bundle(namesIn(files, isBundled), join(folder, "vendor"));
  for (const { path, text } of files) {
    const to = (name) => {
      const target = relative(dirname(path), join(folder, "vendor", fileOf(name)))
        .split(sep)
        .join("/");
      return JSON.stringify(target.startsWith(".") ? target : `./${target}`);
    };
    const changed = text
      .replace(STATIC, (all, before, _, name) => (isBundled(name) ? before + to(name) : all))
      .replace(DYNAMIC, (all, before, name) => (isBundled(name) ? before + to(name) : all));
    if (changed !== text) writeFileSync(path, changed);
  }
  bundleHook(folder);
  const included = packagesOf([
    ...inputs,
    ...bundlePages(folder),
    ...Object.values(VENDORED).map(({ from }) => join("node_modules", from)),
  ]);
  writeFileSync(join(folder, "vendor", "LICENSES.txt"), licencesOf(included));
  writeFileSync(join(folder, "sbom.cdx.json"), billOf(included));
}

/**
 * Bundles the hook, which hosts start for each call of an agent, into one CommonJS file: Node then reads five files
 * less and does not load its module loader. The hook blocks the call (exit code 2) also if it cannot start or ends
 * without an answer. It then still reads its input, because a host that cannot write the whole event might run the call.
 */
function bundleHook(folder) {
  const hook = join(folder, "clients", "hook");
  if (!existsSync(hook)) return;
  buildSync({
    stdin: {
      contents: `process.exitCode = 2;
      const fail = (error) => {
        process.stderr.write("Not run: assent-hook cannot start: " + (error && error.message) + "\\n");
        process.stdin.on("error", () => {}).resume();
        setTimeout(() => process.exit(2), 5000).unref();
      };
      try { require("./launcher.js").runHook(process.argv.slice(2)).catch(fail); } catch (error) { fail(error); }`,
      resolveDir: hook,
    },
    outfile: join(hook, "bin.cjs"),
    bundle: true,
    format: "cjs",
    platform: "node",
    target: "node20",
    external: ["./decision-processes.js"],
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "none",
    logLevel: "error",
    // The bundle finds package.json from the module that reads the version.
    define: { "import.meta.url": "assentUrl" },
    banner: {
      js: '#!/usr/bin/env node\nconst assentUrl=require("node:url").pathToFileURL(require("node:path").join(__dirname,"../../src/version.js")).href;',
    },
  });
}

/** Returns the compiled modules below some folders, without the code of pages. Paths from `folder`, with slashes. */
export function listModules(folder, below) {
  return below
    .flatMap((room) =>
      readdirSync(join(folder, room), { recursive: true, encoding: "utf8" }).map((path) => join(room, path)),
    )
    .map((path) => path.split(sep).join("/"))
    .filter((path) => path.endsWith(".js") && !/\/(?:vendor|assets|bundle|app)\/|plugins\/[^/]+\/page\//.test(path));
}

function scriptsIn(folder, below) {
  return listModules(folder, below).map((path) => ({
    path: join(folder, path),
    text: readFileSync(join(folder, path), "utf8"),
  }));
}

/** The imported exports of each package, by import name. */
function namesIn(files, isBundled = isOthers) {
  const names = new Map();
  const add = (name, exports) => names.set(name, new Set([...(names.get(name) ?? []), ...exports]));
  for (const { text, path } of files) {
    for (const [, , clause, name] of text.matchAll(STATIC))
      if (isBundled(name)) add(name, exportsIn(clause, `${name} in ${path}`));
    for (const [, , name] of text.matchAll(DYNAMIC)) if (isBundled(name)) add(name, ["*"]);
  }
  return names;
}

/** Returns the names of an import clause: `a, { b, c as d }` imports default, b and c. */
function exportsIn(clause, where) {
  if (/^\s*\*\s*as\s/.test(clause)) return ["*"];
  const parts = /^\s*([\w$]+)?\s*,?\s*(?:\{([^}]*)\})?\s*$/.exec(clause);
  if (parts === null) throw new Error(`an import of ${where} cannot be bundled: ${clause.trim()}`);
  const listed = (parts[2] ?? "").split(",").map((each) => each.trim().split(/\s+as\s+/)[0]);
  return [...(parts[1] === undefined ? [] : ["default"]), ...listed.filter((each) => each !== "")];
}

/** Returns the bundled files, as paths from the root. */
function bundle(names, outdir) {
  // Below the root, so that node_modules is found.
  const entries = mkdtempSync(join(ROOT, ".dist-entries-"));
  try {
    const entryPoints = [...names].map(([name, exports]) => {
      const path = join(entries, fileOf(name));
      const from = JSON.stringify(name);
      // CommonJS packages do not list their exports, so export the imported names.
      writeFileSync(
        path,
        exports.has("*")
          ? `export * from ${from};\nexport { default } from ${from};\n`
          : `export { ${[...exports].sort(byName).join(", ")} } from ${from};\n`,
      );
      return path;
    });
    const { metafile } = buildSync({
      absWorkingDir: ROOT,
      entryPoints,
      outdir,
      bundle: true,
      splitting: true,
      format: "esm",
      platform: "node",
      target: "node20",
      // The main file is UMD, and esbuild does not follow its `require`.
      alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" },
      // Do not shorten names, because stack traces show them.
      minifySyntax: true,
      minifyWhitespace: true,
      legalComments: "none",
      metafile: true,
      logLevel: "error",
      banner: {
        js: 'import{createRequire as assentRequire}from"node:module";const require=assentRequire(import.meta.url);',
      },
    });
    return Object.keys(metafile.inputs).filter((path) => path.startsWith("node_modules/"));
  } finally {
    rmSync(entries, { recursive: true, force: true });
  }
}

/** Returns the folders of the packages that contain these files, sorted. */
function packagesOf(paths) {
  const folders = paths.map((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path.split(sep).join("/"))[1]);
  return [...new Set(folders)].sort(byName);
}

function licencesOf(packages) {
  return packages
    .map((folder) => {
      const { name, version, license } = manifestOf(folder);
      const texts = readdirSync(join(ROOT, folder)).filter((file) => /^(?:licen[cs]e|notice)\b/i.test(file));
      const whole = texts.map((file) => readFileSync(join(ROOT, folder, file), "utf8").trim()).join("\n\n");
      return `${name} ${version} (${license})\n\n${whole}\n`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}

/** Returns the bill of materials: this package, its bundled packages, and those installed with it. */
function billOf(packages) {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")).packages;
  const installed = Object.keys(lock).filter(
    // Workspaces and the links to them are not packages that are installed with this one.
    (path) =>
      path.includes("node_modules/") && !lock[path].link && !lock[path].dev && !lock[path].optional && !lock[path].peer,
  );
  const { name, version, license } = manifestOf(".");
  const components = [...new Set([...packages, ...installed])].sort(byName).map((folder) => {
    const part = existsSync(join(ROOT, folder)) ? manifestOf(folder) : lock[folder];
    const partName = folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
    const purl = `pkg:npm/${partName.replace("@", "%40")}@${part.version}`;
    const [algorithm, digest] = (lock[folder]?.integrity ?? "").split("-");
    return {
      type: "library",
      "bom-ref": `${purl}#${folder}`,
      name: partName,
      version: part.version,
      purl,
      ...(typeof part.license === "string" ? { licenses: [{ expression: part.license }] } : {}),
      ...(algorithm === "sha512"
        ? { hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }] }
        : {}),
      properties: [{ name: "assent:in", value: packages.includes(folder) ? "dist" : "dependencies" }],
    };
  });
  const purl = `pkg:npm/${name}@${version}`;
  const self = { type: "application", "bom-ref": purl, name, version, purl, licenses: [{ expression: license }] };
  const dependencies = [{ ref: purl, dependsOn: components.map((part) => part["bom-ref"]) }];
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: self },
    components,
    dependencies,
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8"));
}
