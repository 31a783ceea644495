/** Computes which files the commands of a pipeline can list: `git ls-files '*.ts' | grep -v test`. */
import type { Command, CommandNode } from "unbash";
import { patternExpression } from "./file-patterns.ts";
import { findSearch } from "./file-uses.ts";
import type { ProjectFiles } from "./tasks/task-body.ts";
import { wordValue } from "./word-values.ts";

const MAX_LISTED = 1_000;
/** Matches names that no shell and no xargs splits and that are not options. */
const PLAIN_NAME = /^(?![-~])[\w.@/+=,~[\]()-]+$/;

interface Listing {
  /** Folders or files, relative to the working folder. */
  places: readonly string[];
  /** Patterns for the names; empty for all files. In git's patterns, `*` also matches "/". */
  globs: readonly string[];
  /** Whether the list includes files that git ignores. */
  ignored: boolean;
  /** Whether the patterns match names in any case. */
  ignoresCase?: boolean;
  /** Whether the command also lists folders. */
  listsFolders?: boolean;
  /** Names of folders whose files are not listed; with "./" in front, only of folders in the working folder. */
  excluded?: readonly string[];
}

/** Returns the absolute paths of all files that the pipeline can list; null if they are unknown. */
export function listedFiles(
  commands: readonly CommandNode[],
  folders: readonly string[],
  project: ProjectFiles,
): string[] | null {
  const [first, ...filters] = commands;
  const words = literalWords(first);
  return words !== null && filters.every(isLineFilter) ? filesListedBy(words, folders, project) : null;
}

