/** Where paths lead: absolute, with every link followed, also where a file is not there yet. */
import { lstat, readlink } from "node:fs/promises";
import { join, resolve } from "node:path";

/** As many as Linux follows. */
const MAX_LINKS = 40;
const MAX_SEGMENTS = 256;

export interface FollowedPath {
  /** Where it ends. */
  target: string;
  /** The names that it has before each link: `/work/app/.env`, where that leads to `/work/app/env/local`. */
  names: string[];
}

/** For one call: what a name was a link to is looked at once. */
export class LinkFollower {
  /** The workspace, followed; null where there is none. */
  private readonly workspace: string | null;
  private readonly links = new Map<string, Promise<string | null>>();
  constructor(workspace: string | null) {
    this.workspace = workspace;
  }

  /** Follows an absolute path link by link; behind a link ".." leads elsewhere than the text says. Throws where that fails. */
  async follow(path: string): Promise<FollowedPath> {
    const names: string[] = [];
    const left = path.split("/").reverse();
    let at = "/";
    let links = 0;
    for (let parts = 0; left.length > 0; parts++) {
      if (parts > MAX_SEGMENTS) throw new Error("too many folders");
      const part = left.pop() as string;
      const next = resolve(at, part);
      const target = part === "" || part === "." || part === ".." ? null : await this.linkAt(next);
      if (target === null) {
        at = next;
        continue;
      }
      if (++links > MAX_LINKS) throw new Error("too many links");
      if (!(await this.isAboveWorkspace(resolve(at, target)))) names.push(join(next, ...[...left].reverse()));
      left.push(...target.split("/").reverse());
      if (target.startsWith("/")) at = "/";
    }
    return { target: at, names };
  }

  /** A folder above the workspace may have another name, as /tmp has on macOS; that says nothing of what is in it. */
  private async isAboveWorkspace(folder: string): Promise<boolean> {
    const { workspace } = this;
    return workspace !== null && isInside(workspace, await realPath(folder).catch(() => folder));
  }

  /** Null for what is no link, or is not there, or may not be looked at, and so not be gone through either. */
  private linkAt(path: string): Promise<string | null> {
    // What stands there is another thing for each process.
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

/** A path as a tool is given it, absolute but not followed. */
export function toAbsolute(path: string, cwd: string, home: string | null): string {
  const expanded = home !== null && /^~(\/|$)/.test(path) ? `${home}${path.slice(1)}` : path;
  return expanded.startsWith("/") ? expanded : `${cwd}/${expanded}`;
}

export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
