/** Types of a parsed shell command: `params.parsed` of `shell`/`run`. docs/hooks.md describes each member. */
import type { ProjectFiles } from "./tasks/task-body.ts";

/** Reasons why the text does not determine what runs. The pack "coding-agents" then requires approval or denies. */
const UNCLEAR_REASONS = [
  /** A syntax error, or text that shells parse differently. */
  "syntax",
  /** The command exceeds a limit of length, depth or number. */
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
  /** The command changes the shell's state: for example `shopt`, `hash`, `umask`, or `set` with most options. */
  "state",
  /** A shell or a task runner runs text from a file. The text is unknown, or could change before it runs. */
  "script",
  /** A shell or an interpreter reads its program from standard input. */
  "stdin",
  /** An argument contains code in another language. */
  "code",
  /** A command such as `sudo` or `xargs` starts another command in a way that is not parsed. */
  "wrapper",
  /** The folder in which a command runs is unknown. */
  "directory",
  /**
   * git would read files outside a repository, or would read its configuration from the workspace, where an agent could
   * have added commands to it.
   */
  "repository",
  /** The command is for a shell other than bash or sh, or has a different meaning in another shell. */
  "shell",
] as const;
export type UnclearReason = (typeof UNCLEAR_REASONS)[number];

/**
 * Known effect of a program: it displays the files that it names, builds or tests the project, or makes changes that
 * git can undo.
 */
export type ProgramUse = "reads" | "checks" | "local";

export interface ShellCommand {
  /** Name of the command: `rm` for `/bin/rm`. Unchanged for a path outside the system's folders: `./rm`. */
  name: string;
  /** Values of the arguments. An argument with an unknown value is its source text. */
  args: string[];
  /** Commands that start this command, outermost first: `sudo`, `env`, `xargs`, `sh`, `npm`. */
  via: string[];
  /** Task that contains this command, such as `build` for a command of the script `build` in package.json. */
  task?: string;
  /** What the program is known to do with these options, if all of them are known. */
  use?: ProgramUse;
}

export interface ParsedShell {
  version: 2;
  /** All simple commands, in the order of the command line. Includes wrapped commands. */
  commands: ShellCommand[];
  /** Absolute paths of the files from which redirections read. */
  reads: string[];
  writes: string[];
  /** Absolute paths to which the arguments or redirections may refer, and the targets of links among them. */
  paths: string[];
  /** Hosts of the addresses in arguments. Sorted. */
  hosts: string[];
  /** Reasons why the command is unclear. Sorted, without duplicates. If empty, `commands` is complete. */
  unclear: UnclearReason[];
}

/** How a command line uses paths. The paths are absolute and may contain "..". */
export interface FileUses {
  /** Files whose contents a command may display. */
  opened: Set<string>;
  /** Files that a command overwrites, so that their contents are lost. */
  replaced: Set<string>;
  /** Folders, or files, that a command searches. */
  searched: Search[];
  /** Paths that a command may create, change or delete. */
  changed: Set<string>;
  /**
   * For a command that creates files: its arguments except the last one, which `cp` and `mv` copy or move, and the
   * paths in a target folder that they would replace.
   */
  copied: Set<string>;
  /** Files that may contain settings or code for a command. */
  obeyed: Set<string>;
  /** Files that `rm` deletes, and folders that `rm -r` deletes. */
  deleted: Set<string>;
  deletedFolders: Set<string>;
  /** Paths that a command creates, if they do not exist, from text or from files among `opened`. */
  created: Set<string>;
  /** Files that other commands of the line list, and a command uses. `paths` does not contain them. */
  listed: Set<string>;
}

export interface Search {
  path: string;
  /**
   * Whether the search reads files that git ignores: `skipped`, `read`, or `matched` (rg reads ignored files that match
   * a pattern, but not ignored folders). `tracked`: it reads no untracked files, unless git tracks nothing in the
   * folder.
   */
  ignored: "tracked" | "skipped" | "matched" | "read";
  /** Patterns for the names of the files that the search reads; empty for all files. */
  globs: readonly string[];
  /** Names of folders that the search skips. */
  excluded?: readonly string[];
  /** Whether the search follows symbolic links. */
  followsLinks?: boolean;
  /** Whether the search reads the whole repository that contains the path. */
  isWholeRepository?: boolean;
  /** Whether the path is a word of a command, and may be no folder. */
  isWord?: boolean;
}

export interface ShellContext {
  /** Absolute paths of the working folder, both as given and with symbolic links resolved. */
  cwds: readonly string[];
  /** Home folder, absolute; null if unknown. */
  home: string | null;
  /** Files of the workspace. Without them, the commands of task runners are unknown. */
  project?: ProjectFiles;
}

/** One argument. `text` is its value; if the value is unknown (`isLiteral` is false), it is the source text. */
export interface ShellArgument {
  text: string;
  isLiteral: boolean;
  /** Whether the argument begins with a tilde that the shell expands. */
  startsWithTilde: boolean;
  /** Whether zsh may interpret the argument as a file pattern. */
  mayBeZshPattern?: boolean;
  /** The files that a pattern matches, or that another command of the line lists. Absolute paths. */
  matches?: readonly string[];
  /** Whether the value is the quoted output of other commands of the line, so that it is one word. */
  isText?: boolean;
  /** Whether the value is a number that the line computes. `text` is then "0". */
  isNumber?: boolean;
  /** Whether the value is the unquoted output of other commands of the line, so that it can be several words. */
  isSplitText?: boolean;
  /** For the name of a commit: the word, with `HEAD` in place of the name. */
  commit?: string;
}
