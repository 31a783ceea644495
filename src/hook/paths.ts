/** Where a path leads: absolute, with every link followed, also where the file is not there yet. */
import { readlink, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

/** As many as Linux follows. */
const MOST_LINKS = 40;

/** Throws where the path cannot be followed. */
export async function real(path: string, links = MOST_LINKS): Promise<string> {
  if (links === 0) throw new Error("too many links");
  try {
    return await realpath(path);
  } catch (error) {
    if (!["ENOENT", "ENOTDIR", "EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
  const folder = dirname(path);
  if (folder === path) return path;
  // A link may lead to a file that is not there yet, and that writing makes.
  const target = await readlink(path).catch(() => null);
  if (target !== null) return real(resolve(await real(folder, links - 1), target), links - 1);
  return join(await real(folder, links - 1), basename(path));
}

/** A path as a tool is given it. Behind a link ".." leads elsewhere than the text says, so it is walked. */
export async function absolute(path: string, cwd: string, home: string | null): Promise<string> {
  const expanded = home !== null && /^~(\/|$)/.test(path) ? join(home, path.slice(1)) : path;
  const start = expanded.startsWith("/") ? "/" : await real(resolve(cwd));
  let at = start;
  for (const [i, part] of expanded.split("/").entries()) {
    if (part === "" || part === ".") continue;
    if (i > 256) throw new Error("too many folders");
    at = part === ".." ? dirname(await real(at)) : join(at, part);
  }
  return real(at);
}
