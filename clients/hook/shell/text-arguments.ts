/**
 * Finds the arguments that are not file names: patterns of `grep` and `rg`, messages of `git`, text of `echo`.
 */
import { OPAQUE_WRAPPERS } from "./command-tables.ts";
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
  const patterns = patternArguments(SEARCH_COMMANDS[name] as Options, args);
  return patterns === null
    ? args
    : args.filter((each) => !patterns.includes(each) && !/^(--exclude(-dir)?=|--i?glob=!)/.test(each.text));
}

/**
 * Programs that run a script of the project by its name. Their plain arguments count as text instead of paths: the
 * script can read any file, so checking its arguments would protect nothing.
 */
const SCRIPT_RUNNERS = new Set(["npm", "pnpm", "yarn", "bun", "go", "cargo", "make"]);

/** Which arguments of a program are text by the program's own syntax. */
interface TextSyntax {
  /** Pattern of the first operands. The entry applies only to calls that match it. Absent: the entry applies to all calls. */
  verb?: string;
  /** Options whose value is text. */
  options?: RegExp;
  /** Matches options with two values, both of which are text. */
  pairs?: RegExp;
  /** Options without a value. */
  flags?: RegExp;
  /** Matches the values that are text, if others name files. */
  value?: RegExp;
  /** Whether words after `--` can be options, too. */
  passesOptions?: boolean;
  /** Operands after the verb that are text: all, the first, or the first if another follows it directly. */
  operands?: "all" | "first" | "name";
}

const TEST_RUNNER: TextSyntax = {
  passesOptions: true,
  options: /^(-[tgkm]|-(run|skip|bench)|--(grep|testNamePattern|test-name-pattern|skip|deselect))$/,
  flags:
    /^(-[vqxsu]|-(race|short)|--(run|watch|coverage|silent|verbose|bail|ci|test|only|exact|nocapture|no-capture|lib|release|workspace|all|ignored|if-present))$/,
};
/** Operands select tests by name, unless they are paths. */
const FILTERS_TESTS: TextSyntax = { ...TEST_RUNNER, operands: "all", value: /^[^/]*$/ };
const FILTER_OPTIONS: TextSyntax = { options: /^--(filter|tests)$/ };
const CONTAINER: readonly TextSyntax[] = [
  {
    verb: "(buildx |image )?build",
    options: /^(-t|--(tag|target|label|build-arg|platform|progress))$/,
    flags: /^(-q|--(no-cache|pull|push|load|rm|quiet))$/,
  },
  {
    verb: "(container )?(run|create)",
    options: /^(-[elwuhp]|--(name|env|label|workdir|user|hostname|publish|network|entrypoint|platform|restart))$/,
    flags: /^(-[dit]+|--(rm|init|detach|interactive|tty))$/,
  },
  {
    verb:
      "(image |container )?(tag|rmi|rename|logs|start|stop|restart|kill|rm|pull|push|inspect|ps|ls|images|top|port|wait|history|search)|" +
      "(network|volume) [a-z]+",
    options: /^(-[fn]|--(filter|format|since|until|tail))$/,
    operands: "all",
  },
];
const COMPOSE: Omit<TextSyntax, "verb"> = {
  options: /^(-p|--(project-name|profile|tail|since))$/,
  flags: /^(-[dfv]|--(build|detach|follow|no-color))$/,
};
const COMPOSE_VERBS = "(ps|logs|up|stop|start|restart|kill|rm|top|port|pull|images)";
const CLUSTER_OPTIONS = /^(-[nlc]|--(namespace|selector|field-selector|container|context|cluster))$/;
const CLUSTER: readonly TextSyntax[] = [
  { options: CLUSTER_OPTIONS },
  {
    verb: "get|describe|logs|delete|scale|top|explain|wait|label|annotate|rollout [a-z]+",
    options: CLUSTER_OPTIONS,
    operands: "all",
  },
];
const PLAN: readonly TextSyntax[] = [
  { options: /^--?(target|replace|var)$/ },
  { verb: "workspace (select|new|delete)|state (show|rm|mv|list)|import|taint|untaint", operands: "all" },
];
const AWK: TextSyntax = { options: /^-[Fv]$/ };
const MULTIPLEXER_NAME = /^-[tsn]$/;

