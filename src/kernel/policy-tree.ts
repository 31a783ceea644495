/** Policy files of a folder in a commit of git: for the command line and for the policy-git plugin, each of which runs git in its own way. */
import type { TextFault } from "../domain/policy/parse.ts";

export type RunGit = (args: readonly string[], input?: string) => Promise<Buffer>;

export interface TreeFile {
  /** Of the blob. */
  id: string;
  /** Path inside the folder. */
  name: string;
  /** Bytes; negative where the repository does not have the object. */
  size: number;
}

const MISSING = -1;

/**
 * @param tree such as `<commit>:<folder>`; rejects as `run` does when there is none
 * @param linked what is wrong with a symbolic link, which is never followed
 */
export async function listPolicyTree(run: RunGit, tree: string, recursive: boolean, linked: string): Promise<{ files: TreeFile[]; faults: TextFault[] }> {
  const listing = await run(["ls-tree", "-z", "-l", "--full-tree", ...(recursive ? ["-r"] : []), tree]);
  const files: TreeFile[] = [];
  const faults: TextFault[] = [];
  for (const entry of new TextDecoder().decode(listing).split("\0")) {
    const [, mode, type, id = "", size = "", name = ""] = /^(\d+) (\w+) ([0-9a-f]+) +(\S+)\t([^]+)$/.exec(entry) ?? [];
    if (type !== "blob" || !/\.ya?ml$/.test(name) || name.split("/").some((part) => part.startsWith("."))) continue;
    if (mode === "120000") faults.push({ file: name, line: null, column: null, message: linked });
    // BAD, where the object is missing: reading it says so.
    else files.push({ id, name, size: /^\d+$/.test(size) ? Number(size) : MISSING });
  }
  return { files, faults };
}

/** Their contents, in their order. @param absent what to throw for an object that the repository does not have */
export async function readPolicyTree(run: RunGit, files: readonly TreeFile[], absent: (id: string) => Error): Promise<Uint8Array[]> {
  if (files.length === 0) return [];
  const all = await run(["cat-file", "--batch"], `${files.map(({ id }) => id).join("\n")}\n`);
  let at = 0;
  return files.map(({ id, size }) => {
    const header = `${id} blob ${size}\n`;
    if (all.toString("latin1", at, at + header.length) !== header) throw absent(id);
    const from = at + header.length;
    at = from + size + 1;
    return new Uint8Array(all.subarray(from, from + size));
  });
}
