/** Reads scripts of package managers: package.json, deno.json, composer.json, and the packages of a workspace. */
import { dirname, resolve } from "node:path/posix";
import { parse as parseJsonc } from "jsonc-parser";
import { isObject, type JsonObject } from "../../payload.ts";
import {
  nearestFile,
  unknownTask,
  withArguments,
  withNeededTasks,
  type ProjectFiles,
  type TaskBody,
} from "./task-body.ts";

export interface Package {
  folder: string;
  scripts: Readonly<Record<string, string>>;
  members: JsonObject;
}

function readObject(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    unknownTask();
  }
  return isObject(value) ? value : unknownTask();
}

export function nearestPackage(project: ProjectFiles, folder: string): Package | null {
  const file = nearestFile(project, folder, ["package.json"]);
  return file === null ? null : toPackage(project, file.folder, file.text);
}

function toPackage(project: ProjectFiles, folder: string, text: string): Package {
  // These settings choose the shell, or load code into it.
  if (/^\s*(script-shell|node-options|shell-emulator)\b/m.test(project.read(`${folder}/.npmrc`) ?? "")) unknownTask();
  const members = readObject(text);
  const scripts = members["scripts"] ?? {};
  if (!isObject(scripts) || !Object.values(scripts).every((each) => typeof each === "string")) unknownTask();
  return { folder, scripts: scripts as Record<string, string>, members };
}

/** Returns the text of a script, with the scripts that run before and after it; null if the package has none of them. */
export function scriptBodies(
  { folder, scripts }: Package,
  name: string,
  args: readonly string[] = [],
): TaskBody[] | null {
  const bodies = [`pre${name}`, name, `post${name}`].flatMap((each) => {
    const text = Object.hasOwn(scripts, each) ? scripts[each] : undefined;
    if (text === undefined || text.trim() === "") return [];
    return [{ task: name, folder, text: each === name ? withArguments(text, args) : text }];
  });
  return bodies.length === 0 ? null : bodies;
}

/** Scripts of the project that an installation without names runs. */
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"];
const RUN_COMMANDS = ["run", "run-script", "rum", "urn"];
const SHORT_COMMANDS: Readonly<Record<string, string>> = { t: "test", tst: "test", i: "install", clean_install: "ci" };
/** Commands of the package managers themselves, which are not scripts. The pack decides on them. */
const MANAGER_COMMANDS = new Set(
  (
    "access add ci audit bin bugs cache completion config create dedupe deprecate diff dist-tag dlx docs doctor edit exec explain " +
    "explore fund get help init info import install link list ll login logout ls node org outdated owner pack ping pkg plugins prefix " +
    "profile prune publish query rebuild remove repo rm root sbom search set set-script shrinkwrap star store team token " +
    "unlink uninstall unpublish update up upgrade upgrade-interactive version versions view whoami why x --version -v pm patch"
  ).split(" "),
);

/**
 * Reads `npm run build -- --watch`, `pnpm -r test`, `yarn build`, `bun run build` and `npm ci`. Returns an empty list for
 * commands of the manager itself, and null if there is no such script.
 */
export function packageManagerTasks(
  manager: string,
  args: readonly string[],
  folder: string,
  project: ProjectFiles,
): TaskBody[] | null {
  const startFolder = managerFolder(manager, args);
  if (startFolder.folder !== null) {
    const packageFolder = resolve(folder, startFolder.folder);
    if (project.read(`${packageFolder}/package.json`) === null) unknownTask();
    return packageManagerTasks(manager, startFolder.args, packageFolder, project);
  }
  const { words, selected } = readManagerOptions(manager, args);
  const [given = manager === "yarn" ? "install" : "help", ...rest] = words;
  const command = SHORT_COMMANDS[given] ?? given;
  const isRun = RUN_COMMANDS.includes(command);
  const isScript = isRun || (!isManagerCommand(command) && !(manager === "bun" && command === "test"));
  const isInstall = ["install", "ci"].includes(command) && rest.every((word) => word.startsWith("-"));
  if (!isScript && !isInstall) return [];
  const found = nearestPackage(project, folder);
  if (found === null) return isInstall ? [] : null;
  const packages = selected.length > 0 ? selectPackages(manager, selected, folder, project) : [found];
  if (isInstall)
    return packages.flatMap(({ folder: place, scripts }) =>
      INSTALL_SCRIPTS.flatMap((task) =>
        Object.hasOwn(scripts, task) ? [{ task: "install", folder: place, text: scripts[task] as string }] : [],
      ),
    );
  const [name, ...extra] = isRun
    ? rest.filter((word) => !["--if-present", "--silent", "-s"].includes(word))
    : [command, ...rest];
  if (name === undefined) return [];
  const end = extra.indexOf("--");
  const passed = extra.filter((_, at) => at !== end);
  const bodies = packages.flatMap((each) => scriptBodies(each, name, passed) ?? []);
  if (bodies.length > 0) return bodies;
  if (name !== "start" || project.read(`${found.folder}/server.js`) === null) return null;
  return [{ task: "start", folder: found.folder, text: "node server.js" }];
}