const TEXT_SYNTAX: Readonly<Record<string, readonly TextSyntax[]>> = {
  ...Object.fromEntries(
    "npm pnpm yarn bun node jest vitest mocha ava playwright pytest unittest python python3 go cargo"
      .split(" ")
      .map((name) => [name, [TEST_RUNNER]]),
  ),
  jest: [TEST_RUNNER, FILTERS_TESTS],
  vitest: [TEST_RUNNER, { ...FILTERS_TESTS, verb: "run|watch|dev|related" }, FILTERS_TESTS],
  playwright: [TEST_RUNNER, { ...FILTERS_TESTS, verb: "test" }],
  bats: [{ options: /^(-f|--filter)$/ }],
  mocha: [TEST_RUNNER, { options: /^(-f|--fgrep)$/, flags: /^(-[bw]|--(bail|watch))$/ }],
  npm: [TEST_RUNNER, { verb: "(pkg|config) get|search", operands: "all" }],
  cargo: [
    TEST_RUNNER,
    { verb: "build|b|check|c|clippy|run|r|bench|doc", options: /^(-[pF]|--(package|bin|example|features))$/ },
    {
      verb: "test|t|nextest run",
      options: /^(-[pFE]|--(package|test|bench|bin|example|features|skip))$/,
      flags: TEST_RUNNER.flags as RegExp,
      passesOptions: true,
      operands: "all",
    },
  ],
  eslint: [{ options: /^--(ignore-pattern|rule)$/ }],
  tar: [{ options: /^--exclude$/ }],
  rsync: [{ options: /^--exclude$/, flags: /^-[avzrnhP]+$/ }],
  zip: [{ options: /^-x$/, value: /^[^@]*$/ }],
  deno: [FILTER_OPTIONS],
  phpunit: [FILTER_OPTIONS],
  pest: [FILTER_OPTIONS],
  dotnet: [FILTER_OPTIONS],
  swift: [FILTER_OPTIONS],
  gradle: [FILTER_OPTIONS],
  "./gradlew": [FILTER_OPTIONS],
  mvn: [{ options: /^-D(test|it[.]test|groups)$/ }],
  "./mvnw": [{ options: /^-D(test|it[.]test|groups)$/ }],
  zig: [{ options: /^-Dtest-filter$/ }],
  rspec: [{ options: /^(-[et]|--(example|tag))$/ }],
  ctest: [{ options: /^-[RE]$/ }],
  git: [
    {
      verb: "commit|stash|merge|tag|notes",
      options: /^(-[a-z]*m|--(message|author|date|trailer))$/,
      flags: /^(-[aqsvnu]+|--(amend|no-verify|signoff|allow-empty|no-edit|no-gpg-sign|no-ff|quiet))$/,
    },
    {
      verb: "log|diff|show|shortlog|rev-list",
      options: /^(-[SG]|--(grep|author|committer|since|until|after|before|format|pretty))$/,
      flags: /^(-[0-9]+|-[pis]|--(oneline|all|graph|stat|patch|no-merges|reverse|cached|staged|name-only))$/,
    },
    // Operands are names of commits and branches.
    {
      verb: "switch|branch|tag|merge|rebase|cherry-pick|revert|describe|merge-base|rev-parse",
      options:
        /^(-[bBcCmMu]|--(onto|message|contains|no-contains|merged|no-merged|points-at|sort|format|set-upstream-to))$/,
      flags:
        /^(-[adDfilnqrvs]+|--(list|delete|force|annotate|all|tags|detach|continue|abort|short|verify|show-current|no-ff|ff-only|squash))$/,
      operands: "all",
    },
    { verb: "commit", options: /^--(fixup|squash)$/ },
    { verb: "describe", options: /^--(match|exclude)$/ },
    { verb: "for-each-ref|show-ref|bisect (good|bad|start|reset|skip)|config user[.](name|email)", operands: "all" },
    { verb: "remote (add|rename|remove|show|prune|get-url|set-url)", operands: "first" },
    { verb: "worktree add", options: /^-[bB]$/, flags: /^(-f|--force)$/ },
  ],
  gh: [
    {
      verb: "pr|issue|label|run|search|workflow",
      options:
        /^(-[tblaRBHScsqmn]|--(title|body|label|assignee|reviewer|base|head|search|state|comment|jq|milestone|message|author|limit|repo|json|description|color|add-label|remove-label|subject|branch))$/,
      flags: /^(-[dwf]|--(draft|web|fill|force))$/,
      operands: "all",
    },
    { verb: "release", options: /^(-[tnR]|--(title|notes|target|repo))$/, flags: /^(-[dp]|--(draft|prerelease))$/ },
    { verb: "api", options: /^(-[XHqtf]|--(method|header|jq|template|raw-field))$/ },
  ],
  docker: [
    ...CONTAINER,
    { ...COMPOSE, verb: "compose" },
    { ...COMPOSE, verb: `compose ${COMPOSE_VERBS}`, operands: "all" },
    // Options before the verb, such as the name of the project.
    { options: /^(-p|--(project-name|profile))$/ },
  ],
  "docker-compose": [COMPOSE, { ...COMPOSE, verb: COMPOSE_VERBS, operands: "all" }],
  podman: CONTAINER,
  kubectl: CLUSTER,
  oc: CLUSTER,
  helm: [
    { options: /^(-n|--(namespace|filter|set|set-string|kube-context|description|version))$/ },
    // Without a name, the first operand is the chart.
    {
      verb: "install|upgrade|template",
      options: /^(-n|--namespace)$/,
      flags: /^(-i|--(install|wait|atomic|create-namespace|dry-run))$/,
      operands: "name",
    },
    { verb: "uninstall|status|history|rollback|get [a-z]+", options: /^(-n|--namespace)$/, operands: "all" },
  ],
  terraform: PLAN,
  tofu: PLAN,
  curl: [
    { options: /^--data-raw$/, flags: /^-[sSfLikvgG]+$/ },
    {
      options: /^(-[dHAX]|--(data|data-ascii|data-binary|json|header|user-agent|request))$/,
      flags: /^-[sSfLikvgG]+$/,
      value: /^[^@]*$/,
    },
  ],
  wget: [{ options: /^--(header|post-data|user-agent)$/, flags: /^-q$/ }],
  // Windows and sessions: any other operand is a command.
  tmux: [
    { verb: "rename-window|renamew|rename-session|rename", options: MULTIPLEXER_NAME, operands: "all" },
    {
      verb: "new-session|new|new-window|neww|attach|select-window|kill-session|has-session",
      options: MULTIPLEXER_NAME,
      flags: /^-[dA]$/,
    },
  ],
  screen: [{ options: /^-[StrxR]$/, flags: /^-(d|ls|wipe)$/ }],
  jq: [
    {
      pairs: /^--arg(json)?$/,
      flags: /^(-[rcSejMCnsaR]+|--(raw-output|compact-output|null-input|slurp|exit-status))$/,
    },
  ],
  yq: [{ options: /^--expression$/, flags: /^-[reNPj]$/, value: /^[^()]*$/ }],
  awk: [AWK],
  gawk: [AWK],
  mawk: [AWK],
  ag: [{ flags: /^-[isvwlQ]+$/, operands: "first" }],
  ack: [{ flags: /^-[isvwlQ]+$/, operands: "first" }],
  cut: [{ options: /^(-[dfcb]|--(delimiter|fields|characters|bytes))$/, flags: /^-[sz]$/ }],
  sort: [{ options: /^(-[tk]|--(key|field-separator))$/, flags: /^-[bdfgiMhnRrVuzsc]+$/ }],
  column: [{ options: /^-[sNo]$/, flags: /^-t$/ }],
  paste: [{ options: /^-d$/, flags: /^-s$/ }],
  join: [{ options: /^-[toe12]$/ }],
  tree: [{ options: /^-[IPL]$/, flags: /^-[adfilprstuhC]+$/ }],
  seq: [{ options: /^-[sf]$/, operands: "all" }],
  tr: [{ flags: /^-[cCdst]+$/, operands: "all" }],
  date: [{ flags: /^-[uR]$/, operands: "all" }],
  expr: [{ operands: "all" }],
  say: [{ options: /^-[vr]$/, operands: "all" }],
  "notify-send": [{ options: /^-[uti]$/, operands: "all" }],
};
/** Programs that send text to other machines. For them, addresses in a text count, too. */
const SENDERS = new Set(["curl", "wget", "docker", "docker-compose", "podman", "kubectl", "oc", "helm"]);

