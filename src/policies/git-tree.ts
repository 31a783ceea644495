/** Policy files of a folder in a commit of git: for the command line and for the policy-git plugin, each of which runs git in its own way. */
import type { TextFault } from "../domain/policy/parse/parse.ts";

export type RunGit = (args: readonly string[], input?: string) => Promise<Uint8Array>;

export interface TreeFile {
  /** Of the blob. */
  id: string;
  /** Path inside the folder. */
  name: string;
}

const SUBMODULE = "a submodule is not followed, so that what it denies would not be denied; put its policies here";

/**
 * With `recursive`, what could hold policies and is not followed (a submodule, a link of any name) is a fault: to pass over
 * a folder that denies something opens what it denies.
 *
 * @param tree such as `<commit>:<folder>`; rejects as `run` does when there is none
 * @param linked what is wrong with a symbolic link, which is never followed
 */
export async function listPolicyTree(
  run: RunGit,
  tree: string,
  recursive: boolean,
  linked: string,
): Promise<{ files: TreeFile[]; faults: TextFault[] }> {
  const listing = await run(["ls-tree", "-z", "--full-tree", ...(recursive ? ["-r"] : []), tree]);
  const files: TreeFile[] = [];
  const faults: TextFault[] = [];
  for (const entry of new TextDecoder().decode(listing).split("\0")) {
    const [, mode, type, id = "", name = ""] = /^(\d+) (\w+) ([0-9a-f]+)\t([^]+)$/.exec(entry) ?? [];
    if (name.split("/").some((part) => part.startsWith("."))) continue;
    const fault = (message: string): void => void faults.push({ file: name, line: null, column: null, message });
    if (recursive && type === "commit") fault(SUBMODULE);
    if (recursive && mode === "120000" && !/\.ya?ml$/.test(name)) fault(linked);
    if (type !== "blob" || !/\.ya?ml$/.test(name)) continue;
    if (mode === "120000") fault(linked);
    else files.push({ id, name });
  }
  return { files, faults };
}

/** Bytes of each, in their order; null where the repository does not have the object. Not asked of the listing: that would fetch each. */
export async function sizePolicyTree(run: RunGit, files: readonly TreeFile[]): Promise<(number | null)[]> {
  if (files.length === 0) return [];
  const all = await run(["cat-file", "--batch-check=%(objectname) %(objectsize)"], ids(files));
  const lines = new TextDecoder().decode(all).split("\n");
  return files.map(({ id }, i) => {
    const [, named, size] = /^([0-9a-f]+) (\d+)$/.exec(lines[i] ?? "") ?? [];
    return named === id ? Number(size) : null;
  });
}

/** Their contents, in their order. @param absent what to throw for an object that the repository does not have */
export async function readPolicyTree(
  run: RunGit,
  files: readonly TreeFile[],
  absent: (id: string) => Error,
): Promise<Uint8Array[]> {
  if (files.length === 0) return [];
  const all = await run(["cat-file", "--batch"], ids(files));
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

function ids(files: readonly TreeFile[]): string {
  return `${files.map(({ id }) => id).join("\n")}\n`;
}
