/** Finds out what a command is known to do, from its name and options alone. */
import { PROGRAM_TABLE } from "./program-table.ts";
import type { ProgramUse, ShellArgument } from "./shell-types.ts";

export interface KnownProgram {
  /** Absent if an option or an operand is not in the table. */
  use?: ProgramUse;
  /** Indexes of arguments that do not name a displayed file, such as subcommands and the folder of a build. */
  others: ReadonlySet<number>;
  /** Arguments that are text, and no names of files or hosts. */
  texts: ReadonlySet<number>;
  /** Arguments with the name of a file that the program writes. */
  outputs: ReadonlySet<number>;
}

interface Option {
  value: "none" | "attached" | "required";
  content: "text" | "output" | "build" | "other";
  pattern: RegExp | null;
}
interface Options {
  letters: Map<string, Option>;
  names: Map<string, Option>;
  patterns: RegExp[];
}
interface Program extends Options {
  use: ProgramUse;
  first: RegExp | null;
  operands: RegExp | null;
  needed: RegExp | null;
  /** Letters of options in the first word, with or without a dash. */
  bundle: RegExp | null;
  min: number;
  max: number;
  /** Options after `--`. */
  after: Options | null;
}

const wholeMatch = (source: string, flags = ""): RegExp => new RegExp(`^(?:${source})$`, `s${flags}`);

