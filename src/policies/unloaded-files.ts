/** Finds files that look like policies, but that no source loads, because of their names or folders. */
import { type Dirent } from "node:fs";
import { open, readdir, readFile, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import type { UnloadedFile } from "../contract/policy-source.ts";
import { decodeUtf8, isJsonObject } from "../domain/json.ts";
import { readYaml } from "../domain/yaml.ts";

const REASONS: Readonly<Record<UnloadedFile["reason"], string>> = {
  ending: "its name does not end in .yaml or .yml",
  hidden: "its name or folder begins with a dot",
  subfolder: "it is in a subfolder, which the option recursive includes",
  beside: "it is next to the folder of the policies, not in it",
};

/** Returns a sentence without a subject, such as `looks like a policy and is not loaded, because …`. */
export function explainUnloaded({ reason }: Pick<UnloadedFile, "reason">): string {
  return `looks like a policy and is not loaded, because ${REASONS[reason]}`;
}

/**
 * Returns the end of a message that names the first unloaded files.
 * @example
 * throw new Error(`the folder does not exist${listUnloaded(unloaded)}`);
 */
export function listUnloaded(unloaded: readonly UnloadedFile[]): string {
  return unloaded
    .slice(0, 5)
    .map((each) => `; ${each.file} ${explainUnloaded(each)}`)
    .join("");
}

/** Maximum numbers of files to list and to read, and of bytes of a file to read. */
const MAX_LISTED_FILES = 10_000;
const MAX_READ_FILES = 1_000;
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

/**
 * Returns true for the name of a file or folder that is easily mistaken for the folder of the policies next to it, such
 * as `policies.yaml`, `Policy`, `assent-policy.yml` or, for the folder `rules`, `rule.yaml`.
 */
export function isMistakenFor(name: string, folder: string, isFolder: boolean): boolean {
  const words = (text: string): string[] =>
    text
      .toLowerCase()
      .replace(/^\.+/, "")
      .replace(/\..*$/s, "")
      .split(/[^a-z]+/)
      .filter((word) => word !== "" && word !== "assent")
      .map((word) => word.replace(/(?:ies|y|s)$/, ""));
  const found = words(name);
  if (isFolder && found.length > 1) return false;
  return !DOCUMENT.test(name) && (found.includes("polic") || found.join("-") === words(folder).join("-"));
}

/** Returns true if the content has the members of a policy: `policy`, and `rules` or `limits`. */
export function looksLikePolicy(content: Uint8Array): boolean {
  // In UTF-16 and UTF-32, the characters of the members are single bytes among zeros.
  const bytes = content.includes(0) ? content.filter((byte) => byte !== 0) : content;
  const text = decodeUtf8(bytes) ?? Buffer.from(bytes).toString("latin1");
  // Most files are recognized without parsing them, because a start would parse all packs.
  if (!/policy["']?\s*:/.test(text) || !/(?:rules|limits)["']?\s*:/.test(text)) return false;
  if (/^policy: +["'\w]/m.test(text) && /^(?:rules|limits):/m.test(text)) return true;
  const { values, faults } = readYaml(text.replace(/^[^!-~\s]+/, ""));
  if (faults.length > 0) return /^["']?policy["']?\s*:/m.test(text) && /^["']?(?:rules|limits)["']?\s*:/m.test(text);
  return values.some(
    ({ value }) =>
      isJsonObject(value) && typeof value["policy"] === "string" && ("rules" in value || "limits" in value),
  );
}

/**
 * Lists the files in and next to a folder that look like policies and that `loadPolicyFolder` does not load. Never
 * rejects.
 */
export async function findUnloadedFiles(path: string, recursive: boolean): Promise<UnloadedFile[]> {
  const found: UnloadedFile[] = [];
  for (const { file, reason } of await listFiles(path, recursive)) {
    try {
      // A read of a pipe would not end.
      if (!(await stat(join(path, file))).isFile()) continue;
      const content = await readStart(join(path, file));
      if (looksLikePolicy(content) && !(await isShippedPack(file, content))) found.push({ file, reason });
    } catch {
      // The file was removed or cannot be read, so it is unknown whether it is a policy.
    }
  }
  return found;
}

/** The packs of this package. They are in the folder of the default policies, and operators copy those that they want. */
const PACKS = new URL("../../policies/packs/", import.meta.url);

/** Returns true for an unchanged pack in the folder `packs`. */
async function isShippedPack(file: string, content: Uint8Array): Promise<boolean> {
  if (!file.startsWith("packs/")) return false;
  const pack = await readFile(new URL(file.slice("packs/".length), PACKS)).catch(() => null);
  return pack !== null && pack.equals(content);
}

/** Reads the first `MAX_UNLOADED_BYTES` of a file. */
async function readStart(file: string): Promise<Uint8Array> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_UNLOADED_BYTES));
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/**
 * Returns the relative paths of the files in and next to a folder that can be unloaded policies. Follows links. Never
 * rejects.
 * @example
 * const names = await listCandidates("policies", false); // ["refunds.YAML", "../policies.yaml"]
 */
export async function listCandidates(path: string, recursive: boolean): Promise<string[]> {
  return (await listFiles(path, recursive)).map(({ file }) => file);
}

async function listFiles(path: string, recursive: boolean): Promise<UnloadedFile[]> {
  const inside = (await walk(path, [""])).flatMap((file): UnloadedFile[] => {
    const reason = findReason(file, recursive);
    return reason === null ? [] : [{ file, reason }];
  });
  return [...(await listFilesBeside(path)), ...inside].slice(0, MAX_READ_FILES);
}

/** Lists the files next to a folder, and in the folders next to it, whose names are easily mistaken for the folder. */
async function listFilesBeside(path: string): Promise<UnloadedFile[]> {
  const [parent, folder] = [dirname(resolve(path)), basename(resolve(path))];
  const real = await realpath(path).catch(() => null);
  const files: string[] = [];
  for (const entry of await readdir(parent, { withFileTypes: true }).catch((): Dirent[] => [])) {
    const { name } = entry;
    // The name alone excludes most files, so that a large parent folder is not read file by file.
    if (name === folder || !isMistakenFor(name, folder, false)) continue;
    // A file system that ignores case has one folder under both names.
    if ((await realpath(join(parent, name)).catch(() => null)) === real) continue;
    const isFolder = await isFolderOrLink(join(parent, name));
    if (!isMistakenFor(name, folder, isFolder)) continue;
    files.push(...(isFolder ? await walk(parent, [name]) : [name]));
  }
  return files
    .sort()
    .filter((file) => !DOCUMENT.test(file))
    .map((file) => ({ file: `../${file}`, reason: "beside" }));
}

const isFolderOrLink = (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );

/**
 * Returns the relative paths of the files below these folders, except those of other programs.
 * @param folders paths relative to `path`; the empty path is `path` itself
 */
async function walk(path: string, folders: string[]): Promise<string[]> {
  const found: string[] = [];
  const linked = new Set<string>();
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const entries: Dirent[] = await readdir(join(path, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const file = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory() || (entry.isSymbolicLink() && (await leadsToNewFolder(path, file, linked)))) {
        if (!FOREIGN_FOLDER.test(entry.name)) folders.push(file);
      } else found.push(file);
      if (found.length + folders.length > MAX_LISTED_FILES) return found;
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
