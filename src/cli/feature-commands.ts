/**
 * Commands of the built-in plugins: `assent <folder>` runs `plugins/<folder>/command.ts`. They work even if the
 * configuration cannot be loaded, because `assent stop` must work in an emergency.
 */
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Command } from "./command.ts";

const FILE = import.meta.url.endsWith(".ts") ? "command.ts" : "command.js";
const PLUGINS = new URL("../../plugins/", import.meta.url);

/** Returns the names of the commands, in alphabetical order. */
export function listFeatureCommands(): string[] {
  return readdirSync(fileURLToPath(PLUGINS))
    .filter((folder) => existsSync(new URL(`${folder}/${FILE}`, PLUGINS)))
    .sort();
}

/** Loads a command whose name `listFeatureCommands` returns. */
export async function loadFeatureCommand(name: string): Promise<Command> {
  const module = (await import(new URL(`${name}/${FILE}`, PLUGINS).href)) as { default: Command };
  return module.default;
}
