/** Temporary folders of clones. Each exists only while its process reads it. */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, join } from "node:path";

/** Age after which a folder of another machine is removed. No load takes so long. Milliseconds. */
const MAX_AGE_MS = 86_400_000;

const NAME = /^([0-9a-f]{8})-([0-9]+)-[0-9a-f]{16}$/;

/** Names of this process's folders. */
const inUse = new Set<string>();

/** Creates a folder in `parent`. First removes the folders of processes that did not remove their own. */
export async function createCloneFolder(parent: string): Promise<string> {
  await removeAbandoned(parent);
  const name = `${machineId()}-${process.pid}-${randomBytes(8).toString("hex")}`;
  inUse.add(name);
  const folder = join(parent, name);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Does not throw: a later load removes what could not be removed. */
export async function removeCloneFolder(folder: string): Promise<void> {
  inUse.delete(basename(folder));
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
}

async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const folder = join(parent, name);
    if (!inUse.has(name) && (await isAbandoned(folder))) await removeCloneFolder(folder);
  }
}

async function isAbandoned(folder: string): Promise<boolean> {
  const [, machine, pid] = NAME.exec(basename(folder)) ?? [];
  // An earlier process in this container can have had the same id.
  if (machine === machineId()) return Number(pid) === process.pid || !isRunning(Number(pid));
  const { mtimeMs = Date.now() } = await stat(folder).catch(() => ({ mtimeMs: undefined }));
  return Date.now() - mtimeMs > MAX_AGE_MS;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function machineId(): string {
  return createHash("sha256").update(readHostname()).digest("hex").slice(0, 8);
}

function readHostname(): string {
  try {
    return hostname();
  } catch {
    // Deno permits it only with --allow-sys=hostname.
    return "";
  }
}
