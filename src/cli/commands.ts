/**
 * The commands: those of the core, those in the folders of features, and those of configured plugins. A command's code
 * is loaded when it runs, because most commands need few modules.
 */
import { readFileSync } from "node:fs";
import { listBuiltInCommands } from "../config/built-in-plugins.ts";
import type { CoreCommand } from "../contract/command.ts";
import { COMMAND_GROUPS, CommandError, type CommandEntry, type ListedCommand } from "./command.ts";

const CORE: Readonly<Record<CoreCommand, CommandEntry>> = {
  init: {
    group: "service",
    summary: "write a configuration and policies to begin with",
    load: async () => (await import("./init.ts")).init,
  },
  serve: {
    group: "service",
    summary: "run the service",
    load: async () => (await import("./serve-command.ts")).serve,
  },
  login: {
    group: "service",
    summary: "store a key for the commands on this machine",
    load: async () => (await import("./login.ts")).login,
  },
  logout: {
    group: "service",
    summary: "remove the stored key",
    load: async () => (await import("./login.ts")).logout,
  },
  status: {
    group: "service",
    summary: "show the service, the key, and what waits for approval",
    load: async () => (await import("./service-status.ts")).status,
  },
  doctor: {
    group: "service",
    summary: "check the installation, and say what to do about each problem",
    load: async () => (await import("./doctor.ts")).loadDoctor(),
  },
  keys: {
    group: "service",
    summary: "create, list and revoke API keys; rotate the signing keys",
    load: async () => (await import("./keys.ts")).keys,
  },
  verify: {
    group: "record",
    summary: "check a proof, offline",
    load: async () => (await import("./verify.ts")).loadVerify(),
  },
  audit: {
    group: "record",
    summary: "check a whole store against its ledger",
    load: async () => (await import("./audit.ts")).audit,
  },
  backup: {
    group: "record",
    summary: "copy the embedded store while it is in use",
    load: async () => (await import("./backup.ts")).backup,
  },
  compact: {
    group: "record",
    summary: "rewrite the embedded store without copies of erased data",
    load: async () => (await import("./compact.ts")).compact,
  },
  migrate: {
    group: "record",
    summary: "migrate a store to the current schema",
    load: async () => (await import("./migrate.ts")).migrate,
  },
  copy: {
    group: "record",
    summary: "move a store into another database",
    load: async () => (await import("./copy.ts")).copy,
  },
  policy: {
    group: "policies",
    summary: "check, test and compare policies without a service",
    load: async () => (await import("./policy/index.ts")).loadPolicy(),
  },
  schema: {
    group: "policies",
    summary: "print the JSON Schema of policies, their tests or assent.yaml, for editors",
    load: async () => (await import("./schema.ts")).schema,
  },
  completion: {
    group: "clients",
    summary: "print a completion script for a shell",
    load: async () => (await import("./completion/index.ts")).completion(allCommands),
  },
};

/** Returns the entry of a built-in command; null if there is none. Does not read the configuration. */
export async function findBuiltIn(name: string): Promise<CommandEntry | null> {
  if (Object.hasOwn(CORE, name)) return CORE[name as CoreCommand];
  const features = listBuiltInCommands();
  return Object.hasOwn(features, name) ? loadEntry(features[name] as () => Promise<{ default?: unknown }>) : null;
}

/** Returns the built-in commands, in the order in which `assent --help` lists them. */
export async function listEntries(): Promise<[name: string, entry: CommandEntry][]> {
  const features = Object.entries(listBuiltInCommands()).map(async ([name, load]): Promise<[string, CommandEntry]> => [
    name,
    await loadEntry(load),
  ]);
  const entries = [...Object.entries(CORE), ...(await Promise.all(features))];
  const positionOf = ([, { position }]: [string, CommandEntry]): number => position ?? entries.length;
  entries.sort((a, b) => positionOf(a) - positionOf(b));
  return COMMAND_GROUPS.flatMap((group) => entries.filter(([, entry]) => entry.group === group));
}

async function loadEntry(load: () => Promise<{ default?: unknown }>): Promise<CommandEntry> {
  return (await load()).default as CommandEntry;
}

/** Loads the built-in commands and those of configured plugins, in the order in which `assent --help` lists them. */
export async function allCommands(): Promise<ReadonlyMap<string, ListedCommand>> {
  const loaded = (await listEntries()).map(async ([name, { summary, load }]): Promise<[string, ListedCommand]> => [
    name,
    { summary, ...(await load()) },
  ]);
  return new Map([...(await Promise.all(loaded)), ...(await loadPluginCommands()).commands]);
}

/** Loads the commands of plugins. If the configuration cannot be loaded, the built-in commands still work. */
export async function loadPluginCommands(): Promise<{
  commands: ReadonlyMap<string, ListedCommand>;
  failure: string | null;
}> {
  try {
    if (!namesPlugins()) return { commands: new Map(), failure: null };
    return { commands: await (await import("./plugin-commands.ts")).pluginCommands(), failure: null };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { commands: new Map(), failure: error.message };
  }
}

/**
 * Returns whether the configuration might name plugins: true if the configuration file contains the word `plugins`.
 * Does not load the code that reads it.
 */
function namesPlugins(file: string = process.env["ASSENT_CONFIG"] || "assent.yaml"): boolean {
  try {
    return readFileSync(file, "utf8").includes("plugins");
  } catch (error) {
    // `loadConfig` reports other errors, and a missing file that the environment names.
    return (error as NodeJS.ErrnoException).code !== "ENOENT" || Boolean(process.env["ASSENT_CONFIG"]);
  }
}
