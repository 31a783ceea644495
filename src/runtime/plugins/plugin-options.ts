/** Validates a plugin's name and options before any of its code runs. */
import { Kind, Type, type TObject, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Logger } from "../../contract/host.ts";
import { explainFault, siblingNames } from "../../domain/validation.ts";
import type { Plugin } from "../../plugin.ts";
import type { Section } from "../../config/index.ts";
import { PluginLoadError, type LoadedPlugin } from "./loader.ts";

/** Thrown for an invalid plugin. The message contains the plugin and, for an invalid option, its key. */
export class PluginError extends Error {
  readonly plugin: string;
  constructor(plugin: string, message: string, options?: { cause?: unknown }) {
    super(`plugin "${plugin}": ${message}`, options);
    this.name = "PluginError";
    this.plugin = plugin;
  }
}

/**
 * Returns the error of a plugin as one line for operators. Logs the stack trace at debug level for the plugin's author.
 */
export function toPluginError(plugin: string, occasion: string, error: unknown, log: Logger): PluginError {
  log.debug(`a plugin failed in ${occasion}`, {
    plugin,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  return new PluginError(plugin, `${occasion} failed: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}

/** Throws PluginError if two plugins have the same name. */
export function assertUniqueNames(plugins: readonly LoadedPlugin[]): void {
  const names = new Set<string>();
  for (const { plugin, origin } of plugins) {
    if (names.has(plugin.name))
      throw new PluginError(plugin.name, `it is loaded twice, the second time as "${origin}"; list it once`);
    names.add(plugin.name);
  }
}

/** Throws PluginError if a plugin needs the privileged host and the operator has not granted it. */
export function assertCoreGrants(plugins: readonly LoadedPlugin[]): void {
  for (const { plugin, origin, core = false } of plugins) {
    if (plugin.core === true && !core)
      throw new PluginError(
        plugin.name,
        `it needs the privileged API (assent/core), with which it can change actions, keys, policies and ledger entries. If you trust it, grant the privilege under "plugins" in assent.yaml: { name: ${origin}, core: true }`,
      );
  }
}

const NO_OPTIONS = Type.Object({}, { additionalProperties: false });

/**
 * Returns the schema with a default for the items of each record. TypeBox sets the default members of an item only if
 * the item itself has a default.
 */
function markRecordItems(schema: TSchema): TSchema {
  const marked = (items: Record<string, TSchema>, isRecord: boolean): Record<string, TSchema> =>
    Object.fromEntries(
      Object.entries(items).map(([name, item]) => {
        const inner = markRecordItems(item);
        return [name, isRecord && inner[Kind] === "Object" ? { default: {}, ...inner } : inner];
      }),
    );
  const { properties, patternProperties } = schema as {
    properties?: Record<string, TSchema>;
    patternProperties?: Record<string, TSchema>;
  };
  return {
    ...schema,
    ...(properties === undefined ? {} : { properties: marked(properties, false) }),
    ...(patternProperties === undefined ? {} : { patternProperties: marked(patternProperties, true) }),
  };
}

/** Returns the options with defaults. Throws a PluginError that lists up to 10 invalid keys. */
export function parseOptions(
  { name, options: declared = NO_OPTIONS }: Plugin,
  configured: unknown,
  section?: Section,
): unknown {
  if ((declared as Partial<TObject>)?.[Kind] !== "Object")
    throw new PluginError(name, "its options must be made with Type.Object of assent/plugin");
  // Unknown keys are usually typing errors, so reject them even if the plugin's schema permits them.
  const schema = declared.additionalProperties === undefined ? { ...declared, additionalProperties: false } : declared;
  const options = Value.Default(markRecordItems(schema), Value.Clone(configured ?? {}));
  // TypeBox also reports a missing key as a wrong type, so report only the first fault of each key.
  const faults = [...Value.Errors(schema, options)]
    .filter((fault, i, all) => all.findIndex(({ path }) => path === fault.path) === i)
    .slice(0, 10);
  if (faults.length === 0) return options;
  if (section !== undefined)
    throw new PluginLoadError(
      faults
        .map((fault) => section.describe(fault.path, explainFault(fault, siblingNames(schema, fault.path))))
        .join("\n"),
    );
  const words = faults.map(
    (fault) =>
      `option "${fault.path.slice(1).replaceAll("/", ".") || "options"}": ${explainFault(fault, siblingNames(schema, fault.path))}`,
  );
  throw new PluginError(name, words.join("; "));
}
