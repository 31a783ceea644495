/** Tracks the folders in which a shell line may run, and resolves file arguments. Pure; POSIX paths. */
import { dirname, isAbsolute, normalize, resolve } from "node:path/posix";
import type { ShellArgument, ShellContext, UnclearReason } from "./shell-types.ts";
import { SYSTEM_FOLDERS } from "./command-tables.ts";

const MAX_FOLDERS = 8;

export class WorkingFolders {
  /**
   * Folders in which the current part of the line may run. A `cd` might not run, so it adds a folder and keeps the
   * others, except within a list such as `cd src && ls`.
   */
  private folders: Set<string>;
  /** Folders in which a command of the current list may have run, such as those of `cd src && ls`. */
  private seen: Set<string>;
  /** All folders in which a part of the line may have run. */
  private readonly visited: Set<string>;
  /** Folders to which the last `cd` may have changed. */
  private entered = new Set<string>();
  /** Whether an earlier `cd` of the line succeeded, so that `cd -` returns to a folder of the line. */
  private hasChanged = false;
  private readonly home: string | null;
  private readonly note: (reason: UnclearReason) => void;

  constructor({ cwds, home }: ShellContext, note: (reason: UnclearReason) => void) {
    this.folders = new Set(cwds);
    this.seen = new Set(cwds);
    this.visited = new Set(cwds);
    this.home = home;
    this.note = note;
  }

  /** Applies `cd` or `pushd`. */
  changeFolder(args: readonly ShellArgument[]): void {
    this.entered = new Set(this.folders);
    const [target, ...others] = args.filter(({ text }) => !/^-[Le@]+$/.test(text) && text !== "--");
    if (target?.text === "-" && others.length === 0 && this.hasChanged) {
      this.restoreAll();
      this.entered = new Set(this.visited);
      return;
    }
    if (others.length > 0 || target?.isLiteral === false || /^[-+]/.test(target?.text ?? ""))
      return this.note("directory");
    // In zsh, `cd old new` replaces `old` by `new` in the path of the current folder, so a pattern must match one folder.
    if (/[*?]/.test(target?.text ?? "") && target?.matches?.length !== 1) return this.note("directory");
    const targets =
      target === undefined
        ? [this.home]
        : (target.matches ?? [...this.folders].map((folder) => this.resolve(target, target.text, folder)));
    // `cd` removes ".." from the text of the path, and does not follow links for it.
    const entered = targets.flatMap((path) => (path === null ? [] : [resolve(path)]));
    for (const path of entered) {
      this.seen.add(path);
      this.visited.add(path);
    }
    if (entered.length < targets.length || this.seen.size > MAX_FOLDERS) return this.note("directory");
    for (const path of entered) this.folders.add(path);
    this.entered = new Set(entered);
  }

  /**
   * Keeps only the folders to which the last `cd` may have changed. Call it only if the next commands run only after
   * its success.
   */
  dropLeft(): void {
    this.folders = this.entered;
    this.hasChanged = true;
  }

  /**
   * Reads a list such as `cd src && ls`. Afterwards, the line can be in any of its folders, because it is unknown which
   * of its commands ran.
   */
  withinList(read: () => void): void {
    const { folders, seen, hasChanged } = this;
    this.seen = new Set(folders);
    read();
    this.hasChanged = hasChanged;
    this.folders = this.seen;
    this.seen = new Set([...seen, ...this.folders]);
  }

  /** Reads a loop. An iteration starts in the folder in which the previous one ended, which is unknown. */
  withinLoop(read: () => void): void {
    const { size } = this.folders;
    this.withinList(read);
    if (this.folders.size > size) this.note("directory");
  }

  /** Considers all folders of the line again, because an earlier command may have run in any of them. */
  restoreAll(): void {
    this.folders = new Set(this.visited);
    this.seen = new Set(this.visited);
  }

  /** Runs `read` for a command line that starts in the folder. Its own changes of the folder have no effect afterwards. */
  within(folder: string, read: () => void): void {
    const { folders, seen, hasChanged } = this;
    this.folders = new Set([folder]);
    this.seen = new Set([folder]);
    this.hasChanged = false;
    this.visited.add(folder);
    read();
    this.hasChanged = hasChanged;
    this.folders = folders;
    this.seen = seen;
  }

  all(): string[] {
    return [...this.folders];
  }

  allVisited(): string[] {
    return [...this.visited];
  }

  /** Returns all paths to which a word may refer. Some of them may not be paths. */
  possiblePaths(argument: ShellArgument): string[] {
    const { text } = argument;
    if (text === "-" || text === "--") return [];
    const paths = text.startsWith("-") ? [] : this.filePaths(argument);
    // Find a value attached to an option, such as `-f.env` or `-C../x`. The loop below reads that of `--name=dir/x`.
    const at = /^-(?!-[\w.-]+=)/.test(text) ? text.search(/[/~.]/) : -1;
    if (at > 0)
      paths.push(
        ...this.filePaths({ ...argument, text: text.slice(at), startsWithTilde: /^~(\/|$)/.test(text.slice(at)) }),
      );
    // Also consider parts of `of=/dev/sda`, `--file=x`, `HEAD:x`, `host:x`, `src=x,dst=y` and `@x`, but not parts of
    // URLs.
    for (const chunk of text.split(/[=:,@]/).slice(text.startsWith("-") ? 1 : 0))
      if (!chunk.startsWith("//"))
        paths.push(...this.filePaths({ ...argument, text: chunk, startsWithTilde: chunk.startsWith("~") }));
    return [...new Set(paths)];
  }

  /** Returns the paths of a word that is a file name. */
  filePaths(argument: ShellArgument): string[] {
    const { text } = argument;
    if (text.length > 4096) this.note("size");
    if (text === "" || text.length > 4096) return [];
    const paths = [...this.folders].map((folder) => this.resolve(argument, text, folder));
    return [...new Set(paths.filter((path) => path !== null))];
  }

  private resolve({ startsWithTilde: tilde }: ShellArgument, text: string, baseFolder: string): string | null {
    let path = text;
    if (tilde || text.startsWith("~/")) {
      const match = /^~(\/.*)?$/s.exec(text);
      if (match === null || this.home === null) {
        this.note("expansion");
        return null;
      }
      path = this.home + (match[1] ?? "");
    }
    return isAbsolute(path) ? path : `${baseFolder}/${path}`;
  }

  /** Returns the name of a command: `rm` for `/bin/rm`. Leaves paths outside the system's folders unchanged. */
  commandName({ text, isLiteral }: ShellArgument): string {
    return isLiteral && text.startsWith("/") && SYSTEM_FOLDERS.has(dirname(normalize(text)))
      ? normalize(text).slice(dirname(normalize(text)).length + 1)
      : text;
  }
}
