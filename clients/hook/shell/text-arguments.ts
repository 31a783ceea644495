/**
 * Finds the arguments that are not file names: patterns of `grep` and `rg`, messages of `git`, text of `echo`.
 */
import type { ShellArgument } from "./shell-types.ts";

interface Options {
  /** Short options that have no value. */
  flags: string;
  /** Short options that have a value (in the same or the next word), with the value's format. */
  values: Readonly<Record<string, RegExp>>;
  /** Long options without a value, or with a value after "=". */
  long: RegExp;
}

const NUMBER = /^[0-9]+$/;
const TYPE = /^[a-z0-9]+$/;
/**
 * Options of grep. Omits `-C`: its value is optional in some versions, so the argument after it could also be the
 * pattern.
 */
const GREP_OPTIONS: Options = {
  flags: "EFGHILPRabchilnoqrsvwxyz0123456789",
  values: { A: NUMBER, B: NUMBER, m: NUMBER },
  long: /^--((include|exclude|exclude-dir|color|colour)=.*|line-number|ignore-case|count|files-with-matches|recursive)$/s,
};
const SEARCH_COMMANDS: Readonly<Record<string, Options>> = {
  grep: GREP_OPTIONS,
  egrep: GREP_OPTIONS,
  fgrep: GREP_OPTIONS,
  rg: {
    flags: "nilcwsvxFUoaHINSPpq0",
    values: { A: NUMBER, B: NUMBER, C: NUMBER, m: NUMBER, t: TYPE, T: TYPE, g: /^[^-]/, r: /^(?!-)/ },
    long: /^--((type|color|context|max-count|sort|glob|replace)=.*|no-[a-z-]+|line-number|ignore-case|smart-case|case-sensitive|files-with-matches|files-without-match|count|count-matches|word-regexp|line-regexp|fixed-strings|invert-match|only-matching|heading|with-filename|multiline|multiline-dotall|pcre2|stats|trim|column|vimgrep|byte-offset|quiet|json)$/s,
  },
};
const GIT_GREP_OPTIONS: Options = {
  flags: "EFGHILPWachilnopqvwz0123456789",
  values: { A: NUMBER, B: NUMBER, C: NUMBER, m: NUMBER },
  long: /^--(line-number|ignore-case|count|files-with-matches|word-regexp|fixed-strings|cached|heading|break|show-function|no-color)$/,
};

/**
 * Returns the arguments that may be files, which are all except the pattern. Returns all arguments if an option is
 * unknown.
 */
export function fileArguments(name: string, args: readonly ShellArgument[]): readonly ShellArgument[] {
  const at = patternIndex(SEARCH_COMMANDS[name] as Options, args);
  return at === null ? args : args.filter((_, i) => i !== at);
}

/**
 * Programs that run a script of the project by its name. Their plain arguments count as text instead of paths: the
 * script can read any file, so checking its arguments would protect nothing.
 */
const SCRIPT_RUNNERS = new Set(["npm", "pnpm", "yarn", "bun", "go", "cargo", "pytest", "make"]);
/** For each program, its options whose value is text, such as the name of a test or the title of a pull request. */
const TEXT_OPTIONS: Readonly<Record<string, RegExp>> = {
  ...Object.fromEntries(
    "npm pnpm yarn bun node jest vitest mocha ava playwright pytest unittest python python3 go cargo"
      .split(" ")
      .map((name) => [name, /^(-[tgkm]|-run|--(grep|testNamePattern|test-name-pattern))(=|$)/]),
  ),
  ...Object.fromEntries("deno phpunit pest dotnet swift".split(" ").map((name) => [name, /^--filter(=|$)/])),
  rspec: /^(-e|--example)(=|$)/,
  ctest: /^-[RE]$/,
  git: /^(-[a-z]*m|--message|--author|--grep)(=|$)/,
  gh: /^(-[tblarBHSscqm]|--(title|body|label|assignee|reviewer|base|head|search|state|comment|jq|milestone|message|notes))(=|$)/,
};
/** Commands of git whose arguments are names of commits and branches. */
const REF_COMMANDS = new Set("switch branch tag merge rebase cherry-pick revert describe merge-base".split(" "));
/** Commands of git whose first argument is a repository, followed by names of branches. */
const REMOTE_COMMANDS = new Set(["push", "fetch", "pull"]);

