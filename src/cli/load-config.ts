/** Loads the configuration for commands. */
import { ConfigError, loadConfig } from "../config/index.ts";
import { CommandError } from "./command.ts";

export function loadServeConfig(
  env: Record<string, string | undefined>,
  file: string | undefined,
): ReturnType<typeof loadConfig>["config"] {
  try {
    return loadConfig({ cwd: process.cwd(), env, ...(file === undefined ? {} : { file }) }).config;
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message);
    throw error;
  }
}
