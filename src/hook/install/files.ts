/** Writes settings of hosts: whole or not at all, and never over something that was changed meanwhile. */
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export function readSettings(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** `text` null takes the file away. Throws when the file is no longer what `before` says. */
export function writeSettings(path: string, before: string | null, text: string | null): void {
  if (readSettings(path) !== before) throw new Error(`${path} was changed meanwhile`);
  if (text === null) return rmSync(path, { force: true });
  mkdirSync(dirname(path), { recursive: true });
  const mode = before === null ? 0o644 : statSync(path).mode & 0o777;
  const beside = `${path}.${process.pid}.tmp`;
  writeFileSync(beside, text, { mode });
  chmodSync(beside, mode);
  renameSync(beside, path);
}

/** What changes, line by line: the longest common lines at both ends stay out. */
export function difference(before: string | null, after: string | null): string[] {
  const [a, b] = [before, after].map((text) => (text === null ? [] : text.replace(/\n$/, "").split("\n"))) as [
    string[],
    string[],
  ];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const removed = a.slice(head, a.length - tail).map((line) => `- ${line}`);
  const added = b.slice(head, b.length - tail).map((line) => `+ ${line}`);
  return [...removed, ...added];
}
