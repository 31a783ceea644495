/** What is said of a line of shell: `params.parsed` of `shell`/`run`. docs/hooks.md describes each member. */

/** Why what runs cannot be told from the text alone. Anything here asks. */
export const UNCLEAR_REASONS = [
  /** The parser reports a fault: bash would refuse it, or read it otherwise. */
  "syntax",
  /** Longer, deeper or more than is looked at. */
  "size",
  /** Characters that nobody sees, or that turn text round. */
  "characters",
  /** The name of the command is not written out. */
  "name",
  /** A variable, a command substitution or the like whose value is not in the text. */
  "expansion",
  /** A pattern that names files. */
  "glob",
  /** A list in braces. */
  "brace",
  /** A variable is set that may change what commands do (PATH, LD_PRELOAD, GIT_*). */
  "assignment",
  "function",
  "alias",
  /** The shell's own state changes: set, shopt, hash, enable. */
  "state",
  /** A shell reads commands from a file. */
  "script",
  /** A shell or an interpreter reads its program from standard input. */
  "stdin",
  /** Code in another language stands in an argument. */
  "code",
  /** Something that starts other commands has an option that is not in the table. */
  "wrapper",
  /** It cannot be told in which folder a command runs. */
  "directory",
  /**
   * git would take its settings, which name commands to run, from files that lie in the workspace, or compare files that
   * no repository holds.
   */
  "repository",
  /** A folder that stands for the files in it, which are not named. */
  "folder",
  /** Another shell than bash or sh: its language is not read, or this text means another thing in it. */
  "shell",
] as const;
export type UnclearReason = (typeof UNCLEAR_REASONS)[number];

export interface ShellCommand {
  /** Without the folder where that is one of the system's: `rm` for `/bin/rm`. Otherwise as written: `./rm`. */
  name: string;
  /** Values as the command gets them; the source's text where a value is not in the text. */
  args: string[];
  /** What starts it, outermost first: `sudo`, `env`, `xargs`, `sh`. */
  via: string[];
}

export interface ParsedShell {
  version: 1;
  /** Every simple command, in the order of the text, in whatever it is wrapped. */
  commands: ShellCommand[];
  /** Files that redirections open, absolute. */
  reads: string[];
  writes: string[];
  /** Every path that a word may name, absolute; where a link leads elsewhere, that place too. */
  paths: string[];
  /** Sorted, each once; empty: all that runs stands in `commands`. */
  unclear: UnclearReason[];
}

export interface ShellContext {
  /** The working folder, absolute: under each name that it has where links lead to it. */
  cwds: readonly string[];
  /** The home folder, absolute; null where it is not known. */
  home: string | null;
}
