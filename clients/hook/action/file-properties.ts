/**
 * Determines properties of the files of a call: whether git tracks them, whether their names suggest secrets, and
 * whether a program runs them later.
 */
import { existsSync, lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { NEW_TEMPORARY_FILE } from "../shell/command-output.ts";
import { patternExpression } from "../shell/file-patterns.ts";
import type { Search } from "../shell/shell-types.ts";
import { isInside } from "./followed-paths.ts";
import { filesBelow, repositoryOf, trackedFiles, untrackedEntries, untrackedFiles } from "./git-files.ts";
import { isSourcePattern, maySuggestSecrets, runsLater, suggestsSecrets } from "./place-table.ts";

/** How a call uses files. Absolute paths with links resolved. */
export interface CallFiles {
  /** All paths that the call names. */
  named: readonly string[];
  /** Files whose contents the call may use or change. */
  used: readonly string[];
  opened: readonly string[];
  /** Files that the call overwrites, so that their contents are lost. A missing file loses nothing. */
  replaced?: readonly string[];
  searched: readonly Search[];
  changed: readonly string[];
  /** Files and folders that are copied or moved, with the files in them. */
  copied?: readonly string[];
  /** Files that may contain settings or code for a command. */
  obeyed?: readonly string[];
  deleted?: readonly string[];
  /** Folders that are deleted with the files in them. */
  deletedFolders?: readonly string[];
}

/** Sorted lists of absolute paths. Policies read them in `params`. */
export interface FileProperties {
  /** Untracked files whose names suggest secrets. */
  secrets: string[];
  /** Files and folders that the call reads and that git ignores or does not track. */
  untracked: string[];
  /** Files that the call changes, and that a program runs later or that instruct an agent. */
  later: string[];
  /**
   * Files in a folder for temporary files that do not exist or that the agent created. No command of the call reads
   * settings or code from them. Absent if there are none.
   */
  scratch?: string[];
  /** Folders that the call deletes, and existing files that the agent did not create. Absent if the call deletes nothing. */
  lost?: string[];
}

/** Maximum number of untracked files that are listed. A search can find many. */
const MAX_LISTED = 20;

/** Returns the files that the agent created, and whose contents it therefore knows. */
export type OwnFiles = () => Promise<ReadonlySet<string>>;

export async function fileProperties(
  {
    named,
    used,
    opened,
    replaced = [],
    searched,
    changed,
    copied = [],
    obeyed = [],
    deleted = [],
    deletedFolders = [],
  }: CallFiles,
  workspace: string | null,
  ownFiles: OwnFiles,
): Promise<FileProperties> {
  const within = (path: string): boolean => workspace !== null && isInside(path, workspace);
  const suspicious = used.filter(suggestsSecrets);
  const displayed = [
    ...opened,
    ...searched.map(({ path }) => path),
    ...copied.filter((path) => kindOf(path) === "file"),
  ];
  const kinds = new Map([...suspicious, ...displayed, ...replaced].map((path) => [path, kindOf(path)]));
  const candidates = [...kinds].flatMap(([path, kind]) => (kind === "file" && within(path) ? [path] : []));
  const tracked = candidates.length === 0 ? new Set<string>() : await trackedFiles(candidates);
  const secrets = new Set<string>();
  const untracked = new Set<string>();
  for (const path of suspicious)
    if (!within(path) || (kinds.get(path) !== "missing" && !tracked.has(path))) secrets.add(path);
  // A missing file can be created with any content before the call reads it. This is harmless if the call overwrites the
  // file. Text with spaces is rarely the name of a file.
  const isWritten = (path: string): boolean => replaced.includes(path);
  for (const path of [...suspicious, ...displayed.filter((path) => maySuggestSecrets(path) && !isWritten(path))])
    if (within(path) && kinds.get(path) === "missing" && !/\s/.test(path.slice((workspace ?? "").length)))
      untracked.add(path);
  for (const path of [...displayed, ...replaced])
    if (kinds.get(path) === "file" && within(path) && !tracked.has(path) && !isInstalledPackage(path))
      untracked.add(path);
  for (const search of searched)
    if (kinds.get(search.path) === "folder" && within(search.path))
      for (const path of await searchedFiles(search)) untracked.add(path);
    else if (
      kinds.get(search.path) === "missing" &&
      search.ignored !== "skipped" &&
      search.isWord !== true &&
      !readsSource(search)
    )
      untracked.add(search.path);
  for (const path of copied)
    if (kindOf(path) === "folder" && within(path))
      for (const each of await searchedFiles({ path, ignored: "read", globs: [] })) untracked.add(each);
  const temporary = named.filter((path) => !within(path) && isTemporary(path, workspace) && !obeyed.includes(path));
  const lost = deleted.filter((path) => kindOf(path) !== "missing");
  const ownFilePaths = untracked.size + temporary.length + lost.length === 0 ? null : await ownFiles();
  const isOwn = (path: string): boolean => ownFilePaths?.has(path) === true;
  const scratch = temporary.filter((path) => kindOf(path) === "missing" || isOwn(path)).sort();
  return {
    secrets: [...secrets].sort(),
    untracked: [...untracked]
      .filter((path) => !secrets.has(path) && !isOwn(path))
      .sort()
      .slice(0, MAX_LISTED),
    later: changed.filter((path) => runsLater(path, workspace) || isExecutable(path)).sort(),
    ...(scratch.length === 0 ? {} : { scratch }),
    ...(deleted.length + deletedFolders.length === 0
      ? {}
      : { lost: [...deletedFolders.filter((path) => !isNew(path)), ...lost.filter((path) => !isOwn(path))].sort() }),
  };
}

/** Returns true if a path stands for a new file of mktemp. */
const isNew = (path: string): boolean => path === NEW_TEMPORARY_FILE && kindOf(path) === "missing";

const readsSource = ({ globs }: Pick<Search, "globs">): boolean => globs.length > 0 && globs.every(isSourcePattern);

/** Returns files that a search reads and that git does not track; the folder itself if they are unknown. */
async function searchedFiles(search: Search): Promise<string[]> {
  const { path, ignored, globs, excluded = [], isWholeRepository, followsLinks } = search;
  const folder = (isWholeRepository === true ? repositoryOf(path) : null) ?? path;
  if (followsLinks === true && containsLinks(folder)) return [folder];
  const isRoot = kindOf(`${folder}/.git`) !== "missing";
  // A search of ignored files also reads the folder ".git", which git does not list. It contains no source code.
  if (ignored === "read" && readsSource({ globs })) return (await untrackedSource(folder, globs, excluded)) ?? [folder];
  if (ignored === "read" && isRoot) return [folder];
  const all = isRoot ? [] : await untrackedEntries(folder, "all");
  if (all === null) return [folder];
  if (ignored === "tracked")
    return all.some((entry) => entry.endsWith("/") && isInside(folder, entry.slice(0, -1))) ? [folder] : [];
  if (!isRoot && all.length === 0) return [];
  const [unignored, skipped] = await Promise.all([
    ignored === "read" ? Promise.resolve(all) : untrackedEntries(folder, "unignored"),
    ignored === "read" || (isRoot && ignored === "skipped") ? Promise.resolve([]) : untrackedEntries(folder, "ignored"),
  ]);
  if (unignored === null || skipped === null) return [folder];
  // rg does not skip a folder that is named, even if git ignores it.
  if (skipped.some((entry) => entry.endsWith("/") && isInside(folder, entry.slice(0, -1)))) return [folder];
  const entries = [...unignored, ...(ignored === "matched" ? skipped : [])];
  const expressions = globs.map((glob) => patternExpression(glob.replace(/^\/|\/$/g, "")));
  const matches = (path: string): boolean =>
    expressions.length === 0 ||
    expressions.some((expression) => {
      // A pattern without a slash matches the name of a file in any folder.
      const name = path.slice(path.lastIndexOf("/") + 1);
      return expression === null || expression.test(name) || expression.test(path.slice(folder.length + 1));
    });
  const isExcluded = (path: string): boolean =>
    path
      .slice(folder.length)
      .split("/")
      .some((name) => excluded.includes(name));
  // rg also searches an ignored folder whose name a pattern matches.
  const isSearched = (path: string): boolean =>
    path.endsWith("/") ? !skipped.includes(path) || matches(path.slice(0, -1)) : matches(path);
  return entries.filter((path) => !isExcluded(path) && isSearched(path));
}

const MAX_LINKS = 5_000;

/** Returns true if a folder contains symbolic links, or may do so. */
function containsLinks(folder: string): boolean {
  if (kindOf(folder) !== "folder") return false;
  const names = filesBelow(folder, "", true);
  return (
    names === null ||
    names.length > MAX_LINKS ||
    names.some(
      (name) => name.endsWith("/") || lstatSync(`${folder}/${name}`, { throwIfNoEntry: false })?.isSymbolicLink(),
    )
  );
}

/** Returns the files below a folder that git does not track and that one of the patterns matches; null if they are unknown. */
async function untrackedSource(
  folder: string,
  globs: readonly string[],
  excluded: readonly string[],
): Promise<string[] | null> {
  const files = await untrackedFiles(folder, excluded);
  const expressions = globs.map(patternExpression);
  return (
    files?.filter((path) => {
      const names = [path.slice(path.lastIndexOf("/") + 1), path.slice(folder.length + 1)];
      return expressions.some((expression) => expression === null || names.some((name) => expression.test(name)));
    }) ?? null
  );
}

const LOCKFILES = ["package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"];

/**
 * Returns true if a file belongs to a registry package that a lockfile of the project lists. Its contents are public.
 */
function isInstalledPackage(path: string): boolean {
  const [, folder = "", name] =
    /^(.*?)\/node_modules\/(?:.*\/node_modules\/)?((?:@[^/.][^/]*\/)?[^/.][^/]*)\//.exec(path) ?? [];
  if (name === undefined) return false;
  return LOCKFILES.some((lockfile) => {
    try {
      const text = readFileSync(`${folder}/${lockfile}`, "utf8");
      return text.includes(`/${name}"`) || text.includes(`${name}@`);
    } catch {
      // There is no such lockfile.
      return false;
    }
  });
}

const TEMPORARY_FOLDERS = [...new Set(["/tmp", tmpdir()])].flatMap((folder) =>
  existsSync(folder) ? [realpathSync(folder)] : [],
);

/**
 * Returns true if a path, with links resolved, is in a folder for temporary files. If the workspace is in such a
 * folder, its other folders can be projects, too.
 */
const isTemporary = (path: string, workspace: string | null): boolean =>
  TEMPORARY_FOLDERS.some(
    (folder) =>
      path !== folder &&
      isInside(path, folder) &&
      (workspace === null || !isInside(workspace, folder) || dirname(path) === folder),
  );

/** Returns true if the file is an existing program that users can start. */
function isExecutable(path: string): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.isFile() === true && (found.mode & 0o111) !== 0;
  } catch {
    // Ignore the error: a file that this user cannot access cannot be changed by the call either.
    return false;
  }
}

type Kind = "file" | "folder" | "missing";

export function kindOf(path: string): Kind {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return "missing";
    return found.isDirectory() ? "folder" : "file";
  } catch (error) {
    // A file that this user cannot access cannot be read by a command either, but it exists.
    return (error as NodeJS.ErrnoException).code === "ENOTDIR" ? "missing" : "file";
  }
}
