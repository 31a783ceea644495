/**
 * Commands of the built-in plugins: `assent <folder>` runs `plugins/<folder>/command.ts`. They work even if the
 * configuration cannot be loaded, because `assent stop` must work in an emergency.
 */
import { listBuiltIn } from "../config/built-in-plugins.ts";
import type { Command } from "./command.ts";

/** Returns functions that load the commands, keyed by name, in alphabetical order. */
export function featureCommands(): Readonly<Record<string, () => Promise<Command>>> {
  return Object.fromEntries(
    Object.entries(listBuiltIn("command")).map(([name, load]) => [name, async () => (await load()).default as Command]),
  );
}
