/**
 * Reports when a policy folder may have changed. Uses file system events, and also polls at the configured interval
 * (`poll_seconds`), because network mounts send no events, and systems differ in the events that they send when a
 * symbolic link is swapped.
 */
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { watch as watchPath } from "chokidar";
import { listUnloadedCandidates, type Logger } from "../../src/plugin.ts";

/** Delay after an event, in milliseconds, because editors and git write files one by one. */
const SETTLE_MS = 150;

interface Watching {
  stop(): Promise<void>;
}

/**
 * Returns a signature of the folder: names, sizes, times and inodes of its policy files, following links. Equal
 * signatures mean equal content, unless the file system reports a change wrongly. Never rejects: a missing folder also
 * has a signature.
 */
export async function folderSignature(path: string, recursive: boolean): Promise<string> {
  const lines = await listStates(path, recursive).catch((error: unknown) => [
    `unreadable: ${(error as NodeJS.ErrnoException).code ?? String(error)}`,
  ]);
  // A file that looks like a policy and is not loaded is reported, so it belongs to the content.
  for (const name of await listUnloadedCandidates(path, recursive)) {
    const stats = await stat(join(path, name)).catch(() => null);
    lines.push(`${name} ${stats === null ? "gone" : [stats.size, stats.mtimeMs].join(" ")}`);
  }
  return lines.join("\n");
}

/** Returns a line for the folder and for the state of each of its policy files. */
async function listStates(path: string, recursive: boolean): Promise<string[]> {
  const lines = [await realpath(path)];
  const visit = async (folder: string, above: readonly string[]): Promise<void> => {
    const real = await realpath(folder);
    // The entry links to a parent folder. `checkPolicyFolder` reports that as a fault.
    if (above.includes(real)) return;
    const names = (await readdir(folder)).filter((name) => !name.startsWith(".")).sort();
    for (const name of names) {
      const file = join(folder, name);
      const stats = await stat(file, { bigint: true }).catch(() => null);
      if (stats?.isDirectory() === true) {
        if (recursive) await visit(file, [...above, real]);
      } else if (/\.ya?ml$/.test(name)) {
        lines.push(
          `${file} ${stats === null ? "gone" : [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(" ")}`,
        );
      }
    }
  };
  await visit(path, []);
  return lines;
}

/**
 * Calls `changed` when the folder has settled in a state that differs from the loaded one. Repeats the call for the
 * same state only after a load, because the folder may have changed during the load and then returned to this state.
 */
export function watchFolder(
  path: string,
  options: { recursive: boolean; pollMs: number; log: Logger; loaded(): string | null },
  changed: () => void,
): Watching {
  let reported: { state: string; loaded: string | null } | null = null;
  let stopped = false;
  let timer: ReturnType<typeof setTimeout> | null = null;
  let looking: Promise<void> | null = null;

  const events = watchPath(path, {
    ignoreInitial: true,
    depth: options.recursive ? undefined : 0,
    ignorePermissionErrors: true,
    ignored: (name) => /(^|[/\\])\.(?!\.data)[^/\\]+$/.test(name) && name !== path,
  } as Parameters<typeof watchPath>[1]);
  events.on("all", () => scheduleComparison(SETTLE_MS));
  events.on("error", (error) =>
    options.log.debug("a policy folder cannot be watched with file system events; polling it instead", {
      path,
      error: String(error),
    }),
  );

  function scheduleComparison(afterMs: number): void {
    if (stopped) return;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(() => {
      timer = null;
      looking = compare().finally(() => {
        looking = null;
        if (timer === null) scheduleComparison(options.pollMs);
      });
    }, afterMs);
    timer.unref?.();
  }

  async function compare(): Promise<void> {
    const isNew = (state: string): boolean => {
      const loaded = options.loaded();
      return state !== loaded && !(state === reported?.state && loaded === reported.loaded);
    };
    let seen = await folderSignature(path, options.recursive);
    while (isNew(seen) && !stopped) {
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const settled = await folderSignature(path, options.recursive);
      if (settled === seen) {
        reported = { state: seen, loaded: options.loaded() };
        changed();
        return;
      }
      seen = settled;
    }
  }

  // Check once at startup, to detect changes since the folder was loaded.
  scheduleComparison(0);
  return {
    async stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      await events.close();
      await looking;
    },
  };
}
