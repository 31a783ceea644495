/**
 * Reads the programs of sed, awk and jq. Such a program is plain if it only transforms its input: it starts no command, reads and
 * writes no file that the command line does not name, and reads no environment variable.
 */

interface FilterSyntax {
  /** Short options without a value. */
  flags: string;
  /**
   * Options with values, which follow in the next words or, for a letter, in the same word. Maps each to its number of
   * values.
   */
  values: Readonly<Record<string, number>>;
  /** Long options without a value, or with a value after "=". */
  long: RegExp;
  /** Options whose value is a program. */
  programs: readonly string[];
  /** Whether the operand that is the program is read as a file if a file of this name exists. */
  operandMayBeFile?: boolean;
  isPlain(program: string): boolean;
}

const FILTERS: Readonly<Record<string, FilterSyntax>> = {
  sed: {
    flags: "nErsuzi",
    values: { "-e": 1, "-l": 1, "--expression": 1 },
    long: /^--(quiet|silent|regexp-extended|separate|unbuffered|null-data|posix|in-place(=.*)?|expression=.*)$/s,
    programs: ["-e", "--expression"],
    isPlain: isPlainSed,
  },
  awk: { flags: "", values: { "-F": 1, "-v": 1 }, long: /^$/, programs: [], isPlain: isPlainAwk },
  jq: {
    flags: "rcSejMCnsaR",
    values: { "--arg": 2, "--argjson": 2, "--indent": 1, "--slurpfile": 2, "--rawfile": 2 },
    long: /^--(raw-output|compact-output|sort-keys|exit-status|join-output|null-input|slurp|raw-input|tab|ascii-output|monochrome-output|color-output)$/,
    programs: [],
    isPlain: isPlainJq,
  },
  yq: {
    flags: "rcPMCNenj",
    values: { "-o": 1, "-p": 1, "-I": 1, "--expression": 1 },
    long: /^--(output-format=\w+|input-format=\w+|raw-output|prettyPrint|no-doc|exit-status|null-input|no-colors|unwrapScalar(=\w+)?|indent=\d+)$/,
    programs: ["--expression"],
    operandMayBeFile: true,
    // Other functions of yq read files and the environment, or evaluate text. `.env` is a member of the input.
    isPlain: (program) =>
      isPlainJq(program) &&
      !/load|env|system|eval|split_doc|file/i.test(program.replace(/(?<![.])[.]env\b(?!\()/g, "_")) &&
      !/^\w+$/.test(program),
  },
};

/** Name of the filter whose programs a command reads. */
const FILTER_NAMES: Readonly<Record<string, string>> = {
  sed: "sed",
  gsed: "sed",
  awk: "awk",
  gawk: "awk",
  mawk: "awk",
  jq: "jq",
  yq: "yq",
};

export const isFilter = (name: string): boolean => Object.hasOwn(FILTER_NAMES, name);

/** Returns the indexes of the arguments that are plain programs; null if a program is not plain, or an option is unknown. */
export function plainPrograms(name: string, args: readonly string[]): number[] | null {
  const { flags, values, long, programs, operandMayBeFile, isPlain } = FILTERS[
    FILTER_NAMES[name] as string
  ] as FilterSyntax;
  const found: number[] = [];
  const texts: string[] = [];
  let operand: number | undefined;
  let mayBeFile = operandMayBeFile === true;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string;
    if (!/^-./s.test(arg) || arg === "--") {
      // An empty word after `-i` is the suffix of backups in BSD's sed. In GNU's it is the program, so the next word is a file.
      if (arg === "" && flags.includes("i") && /^-\w*i$/.test(args[at - 1] ?? "")) mayBeFile = true;
      else operand ??= arg === "--" ? at + 1 : at;
      if (arg === "--") break;
      continue;
    }
    const [, attached] = /^--expression=(.*)$/s.exec(arg) ?? [];
    if (attached !== undefined) texts.push(attached);
    else if (Object.hasOwn(values, arg)) {
      if (programs.includes(arg)) {
        found.push(at + 1);
        texts.push(args[at + 1] ?? "");
      }
      at += values[arg] as number;
    } else if (arg.startsWith("--")) {
      if (!long.test(arg)) return null;
    } else if (Object.hasOwn(values, arg.slice(0, 2))) {
      if (programs.includes(arg.slice(0, 2))) texts.push(arg.slice(2));
    } else {
      // `-i.bak` has a value, and so could the letters after "i".
      const letters = flags.includes("i") ? arg.slice(1).replace(/i[.][\w.-]*$/, "i") : arg.slice(1);
      const end = letters.endsWith("e") && programs.includes("-e");
      if (!Array.from(end ? letters.slice(0, -1) : letters).every((character) => flags.includes(character)))
        return null;
      if (/i./.test(letters)) return null;
      if (!end) continue;
      found.push(at + 1);
      texts.push(args[++at] ?? "");
    }
  }
  if (texts.length === 0) {
    if (operand === undefined) return null;
    if (!mayBeFile) found.push(operand);
    texts.push(args[operand] ?? "");
  }
  return texts.every((text) => text !== "" && isPlain(text)) ? found : null;
}

