/** Finds the plugin that provides the storage, without running any other code of plugins. */
import { StorageError, type Storage } from "../../contract/storage.ts";
import type { StorageHost } from "../../plugin.ts";
import type { LoadedPlugin } from "./loader.ts";
import { parseOptions, toPluginError, PluginError, assertUniqueNames } from "./plugin-options.ts";

/**
 * Returns the storage, which is not open yet; null only if there are no plugins. Throws PluginError unless exactly one
 * plugin provides a storage, and if that plugin fails. Rethrows a StorageError of the plugin.
 */
export async function createStorage(plugins: readonly LoadedPlugin[], host: StorageHost): Promise<Storage | null> {
  assertUniqueNames(plugins);
  const [first, second] = plugins.filter(({ plugin }) => plugin.storage !== undefined);
  if (first !== undefined && second !== undefined) {
    throw new PluginError(
      second.plugin.name,
      `it provides a storage, and so does "${first.plugin.name}"; configure one of the two`,
    );
  }
  if (first === undefined) {
    if (plugins.length === 0) return null;
    throw new PluginError(
      plugins.map(({ plugin }) => plugin.name).join(", "),
      "none of the plugins provides a storage; add one, such as storage-sqlite",
    );
  }
  const { plugin, options } = first;
  const checked = parseOptions(plugin, options);
  let storage: Storage | undefined;
  try {
    storage = await plugin.storage?.(host, checked as never);
  } catch (error) {
    if (error instanceof StorageError) throw error;
    throw toPluginError(plugin.name, "storage", error, host.log);
  }
  if (typeof storage !== "object" || storage === null)
    throw new PluginError(
      plugin.name,
      "`storage` did not return a storage; return an object that implements the storage contract",
    );
  return storage;
}
