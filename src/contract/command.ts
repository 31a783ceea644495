/** The command that a plugin adds to the command line: `assent <plugin name>`. */

/** Commands of the core. */
export const CORE_COMMANDS = [
  "init",
  "serve",
  "login",
  "logout",
  "status",
  "doctor",
  "keys",
  "verify",
  "audit",
  "backup",
  "compact",
  "migrate",
  "copy",
  "policy",
  "schema",
  "completion",
] as const;
export type CoreCommand = (typeof CORE_COMMANDS)[number];

export interface PluginCommand {
  /** Short description for the list of commands. */
  readonly summary: string;
  /** Complete help text: usage, options, examples. */
  readonly help: string;
  /** Returns the exit code: 0 for success, 1 for failure, 2 for wrong usage; docs/cli.md describes the other codes. */
  run(args: string[], context: CommandContext): Promise<number>;
}

export interface CommandContext {
  /** Prints a line of the result to standard output, without terminal control characters. */
  out(line: string): void;
  /** Prints any other line to standard error. */
  err(line: string): void;
  /**
   * Sends a request with ASSENT_API_KEY to the service at ASSENT_URL, and resolves to the JSON response. If the service
   * refuses or is unreachable, the command ends with an error message and the matching exit code.
   */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
}
