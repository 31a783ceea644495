/** Where git would find the settings that a command of it runs with. */
import { lstatSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { toAbsolute, isInside, realPath } from "./followed-paths.ts";
import type { ShellCommand } from "../shell/types.ts";

/**
 * Whether git, in one of the folders, would take a folder of the workspace itself for the repository: one that was laid
 * out like a bare one, or to which a file `.git` leads, and whose settings name commands that `git status` runs. Writing
 * its files takes no rights, as no rule knows it by its name.
 */
export async function usesWorkspaceGitSettings(folders: readonly string[], workspace: string | null): Promise<boolean> {
  for (const folder of folders)
    for (let at = folder; ; at = dirname(at)) {
      const git = join(at, ".git");
      if (pathExists(git)) {
        if (await isSettingsInWorkspace(git, workspace)) return true;
        break;
      }
      if (pathExists(join(at, "HEAD"))) return true;
      if (at === dirname(at)) break;
    }
  return false;
}

/** Whether settings that `.git` leads to lie in the workspace, and not below a folder of that name, where nobody writes. */
async function isSettingsInWorkspace(git: string, workspace: string | null): Promise<boolean> {
  try {
    let end = await realPath(git);
    if (lstatSync(end).isFile()) {
      const [, target] = /^gitdir: *(.+?)\s*$/m.exec(readFileSync(end, "utf8").slice(0, 8192)) ?? [];
      if (target === undefined) return true;
      end = await realPath(toAbsolute(target, dirname(end), null));
    }
    return workspace !== null && isInside(end, workspace) && !/\/[.]git(\/|$)/.test(end.slice(workspace.length));
  } catch {
    return true;
  }
}

function pathExists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // What this user may not look at is nothing that git could read.
    return false;
  }
}

/**
 * Whether git, in one of the folders, would look into files that it does not keep: outside of a repository, in one of
 * another owner, and for a file outside of it `git diff` compares two files or folders, with all that is in them.
 */
export function readsUntrackedFiles(
  { args: [verb, ...args] }: ShellCommand,
  folders: readonly string[],
  paths: readonly string[],
): boolean {
  const operands = args.filter((word) => !word.startsWith("-"));
  if (verb !== "grep" && (verb !== "diff" || operands.length < 2)) return false;
  return folders.some((folder) => {
    const root = repositoryRoot(folder);
    return root === null || !isOwnedByUser(root) || (verb === "diff" && paths.some((path) => !isInside(path, root)));
  });
}

/** Whether one of the words is a folder, in whichever of the folders the command runs. */
export function hasFolderArgument({ args }: ShellCommand, folders: readonly string[], home: string | null): boolean {
  return args.some((word) =>
    folders.some((folder) => {
      try {
        return statSync(toAbsolute(word, folder, home), { throwIfNoEntry: false })?.isDirectory() === true;
      } catch {
        // What this user may not look at, the command cannot read.
        return false;
      }
    }),
  );
}

function repositoryRoot(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    if (pathExists(join(at, ".git"))) return at;
    if (at === dirname(at)) return null;
  }
}

/** git takes no repository of others, unless it is told to. */
function isOwnedByUser(root: string): boolean {
  return [root, join(root, ".git")].every((path) => lstatSync(path).uid === process.getuid?.());
}
