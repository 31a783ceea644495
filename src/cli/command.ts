/** What a command is, and how it fails. */
import { parseArgs, type ParseArgsConfig } from "node:util";
import { suggest } from "../domain/suggest.ts";

/** Stable: scripts rely on them. docs/cli.md lists them. */
export const EXIT = { ok: 0, failure: 1, usage: 2, denied: 3, pending: 4, unreachable: 5, unverified: 6 } as const;

export class CommandError extends Error {
  readonly exit: number;
  constructor(message: string, exit: number = EXIT.failure) {
    super(message);
    this.name = "CommandError";
    this.exit = exit;
  }
}

export interface Output {
  /** Results: standard output. */
  out(text: string): void;
  /** Everything else: standard error. */
  err(text: string): void;
  /** Whether standard output is a terminal that takes colours. */
  readonly fancy: boolean;
  /** Whether standard error is a terminal: somebody waits, and a line can be written again. */
  readonly watched: boolean;
}

export interface Command {
  summary: string;
  /** Whole help text: usage, options, examples. */
  help: string;
  /** What stands behind the command's name, where it has verbs with a help text of their own. */
  verbs?: Readonly<Record<string, Verb>>;
  /** Resolves to the exit code. */
  run(args: string[], io: Output): Promise<number>;
}

export type Verb = Omit<Command, "verbs">;

type Options = NonNullable<ParseArgsConfig["options"]>;
type Parsed<T extends Options> = ReturnType<typeof parseArgs<{ options: T; allowPositionals: true; args: string[] }>>;

/** `util.parseArgs`, with a suggestion for what was probably meant. Throws CommandError with EXIT.usage. */
export function parse<T extends Options>(args: string[], options: T): Parsed<T> {
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    const message = error instanceof Error ? (error.message.split(". ")[0] as string) : String(error);
    const flag = /'--([^' ]+)/.exec(message)?.[1];
    const flags = Object.keys(options);
    const meant = flag === undefined || flags.includes(flag) ? null : suggest(flag, flags);
    throw new CommandError(
      `${message.charAt(0).toLowerCase()}${message.slice(1)}${meant === null ? "" : `; did you mean --${meant}?`}`,
      EXIT.usage,
    );
  }
}

export function usage(message: string): CommandError {
  return new CommandError(message, EXIT.usage);
}

/** The value of an option that takes one of a few words; the first one when it is absent. */
export function oneOf<const T extends string>(flag: string, given: string | undefined, words: readonly [T, ...T[]]): T {
  const choice = given === undefined ? words[0] : words.find((word) => word === given);
  if (choice === undefined)
    throw usage(`${flag} takes ${words.slice(0, -1).join(", ")} or ${words.at(-1)}, not "${given}"`);
  return choice;
}

/** Rows under bold headings on a terminal, tab-separated values elsewhere. */
export function table(io: Output, headings: string[], rows: string[][]): void {
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

export function colour(io: Output, name: "green" | "red" | "yellow" | "dim", text: string): string {
  return io.fancy ? `\u001b[${COLOURS[name]}m${text}\u001b[0m` : text;
}

/** Text from a service, without the control characters that could drive a terminal. */
export function safe(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these are the ones to remove
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