/** Returns the arguments with the command first, without the options that select packages. A script's name follows `run`. */
export function canonicalManagerArguments(manager: string, args: readonly string[], runsScript: boolean): string[] {
  const { words } = readManagerOptions(manager, managerFolder(manager, args).args);
  const isShort = runsScript && !RUN_COMMANDS.includes(words[0] ?? "") && !isManagerCommand(words[0] ?? "");
  return isShort ? ["run", ...words] : words;
}

/** Options that choose the folder of the package. */
const FOLDER_OPTIONS: Readonly<Record<string, RegExp>> = {
  npm: /^(?:-C|--prefix)(?:=(.*))?$/,
  pnpm: /^(?:-C|--dir)(?:=(.*))?$/,
  yarn: /^(?:--cwd)(?:=(.*))?$/,
  bun: /^(?:--cwd)(?:=(.*))?$/,
};

/** Separates the option that chooses a folder, in front of the command, from the other arguments. */
function managerFolder(manager: string, args: readonly string[]): { folder: string | null; args: readonly string[] } {
  const pattern = FOLDER_OPTIONS[manager];
  const end = args.indexOf("--");
  // npm reads its options anywhere.
  const at = args.findIndex((arg, i) => (i === 0 || (manager === "npm" && (end < 0 || i < end))) && pattern?.test(arg));
  const [, attached] = pattern?.exec(args[at] ?? "") ?? [];
  if (at < 0) return { folder: null, args };
  return { folder: attached ?? args[at + 1] ?? "", args: args.toSpliced(at, attached === undefined ? 2 : 1) };
}

/**
 * Returns true if a word is a command of npm, pnpm, yarn or bun itself. Otherwise it is a script or an installed
 * program.
 */
export const isManagerCommand = (word: string): boolean => MANAGER_COMMANDS.has(word) || word.startsWith("-");

/** Separates options that select packages from the other words. Throws for other options that change what runs. */
function readManagerOptions(manager: string, args: readonly string[]): { words: string[]; selected: Selector[] } {
  const words: string[] = [];
  const selected: Selector[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string;
    if (arg === "--") return { words: [...words, ...args.slice(at)], selected };
    // After the command, only npm reads options; the other managers pass them to the script.
    const options = words.length === 0 ? SELECTING_OPTIONS : manager === "npm" ? SELECTING_NPM_OPTIONS : undefined;
    const [, option, value] = options?.exec(arg) ?? [];
    if (option === undefined) {
      // Other options change what runs: `--prefix`, `--script-shell`, `-C`.
      if (words.length === 0 && arg.startsWith("-") && !/^(-s|-v|--silent|--version)$/.test(arg)) unknownTask();
      if (words.length > 0 || !/^(-s|--silent)$/.test(arg)) words.push(arg);
      continue;
    }
    const hasValue = /^(-w|-F|--workspace|--filter|workspace)$/.test(option);
    selected.push(value === undefined ? (hasValue ? (args[++at] ?? null) : null) : hasValue ? value.slice(1) : null);
    // `yarn workspaces run build`, `yarn workspaces foreach run build`
    if (option === "workspaces" && args[at + 1] === "foreach") at++;
  }
  return { words, selected };
}
const SELECTING_NPM_OPTIONS = /^(-w|--workspace|--workspaces|-ws)(=.*)?$/;
const SELECTING_OPTIONS = /^(-w|-F|--workspace|--filter|--workspaces|-ws|-r|--recursive|workspaces|workspace)(=.*)?$/;

