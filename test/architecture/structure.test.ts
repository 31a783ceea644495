/** Rules about imports between folders, checked on the sources. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, test } from "node:test";
import { BASE, readNeeds } from "../needs.mjs";
import { ROOT } from "../support/runtimes.ts";

const PURE_PACKAGES = [
  "yaml",
  "@bufbuild/cel",
  "@bufbuild/protobuf",
  "@bufbuild/re2",
  "@noble/hashes",
  "canonicalize",
  "@sinclair/typebox",
];

function filesIn(folder: string, ends: readonly string[] = [".ts"]): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesIn(path, ends) : ends.some((end) => path.endsWith(end)) ? [path] : [];
  });
}

/** Returns every specifier that a file imports, statically, dynamically or by re-export. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "");
  const found = [
    ...text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^;"'=]*?from\s*["']([^"']+)["']/g),
    ...text.matchAll(/(?<!["'])\bimport\s*\(?\s*["']([^"']+)["']/g),
  ];
  return [...new Set(found.map((match) => match[1] as string))];
}

/** Returns the target of a relative import, from the root; null for packages. */
function target(file: string, specifier: string): string | null {
  return specifier.startsWith(".") ? relative(ROOT, resolve(ROOT, dirname(file), specifier)) : null;
}

const sources = [...filesIn("src"), ...filesIn("plugins", [".ts", ".tsx"]), ...filesIn("clients")];

/** API of the code that SQL storages share. Its folder has no `index.ts`, because the folder is not a plugin. */
const SQL = "plugins/storage-sql/api.ts";

