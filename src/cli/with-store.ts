/** Helpers for commands that open the store directly. */
import { readFileSync } from "node:fs";
import type { Config } from "../config/index.ts";
import { StorageError, type Storage } from "../contract/storage.ts";
import { createLogger } from "../serve/log.ts";
import { loadPlugins, PluginLoadError } from "../runtime/plugins/loader.ts";
import { PluginError } from "../runtime/plugins/plugin-options.ts";
import { createStorage } from "../runtime/plugins/create-storage.ts";
import { CommandError, EXIT_CODES, type Output } from "./command.ts";
import { programCommand } from "./invocation.ts";

/** Opens the store, runs the work and closes the store. Throws CommandError for problems that an operator can fix. */
export async function withStore<T>(
  config: Config,
  options: { readOnly?: boolean },
  work: (storage: Storage) => Promise<T>,
): Promise<T> {
  let storage: Storage | null = null;
  try {
    storage = await storageFor(config);
    if (storage === null) throw new CommandError("no plugin is configured, so there is no store");
    await storage.open(options);
    return await work(storage);
  } catch (error) {
    throw toCommandError(error);
  } finally {
    await storage?.close();
  }
}

/**
 * Throws CommandError if the configured storage does not work on this machine. Does not open the store or write
 * anything.
 */
export async function assertStorageUsable(config: Config): Promise<void> {
  try {
    await storageFor(config);
  } catch (error) {
    throw toCommandError(error);
  }
}

async function storageFor(config: Config): Promise<Storage | null> {
  const { data, database_url: databaseUrl } = config;
  return createStorage(await loadPlugins(config), { log: createLogger("error"), data, databaseUrl });
}

function toCommandError(error: unknown): unknown {
  if (error instanceof StorageError && error.kind === "corrupt")
    return new CommandError(error.message, EXIT_CODES.unverified);
  return [StorageError, PluginError, PluginLoadError].some((kind) => error instanceof kind)
    ? new CommandError((error as Error).message)
    : error;
}

/** Throws CommandError unless the store has exactly the migrations that this version knows. */
export async function assertCurrentSchema(storage: Storage): Promise<void> {
  const { applied, known: newest } = await storage.schema();
  if (applied < newest)
    throw new CommandError(
      `the store has schema ${applied}, and this version needs ${newest}; run "${programCommand()} migrate" first`,
    );
  if (applied > newest)
    throw new CommandError(
      `the store was migrated by a newer version (schema ${applied}, this one knows ${newest}); run that version`,
    );
}

/** Returns the checkpoint in the file that `--checkpoint` names. Throws CommandError if the file cannot be read. */
export function readCheckpointFlag(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandError(`the checkpoint "${path}" cannot be read: ${(error as Error).message}`);
  }
}

/**
 * Reports the progress of long-running work on standard error. On a terminal, updates one line; elsewhere, prints a
 * line for every 10 %.
 */
export function createProgressReporter(io: Output): (part: string, done: number, total: number) => void {
  let lastLine = "";
  return (part, done, total) => {
    const share = total === 0 ? 100 : Math.floor((done / total) * 100);
    const step = io.watched ? share : share - (share % 10);
    const line = `${part}: ${step} % of ${total}`;
    if (line === lastLine) return;
    if (io.watched) process.stderr.write(`\r\u001b[K${line}${share === 100 ? "\n" : ""}`);
    else io.err(line);
    lastLine = line;
  };
}