export const sendsTexts = (name: string): boolean => SENDERS.has(name);

/**
 * Returns true if all arguments of a program are texts, options without a value, or one verb, and none has a special
 * character.
 */
export function hasOnlyNames(name: string, args: readonly ShellArgument[]): boolean {
  if (!args.every(({ text, isLiteral }) => isLiteral && /^[\w./ -]+$/.test(text))) return false;
  return (TEXT_SYNTAX[name] ?? []).some((syntax) => {
    const { texts, unknown } = readTexts(syntax, args);
    return unknown.length <= (syntax.verb === undefined ? 0 : 1) && unknown.length + texts.length > 0;
  });
}

/** Separates the arguments that are text from those that may name files. Skips options without a value. */
function readTexts(
  { verb, options, pairs, flags, value, passesOptions, operands }: TextSyntax,
  args: readonly ShellArgument[],
): { texts: ShellArgument[]; unknown: ShellArgument[] } {
  const texts: ShellArgument[] = [];
  const unknown: ShellArgument[] = [];
  const expression = new RegExp(`^(${verb ?? ""})( |$)`);
  const words: string[] = [];
  /** Number of operands after the verb; null in front of it. */
  let count = verb === undefined ? 0 : null;
  /**
   * Number of the next words that are values of the last option; null if it is unknown whether the next word is one.
   */
  let values: number | null = 0;
  /** Whether all words in front of this are known to be operands or to belong to an option. */
  let isCertain = true;
  let isEnd = false;
  const add = (argument: ShellArgument, isText: boolean): void => {
    // A pattern can become several words, of which the others are files.
    const isPlain = argument.matches === undefined && value?.test(argument.text) !== false;
    (isText && isPlain ? texts : unknown).push(argument);
  };
  for (const [at, argument] of args.entries()) {
    const { text } = argument;
    if (isEnd || !/^-./.test(text)) {
      if (values !== 0) {
        add(argument, values !== null && count !== null);
        isCertain &&= values !== null || (count !== null && operands === "all");
        values = values === null ? 0 : values - 1;
        continue;
      }
      const next = args[at + 1]?.text ?? "-";
      const isText =
        count !== null &&
        isCertain &&
        (operands === "all" ||
          (count === 0 && (operands === "first" || (operands === "name" && !next.startsWith("-")))));
      add(argument, isText);
      if (count !== null) count++;
      words.push(text);
      if (count === null && expression.test(words.join(" "))) count = 0;
      continue;
    }
    const [name = ""] = text.split("=");
    const applies = count !== null;
    if (text === "--") {
      isEnd = passesOptions !== true;
      values = 0;
    } else if (text.includes("=")) {
      add(argument, applies && options?.test(name) === true);
      values = 0;
    } else if (values !== 0) {
      // Parsers disagree on whether an option can be the value of another.
      add(argument, false);
      values = null;
    } else if (flags?.test(text) === true) continue;
    else if (options?.test(text) === true) values = 1;
    else if (applies && pairs?.test(text) === true) values = 2;
    else {
      const isAttached = applies && options?.test(text.slice(0, 2)) === true;
      add(argument, isAttached);
      values = isAttached && operands === undefined ? 0 : null;
    }
  }
  return { texts, unknown };
}

