/**
 * Reads the recipes of makefiles and justfiles. Both languages can compute commands. This reader supports only rules,
 * recipes and variables with literal values. For everything else, the body is unknown.
 */
import { resolve } from "node:path/posix";
import { nearestFile, unknownTask, withNeededTasks, type ProjectFiles, type TaskBody } from "./task-body.ts";

interface Recipe {
  needs: string[];
  lines: string[];
}

const NO_RECIPE: Recipe = { needs: [], lines: [] };

/** Reads `make -j4 build test`. */
export function makeTasks(args: readonly string[], folder: string, project: ProjectFiles): TaskBody[] | null {
  if (args[0] === "-C") return makeTasks(args.slice(2), resolve(folder, args[1] ?? ""), project) ?? unknownTask();
  const given = args.flatMap((arg) => {
    const [, variable, value] = /^([A-Z_]+)=([\w ./=,:@-]*)$/.exec(arg) ?? [];
    return variable === undefined || value === undefined ? [] : [[variable, value] as const];
  });
  // make exports these variables to all programs of a recipe.
  if (given.some(([variable]) => !GIVEN_VARIABLES.test(variable))) unknownTask();
  const words = args.filter((arg) => !/^[A-Z_]+=/.test(arg));
  const targets = operands(words, /^-([skBn]+|j[0-9]*)$|^--(silent|keep-going|always-make|dry-run|just-print)$/);
  // Unlike most runners, make does not search the folders above.
  const name = ["GNUmakefile", "makefile", "Makefile"].find((each) => project.read(`${folder}/${each}`) !== null);
  if (name === undefined) return null;
  const { recipes, always, first } = readMakefile(project.read(`${folder}/${name}`) as string, new Map(given));
  const recipeOf = (target: string): Recipe => {
    const recipe = recipes.get(target);
    if (recipe !== undefined) return recipe;
    // Without a rule, make uses a built-in one. It needs none for an existing file that another target requires.
    return targets.includes(target) || project.read(`${folder}/${target}`) === null ? unknownTask() : NO_RECIPE;
  };
  const all = withNeededTasks(targets.length > 0 ? targets : [first ?? unknownTask()], (name) => recipeOf(name).needs);
  return [
    ...always.map((text) => ({ task: "make", folder, text })),
    ...all.flatMap((task) => recipeOf(task).lines.map((text) => ({ task, folder, text }))),
  ];
}

/** Matches variables that only select tests or options of the output. No program reads them from its environment. */
const GIVEN_VARIABLES = /^((TEST_?|EXTRA_?)?(ARGS|FLAGS|OPTS)|TESTS?|PKGS?|PACKAGES?|RUN|FILTER|FILES?|V|VERBOSE)$/;

