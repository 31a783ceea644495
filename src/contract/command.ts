/** A command of the command line that a plugin brings: `assent <name of the plugin>`. */

/** Names that the core has. */
export const CORE_COMMANDS = [
  "init",
  "serve",
  "login",
  "logout",
  "status",
  "doctor",
  "keys",
  "submit",
  "approve",
  "deny",
  "lift",
  "actions",
  "stop",
  "erase",
  "verify",
  "witness",
  "audit",
  "backup",
  "migrate",
  "copy",
  "policy",
  "schema",
  "hook",
  "hookd",
  "mcp",
  "demo",
] as const;
export type CoreCommand = (typeof CORE_COMMANDS)[number];

export interface PluginCommand {
  /** A few words, for the list of commands. */
  readonly summary: string;
  /** Whole help text: usage, options, examples. */
  readonly help: string;
  /** Returns the exit code: 0 for done, 1 for failed, 2 for wrong usage; docs/cli.md has the others. */
  run(args: string[], context: CommandContext): Promise<number>;
}

export interface CommandContext {
  /** A line of the result, on standard output, without the control characters that could drive a terminal. */
  out(line: string): void;
  /** A line of anything else, on standard error. */
  err(line: string): void;
  /**
   * Asks the service that ASSENT_URL names, with ASSENT_API_KEY, and resolves to its JSON. A refusal, and a service
   * that is not there, ends the command with a sentence and the exit code that stands for it.
   */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
}