/**
 * Returns the arguments that are text for this command. Another command on the line may read them as file names
 * (`echo .env | xargs cat`). If `unclear` is not empty, the caller must therefore treat them as file names.
 */
export function textArguments(name: string, args: readonly ShellArgument[]): readonly ShellArgument[] {
  if (name === "echo" || name === "printf") return args;
  const option = Object.hasOwn(TEXT_OPTIONS, name) ? (TEXT_OPTIONS[name] as RegExp) : undefined;
  const values = args.filter(({ text }, at) => {
    const before = args[at - 1]?.text ?? "";
    return (
      option !== undefined &&
      ((option.test(before) && !before.includes("=")) || (option.test(text) && text.includes("=")))
    );
  });
  if (SCRIPT_RUNNERS.has(name)) return [...values, ...args.filter(({ text }) => /^[\w-]+$/.test(text))];
  if (name !== "git") return values;
  const [verb, ...rest] = args;
  const command = verb?.text ?? "";
  if (command === "grep") {
    const at = patternIndex(GIT_GREP_OPTIONS, rest);
    return at === null ? [] : [rest[at] as ShellArgument];
  }
  const operands = rest.filter(({ text }) => !text.startsWith("-"));
  if (REF_COMMANDS.has(command)) return [...values, ...operands];
  if (REMOTE_COMMANDS.has(command)) return operands.slice(1);
  if (command === "checkout" && /^-[bB]$/.test(rest[0]?.text ?? "")) return operands;
  return ["commit", "stash", "log"].includes(command) ? values : [];
}

/**
 * Whether the output of other commands can be this argument, whatever it is: the command only displays or compares it, or searches for it.
 */
export function acceptsText(name: string, args: readonly ShellArgument[], at: number): boolean {
  const { text, isText } = args[at] as ShellArgument;
  const before = args[at - 1]?.text ?? "";
  if (name === "echo") return true;
  if (isText !== true) return false;
  switch (name) {
    case "printf":
      return at > 0;
    case "test":
    case "[":
    case "basename":
    case "dirname":
      return true;
    case "grep":
    case "egrep":
    case "fgrep":
    case "rg":
      // The text cannot be an option.
      return (
        before === "-e" ||
        (/^[^-$`"]|^"[^-$`]/.test(text) && args.findIndex((each) => !each.text.startsWith("-")) === at)
      );
    case "git":
      return args[0]?.text === "commit" && /^(-[a-z]*m|--message)$/.test(before);
    case "jq":
      return /^--arg(json)?$/.test(args[at - 2]?.text ?? "");
    default:
      return false;
  }
}

/**
 * Returns the index of the pattern; null if it is unknown. Also considers options after the pattern, because one of
 * them may define a different pattern.
 */
function patternIndex({ flags, values, long }: Options, args: readonly ShellArgument[]): number | null {
  let pattern: number | null = null;
  let ended = false;
  for (let at = 0; at < args.length; at++) {
    const { text, isLiteral } = args[at] as ShellArgument;
    if (!isLiteral) return null;
    if (ended || !/^-./.test(text)) pattern ??= at;
    else if (text === "--") ended = true;
    else if (!text.startsWith("--")) {
      const letters = Array.from(text.slice(1));
      const first = letters.findIndex((letter) => !flags.includes(letter));
      if (first < 0) continue;
      const letter = letters[first] as string;
      const value = Object.hasOwn(values, letter) ? values[letter] : undefined;
      const attachedValue = letters.slice(first + 1).join("");
      const next = attachedValue === "" ? args[++at] : undefined;
      if (next?.isLiteral === false || value?.test(next?.text ?? attachedValue) !== true) return null;
    } else if (!long.test(text)) return null;
  }
  return pattern;
}