function readMakefile(
  text: string,
  given: ReadonlyMap<string, string>,
): { recipes: Map<string, Recipe>; always: string[]; first: string | undefined } {
  const recipes = new Map<string, Recipe>();
  const variables = new Map<string, string>();
  /** Commands of `$(shell …)`, which run whatever the target is. */
  const always: string[] = [];
  let current: Recipe[] = [];
  let first: string | undefined;
  for (const line of text.replace(/([^\t\n][^\n]*)\\\n[ \t]*/g, "$1 ").split("\n")) {
    if (line.startsWith("\t")) {
      const command = line.trim().replace(/^[@+-]+\s*/, "");
      for (const recipe of current) if (command !== "" && !command.startsWith("#")) recipe.lines.push(command);
      continue;
    }
    const plain = line.replace(/(^|\s)#.*$/, "").trim();
    if (plain === "") continue;
    current = [];
    const [, variable, operator, value = ""] = /^([A-Za-z_]\w*)\s*(::?:?=|\?=|\+=|!=|=)\s*(.*)$/.exec(plain) ?? [];
    if (variable !== undefined) {
      if (operator === "!=" || /^(SHELL|PATH|MAKEFLAGS|GNUMAKEFLAGS|MAKE|VPATH)$/.test(variable)) unknownTask();
      for (const [, command = ""] of value.matchAll(/\$\(shell ([^()]*)\)/g)) always.push(command);
      const before = operator === "+=" ? `${variables.get(variable) ?? ""} ` : "";
      variables.set(variable, before + value);
      continue;
    }
    if (/^\.(PHONY|SILENT|DEFAULT_GOAL|DELETE_ON_ERROR|SUFFIXES)\b/.test(plain)) {
      if (plain.startsWith(".DEFAULT_GOAL")) unknownTask();
      continue;
    }
    const [, targets, needs = "", inline] = /^([^:=$%]+?)\s*::?\s*([^:=;$%]*)(?:;\s*(.*))?$/.exec(plain) ?? [];
    // Conditionals, includes, pattern rules, exports and functions.
    if (targets === undefined || targets.startsWith(".") || /^(-?include|export|define|vpath)\b/.test(plain))
      unknownTask();
    for (const target of (targets as string).split(/\s+/)) {
      first ??= target;
      const recipe = recipes.get(target) ?? { needs: [], lines: [] };
      recipe.needs.push(...needs.split(/\s+/).filter((need) => need !== "" && need !== "|"));
      if (inline !== undefined && inline !== "") recipe.lines.push(inline);
      recipes.set(target, recipe);
      current.push(recipe);
    }
  }
  for (const [target, recipe] of recipes)
    recipe.lines = recipe.lines.map((line) => expand(line, new Map([...variables, ...given, ["@", target]])));
  return { recipes, always, first };
}

/** Replaces variables. Keeps unknown ones, such as functions, which a shell would read as a substitution. */
function expand(line: string, variables: ReadonlyMap<string, string>, depth = 0): string {
  if (depth > 8 || line.length > 32_768) unknownTask();
  return line.replace(/\$(?:\$|@|\((\w+)\)|\{(\w+)\})/g, (found, round?: string, curly?: string) => {
    if (found === "$$") return depth === 0 ? "$" : "$$";
    const name = found === "$@" ? "@" : (round ?? curly ?? "");
    if (name === "MAKE") return "make";
    const value = variables.get(name);
    if (value === undefined && GIVEN_VARIABLES.test(name)) return "";
    // A value with "$" might have another meaning at another place.
    return value === undefined ? found : expand(value, variables, depth + 1);
  });
}

/** Reads `just build`. */
export function justTasks(args: readonly string[], folder: string, project: ProjectFiles): TaskBody[] | null {
  if (/^(-l|--list|--summary|--version)$/.test(args.join(" "))) return [];
  const [name, ...values] = operands(args, /^-(q|-quiet)$/);
  const file = nearestFile(project, folder, ["justfile", "Justfile", ".justfile"]);
  if (file === null) return null;
  const { recipes, aliases, first } = readJustfile(file.text);
  // Values of parameters are inserted into the text of a recipe.
  if (values.length > 0) unknownTask();
  const start = name ?? first ?? unknownTask();
  const recipeOf = (each: string): Recipe => recipes.get(each) ?? unknownTask();
  return withNeededTasks([aliases.get(start) ?? start], (each) => recipeOf(each).needs).flatMap((task) =>
    recipeOf(task).lines.map((text) => ({ task, folder: file.folder, text })),
  );
}

function readJustfile(text: string): {
  recipes: Map<string, Recipe>;
  aliases: Map<string, string>;
  first: string | undefined;
} {
  const recipes = new Map<string, Recipe>();
  const aliases = new Map<string, string>();
  let current: Recipe | undefined;
  for (const line of text.split("\n")) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    if (/^\s/.test(line)) {
      if (/\{\{|^\s+#!|\\$/.test(line) || current === undefined) unknownTask();
      current?.lines.push(line.trim().replace(/^[@-]+/, ""));
      continue;
    }
    const [, alias, target] = /^alias\s+([\w-]+)\s*:=\s*([\w-]+)\s*$/.exec(line) ?? [];
    const [, name, needs = ""] = /^@?([A-Za-z_][\w-]*)\s*:(?!=)\s*([\w\s-]*)(?:#.*)?$/.exec(line) ?? [];
    if (alias !== undefined) aliases.set(alias, target as string);
    else if (name !== undefined) {
      current = { needs: needs.split(/\s+/).filter((need) => need !== ""), lines: [] };
      recipes.set(name, current);
    } else if (!/^(\[(private|doc\(.*\)|group\(.*\))\]|set (quiet|dotenv-load|positional-arguments)\b.*)$/.test(line))
      unknownTask();
  }
  return { recipes, aliases, first: [...recipes.keys()][0] };
}

/** Returns the arguments that are not options. Throws for an unknown option, and for `NAME=value`. */
function operands(args: readonly string[], options: RegExp): string[] {
  return args.filter((arg) => {
    if (options.test(arg)) return false;
    return /^[\w.][\w./:-]*$/.test(arg) || unknownTask();
  });
}
