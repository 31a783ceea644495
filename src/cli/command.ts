/** The interface of commands, their exit codes, and helpers for options and output. */
import { CONTROL_CHARACTERS, replaceControlCharacters } from "../domain/text.ts";
import { readFileSync } from "node:fs";
import { parseArgs, type ParseArgsConfig } from "node:util";
import { findSimilarName } from "../domain/similar-name.ts";

/** Exit codes. They are stable, because scripts rely on them. docs/cli.md describes them. */
export const EXIT_CODES = {
  ok: 0,
  failure: 1,
  usage: 2,
  denied: 3,
  pending: 4,
  unreachable: 5,
  unverified: 6,
} as const;

export class CommandError extends Error {
  readonly exit: number;
  constructor(message: string, exit: number = EXIT_CODES.failure) {
    super(message);
    this.name = "CommandError";
    this.exit = exit;
  }
}

export interface Output {
  /** Writes a result to standard output. */
  out(text: string): void;
  /** Writes everything else to standard error. */
  err(text: string): void;
  /** Whether standard output is a terminal that supports colours. */
  readonly fancy: boolean;
  /** Whether standard error is a terminal, on which a progress line can be overwritten. */
  readonly watched: boolean;
}

export interface Command {
  /** Complete help text: usage, options, examples. */
  help: string;
  /** Subcommands with their own help text, such as `create` in `assent keys create`. */
  subcommands?: Readonly<Record<string, Subcommand>>;
  /** Resolves to the exit code. */
  run(args: string[], io: Output): Promise<number>;
}

export type ListedCommand = Command & { summary: string };
export type Subcommand = Omit<ListedCommand, "subcommands">;

/** Groups of the list of commands, in its order. */
export const COMMAND_GROUPS = ["service", "actions", "rights", "record", "policies", "clients"] as const;
type CommandGroup = (typeof COMMAND_GROUPS)[number];

/** A line in the list of commands. */
export interface CommandEntry {
  group: CommandGroup;
  /** Position in its group. Commands without a position follow, those of the core first. */
  position?: number;
  /** Short description for the list of commands. */
  summary: string;
  /**
   * Loads the command's code. Listing the commands does not load it.
   * @param args arguments of the command, so that it can load only the code that they need; empty to print its help
   */
  load(args?: readonly string[]): Promise<Command>;
}

type Options = NonNullable<ParseArgsConfig["options"]>;

type Parsed<T extends Options> = ReturnType<typeof parseArgs<{ options: T; allowPositionals: true; args: string[] }>>;

/**
 * Parses options like `util.parseArgs`. Throws CommandError with `EXIT_CODES.usage` for invalid options. For an unknown
 * option, the message suggests a similar option.
 * @example
 * const { values } = parseArguments(args, { json: { type: "boolean" } });
 */
export function parseArguments<T extends Options>(args: string[], options: T): Parsed<T> {
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    const message = error instanceof Error ? (error.message.split(". ")[0] as string) : String(error);
    const flag = /'--([^' ]+)/.exec(message)?.[1];
    const flags = Object.keys(options);
    const suggestion = flag === undefined || flags.includes(flag) ? null : findSimilarName(flag, flags);
    throw new CommandError(
      `${message.charAt(0).toLowerCase()}${message.slice(1)}${suggestion === null ? "" : `; did you mean --${suggestion}?`}`,
      EXIT_CODES.usage,
    );
  }
}

/**
 * Runs the subcommand that the first argument names. Throws a usage error if the command has no such subcommand.
 * @param words other words with which the arguments can begin, for the message
 * @example
 * return runSubcommand("mcp", { proxy, install }, args, io);
 */
export function runSubcommand(
  command: string,
  subcommands: Readonly<Record<string, Subcommand>>,
  [name, ...args]: string[],
  io: Output,
  words: readonly string[] = [],
): Promise<number> {
  if (name !== undefined && Object.hasOwn(subcommands, name)) return (subcommands[name] as Subcommand).run(args, io);
  const names = Object.keys(subcommands);
  const suggestion = name === undefined ? null : findSimilarName(name, names);
  const knownWords = [...words, ...names];
  throw usageError(
    `${name === undefined ? `assent ${command} needs a subcommand` : `assent ${command} has no subcommand "${name}"`}; use ${knownWords.slice(0, -1).join(", ")} or ${knownWords.at(-1)}${suggestion === null ? "" : `; did you mean "${suggestion}"?`}`,
  );
}

/**
 * Returns the subcommands with their summaries, for the help text of a command.
 * @example
 * const help = `usage: assent mcp VERB ...\n\n${describeSubcommands({ proxy, install })}`;
 */
export function describeSubcommands(subcommands: Readonly<Record<string, Subcommand>>): string {
  const width = Math.max(...Object.keys(subcommands).map((name) => name.length)) + 2;
  return Object.entries(subcommands)
    .map(([name, { summary }]) => `  ${name.padEnd(width)}${summary}`)
    .join("\n");
}

