/** Computes which files the commands of a pipeline can list: `git ls-files '*.ts' | grep -v test`. */
import type { Command, CommandNode } from "unbash";
import { patternExpression } from "./file-patterns.ts";
import { findSearch } from "./file-uses.ts";
import type { ProjectFiles } from "./tasks/task-body.ts";
import { wordValue } from "./word-values.ts";

const MAX_LISTED = 1_000;
/** Names that no shell and no xargs splits, and that are no options. */
const PLAIN_NAME = /^(?![-~])[\w.@/+=,~[\]()-]+$/;

interface Listing {
  /** Folders or files, relative to the working folder. */
  places: readonly string[];
  /** Patterns for the names; empty for all files. In git's patterns, `*` also matches "/". */
  globs: readonly string[];
  /** Whether files that git ignores are listed. */
  ignored: boolean;
  /** Names of folders whose files are not listed. */
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
    const { places, globs, ignored, excluded = [] } = listing;
    const expressions = globs.map(patternExpression);
    for (const place of places.length > 0 ? places : ["."]) {
      if (/(^|\/)\.\.(\/|$)|^[/~]|[*?[{]/.test(place)) return null;
      const path = place.replace(/^\.\/?|\/+$/g, "");
      const names = project.files(folder, path, ignored);
      if (names === null) return null;
      const matching = names.filter(
        (name) =>
          !name.split("/").some((segment) => excluded.includes(segment)) &&
          (expressions.length === 0 ||
            expressions.some(
              (each) => each === null || each.test(name) || each.test(name.split("/").at(-1) as string),
            )),
      );
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

/** Whether a command passes on some lines of its input, unchanged. */
function isLineFilter(node: CommandNode): boolean {
  const [name = "", ...args] = literalWords(node) ?? [];
  const operands = args.filter(
    (arg, at) => !arg.startsWith("-") && !(/^-[nc]$/.test(args[at - 1] ?? "") && /^\d+$/.test(arg)),
  );
  if (["sort", "uniq", "head", "tail", "tac"].includes(name))
    return operands.length === 0 && !args.some((arg) => /^-[a-z]*[oc]|^--/.test(arg));
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
  const places = isFileList
    ? args.filter((arg, at) => !arg.startsWith("-") && !/^-[gt]$|^--(glob|type)$/.test(args[at - 1] ?? ""))
    : operands;
  return { places, globs: search.globs, ignored: search.ignored !== "skipped" };
}

function gitListing(args: readonly string[], folder: string, project: ProjectFiles): Listing | null {
  const [verb, ...rest] = args;
  const end = rest.indexOf("--");
  const before = end < 0 ? rest : rest.slice(0, end);
  const options = before.filter((arg) => arg.startsWith("-"));
  const operands = before.filter((arg) => !arg.startsWith("-"));
  const after = end < 0 ? [] : rest.slice(end + 1);
  const known = (pattern: RegExp): boolean => options.every((option) => pattern.test(option));
  let specs: readonly string[];
  if (verb === "ls-files" && known(/^(-z|-c|--cached)$/)) specs = [...operands, ...after];
  else if (verb === "grep" && known(/^-[nilFEwPI]*l[nilFEwPI]*$|^--files-with-matches$|^-[iFEwPI]+$/))
    specs = operands.length === 1 ? after : [":"];
  // The names of other commits can be names of files that git does not track now. The names are relative to the top folder.
  else if (
    verb === "diff" &&
    options.includes("--name-only") &&
    known(/^(--name-only|--cached|--staged|-z|--diff-filter=[A-Za-z]+)$/) &&
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

function findCommandListing(args: readonly string[]): Listing | null {
  const start = args.findIndex((arg) => /^[-(!]/.test(arg));
  const places = start < 0 ? args : args.slice(0, start);
  const tests = start < 0 ? [] : args.slice(start);
  const names: string[] = [];
  const excluded: string[] = [];
  let isFile = false;
  for (let at = 0; at < tests.length; at++) {
    const arg = tests[at] as string;
    const isNegated = /^(!|-not)$/.test(tests[at - 1] ?? "");
    const value = tests[at + 1] ?? "";
    if (arg === "-type" && value === "f" && !isNegated) isFile = true;
    else if (/^-i?name$/.test(arg)) {
      if (!isNegated) names.push(value);
    } else if (/^-i?path$/.test(arg)) {
      const [, folder] = /^(?:\*|\.)?\/?([\w.-]+)\/\*$/.exec(value) ?? [];
      if (isNegated && folder !== undefined) excluded.push(folder);
      else if (!isNegated) return null;
    } else if (/^-(exec|execdir)$/.test(arg)) {
      while (at < tests.length && tests[at] !== ";" && tests[at] !== "+") at++;
      continue;
    } else if (
      !/^(-type|-maxdepth|-mindepth|-size|-mtime|-mmin|-newer|-print|-print0|-not|!|-o|-or|-a|-and|\(|\))$/.test(arg)
    )
      return null;
    if (/^-(type|i?name|i?path|maxdepth|mindepth|size|mtime|mmin|newer)$/.test(arg)) at++;
  }
  const alternatives = tests.filter((arg) => /^-or?$/.test(arg)).length;
  // Without parentheses, an alternative need not satisfy the other tests.
  if (alternatives > 0 && (!tests.includes("(") || alternatives !== names.length - 1)) return null;
  if (!isFile && !(names.length > 0 && names.every((each) => /[.]\w+$/.test(each)))) return null;
  return { places, globs: names, ignored: true, excluded };
}