describe("imports", () => {
  test("src/domain imports only itself and pure packages", () => {
    for (const file of filesIn("src/domain")) {
      for (const specifier of importsOf(file)) {
        const to = target(file, specifier);
        const pure = PURE_PACKAGES.some((name) => specifier === name || specifier.startsWith(`${name}/`));
        assert.ok(to === null ? pure : to.startsWith("src/domain/"), `${file} imports ${specifier}`);
      }
    }
  });

  test("assent/browser exports only pure modules", () => {
    for (const specifier of importsOf("src/browser.ts"))
      assert.ok(target("src/browser.ts", specifier)?.startsWith("src/domain/"), `src/browser.ts imports ${specifier}`);
  });

  /** What pages of the console are built from: `assent/console`. */
  const KIT = "plugins/console/app/kit.ts";
  const isPage = (file: string): boolean => /^plugins\/[^/]+\/page\//.test(file);
  /** Returns the `api.ts` of each plugin that the file's plugin names in `needs`; for commands also its `cli/api.ts`. */
  const neededApis = (file: string): string[] => {
    const index = join(ROOT, file.split("/").slice(0, 2).join("/"), "index.ts");
    const [, names = ""] = existsSync(index) ? (/^  needs: \[([^\]]*)\]/m.exec(readFileSync(index, "utf8")) ?? []) : [];
    const folders = [...names.matchAll(/"([^"]+)"/g)].map(([, name]) => `plugins/${name}`);
    const isCommand = /^plugins\/[^/]+\/cli\//.test(file);
    const apis = folders.flatMap((folder) => [`${folder}/api.ts`, ...(isCommand ? [`${folder}/cli/api.ts`] : [])]);
    return file.startsWith("plugins/storage-") ? [...apis, SQL] : apis;
  };
  test("the core imports no plugin, and a plugin imports only the api.ts of another that it needs", () => {
    for (const file of sources) {
      for (const specifier of importsOf(file)) {
        const to = target(file, specifier);
        if (to === null || !to.startsWith("plugins/") || (isPage(file) && to === KIT)) continue;
        const own = file.split("/").slice(0, 2).join("/");
        const isAllowed = to.startsWith(`${own}/`) || (!isPage(file) && neededApis(file).includes(to));
        assert.ok(file.startsWith("plugins/") && isAllowed, `${file} imports ${specifier}`);
      }
    }
  });

  /** Entries that `exports` of package.json publishes for plugins. */
  const ENTRIES = ["src/browser.ts", "src/plugin.ts", "src/core.ts", "src/command.ts", "src/storage/index.ts"];
  /** Gateways refuse an agent in the words of the clients. */
  const GATEWAY_REFUSALS = "plugins/actions/gateway/gate.ts: clients/typescript/refusal.ts";
  const COMMAND_CLIENTS = ["clients/typescript/index.ts"];
  const DEVICES = "plugins/devices/cli/devices.ts";
  const HOOK_SETUP = ["hook-config", "install/report-hooks", "install/write-config"].map(
    (name) => `clients/hook/${name}.ts`,
  );
  /** Imports only types. */
  const CONSOLE_TYPES = "plugins/console/app/core/api-types.ts";
  test("a bundled plugin imports only the entries that a third party can import", () => {
    for (const file of sources.filter((name) => name.startsWith("plugins/"))) {
      for (const specifier of importsOf(file)) {
        const to = target(file, specifier);
        if (to === null || to.startsWith("plugins/")) continue;
        // Only this entry runs in browsers.
        const isBrowserCode = /^plugins\/[^/]+\/app\//.test(file) && file !== CONSOLE_TYPES;
        assert.ok(!isBrowserCode || to === "src/browser.ts", `${file} imports ${specifier}`);
        // Commands talk to the service as any other client does, with the package's `assent/client`. Those of devices set up
        // the hook.
        const isClientOfCommand =
          /^plugins\/[^/]+\/cli\//.test(file) &&
          [...COMMAND_CLIENTS, ...(file === DEVICES ? HOOK_SETUP : [])].includes(to);
        assert.ok(
          ENTRIES.includes(to) || isClientOfCommand || `${file}: ${to}` === GATEWAY_REFUSALS,
          `${file} imports ${specifier}: export it from an entry, or take it from the host`,
        );
      }
    }
  });

  test("a page imports only the kit, packages, its own folder and files of its plugin without imports; nothing else imports a page", () => {
    for (const file of sources) {
      const own = file.split("/").slice(0, 3).join("/");
      for (const specifier of importsOf(file)) {
        const to = target(file, specifier);
        if (to === null) continue;
        const isOwn = to.startsWith(`${own}/`) || (to.startsWith(dirname(own)) && importsOf(to).length === 0);
        const isAllowed = isPage(file) ? to === KIT || isOwn : !isPage(to);
        assert.ok(isAllowed, `${file} imports ${specifier}`);
      }
    }
  });

  test("each folder of a page has an index, which the build finds, and imports the rest when it is needed", () => {
    for (const plugin of readdirSync(join(ROOT, "plugins"))) {
      const folder = `plugins/${plugin}/page`;
      if (!existsSync(join(ROOT, folder))) continue;
      assert.ok(existsSync(join(ROOT, folder, "index.ts")), `${folder} has no index.ts`);
      for (const specifier of staticImports(`${folder}/index.ts`))
        assert.ok(!specifier.endsWith(".tsx"), `${folder}/index.ts imports ${specifier}: import it with import()`);
    }
  });

  test("the guides' plugins import only the package's exports and files next to them", () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
      exports: Record<string, unknown>;
    };
    for (const file of filesIn("docs/examples", [".ts", ".js"])) {
      for (const specifier of importsOf(file)) {
        if (specifier.startsWith("node:")) continue;
        const to = target(file, specifier);
        const own = file.split("/").slice(0, 3).join("/");
        assert.ok(
          to !== null
            ? to.startsWith(`${own}/`)
            : !/^assent(\/|$)/.test(specifier) || `.${specifier.slice("assent".length)}` in exports,
          `${file} imports ${specifier}`,
        );
      }
    }
  });

  /** Modules of the service that clients import, in addition to src/programs and src/version.ts. All except the first are pure. */
  const SHARED: Record<string, string> = {
    "clients/typescript":
      "contract/api-calls domain/checkpoint domain/hash domain/json domain/log-keys domain/merkle domain/permit domain/request",
    "clients/settings": "domain/json domain/scopes",
    "clients/demo": "",
    "clients/hook": "domain/json",
    "clients/egress":
      "domain/hash domain/http-action domain/json-body domain/json domain/names domain/validation domain/yaml webhook/address",
    "clients/mcp":
      "domain/canonical domain/json domain/names domain/policy/compile/glob domain/text domain/traceparent domain/validation domain/yaml",
  };
  /** Clients that other clients and the command line import. */
  const LIBRARIES = /^clients\/(?:typescript|settings)\//;
  /** Commands of clients may also import what the package exports for commands and for programs that start a service. */
  const isCommand = (file: string): boolean => /^clients\/[^/]+\/(?:cli|commands)\//.test(file);
  test("clients import the libraries of clients and named modules, and nothing else of the service", () => {
    for (const [client, modules] of Object.entries(SHARED)) {
      if (!existsSync(join(ROOT, client))) continue;
      const shared = modules
        .split(" ")
        .filter(Boolean)
        .map((name) => `src/${name}.ts`);
      const started = client === "clients/typescript" ? /^$/ : /^src\/(?:programs\/|version\.ts$)/;
      const imported = filesIn(client).flatMap((file) => {
        const others = importsOf(file).map((specifier) => target(file, specifier) ?? "");
        return others.filter(
          (to) =>
            to !== "" &&
            !to.startsWith(`${client}/`) &&
            !LIBRARIES.test(to) &&
            !(isCommand(file) && ["src/command.ts", "src/index.ts"].includes(to)),
        );
      });
      const named = [...new Set(imported)].filter((to) => !started.test(to));
      assert.deepEqual(named.sort(), shared, client);
    }
    const clients = [...new Set(filesIn("clients").map((file) => dirname(file).split("/").slice(0, 2).join("/")))];
    assert.deepEqual(
      clients.filter((client) => !(client in SHARED)),
      [],
    );
    // Only types.
    assert.deepEqual(
      importsOf("clients/typescript/api.ts").map((specifier) => target("clients/typescript/api.ts", specifier)),
      ["src/contract/api-calls.ts"],
    );
  });

  test("the TypeScript client loads what verifies permits and proofs only when it is needed", () => {
    for (const [loaded, by] of [
      ["permit-check", "permit"],
      ["proof", "ledger-calls"],
    ] as const) {
      for (const file of filesIn("clients/typescript"))
        for (const specifier of importsOf(file))
          assert.ok(!specifier.endsWith(`/${loaded}.ts`) || file === `clients/typescript/${by}.ts`, file);
      const text = readFileSync(join(ROOT, `clients/typescript/${by}.ts`), "utf8");
      assert.doesNotMatch(text, new RegExp(`^(?:import|export)\\b.*/${loaded}\\.ts`, "m"));
    }
  });

  test("of the service, only the command line and the refusals of gateways import clients: the libraries, and for devices what sets up the hook", () => {
    for (const file of sources.filter((name) => !name.startsWith("clients/"))) {
      const isCommandLine = /^(?:src|plugins\/[^/]+)\/cli\//.test(file);
      for (const specifier of importsOf(file)) {
        const to = target(file, specifier);
        if (to?.startsWith("clients/") !== true || (isCommandLine && LIBRARIES.test(to))) continue;
        if (file === DEVICES && HOOK_SETUP.includes(to)) continue;
        assert.equal(`${file}: ${to}`, GATEWAY_REFUSALS);
      }
    }
  });

  test("contracts import only contracts and the domain", () => {
    for (const file of filesIn("src/contract")) {
      for (const specifier of importsOf(file)) {
        const to = target(file, specifier);
        assert.ok(
          to === null ? specifier === "@sinclair/typebox" : /^src\/(contract|domain)\//.test(to),
          `${file} imports ${specifier}`,
        );
      }
    }
  });

  test("the proxies import few packages", () => {
    const packages = ["yaml", "@sinclair/typebox", "@modelcontextprotocol/client", "@modelcontextprotocol/server"];
    const proxies = ["clients/mcp", "clients/egress"].filter((proxy) => existsSync(join(ROOT, proxy)));
    for (const file of proxies.flatMap((proxy) => filesIn(proxy))) {
      for (const specifier of importsOf(file))
        assert.ok(
          /^(?:\.|node:)/.test(specifier) ||
            packages.some((name) => specifier === name || specifier.startsWith(`${name}/`)),
          `${file} imports ${specifier}`,
        );
    }
  });

  test("the HTTP core and the ledger import no resource and no database", () => {
    for (const file of [...filesIn("src/http"), ...filesIn("src/ledger")]) {
      for (const specifier of importsOf(file))
        assert.ok(!/kysely|sqlite|postgres|srvx/.test(specifier), `${file} imports ${specifier}`);
    }
  });

  test("the HTTP core imports only lower layers", () => {
    for (const file of filesIn("src/http")) {
      for (const specifier of importsOf(file)) {
        const to = target(file, specifier);
        assert.ok(to === null || /^src\/(http|contract|domain|config)\//.test(to), `${file} imports ${specifier}`);
      }
    }
  });

  test("only src/programs starts programs", () => {
    for (const file of sources.filter((name) => !name.startsWith("src/programs/"))) {
      const isOpencode = file === "clients/hook/install/opencode-plugin.ts";
      // Its text is a plugin of another program, which cannot import from here.
      assert.equal(importsOf(file).includes("node:child_process"), isOpencode, file);
    }
  });

  test("every import ends in .ts, .tsx, .json or names a declared package", () => {
    const { dependencies, devDependencies, peerDependencies } = JSON.parse(
      readFileSync(join(ROOT, "package.json"), "utf8"),
    ) as Record<string, Record<string, string>>;
    // Consumers do not install packages that are bundled; test/package checks the rest.
    const declared = { ...dependencies, ...devDependencies, ...peerDependencies };
    for (const file of sources) {
      for (const specifier of importsOf(file)) {
        const to = target(file, specifier);
        if (to !== null)
          assert.ok(/\.(tsx?|json)$/.test(to) && existsSync(join(ROOT, to)), `${file} imports ${specifier}`);
        else if (!specifier.startsWith("node:")) {
          const name = specifier
            .split("/")
            .slice(0, specifier.startsWith("@") ? 2 : 1)
            .join("/");
          assert.ok(name in declared, `${file} imports ${specifier}, which is no dependency`);
        }
      }
    }
  });

  test("the service and its pages are TypeScript, which the compiler checks", () => {
    const untyped = [".js", ".mjs", ".cjs", ".jsx"];
    assert.deepEqual(
      [...filesIn("src", untyped), ...filesIn("plugins", untyped), ...filesIn("clients", untyped)].sort(),
      // The first starts the compiler. The second runs as a worker, which does not get the loader that reads TypeScript.
      ["src/cli/assent.mjs", "src/identity/signer-worker.mjs"],
    );
  });

  test("a test declares the features that it imports, apart from its own and the base", () => {
    const needed = new Map<string, ReadonlySet<string>>();
    const findNeeds = (file: string): ReadonlySet<string> => {
      const found = new Set<string>();
      if (needed.has(file)) return needed.get(file) as ReadonlySet<string>;
      needed.set(file, found);
      for (const specifier of importsOf(file)) {
        const to = target(file, specifier) ?? "";
        if (/^(?:plugins|clients)\//.test(to)) found.add(to.split("/")[1] as string);
        else if (to.startsWith("test/") && existsSync(join(ROOT, to)))
          for (const name of findNeeds(to)) found.add(name);
      }
      return found;
    };
    for (const file of filesIn("test")) {
      const own = /^test\/(?:plugins|clients)\/([^/]+)\//.exec(file)?.[1];
      const declared = [...BASE, ...readNeeds(join(ROOT, file)), own];
      const missing = [...findNeeds(file)].filter((name) => !declared.includes(name));
      assert.deepEqual(missing, [], `${file} needs ${missing.join(", ")}: declare it in its first comment as @needs`);
    }
  });

  test("the list of commands and the help of `serve` load nothing of the service", () => {
    const loaded = new Set(["src/cli/main.ts", "src/cli/serve-command.ts"]);
    // A set also iterates over the members that are added meanwhile.
    for (const file of loaded)
      for (const specifier of staticImports(file)) {
        const to = target(file, specifier);
        if (to !== null) loaded.add(to);
      }
    const service = [...loaded].filter((file) => !/^src\/(cli|domain|contract|config|serve|programs)\//.test(file));
    assert.deepEqual(service, []);
    assert.ok(loaded.size < 30, [...loaded].join(", "));
  });

  test("there are no import cycles, including types and JavaScript", () => {
    const graph = new Map(
      [...sources, ...filesIn("src", [".js", ".mjs"]), ...filesIn("plugins", [".js", ".mjs"])].map((file) => [
        file,
        staticImports(file)
          .map((specifier) => target(file, specifier))
          .filter((to) => to !== null),
      ]),
    );
    const done = new Set<string>();
    const walk = (file: string, path: string[]): void => {
      assert.ok(!path.includes(file), `cycle: ${[...path.slice(path.indexOf(file)), file].join(" → ")}`);
      if (done.has(file)) return;
      for (const next of graph.get(file) ?? []) walk(next, [...path, file]);
      done.add(file);
    };
    for (const file of graph.keys()) walk(file, []);
  });
});

/** Without dynamic imports, which load a module when it is needed. */
function staticImports(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(/(?:^|\n)(?:import|export)\s[^;"'()]*?["'](\.[^"']+)["']/g)].map(
    (match) => match[1] as string,
  );
}

describe("files", () => {
  test("each plugin is a folder with an index and a README", () => {
    for (const name of readdirSync(join(ROOT, "plugins"))) {
      if (!statSync(join(ROOT, "plugins", name)).isDirectory()) continue;
      const isPlugin = !SQL.startsWith(`plugins/${name}/`);
      assert.equal(existsSync(join(ROOT, "plugins", name, "index.ts")), isPlugin, `${name} has no index.ts`);
      assert.ok(existsSync(join(ROOT, "plugins", name, "README.md")), `${name} has no README.md`);
    }
  });

  test("dependency versions are exact, and the lockfile contains no registry host", () => {
    for (const path of ["package.json", "test/tools/package.json"]) {
      const manifest = JSON.parse(readFileSync(join(ROOT, path), "utf8")) as Record<string, Record<string, string>>;
      for (const [name, version] of Object.entries({ ...manifest["dependencies"], ...manifest["devDependencies"] }))
        assert.match(version, /^(?:npm:[a-z]+@)?\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/, `${name} is not pinned`);
    }
    const lock = readFileSync(join(ROOT, "package-lock.json"), "utf8");
    assert.deepEqual(
      [...lock.matchAll(/"resolved": "(.*)"/g)].map(([, path]) => path),
      ["test/tools"],
    );
    // Else npm would install it next to the workspace, where the sources and the linter do not find it.
    assert.ok(
      !lock.includes('"test/tools/node_modules/'),
      "a package of test/tools has another version in package.json",
    );
  });
});
