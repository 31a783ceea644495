/** Where git would find the settings that a command of it runs with. */
import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Whether git, in one of the folders, would take a folder of the workspace itself for the repository: one that was laid
 * out like a bare one, whose settings name commands that `git status` runs. Writing its files takes no rights.
 */
export function isEmbedded(folders: readonly string[]): boolean {
  return folders.some((folder) => {
    for (let at = folder; ; at = dirname(at)) {
      if (isThere(join(at, ".git"))) return false;
      if (isThere(join(at, "HEAD"))) return true;
      if (at === dirname(at)) return false;
    }
  });
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // What this user may not look at is nothing that git could read.
    return false;
  }
}