/**
 * Returns the error of a wrong use of the command; exit code 2.
 * @example
 * throw usageError("--reason is needed");
 */
export function usageError(message: string): CommandError {
  return new CommandError(message, EXIT_CODES.usage);
}

/**
 * Parses the value of a `--port` option. Throws a usage error unless it is a number from 0 to 65535.
 * @example
 * parsePort("8001"); // 8001
 */
export function parsePort(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw usageError(`--port must be 0 to 65535; got "${text}"`);
  return Number(text);
}

/**
 * Returns the value of an option that accepts only `words`. Returns the first word if the option is absent. Throws
 * CommandError for any other value.
 * @example
 * const scope = parseChoice("--scope", values.scope, ["project", "user"]);
 */
export function parseChoice<const T extends string>(
  flag: string,
  flagText: string | undefined,
  words: readonly [T, ...T[]],
): T {
  const choice = flagText === undefined ? words[0] : words.find((word) => word === flagText);
  if (choice === undefined)
    throw usageError(`${flag} must be ${words.slice(0, -1).join(", ")} or ${words.at(-1)}; got "${flagText}"`);
  return choice;
}

/**
 * Returns the output format: the value of `--format`, JSON with `--json`, else the first format. Throws for an unknown
 * format.
 * @example
 * const format = parseFormat(values, ["text", "json", "markdown"]);
 */
export function parseFormat<const T extends string>(
  { format, json }: { format?: string | undefined; json?: boolean | undefined },
  words: readonly [T, ...T[]],
): T {
  return parseChoice("--format", format ?? (json === true ? "json" : undefined), words);
}

/**
 * Prints rows with bold headings on a terminal, and as tab-separated values elsewhere.
 * @example
 * printTable(io, ["id", "status"], [[id, "active"]]);
 */
export function printTable(io: Output, headings: string[], rows: string[][]): void {
  if (!io.fancy) {
    for (const row of rows) io.out(row.join("\t"));
    return;
  }
  const widths = headings.map((heading, i) => Math.max(heading.length, ...rows.map((row) => (row[i] ?? "").length)));
  const line = (cells: string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] as number))
      .join("  ")
      .trimEnd();
  io.out(`\u001b[1m${line(headings)}\u001b[0m`);
  for (const row of rows) io.out(line(row));
}

const COLOURS: Readonly<Record<string, number>> = { green: 32, red: 31, yellow: 33, dim: 2 };

/**
 * Returns the text in a colour if standard output is a terminal.
 * @example
 * io.out(colourText(io, "green", "ok"));
 */
export function colourText(io: Output, name: "green" | "red" | "yellow" | "dim", text: string): string {
  return io.fancy ? `\u001b[${COLOURS[name]}m${text}\u001b[0m` : text;
}

/**
 * Prints an indented line with the name and the value of each fact. Omits facts whose value is null.
 * @param width width of the column of names
 * @example
 * printFacts(io, [["id", stop.id], ["reason", stop.reason]]);
 */
export function printFacts(
  io: Output,
  facts: readonly (readonly [name: string, value: string | null])[],
  width = 9,
): void {
  for (const [name, value] of facts) if (value !== null) io.out(`  ${name.padEnd(width)} ${toPrintable(value)}`);
}

/**
 * Prints a result as one line of JSON. Escapes characters that could control the terminal, including characters that
 * JSON allows.
 * @example
 * printJson(io, { stops: [] });
 */
export function printJson(io: Output, value: unknown): void {
  io.out(
    JSON.stringify(value).replaceAll(
      CONTROL_CHARACTERS,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
    ),
  );
}

/** Makes text from a service or a file safe to print, because it could otherwise control the terminal. */
export const toPrintable = replaceControlCharacters;

/**
 * Returns the checkpoint in the file that `--checkpoint` names. Throws CommandError if the file cannot be read.
 * @example
 * const checkpoint = readCheckpointFlag("checkpoint.txt");
 */
export function readCheckpointFlag(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandError(`the checkpoint "${path}" cannot be read: ${(error as Error).message}`);
  }
}

/**
 * Reports the progress of long-running work on standard error. On a terminal, updates one line; elsewhere, prints a
 * line for every 10 %.
 * @example
 * const report = createProgressReporter(io);
 * report("entries", 500, 1000);
 */
export function createProgressReporter(io: Output): (part: string, done: number, total: number) => void {
  let lastLine = "";
  return (part, done, total) => {
    const share = total === 0 ? 100 : Math.floor((done / total) * 100);
    const step = io.watched ? share : share - (share % 10);
    const line = `${part}: ${step} % of ${total}`;
    if (line === lastLine) return;
    if (io.watched) process.stderr.write(`\r\u001b[K${line}${share === 100 ? "\n" : ""}`);
    else io.err(line);
    lastLine = line;
  };
}
