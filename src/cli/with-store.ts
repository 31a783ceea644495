/** Helpers for commands that open the store directly. */
import type { Config } from "../config/index.ts";
import { StorageError, type Storage, type StorageReader } from "../contract/storage.ts";
import { createLogger } from "../serve/log.ts";
import { loadPlugins, PluginLoadError } from "../runtime/plugins/loader.ts";
import { PluginError } from "../runtime/plugins/plugin-options.ts";
import { createStorage } from "../runtime/plugins/create-storage.ts";
import { CommandError, EXIT_CODES } from "./command.ts";
import { loadServeConfig } from "./load-config.ts";
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

/** See `readStore` of `assent/command`. */
export async function readStore<T>(
  configFile: string | undefined,
  work: (store: StorageReader, optionsOf: (plugin: string) => unknown) => Promise<T>,
): Promise<T> {
  const config = loadServeConfig(process.env, configFile);
  return withStore(config, { readOnly: true }, async (storage) => {
    await assertCurrentSchema(storage);
    return work(storage, (plugin) => config.sections.get(plugin)?.value);
  });
}
