/**
 * Commands of the built-in plugins: `assent <folder>` runs `plugins/<folder>/command.ts`. They work even if the
 * configuration cannot be loaded, because `assent stop` must work in an emergency.
 */
import { listBuiltIn } from "../config/built-in-plugins.ts";
import type { Command } from "./command.ts";

export function listFeatureCommands(): string[] {
  return Object.keys(listBuiltIn("command"));
}

/** Loads a command whose name `listFeatureCommands` returns. */
export async function loadFeatureCommand(name: string): Promise<Command> {
  return (await listBuiltIn("command")[name]?.())?.default as Command;
}
