/** Collects what the plugins bring, refuses what clashes, then is fixed. */
import { Value } from "@sinclair/typebox/value";
import { Kind, Type, type TObject } from "@sinclair/typebox";
import type { Host } from "./contract/host.ts";
import type { Notifier } from "./contract/notifier.ts";
import type { Page } from "./contract/page.ts";
import type { PolicySource } from "./contract/policy-source.ts";
import type { Route } from "./contract/resource.ts";
import type { Storage } from "./contract/storage.ts";
import type { LoadedPlugin } from "./plugin-loader.ts";
import type { AnsweredRequest, Contributions, Plugin } from "./plugin.ts";
import { contributionsFault } from "./contributions.ts";
import { explainFault, siblingsAt } from "./domain/validation.ts";

/** Says which plugin and, for options, which key. */
export class PluginError extends Error {
  readonly plugin: string;
  constructor(plugin: string, message: string, options?: { cause?: unknown }) {
    super(`plugin "${plugin}": ${message}`, options);
    this.name = "PluginError";
    this.plugin = plugin;
  }
}

export interface Registry {
  /** Null only when there is no plugin at all. */
  readonly storage: Storage | null;
  readonly routes: readonly Route[];
  readonly pages: readonly Page[];
  readonly policySources: readonly PolicySource[];
  readonly notifiers: readonly Notifier[];
  answered(request: AnsweredRequest): void;
  /** In order. When one fails, those started are stopped in reverse and its error is passed on. */
  start(): Promise<void>;
  /** In reverse; idempotent. One that throws does not keep the others from stopping. */
  stop(): Promise<void>;
}

const NO_OPTIONS = Type.Object({}, { additionalProperties: false });

export async function collect(plugins: readonly LoadedPlugin[], host: Host): Promise<Registry> {
  const names = new Set<string>();
  const parts: { name: string; brought: Contributions }[] = [];
  for (const { plugin, options, origin } of plugins) {
    if (names.has(plugin.name)) throw new PluginError(plugin.name, `it is loaded twice, the second time as "${origin}"; name it once`);
    names.add(plugin.name);
    const checked = checkOptions(plugin.name, plugin.options ?? NO_OPTIONS, options);
    const brought = await setUp(plugin, host, checked);
    const fault = contributionsFault(brought);
    if (fault !== null) throw new PluginError(plugin.name, fault);
    parts.push({ name: plugin.name, brought });
  }
  const storage = theStorage(parts);
  const routes = unique(parts, (b) => b.routes, (route) => `${route.method} ${route.path.replaceAll(/:[^/]+/g, ":")}`, (route) => `the route ${route.method} ${route.path}`);
  const pages = unique(parts, (b) => b.pages, (page) => page.path, (page) => `the page ${page.path}`);
  const policySources = unique(parts, (b) => b.policySources, (source) => source.name, (source) => `the policy source "${source.name}"`);
  const notifiers = unique(parts, (b) => b.notifiers, (notifier) => notifier.name, (notifier) => `the notifier "${notifier.name}"`);
  return Object.freeze({ storage, routes, pages, policySources, notifiers, answered: observers(parts, host), ...lifecycle(parts, host) });
}

async function setUp(plugin: Plugin, host: Host, options: unknown): Promise<Contributions> {
  try {
    return await plugin.setup(host, options as never);
  } catch (error) {
    if (error instanceof PluginError) throw error;
    throw failure(plugin.name, "setup", error, host);
  }
}

/** Operators are told in one line; where in the plugin it was is for its author, who asks for it. */
function failure(plugin: string, what: string, error: unknown, host: Host): PluginError {
  host.log.debug(`a plugin failed in ${what}`, { plugin, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  return new PluginError(plugin, `${what} failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}

function checkOptions(name: string, declared: TObject, given: unknown): unknown {
  if ((declared as Partial<TObject>)?.[Kind] !== "Object") throw new PluginError(name, "its options must be made with Type.Object of assent/plugin");
  // A key that nobody reads is a typing error: the contract refuses it also where the schema forgot to.
  const schema = declared.additionalProperties === undefined ? { ...declared, additionalProperties: false } : declared;
  const options = Value.Default(schema, Value.Clone(given ?? {}));
  // What is missing is of the wrong kind too: the first fault of a key says it.
  const faults = [...Value.Errors(schema, options)].filter((fault, i, all) => all.findIndex(({ path }) => path === fault.path) === i).slice(0, 10);
  if (faults.length === 0) return options;
  const words = faults.map((fault) => `option "${fault.path.slice(1).replaceAll("/", ".") || "options"}": ${explainFault(fault, siblingsAt(schema, fault.path))}`);
  throw new PluginError(name, words.join("; "));
}

function theStorage(parts: readonly { name: string; brought: Contributions }[]): Storage | null {
  const found = parts.filter(({ brought }) => brought.storage !== undefined);
  const [first, second] = found;
  if (first !== undefined && second !== undefined) {
    throw new PluginError(second.name, `it brings a storage, and so does "${first.name}"; configure one of the two`);
  }
  if (first === undefined && parts.length > 0) {
    throw new PluginError(parts.map(({ name }) => name).join(", "), "none of the plugins brings a storage; add one, such as storage-sqlite");
  }
  return first?.brought.storage ?? null;
}

function unique<T extends object>(
  parts: readonly { name: string; brought: Contributions }[],
  pick: (brought: Contributions) => T[] | undefined,
  key: (item: T) => string,
  words: (item: T) => string,
): readonly T[] {
  const owners = new Map<string, string>();
  const items: T[] = [];
  for (const { name, brought } of parts) {
    for (const item of pick(brought) ?? []) {
      const owner = owners.get(key(item));
      if (owner !== undefined) throw new PluginError(name, `${words(item)} is taken by plugin "${owner}"`);
      owners.set(key(item), name);
      items.push(item);
    }
  }
  return Object.freeze(items);
}

function observers(parts: readonly { name: string; brought: Contributions }[], host: Host): Registry["answered"] {
  const listening = parts.filter(({ brought }) => brought.answered !== undefined);
  return (request) => {
    for (const { name, brought } of listening) {
      try {
        brought.answered?.(request);
      } catch (error) {
        host.log.error("a plugin threw when it was told of a request", { plugin: name, error: String(error) });
      }
    }
  };
}

function lifecycle(parts: readonly { name: string; brought: Contributions }[], host: Host): Pick<Registry, "start" | "stop"> {
  let started: { name: string; brought: Contributions }[] = [];
  async function stop(): Promise<void> {
    const running = started.reverse();
    started = [];
    for (const { name, brought } of running) {
      try {
        await brought.stop?.();
      } catch (error) {
        host.log.error("a plugin failed to stop", { plugin: name, error: String(error) });
      }
    }
  }
  return {
    stop,
    async start() {
      for (const part of parts) {
        // Before its start: what a failed start has begun is its own stop's to end.
        started.push(part);
        try {
          await part.brought.start?.();
        } catch (error) {
          await stop();
          throw failure(part.name, "start", error, host);
        }
      }
    },
  };
}
