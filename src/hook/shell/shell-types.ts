/** Types of a parsed shell command: `params.parsed` of `shell`/`run`. docs/hooks.md describes each member. */

/** Reasons why the text does not show what runs. Any of them requires approval. */
const UNCLEAR_REASONS = [
  /** A syntax error, or text that shells parse differently. */
  "syntax",
  /** Exceeds a limit of length, depth or number. */
  "size",
  /** Invisible characters, or characters that reorder text. */
  "characters",
  /** The command's name is not literal. */
  "name",
  /** A variable, command substitution or similar, whose value is not in the text. */
  "expansion",
  /** A file pattern. */
  "glob",
  /** A brace expansion. */
  "brace",
  /** An assignment that may change what commands do (PATH, LD_PRELOAD, GIT_*). */
  "assignment",
  "function",
  "alias",
  /** The shell's state changes: set, shopt, hash, enable. */
  "state",
  /** A shell reads commands from a file. */
  "script",
  /** A shell or an interpreter reads its program from standard input. */
  "stdin",
  /** An argument contains code in another language. */
  "code",
  /** A wrapper has an unknown option. */
  "wrapper",
  /** The folder in which a command runs is unknown. */
  "directory",
  /**
   * git would read its settings, which name commands to run, from the workspace, or read files outside of a
   * repository.
   */
  "repository",
  /** An argument is a folder, whose files are not named. */
  "folder",
  /** Another shell than bash or sh, or text that means something else in another shell. */
  "shell",
] as const;
export type UnclearReason = (typeof UNCLEAR_REASONS)[number];

export interface ShellCommand {
  /** Name without a system folder: `rm` for `/bin/rm`. Otherwise as written: `./rm`. */
  name: string;
  /** Argument values, or the source text where a value is not in the text. */
  args: string[];
  /** Commands that start this one, outermost first: `sudo`, `env`, `xargs`, `sh`. */
  via: string[];
}

export interface ParsedShell {
  version: 1;
  /** Every simple command, in text order, including wrapped ones. */
  commands: ShellCommand[];
  /** Files that redirections open; absolute paths. */
  reads: string[];
  writes: string[];
  /** Every path that an argument may name, absolute, including the targets of links. */
  paths: string[];
  /** Sorted, without duplicates. If empty, `commands` contains all that runs. */
  unclear: UnclearReason[];
}

export interface ShellContext {
  /** Absolute paths of the working folder: as given, and with symbolic links resolved. */
  cwds: readonly string[];
  /** Home folder, absolute; null if unknown. */
  home: string | null;
}

/**
 * One argument. `text` is its value, or its source text if `isLiteral` is false because the value is not in the text.
 */
export interface ShellArgument {
  text: string;
  isLiteral: boolean;
  /** Whether it begins with a tilde that the shell expands. */
  startsWithTilde: boolean;
  /** Whether zsh may treat it as a file pattern. */
  mayBeZshPattern?: boolean;
}