function addOption(token: string, { letters, names, patterns }: Options): void {
  if (token === "*") return void patterns.push(/^-/);
  if (token.startsWith("/")) return void patterns.push(wholeMatch(token.slice(1, -1)));
  const [, dashes = "", name = "", value, content = ""] = /^(--|-|~)([^=[]+)(\[=\]|=)?(.*)$/.exec(token) ?? [];
  const option: Option = {
    value: value === undefined ? "none" : value === "=" ? "required" : "attached",
    content: content.startsWith("~") ? "text" : content === ">" ? "output" : content === "^" ? "build" : "other",
    pattern: /^~?\//.test(content) ? wholeMatch(content.replace(/^~?\/|\/$/g, "")) : null,
  };
  if (dashes === "-") for (const character of name) letters.set(character, option);
  if (dashes !== "-") names.set(`--${name}`, option);
  if (dashes === "~") names.set(`-${name}`, option);
}

const noOptions = (): Options => ({ letters: new Map(), names: new Map(), patterns: [] });

function readTable(): Map<string, Program> {
  const programs = new Map<string, Program>();
  for (const line of PROGRAM_TABLE.split("\n")) {
    const [, names = "", use, tokens = ""] = /^([^#:]+) (reads|checks|local): (.*)$/.exec(line) ?? [];
    if (use === undefined) continue;
    const program: Program = {
      use: use as ProgramUse,
      ...noOptions(),
      first: null,
      operands: null,
      needed: null,
      bundle: null,
      min: 0,
      max: Infinity,
      after: null,
    };
    for (const token of tokens.split(" ")) {
      const [, rule, source = ""] = /^(first|operands|needs|bundle|min|max)(.*)$/.exec(token) ?? [];
      if (token === "--") program.after = noOptions();
      else if (rule === "first" || rule === "operands") program[rule] = wholeMatch(source.slice(1, -1), "i");
      else if (rule === "needs") program.needed = wholeMatch(source.slice(1, -1));
      else if (rule === "bundle") program.bundle = wholeMatch(source.slice(1, -1));
      else if (rule === "min" || rule === "max") program[rule] = Number(source);
      else addOption(token, program.after ?? program);
    }
    for (const name of names.split(", ")) programs.set(name, program);
  }
  return programs;
}

let table: Map<string, Program> | undefined;

/** Options in front of a subcommand that only select a folder or a project; the second pattern is for options with a value. */
const GLOBAL_OPTIONS: Readonly<Record<string, readonly [RegExp, RegExp]>> = {
  go: [/^$/, /^-C$/],
  terraform: [/^-chdir=/, /^$/],
  tofu: [/^-chdir=/, /^$/],
  compose: [/^$/, /^(-f|--file|-p|--project-name|--profile)$/],
  cargo: [/^(-q|-v|--quiet|--verbose|--locked|--offline|--frozen)$/, /^--color$/],
};

/** Returns what a command is known to do; null if the program is not in the table. */
export function knownProgram(name: string, args: readonly ShellArgument[]): KnownProgram | null {
  table ??= readTable();
  const words: { text: string; at: number }[] = args.map(({ text }, at) => ({ text, at }));
  const wrapper = /^(?:.*\/)?(gradle|mvn)w$/.exec(name)?.[1];
  let first = wrapper ?? name;
  if (/^python[0-9.]*$/.test(name) && words[0]?.text === "-m") {
    first = words[1]?.text ?? "";
    words.splice(0, 2);
  } else if (/^(podman|docker-compose)$/.test(name)) first = "docker";
  if (name === "docker-compose") words.unshift({ text: "compose", at: -1 });
  for (let at = 0; at < 2; at++) {
    const [flags, values] = GLOBAL_OPTIONS[at === 0 ? first : (words[0]?.text ?? "")] ?? [];
    for (const from = at; flags !== undefined && values !== undefined;) {
      const text = words[from]?.text ?? "";
      if (!flags.test(text) && !values.test(text)) break;
      words.splice(from, values.test(text) ? 2 : 1);
    }
  }
  for (let length = 2; length >= 0; length--) {
    const verbs = words.slice(0, length);
    const program = table.get([first, ...verbs.map(({ text }) => text)].join(" "));
    if (program === undefined || length > words.length) continue;
    const none: ReadonlySet<number> = new Set();
    const options = readOptions(program, words.slice(length), args) ?? { texts: none, outputs: none, others: none };
    return { ...options, others: new Set([...options.others, ...verbs.map(({ at }) => at)]) };
  }
  return null;
}

function readOptions(
  program: Program,
  words: readonly { text: string; at: number }[],
  args: readonly ShellArgument[],
): KnownProgram | null {
  const texts = new Set<number>();
  const outputs = new Set<number>();
  const others = new Set<number>();
  const operands: string[] = [];
  const given: string[] = [];
  let options: Options | null = program;
  for (let index = 0; index < words.length; index++) {
    const { text, at } = words[index] as { text: string; at: number };
    if (index === 0 && program.bundle?.test(text.replace(/^-/, "")) === true) {
      given.push(text.replace(/^-?/, "-"));
      others.add(at);
      continue;
    }
    if (text === "--" && options === program) {
      options = program.after;
      continue;
    }
    if (options === null || !/^-./s.test(text)) {
      operands.push(text);
      continue;
    }
    given.push(text);
    if (options.patterns.some((pattern) => pattern.test(text))) continue;
    const found = findOption(text, options);
    if (found === null) return null;
    const { option, attached } = found;
    if (option.value === "none" || (option.value === "attached" && attached === undefined)) continue;
    if (attached === undefined) index++;
    const value = attached ?? words[index]?.text;
    const place = attached === undefined ? words[index]?.at : at;
    if (value === undefined || place === undefined || option.pattern?.test(value) === false) return null;
    if (option.content === "text") texts.add(place);
    if (option.content === "output" && value !== "/dev/null") outputs.add(place);
    if (option.content === "build") others.add(place);
  }
  const { first, operands: pattern, needed, min, max } = program;
  // A pattern of file names can stand for several operands.
  if (max !== Infinity && args.some(({ matches }) => matches !== undefined)) return null;
  if (operands.length < min || operands.length > max) return null;
  if (operands.some((each, at) => (at === 0 ? (first ?? pattern) : pattern)?.test(each) === false)) return null;
  if (needed !== null && !given.some((text) => needed.test(text))) return null;
  return { use: program.use, texts, outputs, others };
}

/** Returns the option of a word, and its value if that is in the same word; null for an unknown option. */
function findOption(
  text: string,
  { letters, names }: Options,
): { option: Option; attached: string | undefined } | null {
  const [, name = text, value] = /^(--?[^=]+)=(.*)$/s.exec(text) ?? [];
  const long = names.get(name);
  if (long !== undefined)
    return long.value === "none" && value !== undefined && !/^(true|false)$/.test(value)
      ? null
      : { option: long, attached: value };
  if (text.startsWith("--")) return null;
  for (let at = 1; at < text.length; at++) {
    const option = letters.get(text[at] as string);
    if (option === undefined) return null;
    const rest = text.slice(at + 1);
    if (option.value !== "none") return { option, attached: rest === "" ? undefined : rest };
    if (rest === "") return { option, attached: undefined };
  }
  return null;
}
