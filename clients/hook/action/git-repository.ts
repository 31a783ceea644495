/** Determines which repository, and therefore which git configuration, a git command would use. */
import { lstatSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { toAbsolute, isInside, realPath } from "./followed-paths.ts";
import type { ShellCommand } from "../shell/shell-types.ts";

/**
 * Returns true if git might use a configuration file that policies do not protect. They protect only files in a folder
 * named `.git`, not in a folder with the layout of a bare repository or in the target of a `.git` file or link. The
 * configuration can contain commands that `git status` runs.
 */
export async function usesWorkspaceGitSettings(folders: readonly string[], workspace: string | null): Promise<boolean> {
  for (const folder of folders)
    for (let current = folder; ; current = dirname(current)) {
      const gitPath = join(current, ".git");
      if (pathExists(gitPath)) {
        if (await isSettingsInWorkspace(gitPath, workspace)) return true;
        break;
      }
      if (pathExists(join(current, "HEAD"))) return true;
      if (current === dirname(current)) break;
    }
  return false;
}

/**
 * Returns true if `.git` (a folder, link or gitfile) resolves to a git directory inside the workspace that is not in a
 * folder named `.git`. Policies protect only folders with this name, so an agent could edit the configuration there.
 * Also returns true if `.git` cannot be resolved.
 */
async function isSettingsInWorkspace(gitPath: string, workspace: string | null): Promise<boolean> {
  try {
    let end = await realPath(gitPath);
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
    // Ignore the error: git runs as the same user, so it cannot read the file either.
    return false;
  }
}

/**
 * Returns true if git would read files outside the repository. `git diff` with two operands and `git grep` do so if
 * there is no repository, or if it belongs to another user. `git diff` also does so for paths outside the repository.
 * @param paths paths that the arguments name
 */
export function readsFilesOutsideRepository(
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

function repositoryRoot(folder: string): string | null {
  for (let current = folder; ; current = dirname(current)) {
    if (pathExists(join(current, ".git"))) return current;
    if (current === dirname(current)) return null;
  }
}

/** Returns true if the repository belongs to this user. By default git ignores repositories of other users. */
function isOwnedByUser(root: string): boolean {
  return [root, join(root, ".git")].every((path) => lstatSync(path).uid === process.getuid?.());
}

/** Returns true if a git command replaces files of the worktree with files of another commit. */
export function changesWorktree({ name, args: [verb = ""] }: ShellCommand): boolean {
  const verbs =
    "am apply checkout cherry-pick clone merge pull read-tree rebase reset restore revert stash switch submodule";
  return name === "git" && verbs.split(" ").includes(verb);
}