/** Returns the absolute paths of all files that a command can list; null if they are unknown. */
export function filesListedBy(
  words: readonly string[],
  folders: readonly string[],
  project: ProjectFiles,
): string[] | null {
  const files: string[] = [];
  for (const folder of folders) {
    const listing = findListing(words, folder, project);
    if (listing === null) return null;
    const { places, globs, ignored, ignoresCase, listsFolders, excluded = [] } = listing;
    const expressions = globs
      .map(patternExpression)
      .map((each) => (each === null || ignoresCase !== true ? each : new RegExp(each.source, "iu")));
    const matches = (name: string): boolean =>
      expressions.length === 0 ||
      expressions.some((each) => each === null || each.test(name) || each.test(name.split("/").at(-1) as string));
    const isExcluded = (name: string): boolean => {
      const folders = name.split("/").slice(0, -1);
      return folders.some((each) => excluded.includes(each)) || excluded.includes(`./${folders[0] ?? ""}`);
    };
    for (const place of places.length > 0 ? places : ["."]) {
      if (/(^|\/)\.\.(\/|$)|^[/~]|[*?[{]/.test(place)) return null;
      const path = place.replace(/^\.\/?|\/+$/g, "");
      const names = project.files(folder, path, ignored);
      if (names === null) return null;
      // The command would also use the contents of a listed folder.
      if (listsFolders === true && names.some((name) => name.split("/").slice(0, -1).some(matches))) return null;
      const matching = names.filter((name) => !isExcluded(name) && matches(name));
      if (matching.length > MAX_LISTED || !matching.every((name) => PLAIN_NAME.test(name))) return null;
      files.push(...matching.map((name) => `${folder}/${name}`));
    }
  }
  return [...new Set(files)];
}

function literalWords(node: CommandNode | undefined): string[] | null {
  if (node?.type !== "Command" || node.name === undefined || node.prefix.length > 0) return null;
  const isQuiet = node.redirects.every(
    (each) =>
      each.type === "Redirect" &&
      each.operator === ">" &&
      each.descriptor?.type === "FileDescriptor" &&
      each.descriptor.value === 2,
  );
  const words = [node.name, ...(node as Command).args].map((each) => (each.type === "Word" ? wordValue(each) : null));
  if (!isQuiet || words.some((each) => each?.isLiteral !== true)) return null;
  return words.map((each) => each?.text ?? "");
}

/** Returns true if a command passes on some lines of its input, unchanged. */
function isLineFilter(node: CommandNode): boolean {
  const [name = "", ...args] = literalWords(node) ?? [];
  const line = args.join(" ");
  if (name === "sort") return /^( ?-[bdfghinrRuVz]+)*$/.test(line);
  if (name === "uniq") return /^( ?-[diu]+)*$/.test(line);
  if (name === "head" || name === "tail") return /^(-n ?[-+]?\d+|-\d+)?$/.test(line);
  if (name === "tac") return args.length === 0;
  const operands = args.filter((arg) => !arg.startsWith("-"));
  return (
    ["grep", "egrep"].includes(name) &&
    operands.length === 1 &&
    args.every((arg) => !arg.startsWith("-") || /^-[vEiFwP]+$/.test(arg))
  );
}

function findListing([name = "", ...args]: readonly string[], folder: string, project: ProjectFiles): Listing | null {
  if (name === "git") return gitListing(args, folder, project);
  if (name === "find") return findCommandListing(args);
  const search = findSearch(name, args);
  if (search === null || !args.some((arg) => /^-[a-zA-Z]*l|^--files(-with-matches|-without-match)?$/.test(arg)))
    return null;
  // `-0` and `--json` change the output, and other options change the names in it.
  if (
    args.some(
      (arg) =>
        /^--(json|null|heading|replace|path-separator|hostname|column|vimgrep)|^-[a-zA-Z]*[cnr0](?![\w*.])/.test(arg) &&
        !/^-[rnEilwF]+$/.test(arg),
    )
  )
    return null;
  const operands = search.operands.map((at) => args[at] as string);
  const isFileList = name === "rg" && args.includes("--files");
  const startFolders = isFileList
    ? args.filter((arg, at) => !arg.startsWith("-") && !/^-[gt]$|^--(glob|type)$/.test(args[at - 1] ?? ""))
    : operands;
  return { places: startFolders, globs: search.globs, ignored: search.ignored !== "skipped" };
}

function gitListing(args: readonly string[], folder: string, project: ProjectFiles): Listing | null {
  const [verb, ...rest] = args;
  const end = rest.indexOf("--");
  const before = end < 0 ? rest : rest.slice(0, end);
  const options = before.filter((arg) => arg.startsWith("-"));
  const operands = before.filter((arg) => !arg.startsWith("-"));
  const after = end < 0 ? [] : rest.slice(end + 1);
  const onlyOptions = (pattern: RegExp): boolean => options.every((option) => pattern.test(option));
  let specs: readonly string[];
  if (verb === "ls-files" && onlyOptions(/^(-z|-c|--cached)$/)) specs = [...operands, ...after];
  else if (verb === "grep" && onlyOptions(/^-[nilFEwPI]*l[nilFEwPI]*$|^--files-with-matches$|^-[iFEwPI]+$/))
    specs = operands.length === 1 ? after : [":"];
  // The names of other commits can be names of files that git does not track now. The names are relative to the top folder.
  else if (
    verb === "diff" &&
    options.includes("--name-only") &&
    onlyOptions(/^(--name-only|--cached|--staged|-z|--diff-filter=[A-Za-z]+)$/) &&
    operands.every((each) => each === "HEAD") &&
    (project.list(`${folder}/.git`) !== null || project.read(`${folder}/.git`) !== null)
  )
    specs = after;
  else return null;
  if (specs.some((spec) => /^[:/~]|\.\.|[[\\]/.test(spec))) return null;
  const isPattern = (spec: string): boolean => /[*?]/.test(spec);
  // A pattern of git without a slash matches in all folders.
  const globs = specs.filter(isPattern).map((spec) => spec.replace(/\*\*\/|\*/g, "**"));
  const places = specs.filter((spec) => !isPattern(spec));
  if (globs.length > 0 && places.length > 0) return null;
  return { places, globs, ignored: false };
}

/** Alternatives must be names in one pair of parentheses: `\\( -name '*.ts' -o -name '*.tsx' \\)`. */
const ALTERNATIVES = /^(?:[^()]* )?\( -i?name [^ ]+(?: -or? -i?name [^ ]+)+ \)(?: [^()]*)?$/;
const isNot = (arg: string | undefined): boolean => arg === "!" || arg === "-not";
const isOr = (arg: string): boolean => arg === "-o" || arg === "-or";

function findCommandListing(args: readonly string[]): Listing | null {
  const start = args.findIndex((arg) => /^[-(!]/.test(arg));
  const startFolders = start < 0 ? args : args.slice(0, start);
  const tests = start < 0 ? [] : args.slice(start);
  const action = tests.findIndex((arg) => /^-(exec|execdir|print|print0)$/.test(arg));
  const conditions = action < 0 ? tests : tests.slice(0, action);
  const names: string[] = [];
  const excluded: string[] = [];
  let isFile = false;
  for (let at = 0; at < conditions.length; at++) {
    const arg = conditions[at] as string;
    const isNegated = isNot(conditions[at - 1]);
    const value = conditions[at + 1] ?? "";
    if (arg === "-type" && value === "f" && !isNegated) isFile = true;
    else if (/^-i?name$/.test(arg)) {
      if (!isNegated) names.push(value);
    } else if (/^-i?path$/.test(arg)) {
      const [, prefix, folder] = /^(\*|\.)\/([\w.-]+)\/\*$/.exec(value) ?? [];
      if (!isNegated || folder === undefined) return null;
      // The paths that find compares begin with the place as the command names it, such as "." for the working folder.
      if (
        prefix === "."
          ? startFolders.some((startFolder) => startFolder !== ".")
          : startFolders.some((startFolder) => !/^[.]\/?$/.test(startFolder) && startFolder.split("/").includes(folder))
      )
        return null;
      excluded.push(prefix === "." ? `./${folder}` : folder);
    } else if (isNegated && (arg === "(" || isNot(arg))) return null;
    else if (!/^(-type|-maxdepth|-mindepth|-size|-mtime|-mmin|-newer|-not|!|-o|-or|-a|-and|\(|\))$/.test(arg))
      return null;
    if (/^-(type|i?name|i?path|maxdepth|mindepth|size|mtime|mmin|newer)$/.test(arg)) at++;
  }
  if (!endsWithActions(tests.slice(conditions.length))) return null;
  if (conditions.some(isOr) || conditions.includes("(")) {
    const inside = conditions.slice(conditions.indexOf("("), conditions.indexOf(")"));
    const isPlain = conditions.every((arg) => /^[^ ]+$/.test(arg)) && ALTERNATIVES.test(conditions.join(" "));
    if (!isPlain || conditions.filter(isOr).length !== inside.filter(isOr).length) return null;
    if (names.length !== inside.filter((arg) => /^-i?name$/.test(arg)).length) return null;
  }
  if (!isFile && !(names.length > 0 && names.every((each) => /[.]\w+$/.test(each)))) return null;
  const ignoresCase = conditions.includes("-iname");
  return { places: startFolders, globs: names, ignored: true, ignoresCase, listsFolders: !isFile, excluded };
}

/** Returns true if these words are only actions, which use every file that satisfies the conditions before them. */
function endsWithActions(words: readonly string[]): boolean {
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (/^-print0?$/.test(word)) continue;
    if (!/^-exec(dir)?$/.test(word)) return false;
    while (at < words.length && words[at] !== ";" && words[at] !== "+") at++;
  }
  return true;
}