/** Commands of git whose first argument is a repository, followed by names of branches. */
const REMOTE_COMMANDS = new Set(["push", "fetch", "pull", "ls-remote"]);

/**
 * Returns the arguments that are text for this command. Another command on the line may read them as file names
 * (`echo .env | xargs cat`). If `unclear` is not empty, the caller must therefore treat them as file names.
 */
export function textArguments(name: string, args: readonly ShellArgument[]): readonly ShellArgument[] {
  if (name === "echo" || name === "printf") return args;
  if (OPAQUE_WRAPPERS.has(name) && hasOnlyNames(name, args)) return args;
  const syntax = Object.hasOwn(TEXT_SYNTAX, name) ? (TEXT_SYNTAX[name] as readonly TextSyntax[]) : [];
  const values = syntax.flatMap((each) => readTexts(each, args).texts);
  if (SCRIPT_RUNNERS.has(name)) return [...values, ...args.filter(({ text }) => /^[\w-]+$/.test(text))];
  if (name !== "git") return values;
  const [verb, ...rest] = args;
  const command = verb?.text ?? "";
  if (command === "grep") return patternArguments(GIT_GREP_OPTIONS, rest) ?? [];
  const operands = rest.filter(({ text }) => !text.startsWith("-"));
  if (REMOTE_COMMANDS.has(command)) return operands.slice(1);
  if (command === "checkout" && /^-[bB]$/.test(rest[0]?.text ?? "")) return operands;
  return values;
}

