/** Makes paths absolute and resolves their links, even for files that do not exist yet. */
import { lstat, readlink } from "node:fs/promises";
import { join, resolve } from "node:path";

/** Maximum number of links in one path. Linux has the same limit. */
const MAX_LINKS = 40;
const MAX_SEGMENTS = 256;

interface FollowedPath {
  /** The path with all links resolved. */
  target: string;
  /**
   * The names that the path had before each link was resolved: `/work/app/.env` for a link to `/work/app/env/local`.
   * Omits links to folders that contain the workspace.
   */
  names: string[];
}

/** Resolves links for one call. Reads each link once, so that all paths of the call see the same state. */
export class LinkFollower {
  /** Workspace with links resolved; null if there is none. */
  private readonly workspace: string | null;
  private readonly links = new Map<string, Promise<string | null>>();
  constructor(workspace: string | null) {
    this.workspace = workspace;
  }

  /**
   * Resolves an absolute path link by link, because ".." after a link is the parent of the link's target, not of the
   * link. Throws if the path has too many segments or links, or if the file system fails.
   */
  async follow(path: string): Promise<FollowedPath> {
    const names: string[] = [];
    const remaining = path.split("/").reverse();
    let current = "/";
    let links = 0;
    for (let segments = 0; remaining.length > 0; segments++) {
      if (segments > MAX_SEGMENTS) throw new Error("too many folders");
      const segment = remaining.pop() as string;
      const next = resolve(current, segment);
      const target = segment === "" || segment === "." || segment === ".." ? null : await this.linkAt(next);
      if (target === null) {
        current = next;
        continue;
      }
      if (++links > MAX_LINKS) throw new Error("too many links");
      if (!(await this.isAboveWorkspace(resolve(current, target)))) names.push(join(next, ...[...remaining].reverse()));
      remaining.push(...target.split("/").reverse());
      if (target.startsWith("/")) current = "/";
    }
    return { target: current, names };
  }

  /**
   * Returns true if the folder contains the workspace. A link to such a folder, such as /tmp on macOS, does not count
   * as another name.
   */
  private async isAboveWorkspace(folder: string): Promise<boolean> {
    const { workspace } = this;
    return workspace !== null && isInside(workspace, await realPath(folder).catch(() => folder));
  }

  /** Resolves to the link's target; null if the path is not a link, does not exist, or cannot be accessed. */
  private linkAt(path: string): Promise<string | null> {
    // Do not resolve these paths, because they differ for each process.
    if (/^\/(proc\/|dev\/(fd|stdin|stdout|stderr)(\/|$))/.test(path)) return Promise.resolve(null);
    let link = this.links.get(path);
    if (link === undefined) this.links.set(path, (link = readLink(path)));
    return link;
  }
}

async function readLink(path: string): Promise<string | null> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : null;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ENAMETOOLONG"].includes(code)) return null;
    throw error;
  }
}

export async function realPath(path: string): Promise<string> {
  return (await new LinkFollower(null).follow(path)).target;
}

/** Makes a path absolute without resolving links. */
export function toAbsolute(path: string, cwd: string, home: string | null): string {
  const expanded = home !== null && /^~(\/|$)/.test(path) ? `${home}${path.slice(1)}` : path;
  return expanded.startsWith("/") ? expanded : `${cwd}/${expanded}`;
}

export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
