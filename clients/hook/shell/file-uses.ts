/**
 * Determines how commands use the files that they name. The lists only exempt commands: a command in no list counts as
 * one that displays and changes its files.
 */
import type { KnownProgram } from "./program-options.ts";
import type { ProgramUse, Search } from "./shell-types.ts";

export interface FileUse {
  /** Whether the command may display the contents of a file. */
  opens: boolean;
  /** Whether the command may create, change or delete a file. */
  changes: boolean;
  /** For a command that reads all files of a folder: whether it skips or reads those that git ignores. */
  searches?: "skipped" | "read";
  /** Whether the command overwrites the files, so that their contents are lost. */
  replaces?: boolean;
  /** Whether the command may read settings or code from the files, which then determine what it does. */
  obeys?: boolean;
  /** Whether the command only formats or corrects the files that it changes, which preserves their meaning. */
  formats?: boolean;
  /** Whether it deletes the files, and reports no other use of them. */
  deletes?: "files" | "folders";
  /** Arguments that name files which the command creates: the last one (with contents of the others), or all. */
  creates?: "last" | "all";
  /** Whether it copies folders with the files in them. */
  copiesFolders?: boolean;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

/** Commands that display names and properties of files, or create folders and delete files. */
const NAME_PROGRAMS = words(
  "ls pwd mkdir rmdir stat find fd tree du df test [ which type whereis basename dirname realpath readlink file echo printf true false",
);
const READ_PROGRAMS = words(
  "cat head tail wc nl cut tr sort uniq diff date grep egrep fgrep rg jq yq awk gawk mawk comm cmp tac rev fold paste join column strings od " +
    "hexdump md5sum sha1sum sha256sum shasum cksum less more expand fmt",
);
/** Programs that check or run code. Some of them can also change code. */
const TOOLS = words(
  "npm pnpm yarn bun deno node tsc vitest jest mocha eslint stylelint biome oxlint playwright python python3 pytest mypy pyright ruff " +
    "go cargo rustc make just task tox nox mvn gradle dotnet rspec phpunit sh bash docker gh curl lsof pip pip3 uv poetry pdm composer bundle",
);
const FORMATTERS = words("prettier eslint biome oxlint oxfmt stylelint black isort ruff gofmt goimports rustfmt");
const CHANGING_OPTION = /^(--fix.*|--write|-w|-i.*|--in-place.*|format|fmt|-[a-z]*w)$/;
const RECURSIVE = /^-[a-zA-Z]*[rRd]|^--[rd]/;
/** Programs that display words or lines of git-ignored files if they are in a folder. */
const SEARCHES_IGNORED = words("diff cspell markdownlint markdownlint-cli2 codespell bandit vale alex");
/** Returns true if options make a program read files that git ignores. */
const includesIgnored = (name: string, args: readonly string[]): boolean =>
  SEARCHES_IGNORED.has(name) ||
  args.some((arg) => arg === "--with-node-modules" || (name === "black" && arg.startsWith("--exclude"))) ||
  (args.some((arg) => arg.startsWith("--ignore-path")) && !args.some((arg) => /(^|=)[.]gitignore$/.test(arg)));
/** Programs whose first words are a subcommand. */
const HAVE_SUBCOMMANDS = words(
  "coverage golangci-lint phpstan next nuxt astro svelte-kit remix gatsby ng storybook mkdocs prisma",
);
/** Programs that work in the folder with the results of a build. Git usually ignores this folder. */
const BUILDERS = words("cmake ctest ninja meson");
const GIT_CHANGES = words("mv rm checkout apply am clean init clone");

/** Commands of git that display names of files, or remove files from the index. */
const GIT_NAMES = words("log status check-ignore ls-files ls-tree rm mv checkout switch restore shortlog rev-list");

/** Returns true if a command of git may display the contents of the files that it names. */
const showsContents = ([verb = "", ...args]: readonly string[]): boolean =>
  !GIT_NAMES.has(verb) ||
  (verb === "log" && args.some((arg) => /^-[a-zA-Z]*[pLcU]|^--(?!$|oneline$|stat$|graph$|name-)/.test(arg)));

/**
 * Returns true if options make a command that normally displays file names also display lines of a file, or run another
 * program.
 */
const displaysLines = (name: string, args: readonly string[]): boolean =>
  (name === "fd" && args.some((arg) => /^-[a-zA-Z0-9]*[xX]|^--exe/.test(arg))) ||
  (name === "du" && args.some((arg) => /^-[a-zA-Z0-9]*X|^--(f|exclude-)/.test(arg))) ||
  (name === "file" && args.some((arg) => /^-[a-zA-Z0-9]*[fm]|^--(f|mag)/.test(arg)));

/** Returns true if a command uses files whose names it reads from a file. */
export const usesListedFiles = (name: string, args: readonly string[]): boolean =>
  (["du", "wc", "sort"].includes(name) && args.some((arg) => /^--f(?!ield)/.test(arg))) ||
  (name === "file" && args.some((arg) => /^-[a-zA-Z0-9]*f|^--f/.test(arg)));

/**
 * @param inTask whether the command is part of a task of the project, and so not written by the agent in this line
 * @param knownUse the known effects of the program with its options
 */
export function fileUse(
  name: string,
  args: readonly string[],
  inTask: boolean,
  knownUse: KnownProgram | null,
): FileUse {
  if (name === "rm")
    return { opens: false, changes: false, deletes: args.some((arg) => RECURSIVE.test(arg)) ? "folders" : "files" };
  // Any program that runs in a folder reads settings there.
  if ([".", "source", "cd", "pushd"].includes(name)) return { opens: false, changes: false, obeys: true };
  if (NAME_PROGRAMS.has(name)) return { opens: displaysLines(name, args), changes: false };
  if (name === "diff") return { opens: true, changes: false, searches: "read" };
  if (READ_PROGRAMS.has(name)) return { opens: true, changes: false };
  if (name === "touch" || name === "mktemp") return { opens: false, changes: true, creates: "all" };
  if (name === "cp")
    return {
      opens: true,
      changes: true,
      creates: "last",
      copiesFolders: args.some((arg) => /^-[a-zA-Z]*[rRa]|^--[ra]/.test(arg)),
    };
  if (name === "mv") return { opens: true, changes: true, creates: "last" };
  if (name === "git") {
    const shows = showsContents(args);
    // "git apply --check" and the like read a patch, and no settings.
    if (knownUse?.use === "reads" && args[0] === "apply") return { opens: true, changes: false };
    return { opens: shows, changes: GIT_CHANGES.has(args[0] ?? ""), obeys: shows };
  }
  if (name === "tee") return { opens: false, changes: true, replaces: true, creates: "all" };
  // Programs of a task run files, such as built code, rather than display them.
  if (inTask) return { opens: false, changes: false, obeys: true };
  const changesSome = args.some((arg) => CHANGING_OPTION.test(arg));
  // Other options can follow or precede "i" in the same word.
  if (name === "sed" || name === "gsed")
    return { opens: true, changes: args.some((arg) => /^-[a-zA-Z]*i|^--in/.test(arg)) };
  const searches =
    knownUse === null && (TOOLS.has(name) || HAVE_SUBCOMMANDS.has(name))
      ? {}
      : { searches: includesIgnored(name, args) ? ("read" as const) : ("skipped" as const) };
  if (knownUse?.use === "reads") return { opens: true, changes: false, ...searches };
  const changes = TOOLS.has(name)
    ? changesSome
    : knownUse?.use !== "checks" || args.some((arg) => /^(--fix|--write|-w)/.test(arg));
  return { opens: true, changes, obeys: true, formats: FORMATTERS.has(name), ...searches };
}

/**
 * Returns the files that a word of a command refers to, if it is a folder or a pattern that the program expands:
 * `"src/*.ts"`, `./...`. Returns nothing for a pattern that excludes files.
 * @param text the word; empty if it is no pattern
 */
export function wordSearch(path: string, text: string, ignored: "skipped" | "read", followsLinks: boolean): Search[] {
  // The folder in front of the word can contain such characters, too.
  const start = Math.max(path.length - text.length, 0);
  const offset = path.slice(start).search(/[*?[{(!\\]|(?<=\/)[.]{3}$/);
  const at = offset < 0 ? -1 : start + offset;
  const word = { followsLinks, isWord: true };
  if (at < 0) return [{ path, ignored, globs: [], ...word }];
  const folder = path.slice(0, path.lastIndexOf("/", at));
  const pattern = path.slice(folder.length + 1);
  if (pattern === "...") return [{ path: folder, ignored, globs: [], ...word }];
  if (/^!(?!\()/.test(pattern)) return [];
  if (ignored === "read") return [{ path: folder, ignored, globs: [pattern], ...word }];
  // The pattern of a folder: "priv*" of "priv*/**".
  const [prefix = ""] = pattern.split(/\/?\*\*/);
  const folders = prefix.split("/").map((_, depth, parts) => parts.slice(0, depth + 1).join("/"));
  return [{ path: folder, ignored: "matched", globs: [pattern, ...folders.filter((each) => each !== "")], ...word }];
}

/**
 * Returns true if a word is the file of `docker build -f`. Without this check, a name such as `Dockerfile.dev` counts
 * as a host.
 */
export const isBuildFile = (name: string, args: readonly string[], at: number): boolean =>
  ["docker", "podman"].includes(name) &&
  args[0] === "build" &&
  ["-f", "--file"].includes(args[at - 1] ?? "") &&
  /^([\w-]+\/)*Dockerfile[.][\w-]+$/.test(args[at] ?? "");

/** Returns true if a program also reads files of its working folder that it does not name. */
export const readsWorkingFolder = (name: string, knownUse: ProgramUse | undefined): boolean =>
  knownUse === "checks" && !BUILDERS.has(name);

/** File extensions of the types of rg that agents use. A search with another type counts as a search of all files. */
const TYPE_GLOBS: Readonly<Record<string, string>> = {
  ts: "*.{ts,tsx,cts,mts}",
  js: "*.{js,jsx,cjs,mjs,vue}",
  py: "*.{py,pyi}",
  go: "*.go",
  rust: "*.rs",
  java: "*.java",
  css: "*.{css,scss}",
  html: "*.{htm,html,ejs}",
  md: "*.{md,mdx,markdown,mdown,mdwn,mkd,mkdn}",
  sql: "*.{sql,psql}",
};

export const typeGlob = (type: string): string | undefined =>
  Object.hasOwn(TYPE_GLOBS, type) ? TYPE_GLOBS[type] : undefined;

/** Options of search commands that have a value, in the same or the next word: letters, and long names. */
const VALUE_OPTIONS: Readonly<Record<string, { letters: string; long: ReadonlySet<string> }>> = {
  grep: {
    letters: "ABCDdefm",
    long: words("regexp file max-count context after-context before-context label directories devices binary-files"),
  },
  rg: {
    letters: "ABCEMTdefgjmrt",
    long: words(
      "regexp file max-count context after-context before-context glob iglob type type-not type-add type-clear sort sortr color colors encoding " +
        "engine replace max-depth max-columns max-filesize threads path-separator context-separator field-match-separator " +
        "field-context-separator ignore-file pre pre-glob hostname-bin hyperlink-format dfa-size-limit regex-size-limit generate",
    ),
  },
};

/** Separates the options of a search from its operands. */
function parseSearch(
  command: "grep" | "rg",
  args: readonly string[],
): { options: [name: string, value: string][]; operands: number[] } {
  const { letters, long } = VALUE_OPTIONS[command] as { letters: string; long: ReadonlySet<string> };
  const options: [string, string][] = [];
  const operands: number[] = [];
  for (let at = 0, isEnd = false; at < args.length; at++) {
    const arg = args[at] as string;
    if (isEnd || !/^-./.test(arg)) operands.push(at);
    else if (arg === "--") isEnd = true;
    else if (arg.startsWith("--")) {
      const [, name = "", value] = /^--([^=]*)=?(.*)$/s.exec(arg) ?? [];
      options.push([name, long.has(name) && !arg.includes("=") ? (args[++at] ?? "") : (value ?? "")]);
    } else {
      const first = Array.from(arg).findIndex((character, i) => i > 0 && letters.includes(character));
      for (const character of arg.slice(1, first < 0 ? undefined : first)) options.push([character, ""]);
      if (first > 0) options.push([arg[first] as string, arg.slice(first + 1) || (args[++at] ?? "")]);
    }
  }
  const hasPattern = options.some(([name]) => ["e", "f", "regexp", "file", "files"].includes(name));
  return { options, operands: hasPattern ? operands : operands.slice(1) };
}

/**
 * Returns which files `git add` adds. Git then tracks them, and the agent could read them without approval, so it counts as
 * a search. Options and patterns can add files of the whole repository.
 */
function addedFiles(args: readonly string[]): Omit<Search, "path"> & { operands: number[] } {
  const operands = args.flatMap((arg, at) => (at > 0 && !arg.startsWith("-") ? [at] : []));
  const isWhole = operands.length === 0 || operands.some((at) => /^:|[*?[\\]/.test(args[at] as string));
  return { ignored: "skipped", globs: [], operands: isWhole ? [] : operands, isWholeRepository: isWhole };
}

/** Returns which files a command searches, and the indexes of its operands; null if it does not search folders. */
export function findSearch(
  name: string,
  args: readonly string[],
): (Omit<Search, "path"> & { operands: number[] }) | null {
  if (name === "git") {
    // `-u` adds only changes of tracked files.
    const adds = args[0] === "add" && !args.some((arg) => /^(-u|--update)$/.test(arg));
    return adds ? addedFiles(args) : null;
  }
  const command = name === "rg" ? "rg" : ["grep", "egrep", "fgrep"].includes(name) ? "grep" : null;
  if (command === null) return null;
  const { options, operands } = parseSearch(command, args);
  const values = (...names: string[]): string[] =>
    options.flatMap(([option, value]) => (names.includes(option) ? [value] : []));
  const has = (pattern: RegExp): boolean => options.some(([option]) => pattern.test(option));
  if (command === "grep") {
    if (!has(/^([rRd]|rec.*|deref.*|dir.*)$/)) return null;
    // The last matching option determines whether a file is searched.
    const globs =
      has(/^exc/) && !options.every(([option]) => !option.startsWith("exc") || option === "exclude-dir")
        ? []
        : values("include");
    return {
      ignored: "read",
      globs,
      excluded: values("exclude-dir"),
      followsLinks: has(/^(R|deref.*)$/),
      operands,
    };
  }
  // The globs of these options ignore case, so assume that the search reads all files.
  if (has(/^(iglob|glob-case-insensitive)$/)) return { ignored: "read", globs: [], operands };
  const types = values("t", "type").map((type) => typeGlob(type) ?? "*");
  const globs = values("g", "glob").filter((glob) => !glob.startsWith("!"));
  return { ignored: globs.length > 0 ? "matched" : "skipped", globs: types.length > 0 ? types : globs, operands };
}