/** Commands of sed without arguments. */
const SED_COMMANDS = "pdDPnNgGhHx=lqQz{}";

/**
 * Matches scripts with these commands: `s` without the flags `e` and `w`, `y`, text, labels, and all commands that only
 * print.
 */
function isPlainSed(script: string): boolean {
  // In some character sets, a backslash can be the second byte of a letter.
  if (/[^\p{ASCII}]/u.test(script) && script.includes("\\")) return false;
  let at = 0;
  const skip = (pattern: RegExp): string => {
    const sticky = new RegExp(pattern.source, "y");
    sticky.lastIndex = at;
    const [text = ""] = sticky.exec(script) ?? [];
    at += text.length;
    return text;
  };
  /** Skips text up to a delimiter. Versions of sed disagree on the end of some brackets, so these are not plain. */
  const skipTo = (delimiter: string): boolean => {
    for (; at < script.length; at++) {
      const char = script[at] as string;
      if (char === "\n") return false;
      if (char === "\\") at++;
      else if (char === delimiter) {
        at++;
        return true;
      } else if (char === "[") {
        const bracket = skip(/\[\^?(?!\])(\[:[a-z]+:\]|\\[\\nt.*^$+?()|{}-]|[^\\[\]\n])+\]/);
        if (bracket === "" || bracket.includes(delimiter)) return false;
        at--;
      }
    }
    return false;
  };
  const skipAddress = (): boolean => {
    if (skip(/[0-9$]/) !== "") return skip(/[0-9]*(~[0-9]+)?/) !== null;
    if (skip(/\//) === "") return true;
    return skipTo("/") && skip(/[IM]*/) !== null;
  };
  for (;;) {
    skip(/[\s;]*/);
    if (at >= script.length) return true;
    if (!skipAddress()) return false;
    if (skip(/ *, */) !== "" && skip(/[+~][0-9]+/) === "" && !skipAddress()) return false;
    skip(/ *!? */);
    const command = script[at++] ?? "";
    if (command === "s" || command === "y") {
      const delimiter = script[at++] ?? "";
      if (!/[/|#,:;@!%_+=~]/.test(delimiter) || !skipTo(delimiter) || !skipTo(delimiter)) return false;
      skip(/[gpiIMm0-9]*/);
    } else if (command === "#" || /[aic]/.test(command)) {
      // The text extends to the end of the line, or to the end of the script.
      const text = skip(/[^\n]*/);
      if (command !== "#" && (at < script.length || text.endsWith("\\"))) return false;
    } else if (/[:btT]/.test(command)) skip(/ *[A-Za-z0-9_]*/);
    else if (command === "" || !SED_COMMANDS.includes(command)) return false;
    else if (/[lqQ]/.test(command)) skip(/ *[0-9]*/);
    if (!/^[ \t]*([\n;}#]|$)/.test(script.slice(at)) && !/[{}]/.test(command)) return false;
  }
}

/** Matches programs without functions that start commands, redirections, and variables that name other files. */
function isPlainAwk(program: string): boolean {
  // Without "/" and "#", a quotation mark always belongs to a string.
  const text = /[/#]/.test(program) ? program : program.replace(/"(?:[^"\\]|\\.)*"/gs, "_");
  if (/\b(system|getline|ENVIRON|ARGV|ARGC|SYMTAB|FUNCTAB)\b|@/.test(text)) return false;
  // Only an action can print to a file or a command. In a pattern and in a condition, ">" compares.
  const actions = text.replace(/^[^{]*/, "").replace(/\b(if|while) ?\([^()"/{}#\n]*\)/g, "");
  return !/[|>]/.test(actions.replace(/\|\||>=/g, ""));
}

/** Matches filters that read neither the environment nor modules. */
function isPlainJq(filter: string): boolean {
  // A string can contain expressions: "\(env)".
  const text = filter.includes("\\(") ? filter : filter.replace(/"(?:[^"\\]|\\.)*"/gs, "_");
  // A comment may contain a quotation mark.
  // `.env` is a member of the input. A program with `..env` or `1.env` is not valid.
  const names = text.replace(/[.](env|import|include)\b/g, "_");
  return !filter.includes("#") && !/\b(env|import|include|modulemeta)\b|\$__/i.test(names);
}
