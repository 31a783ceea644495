/** Loads the configuration for commands. */
import { ConfigError, loadConfig, type Config } from "../config/index.ts";
import { CommandError } from "./command.ts";

/**
 * Returns the configuration of the service. Throws CommandError if it is not valid.
 * @param file path of the configuration; undefined for the default
 * @example
 * const config = loadServeConfig(process.env, undefined);
 */
export function loadServeConfig(
  env: Record<string, string | undefined>,
  file: string | undefined,
  cwd: string = process.cwd(),
): Config {
  try {
    return loadConfig({ cwd, env, ...(file === undefined ? {} : { file }) }).config;
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message);
    throw error;
  }
}