/**
 * Returns true if any output of other commands is harmless as this argument: the command only displays or compares it,
 * or searches for it.
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
 * Returns the patterns, and those of excluded files; null if they are unknown. Also considers options after the first operand, because one of
 * them may define a different pattern.
 */
function patternArguments(
  { flags, values, long }: Options,
  args: readonly ShellArgument[],
): readonly ShellArgument[] | null {
  const patterns: ShellArgument[] = [];
  const excluded: ShellArgument[] = [];
  let operand: ShellArgument | undefined;
  let ended = false;
  for (let at = 0; at < args.length; at++) {
    const argument = args[at] as ShellArgument;
    const { text, isLiteral } = argument;
    if (!isLiteral) return null;
    if (ended || !/^-./.test(text)) operand ??= argument;
    else if (text === "--") ended = true;
    else if (/^--(regexp|exclude|exclude-dir|i?glob)(=|$)/.test(text)) {
      const pattern = text.includes("=") ? argument : args[++at];
      if (pattern?.isLiteral !== true) return null;
      if (text.startsWith("--regexp")) patterns.push(pattern);
      // The files that another pattern includes are read.
      else if (text.startsWith("--exclude") || /^(--i?glob=)?!/.test(pattern.text)) excluded.push(pattern);
    } else if (!text.startsWith("--")) {
      const characters = Array.from(text.slice(1));
      const first = characters.findIndex((character) => !flags.includes(character));
      if (first < 0) continue;
      const character = characters[first] as string;
      const value = Object.hasOwn(values, character) ? values[character] : undefined;
      const attachedValue = characters.slice(first + 1).join("");
      const next = attachedValue === "" ? args[++at] : undefined;
      if (next?.isLiteral === false) return null;
      if (character === "e") {
        const pattern = attachedValue === "" ? next : argument;
        if (pattern === undefined) return null;
        patterns.push(pattern);
      } else if (value?.test(next?.text ?? attachedValue) !== true) return null;
      else if (character === "g" && next?.text.startsWith("!") === true) excluded.push(next);
    } else if (!long.test(text)) return null;
  }
  // A pattern of file names can become several words, of which only the first is the pattern.
  const found = patterns.length > 0 ? patterns : operand === undefined ? [] : [operand];
  return [...found, ...excluded].some(({ matches }) => matches !== undefined) ? null : [...found, ...excluded];
}
