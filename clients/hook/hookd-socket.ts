/** The path of hookd's socket, and the check that only this user can access it. */
import { lstatSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";

/** Returns the socket's path; null if there is no safe folder. The hook then works without hookd. */
export function socketPath(env: Readonly<Record<string, string | undefined>>, version: string): string | null {
  if (process.platform === "win32" || process.getuid === undefined) return null;
  const home = env["HOME"];
  const folder = env["XDG_RUNTIME_DIR"] || env["XDG_STATE_HOME"] || (home ? join(home, ".local", "state") : null);
  if (folder === null || !folder.startsWith("/")) return null;
  const path = join(folder, "assent", `hookd-${version}.sock`);
  // Check the length: systems limit socket paths, and hookd appends its process id.
  return Buffer.byteLength(path) <= 90 ? path : null;
}

/** Returns true if the socket and its folder belong to this user, and no other user can write to them. */
export function isPrivateSocket(path: string): boolean {
  try {
    const socket = lstatSync(path);
    const folder = lstatSync(dirname(path));
    const uid = process.getuid?.();
    return (
      socket.isSocket() &&
      socket.uid === uid &&
      (socket.mode & 0o077) === 0 &&
      folder.uid === uid &&
      (folder.mode & 0o022) === 0
    );
  } catch {
    return false;
  }
}

export function createSocketFolder(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
}