/** Name or path of a package in the command line; null for all packages. */
type Selector = string | null;

/**
 * Returns the packages that the selectors match. Returns all packages if a selector matches nothing, or is not a plain
 * name or path.
 */
function selectPackages(
  manager: string,
  selectors: readonly Selector[],
  folder: string,
  project: ProjectFiles,
): Package[] {
  const all = workspacePackages(project, folder);
  const members = all.filter((each) => !leavesRootOut(manager, each, project));
  const places = [folder, ...all.map((each) => each.folder)];
  const found = selectors.map((selector) => {
    if (selector === null) return members;
    if (!/^[\w@./-]+$/.test(selector) || selector.includes("...")) return [];
    return members.filter(
      (each) =>
        each.members["name"] === selector ||
        places.some((base) => `${each.folder}/`.startsWith(`${resolve(base, selector)}/`)),
    );
  });
  return found.some((each) => each.length === 0) ? all : [...new Set(found.flat())];
}

/** Returns true if the manager skips the root package of a workspace when it runs a script in several packages. */
function leavesRootOut(manager: string, { folder, members }: Package, project: ProjectFiles): boolean {
  const list = project.read(`${folder}/pnpm-workspace.yaml`);
  const isRoot = manager === "npm" ? members["workspaces"] !== undefined : manager === "pnpm" && list !== null;
  return isRoot && !/include-?workspace-?root/i.test(`${project.read(`${folder}/.npmrc`) ?? ""}${list ?? ""}`);
}

/** Returns the root and the members of each workspace that contains the folder. */
export function workspacePackages(project: ProjectFiles, folder: string): Package[] {
  const packages = new Map<string, Package>();
  for (let candidate = folder; ; candidate = dirname(candidate)) {
    const root = nearestFile(project, candidate, ["package.json", "pnpm-workspace.yaml"]);
    if (root === null) break;
    candidate = root.folder;
    const found = toPackage(project, candidate, root.name === "package.json" ? root.text : "{}");
    for (const each of [found, ...memberPackages(project, found)]) packages.set(each.folder, each);
  }
  return packages.size > 0 ? [...packages.values()] : unknownTask();
}

