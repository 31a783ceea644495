/**
 * Reads the policy files of a folder in a git commit, for the command line and the policy-git plugin, which run git
 * differently.
 */
import type { UnloadedFile } from "../contract/policy-source.ts";
import type { TextFault } from "../domain/policy/parse/parse.ts";
import { findReason, isMistakenFor, looksLikePolicy, MAX_UNLOADED_BYTES } from "./unloaded-files.ts";

export type RunGit = (args: readonly string[], input?: string) => Promise<Uint8Array>;

export interface TreeFile {
  /** Object id of the blob. */
  id: string;
  /** Path of the file relative to the folder. */
  name: string;
}

/** A file that can be an unloaded policy. */
type UnreadFile = TreeFile & Pick<UnloadedFile, "reason">;

const SUBMODULE = "a submodule is not followed, so its policies would be missing; put them into this repository";

/**
 * Lists the policy files of a tree. Does not follow submodules and symbolic links. A link with the name of a YAML file
 * is a fault. With `recursive`, every submodule and link is a fault, because it could contain policies: if a policy
 * that denies actions were skipped, the actions would be allowed. `others` are the files that might be policies and are
 * not loaded.
 *
 * @param tree the tree, such as `<commit>:<folder>`; if it does not exist, rejects with the error of `run`
 * @param linkFault the message for a symbolic link
 * @example
 * const { files, faults } = await listPolicyTree(git, `${commit}:policies`, true, "put the file here");
 */
export async function listPolicyTree(
  run: RunGit,
  tree: string,
  recursive: boolean,
  linkFault: string,
): Promise<{ files: TreeFile[]; others: UnreadFile[]; faults: TextFault[] }> {
  const files: TreeFile[] = [];
  const others: UnreadFile[] = [];
  const faults: TextFault[] = [];
  for (const { mode, type, id, name } of await listTree(run, tree, ["-r"])) {
    const reason = findReason(name, recursive);
    if (reason !== null && type === "blob" && mode !== LINK_MODE) others.push({ id, name, reason });
    if (name.split("/").some((part) => part.startsWith(".")) || (name.includes("/") && !recursive)) continue;
    const reportFault = (message: string): void => void faults.push({ file: name, line: null, column: null, message });
    if (recursive && type === "commit") reportFault(SUBMODULE);
    if (recursive && mode === LINK_MODE && !/\.ya?ml$/.test(name)) reportFault(linkFault);
    if (type !== "blob" || !/\.ya?ml$/.test(name)) continue;
    if (mode === LINK_MODE) reportFault(linkFault);
    else files.push({ id, name });
  }
  return { files, others, faults };
}

/**
 * Lists the files next to a folder of a commit that can be unloaded policies.
 * @param folder path of the folder in the commit; the empty path is the commit's root
 * @example
 * const others = await listFilesBeside(git, commit, "policies"); // [{ id, name: "../policies.yaml", reason: "beside" }]
 */
export async function listFilesBeside(run: RunGit, commit: string, folder: string): Promise<UnreadFile[]> {
  const [, parent = "", name = ""] = /^(?:(.*)\/)?([^/]*)$/s.exec(folder) ?? [];
  if (name === "") return [];
  const parents = await listTree(run, `${commit}:${parent}`, []);
  const mistaken = parents.filter(
    (entry) => entry.name !== name && isMistakenFor(entry.name, name, entry.type === "tree"),
  );
  const files = await Promise.all(
    mistaken.map(async (entry) =>
      entry.type === "tree"
        ? (await listTree(run, entry.id, ["-r"])).map((file) => ({ ...file, name: `${entry.name}/${file.name}` }))
        : [entry],
    ),
  );
  return files
    .flat()
    .filter(({ type, mode }) => type === "blob" && mode !== LINK_MODE)
    .map((file) => ({ id: file.id, name: `../${file.name}`, reason: "beside" }));
}

interface TreeEntry extends TreeFile {
  mode: string;
  type: string;
}

const LINK_MODE = "120000";

async function listTree(run: RunGit, tree: string, options: readonly string[]): Promise<TreeEntry[]> {
  const listing = await run(["ls-tree", "-z", "--full-tree", ...options, tree]);
  return new TextDecoder()
    .decode(listing)
    .split("\0")
    .flatMap((line) => {
      const [, mode = "", type = "", id = "", name = ""] = /^(\d+) (\w+) ([0-9a-f]+)\t([^]+)$/.exec(line) ?? [];
      return name === "" ? [] : [{ mode, type, id, name }];
    });
}

/** Maximum number of files that are read because they can be policies. */
const MAX_OTHERS = 100;

/**
 * Returns those of the `others` of `listPolicyTree` that look like policies. Never rejects: returns none if the objects
 * cannot be read.
 * @param sizes returns the size of each file, and fetches the objects that the repository does not have
 * @example
 * const { others } = await listPolicyTree(git, `${commit}:policies`, false, "put the file here");
 * const unloaded = await readUnloadedFiles(git, others, (files) => sizePolicyTree(git, files));
 */
export async function readUnloadedFiles(
  run: RunGit,
  others: readonly UnreadFile[],
  sizes: (files: readonly TreeFile[]) => Promise<readonly (number | null)[]>,
): Promise<UnloadedFile[]> {
  try {
    const listed = others.slice(0, MAX_OTHERS);
    const bytes = await sizes(listed);
    const small = listed.filter((_, i) => (bytes[i] ?? Infinity) <= MAX_UNLOADED_BYTES);
    const contents = await readPolicyTree(run, small, (id) => new Error(`the object ${id} is missing`));
    return small.flatMap(({ name, reason }, i) =>
      looksLikePolicy(contents[i] as Uint8Array) ? [{ file: name, reason }] : [],
    );
  } catch {
    return [];
  }
}

/**
 * Returns the size of each file in bytes, or null for each object that the repository does not have. This is separate
 * from the listing, because `ls-tree` with sizes would fetch every object of a partial clone.
 * @example
 * const sizes = await sizePolicyTree(git, files);
 * const missing = files.filter((_, i) => sizes[i] === null);
 */
export async function sizePolicyTree(run: RunGit, files: readonly TreeFile[]): Promise<(number | null)[]> {
  if (files.length === 0) return [];
  const all = await run(["cat-file", "--batch-check=%(objectname) %(objectsize)"], joinIds(files));
  const lines = new TextDecoder().decode(all).split("\n");
  return files.map(({ id }, i) => {
    const [, named, size] = /^([0-9a-f]+) (\d+)$/.exec(lines[i] ?? "") ?? [];
    return named === id ? Number(size) : null;
  });
}

/**
 * Returns the content of each file.
 * @param absent a function that returns the error for an object that the repository does not have
 * @example
 * const contents = await readPolicyTree(git, files, (id) => new Error(`the object ${id} is missing`));
 */
export async function readPolicyTree(
  run: RunGit,
  files: readonly TreeFile[],
  absent: (id: string) => Error,
): Promise<Uint8Array[]> {
  if (files.length === 0) return [];
  const all = await run(["cat-file", "--batch"], joinIds(files));
  let at = 0;
  return files.map(({ id }) => {
    const end = all.indexOf(0x0a, at);
    const [, named, size] =
      /^([0-9a-f]+) blob (\d+)$/.exec(new TextDecoder().decode(all.subarray(at, Math.max(end, at)))) ?? [];
    if (named !== id) throw absent(id);
    const from = end + 1;
    at = from + Number(size) + 1;
    return new Uint8Array(all.subarray(from, from + Number(size)));
  });
}

function joinIds(files: readonly TreeFile[]): string {
  return `${files.map(({ id }) => id).join("\n")}\n`;
}
