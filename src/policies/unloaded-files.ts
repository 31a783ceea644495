/** Finds files that look like policies, but that no source loads, because of their names or folders. */
import { type Dirent } from "node:fs";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { UnloadedFile } from "../contract/policy-source.ts";
import { decodeUtf8, isJsonObject } from "../domain/json.ts";
import { readYaml } from "../domain/yaml.ts";

const REASONS: Readonly<Record<UnloadedFile["reason"], string>> = {
  ending: "its name does not end in .yaml or .yml",
  hidden: "its name or folder begins with a dot",
  subfolder: "it is in a subfolder, which the option recursive includes",
};

/** Returns a sentence without a subject, such as `looks like a policy and is not loaded, because …`. */
export function explainUnloaded({ reason }: Pick<UnloadedFile, "reason">): string {
  return `looks like a policy and is not loaded, because ${REASONS[reason]}`;
}

/** Maximum number of files to read, and of bytes of a file. */
const MAX_FILES = 1_000;
export const MAX_UNLOADED_BYTES = 262_144;

/** Folders of other programs. `..` begins the names in a mounted ConfigMap, which repeat the files. */
const FOREIGN_FOLDER = /^(?:\.git|node_modules|\.\..*)$/;
/** Endings of documents, which can quote policies. */
const DOCUMENT = /\.(?:md|markdown|rst|adoc|html?)$/i;

/** Returns why a file is not loaded; null if it is, or if it cannot be a policy. */
export function findReason(name: string, recursive: boolean): UnloadedFile["reason"] | null {
  const parts = name.split("/");
  if (parts.some((part) => FOREIGN_FOLDER.test(part)) || DOCUMENT.test(name)) return null;
  if (parts.some((part) => part.startsWith("."))) return "hidden";
  if (!/\.ya?ml$/.test(name)) return "ending";
  return parts.length > 1 && !recursive ? "subfolder" : null;
}

/** Returns true if the content has the members of a policy: `policy`, and `rules` or `limits`. */
export function looksLikePolicy(content: Uint8Array): boolean {
  const text = decodeUtf8(content);
  // Most files are excluded without parsing them.
  if (text === null || !/policy["']?\s*:/.test(text) || !/(?:rules|limits)["']?\s*:/.test(text)) return false;
  const { values, faults } = readYaml(text);
  if (faults.length > 0) return /^["']?policy["']?\s*:/m.test(text) && /^["']?(?:rules|limits)["']?\s*:/m.test(text);
  return values.some(
    ({ value }) =>
      isJsonObject(value) && typeof value["policy"] === "string" && ("rules" in value || "limits" in value),
  );
}

/** Lists the files below a folder that look like policies and that `loadPolicyFolder` does not load. Never rejects. */
export async function findUnloadedFiles(path: string, recursive: boolean): Promise<UnloadedFile[]> {
  const found: UnloadedFile[] = [];
  for (const { file, reason } of await walk(path, recursive)) {
    try {
      const stats = await stat(join(path, file));
      // A read of a pipe would not end.
      if (!stats.isFile() || stats.size > MAX_UNLOADED_BYTES) continue;
      if (looksLikePolicy(await readFile(join(path, file)))) found.push({ file, reason });
    } catch {
      // The file is gone or cannot be read, so it cannot be told whether it is a policy.
    }
  }
  return found;
}

/**
 * Returns the relative paths of the files below a folder that can be unloaded policies. Follows links. Never rejects.
 * @example
 * const names = await listCandidates("policies", false); // ["refunds.YAML"]
 */
export async function listCandidates(path: string, recursive: boolean): Promise<string[]> {
  return (await walk(path, recursive)).map(({ file }) => file);
}

async function walk(path: string, recursive: boolean): Promise<UnloadedFile[]> {
  const found: UnloadedFile[] = [];
  const folders = [""];
  const linked = new Set<string>();
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const entries: Dirent[] = await readdir(join(path, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const file = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory() || (entry.isSymbolicLink() && (await leadsToNewFolder(path, file, linked)))) {
        if (!FOREIGN_FOLDER.test(entry.name)) folders.push(file);
      } else {
        const reason = findReason(file, recursive);
        if (reason !== null) found.push({ file, reason });
      }
      if (found.length + folders.length > MAX_FILES) return found;
    }
  }
  return found;
}

/** Returns true for a link to a folder that contains neither `path` nor the target of an earlier link. */
async function leadsToNewFolder(path: string, link: string, linked: Set<string>): Promise<boolean> {
  try {
    if (!(await stat(join(path, link))).isDirectory()) return false;
    const [target, root] = await Promise.all([realpath(join(path, link)), realpath(path)]);
    if (linked.has(target) || `${root}${sep}`.startsWith(target.endsWith(sep) ? target : `${target}${sep}`))
      return false;
    linked.add(target);
    return true;
  } catch {
    return false;
  }
}
