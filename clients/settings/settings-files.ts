/** Reads and writes settings files of this user and of agents. Writes are atomic, and fail if the file has changed since it was read. */
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** Returns the folder of the user's files; null if the home folder is unknown. */
export function userConfigFolder(env: Readonly<Record<string, string | undefined>>): string | null {
  const home = env["HOME"] || env["USERPROFILE"];
  const folder = env["XDG_CONFIG_HOME"] || (home ? join(home, ".config") : null);
  return folder === null ? null : join(folder, "assent");
}

/** Returns the file's text; null if the file does not exist. @throws Error whose message is a sentence */
export function readSettings(path: string): string | null {
  try {
    const bytes = readFileSync(path);
    // Keep a byte order mark; reject invalid UTF-8.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") {
      if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return null;
      throw new Error(`${path} is a link to a missing file`, { cause: error });
    }
    throw new Error(`${path} cannot be read: ${fileErrorReason(error)}`, { cause: error });
  }
}

/**
 * Writes the file. If `text` is null, deletes it.
 * @throws Error whose message is a sentence, including if the file no longer equals `before`
 * @param newMode mode of the file if it is new
 */
export function writeSettings(path: string, before: string | null, text: string | null, newMode = 0o644): void {
  if (readSettings(path) !== before) throw new Error(`${path} changed after it was read; run the command again`);
  try {
    // If the file is a link, write to its target, so that the link is preserved.
    const file = before === null ? path : realpathSync(path);
    const mode = before === null ? newMode : statSync(file).mode & 0o777;
    if ((mode & 0o222) === 0) throw new Error("the file is read-only");
    if (text === null) {
      rmSync(file, { force: true });
      return rmSync(path, { force: true });
    }
    mkdirSync(dirname(file), { recursive: true });
    const temporaryFile = `${file}.${randomUUID()}.tmp`;
    try {
      writeFileSync(temporaryFile, text, { mode, flag: "wx", flush: true });
      chmodSync(temporaryFile, mode);
      renameSync(temporaryFile, file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") rmSync(temporaryFile, { force: true });
      throw error;
    }
  } catch (error) {
    throw new Error(`${path} cannot be written: ${fileErrorReason(error)}; nothing was changed`, { cause: error });
  }
}

function fileErrorReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "EACCES" || code === "EPERM") return "permission denied";
  if (code === "ENOTDIR" || code === "EEXIST") return "a parent folder is a file";
  if (code === "EISDIR") return "it is a folder";
  if (code === "ENOSPC" || code === "EDQUOT") return "the disk is full, free space and run the command again";
  if (code === "EROFS") return "the file system is read-only";
  if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return "it is not UTF-8";
  return message;
}

/** Returns the changed lines, marked with - and +. */
export function lineDiff(before: string | null, after: string | null): string[] {
  const [a, b] = [before, after].map((text) => (text === null ? [] : text.replace(/\n$/, "").split("\n"))) as [
    string[],
    string[],
  ];
  // common[i][j] is the length of the longest common subsequence of the lines from i and from j on.
  const common = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      (common[i] as Uint32Array)[j] =
        a[i] === b[j]
          ? (common[i + 1]?.[j + 1] as number) + 1
          : Math.max(common[i + 1]?.[j] as number, common[i]?.[j + 1] as number);
  const lines: string[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      i++;
      j++;
    } else if (j === b.length || (i < a.length && (common[i + 1]?.[j] as number) >= (common[i]?.[j + 1] as number)))
      lines.push(`- ${a[i++]}`);
    else lines.push(`+ ${b[j++]}`);
  }
  return lines;
}
