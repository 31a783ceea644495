/** Reads files of the workspace while a command is parsed. */
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import type { ProjectFiles } from "../shell/tasks/task-body.ts";
import { filesBelow } from "./git-files.ts";
import { isInside } from "./followed-paths.ts";

/** Maximum size of a file. Bytes. */
const MAX_FILE_BYTES = 256 * 1024;
/** Maximum number of files and folders for one call. */
const MAX_READS = 500;

export class WorkspaceFiles implements ProjectFiles {
  /** Workspace with links resolved; null if there is none. */
  private readonly workspace: string | null;
  private readonly texts = new Map<string, string | null>();
  private reads = 0;
  constructor(workspace: string | null) {
    this.workspace = workspace;
  }

  /** Files that have been read, with links resolved. */
  readonly readPaths = new Set<string>();

  read(path: string): string | null {
    let text = this.texts.get(path);
    if (text === undefined) this.texts.set(path, (text = this.readFile(path)));
    return text;
  }

  list(folder: string): readonly string[] | null {
    const path = this.resolve(folder);
    try {
      return path === null ? null : readdirSync(path);
    } catch {
      return null;
    }
  }

  files(folder: string, subfolder: string, ignored: boolean): readonly string[] | null {
    const path = this.resolve(folder);
    return path === null ? null : filesBelow(path, subfolder, ignored);
  }

  private readFile(path: string): string | null {
    const target = this.resolve(path);
    if (target === null) return null;
    try {
      const file = statSync(target);
      if (!file.isFile() || file.size > MAX_FILE_BYTES) return null;
      const text = readFileSync(target, "utf8");
      this.readPaths.add(target);
      return text;
    } catch {
      return null;
    }
  }

  /** Returns the path with links resolved; null if it does not exist or is outside the workspace. */
  private resolve(path: string): string | null {
    if (this.workspace === null || ++this.reads > MAX_READS) return null;
    try {
      const target = realpathSync(path);
      return isInside(target, this.workspace) ? target : null;
    } catch {
      return null;
    }
  }
}
