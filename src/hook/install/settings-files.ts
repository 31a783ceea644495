/** Writes settings of hosts: whole or not at all, and never over something that was changed meanwhile. */
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
import { dirname } from "node:path";

/** Null where there is no file. @throws Error with a sentence */
export function readSettings(path: string): string | null {
  try {
    const bytes = readFileSync(path);
    // Byte order marks stay, what is not UTF-8 would not.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") {
      if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return null;
      throw new Error(`${path} is a link that leads nowhere`, { cause: error });
    }
    throw new Error(`${path} cannot be read: ${fileErrorReason(error)}`, { cause: error });
  }
}

/**
 * `text` null takes the file away. @throws Error with a sentence; also when the file is no longer what `before` says.
 * @param newMode of a file that does not exist yet
 */
export function writeSettings(path: string, before: string | null, text: string | null, newMode = 0o644): void {
  if (readSettings(path) !== before) throw new Error(`${path} was changed meanwhile`);
  try {
    // Where it is a link, what it leads to is changed, and the link stays.
    const file = before === null ? path : realpathSync(path);
    const mode = before === null ? newMode : statSync(file).mode & 0o777;
    if ((mode & 0o222) === 0) throw new Error("the file may only be read");
    if (text === null) {
      rmSync(file, { force: true });
      return rmSync(path, { force: true });
    }
    mkdirSync(dirname(file), { recursive: true });
    const beside = `${file}.${randomUUID()}.tmp`;
    try {
      writeFileSync(beside, text, { mode, flag: "wx", flush: true });
      chmodSync(beside, mode);
      renameSync(beside, file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") rmSync(beside, { force: true });
      throw error;
    }
  } catch (error) {
    throw new Error(`${path} cannot be written: ${fileErrorReason(error)}; nothing was changed`, { cause: error });
  }
}

function fileErrorReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "EACCES" || code === "EPERM") return "you have no right to";
  if (code === "ENOTDIR" || code === "EEXIST") return "what should be a folder is a file";
  if (code === "EISDIR") return "it is a folder";
  if (code === "EROFS") return "the disk may only be read";
  if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return "it is not UTF-8";
  return message;
}

/** What changes, line by line. */
export function lineDiff(before: string | null, after: string | null): string[] {
  const [a, b] = [before, after].map((text) => (text === null ? [] : text.replace(/\n$/, "").split("\n"))) as [
    string[],
    string[],
  ];
  // How many lines are common to what stands behind a place in the one and a place in the other.
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
