/** Asks git which files it tracks. */
import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { readProgramOutput, runProgram } from "../../../src/programs/run-program.ts";

const TIMEOUT_MS = 2_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** Settings of a repository that would start programs or write files. */
const SAFE_SETTINGS = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "core.untrackedCache=false",
  "core.pager=cat",
];
/** A fixed path, because a repository can set variables for the hooks of some hosts. */
const PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin";

/** Returns the folder of the nearest repository that contains the path; null if there is none. */
export function repositoryOf(path: string): string | null {
  for (let current = path; ; current = dirname(current)) {
    try {
      if (lstatSync(join(current, ".git"), { throwIfNoEntry: false }) !== undefined) return current;
    } catch {
      // Ignore the error: a path below a file, or a folder that this user cannot read, is in no repository that git can
      // use.
    }
    if (current === dirname(current)) return null;
  }
}

/** Returns the files among `paths` that git tracks. Returns none if git fails. */
export async function trackedFiles(paths: readonly string[]): Promise<Set<string>> {
  const byRoot = new Map<string, string[]>();
  for (const path of paths) {
    const root = repositoryOf(dirname(path));
    if (root !== null) byRoot.set(root, [...(byRoot.get(root) ?? []), path]);
  }
  const found = await Promise.all(
    [...byRoot].map(async ([root, files]) => {
      const tracked = await listFiles(root, ["--cached"], files);
      return (tracked ?? []).map((name) => join(root, name));
    }),
  );
  return new Set(found.flat());
}

/** `all`: all untracked files; `ignored`: those that git ignores; `unignored`: the others. */
type Selection = "all" | "ignored" | "unignored";
const SELECTIONS: Readonly<Record<Selection, readonly string[]>> = {
  all: ["--directory", "--no-empty-directory"],
  ignored: ["--directory", "--ignored", "--exclude-standard"],
  unignored: ["--exclude-standard"],
};

/**
 * Returns the untracked files and folders below a folder, or the folder itself; null if they are unknown. Names of
 * folders end with "/". For a folder without tracked files, `all` and `ignored` do not list the files in it.
 */
export async function untrackedEntries(folder: string, selection: Selection): Promise<string[] | null> {
  const root = repositoryOf(folder);
  // Files of submodules belong to other repositories, and git does not list them.
  if (root === null || lstatSync(join(root, ".gitmodules"), { throwIfNoEntry: false }) !== undefined) return null;
  const untracked = await listFiles(root, ["--others", ...SELECTIONS[selection]], [folder]);
  return untracked?.map((name) => join(root, name)) ?? null;
}

/** Returns the untracked files below a folder, except those in folders with these names; null if they are unknown. */
export async function untrackedFiles(folder: string, excluded: readonly string[]): Promise<string[] | null> {
  const root = repositoryOf(folder);
  if (root === null || lstatSync(join(root, ".gitmodules"), { throwIfNoEntry: false }) !== undefined) return null;
  if (!excluded.every((name) => /^[\w.-]+$/.test(name))) return null;
  const found = await listFiles(root, ["--others", ...excluded.map((name) => `--exclude=${name}/`)], [folder]);
  return found?.map((name) => join(root, name)) ?? null;
}

/**
 * Returns the names of the files below a subfolder `place`, relative to the folder: those that git tracks or could add,
 * and with `ignored` also those that it ignores. Null if they are unknown. Synchronous, because the command parser is.
 */
export function filesBelow(folder: string, subfolder: string, ignored: boolean): string[] | null {
  const root = repositoryOf(folder);
  if (root === null || lstatSync(join(root, ".gitmodules"), { throwIfNoEntry: false }) !== undefined) return null;
  const options = ["--cached", "--others", ...(ignored ? [] : ["--exclude-standard"])];
  const output = readProgramOutput("git", listArguments(root, options, [join(folder, subfolder)]), {
    cwd: root,
    env: ENVIRONMENT(),
    timeoutMs: TIMEOUT_MS,
    maxOutput: MAX_OUTPUT_BYTES,
  });
  if (output === null) return null;
  const prefix = folder === root ? "" : `${folder.slice(root.length + 1)}/`;
  return names(output).flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
}

const ENVIRONMENT = (): NodeJS.ProcessEnv => ({
  PATH,
  HOME: process.env["HOME"],
  LC_ALL: "C",
  GIT_TERMINAL_PROMPT: "0",
});

function listArguments(root: string, options: readonly string[], paths: readonly string[]): string[] {
  const settings = SAFE_SETTINGS.flatMap((setting) => ["-c", setting]);
  const relativeFolder = [
    `--git-dir=${join(root, ".git")}`,
    `--work-tree=${root}`,
    "--no-optional-locks",
    "--literal-pathspecs",
  ];
  return [...relativeFolder, ...settings, "ls-files", "-z", ...options, "--", ...paths];
}

const names = (output: Buffer): string[] => output.toString("utf8").split("\0").slice(0, -1);

/** Runs `git ls-files`. Resolves to null if it fails. */
async function listFiles(root: string, options: readonly string[], paths: readonly string[]): Promise<string[] | null> {
  try {
    const { code, stdout } = await runProgram("git", listArguments(root, options, paths), {
      cwd: root,
      env: ENVIRONMENT(),
      timeoutMs: TIMEOUT_MS,
      maxOutput: MAX_OUTPUT_BYTES,
    });
    return code === 0 ? names(stdout) : null;
  } catch {
    // git is missing, too slow, or lists too many files.
    return null;
  }
}