function memberPackages(project: ProjectFiles, root: Package): Package[] {
  const { workspaces } = root.members as { workspaces?: unknown };
  const listed = Array.isArray(workspaces) ? workspaces : isObject(workspaces) ? workspaces["packages"] : undefined;
  const lines = (project.read(`${root.folder}/pnpm-workspace.yaml`) ?? "").matchAll(
    /^\s+-\s+(["']?)([^"'#\n]+?)\1\s*$/gm,
  );
  const patterns = Array.isArray(listed) ? (listed as unknown[]) : [...lines].map(([, , pattern]) => pattern);
  const folders = patterns.flatMap((pattern) => {
    if (typeof pattern !== "string" || !/^(\.\/)?[\w@.-]+(\/[\w@.-]+)*(\/\*)?\/?$/.test(pattern)) return unknownTask();
    const base = `${root.folder}/${pattern.replace(/^\.\/|\/?\*?\/?$/g, "")}`;
    return pattern.includes("*") ? (project.list(base) ?? []).map((name) => `${base}/${name}`) : [base];
  });
  return folders.flatMap((each) => {
    const text = project.read(`${each}/package.json`);
    return text === null ? [] : [toPackage(project, each, text)];
  });
}

/**
 * Reads `turbo run build` and `lerna run build`: the script of that name in every package, with the tasks that it
 * depends on.
 */
export function turboTasks(args: readonly string[], folder: string, project: ProjectFiles): TaskBody[] | null {
  const words = args.filter((arg) => !arg.startsWith("-"));
  const names = words[0] === "run" ? words.slice(1) : words;
  const root = nearestPackage(project, folder);
  if (root === null || names.length === 0) return null;
  if (args.includes("--")) unknownTask();
  const { tasks, pipeline } = readSettings(project, `${root.folder}/turbo.json`);
  const settings = (tasks ?? pipeline ?? {}) as Record<string, { dependsOn?: unknown }>;
  const packages = workspacePackages(project, folder);
  const bodies = withNeededTasks(names, (name) => dependencies(settings[name]?.dependsOn)).flatMap((name) =>
    packages.flatMap((each) => scriptBodies(each, name.replace(/^.*#/, "")) ?? []),
  );
  return bodies.length === 0 ? null : bodies;
}

/** Executors of Nx that run a tool and no command of the project's choice. */
const NX_TOOLS =
  /^@nx\/[a-z-]+:(build|test|lint|tsc|swc|jest|vite|vitest|eslint|esbuild|rollup|webpack|typecheck|dev-server|serve|server|node)$/;

/** Reads `nx build app`, `nx run app:build` and `nx run-many -t build`: the targets of that name in every project. */
export function nxTasks(args: readonly string[], folder: string, project: ProjectFiles): TaskBody[] | null {
  const words = args.filter((arg) => !arg.startsWith("-"));
  const option = args.flatMap((arg, at) => {
    const [, attached] = /^(?:-t|--targets?)(?:=(.*))?$/.exec(arg) ?? [null];
    return attached === null ? [] : [attached ?? args[at + 1] ?? ""];
  });
  const [command = "", target = ""] = words;
  const names = ["run-many", "affected"].includes(command)
    ? option.flatMap((each) => each.split(","))
    : [command === "run" ? (target.split(":")[1] ?? "") : command];
  const root = nearestPackage(project, folder);
  if (root === null) return null;
  if (args.includes("--") || names.length === 0 || names.includes("")) unknownTask();
  const { targetDefaults = {} } = readSettings(project, `${root.folder}/nx.json`);
  const defaults = targetDefaults as Record<string, { dependsOn?: unknown }>;
  const folders = [
    ...workspacePackages(project, folder).map((each) => each.folder),
    ...["apps", "libs", "packages"].flatMap((each) =>
      (project.list(`${root.folder}/${each}`) ?? []).map((name) => `${root.folder}/${each}/${name}`),
    ),
  ];
  const projects = [...new Set(folders)].map((each) => ({
    folder: each,
    targets: (readSettings(project, `${each}/project.json`)["targets"] ?? {}) as Record<string, JsonObject>,
    scripts: project.read(`${each}/package.json`),
  }));
  const needsOf = (name: string): string[] => [
    ...dependencies(defaults[name]?.dependsOn),
    ...projects.flatMap((each) => dependencies(each.targets[name]?.["dependsOn"])),
  ];
  const bodies = withNeededTasks(names, needsOf).map((name) =>
    projects.map((each) => {
      const definition = each.targets[name];
      if (definition !== undefined)
        return nxTarget(definition).map((text) => ({ task: name, folder: root.folder, text }));
      return each.scripts === null ? null : scriptBodies(toPackage(project, each.folder, each.scripts), name);
    }),
  );
  const found = bodies.flat().filter((each) => each !== null);
  return found.length === 0 ? null : found.flat();
}

function nxTarget({ executor, command, options }: JsonObject): string[] {
  if (typeof command === "string") return [command];
  if (typeof executor === "string" && NX_TOOLS.test(executor)) return [];
  if (executor !== "nx:run-commands" || !isObject(options)) return unknownTask();
  return [options["command"], options["commands"]].flat().flatMap((each): string[] => {
    const text: unknown = isObject(each) ? each["command"] : each;
    return text === undefined ? [] : typeof text === "string" ? [text] : unknownTask();
  });
}

/** Returns the object in a JSON file, which may have comments; empty if there is no such file. */
function readSettings(project: ProjectFiles, path: string): JsonObject {
  const text = project.read(path);
  if (text === null) return {};
  const value: unknown = parseJsonc(text);
  return isObject(value) ? value : unknownTask();
}

function dependencies(value: unknown): string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return unknownTask();
  return value.flatMap((each: unknown) => {
    if (typeof each === "string") return each.startsWith("$") ? [] : [each.replace(/^\^/, "")];
    const target = isObject(each) ? each["target"] : undefined;
    return typeof target === "string" ? [target] : unknownTask();
  });
}

/** Reads `deno task build`. */
export function denoTasks(args: readonly string[], folder: string, project: ProjectFiles): TaskBody[] | null {
  const [command, name, ...rest] = args;
  if (command !== "task") return [];
  const file = nearestFile(project, folder, ["deno.json", "deno.jsonc"]);
  if (file === null) return null;
  if (name === undefined || name.startsWith("-")) return unknownTask();
  const { tasks = {} } = readSettings(project, `${file.folder}/${file.name}`);
  const taskOf = (task: string): { text: string; needs: string[] } => {
    const value = isObject(tasks) && Object.hasOwn(tasks, task) ? tasks[task] : undefined;
    const { command: text = "", dependencies: needs = [] } = isObject(value) ? value : { command: value };
    if (typeof text !== "string" || !Array.isArray(needs) || value === undefined) return unknownTask();
    return { text, needs: needs.map(String) };
  };
  return withNeededTasks([name], (each) => taskOf(each).needs).map((task) => ({
    task,
    folder: file.folder,
    text: task === name ? withArguments(taskOf(task).text, rest) : taskOf(task).text,
  }));
}

/** Reads `composer run test` and `composer test`. An entry can be a command, another script (`@test`), or PHP code. */
export function composerTasks(args: readonly string[], folder: string, project: ProjectFiles): TaskBody[] | null {
  const [first = "", ...others] = args;
  const [name = "", ...rest] = ["run", "run-script", "exec"].includes(first) ? others : args;
  const file = nearestFile(project, folder, ["composer.json"]);
  if (file === null) return null;
  const { scripts = {} } = readObject(file.text);
  if (!isObject(scripts)) return unknownTask();
  const linesOf = (script: string): string[] => {
    if (!Object.hasOwn(scripts, script)) return [];
    const lines = [scripts[script]].flat();
    // A PHP callback, such as `Vendor\\Class::method`.
    if (!lines.every((line) => typeof line === "string" && !/^[\w\\]+::/.test(line))) unknownTask();
    return lines as string[];
  };
  if (!["run", "run-script", "exec", "install"].includes(first) && !Object.hasOwn(scripts, first)) return [];
  const names = first === "install" ? ["pre-install-cmd", "post-install-cmd", "post-autoload-dump"] : [name];
  const needsOf = (script: string): string[] =>
    linesOf(script).flatMap((line) => (/^@(?!php |composer )/.test(line) ? [line.slice(1)] : []));
  const bodies = withNeededTasks(names, needsOf).flatMap((task) =>
    linesOf(task).flatMap((line) =>
      /^@(?!php |composer )/.test(line)
        ? []
        : [{ task, folder: file.folder, text: withArguments(line.replace(/^@/, ""), task === name ? rest : []) }],
    ),
  );
  return bodies.length === 0 ? null : bodies;
}

/** Reads `run-s lint test:*`, `npm-run-all --parallel a b` and `concurrently "npm:dev" "vite"`. */
export function runAllTasks(
  runner: string,
  args: readonly string[],
  folder: string,
  project: ProjectFiles,
): TaskBody[] | null {
  const found = nearestPackage(project, folder) ?? unknownTask();
  const words = args.filter((arg) => !arg.startsWith("-"));
  return words.flatMap((word) => {
    const [, npmScript] = /^(?:npm|yarn|pnpm):(.+)$/.exec(word) ?? [];
    if (runner === "concurrently" && npmScript === undefined) return [{ task: "", folder: found.folder, text: word }];
    const pattern = new RegExp(`^${(npmScript ?? word).replace(/[.+^$()|\\{}[\]?]/g, "\\$&").replace(/\*+/g, ".*")}$`);
    const names = Object.keys(found.scripts).filter((name) => pattern.test(name));
    return names.length === 0 ? unknownTask() : names.flatMap((name) => scriptBodies(found, name) ?? []);
  });
}
