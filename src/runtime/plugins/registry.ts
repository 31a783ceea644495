/** Collects the contributions of all plugins, and rejects conflicts. The contributions never change after that. */
import type { Host, Logger } from "../../contract/host.ts";
import type { Authenticator } from "../../contract/authenticator.ts";
import type { ToolCredentialIssuer } from "../../contract/credentials.ts";
import type { FactSource } from "../../contract/fact-source.ts";
import type { Facade } from "../../contract/facade.ts";
import type { HealthCheck } from "../../contract/check.ts";
import type { Gauge } from "../../contract/gauge.ts";
import type { NoticeKind } from "../../contract/notice.ts";
import type { Notifier } from "../../contract/notifier.ts";
import type { Page } from "../../contract/page.ts";
import type { PolicySource } from "../../contract/policy-source.ts";
import type { Route } from "../../contract/resource.ts";
import type { Reviewer } from "../../contract/reviewer.ts";
import type { DecisionStep } from "../../contract/step.ts";
import type { Messenger, MessengerParts } from "../../contract/messenger.ts";
import type { Tracer } from "../../contract/tracer.ts";
import type { LoadedPlugin } from "./loader.ts";
import type { CompletedRequest, Contributions, Plugin } from "../../plugin.ts";
import { FACT_SOURCE_NAME_PATTERN } from "../../domain/policy/parse/bounds.ts";
import { findContributionFault } from "./contributions.ts";
import type { Declarations } from "./declarations.ts";
import { parseOptions, toPluginError, PluginError } from "./plugin-options.ts";

export interface Registry {
  readonly routes: readonly Route[];
  readonly pages: readonly Page[];
  readonly facades: readonly Facade[];
  readonly authenticators: readonly Authenticator[];
  readonly credentialIssuers: readonly ToolCredentialIssuer[];
  readonly gauges: readonly Gauge[];
  readonly checks: readonly HealthCheck[];
  readonly steps: readonly DecisionStep[];
  readonly policySources: readonly PolicySource[];
  readonly notifiers: readonly Notifier[];
  /** The kinds of notices of all features, each with the channels of its options; null means all channels. */
  readonly notices: readonly { plugin: string; kind: NoticeKind; channels: readonly string[] | null }[];
  readonly reviewers: readonly Reviewer[];
  readonly factSources: readonly FactSource[];
  /** The tracer; null if no plugin contributes one. */
  readonly tracer: Tracer | null;
  /** Creates the messenger; null if no plugin contributes one. */
  readonly messenger: ((parts: MessengerParts) => Messenger) | null;
  onResponse(request: CompletedRequest): void;
  /**
   * Starts the plugins in order. If a plugin fails to start, stops the started plugins in reverse order and rejects
   * with the error.
   */
  start(): Promise<void>;
  /** Stops the plugins in reverse order. Idempotent. If a plugin throws, the others are still stopped. */
  stop(): Promise<void>;
}

/**
 * Runs the `setup` of each plugin. Throws PluginError if a plugin fails, or if two plugins contribute the same name.
 */
export async function collectContributions(
  plugins: readonly LoadedPlugin[],
  declared: Declarations,
  { hostOf, coreHostOf }: { hostOf(plugin: string): Host; coreHostOf(plugin: string): Host },
  log: Logger,
): Promise<Registry> {
  const parts: { name: string; brought: Contributions }[] = [];
  const notices: Registry["notices"][number][] = [];
  for (const { plugin, options, section } of plugins) {
    const checked = parseOptions(plugin, options, section);
    for (const kind of plugin.notices ?? [])
      notices.push({ plugin: plugin.name, kind, channels: kind.channels?.(checked as never) ?? null });
    if (plugin.setup === undefined) continue;
    const brought = await setUp(plugin, plugin.core === true ? coreHostOf(plugin.name) : hostOf(plugin.name), checked);
    const fault = findContributionFault(brought, declared);
    if (fault !== null) throw new PluginError(plugin.name, fault);
    for (const [member, what] of [
      ["steps", "steps of decisions"],
      ["messenger", "a messenger"],
    ] as const)
      if (brought[member] !== undefined && plugin.core !== true)
        throw new PluginError(plugin.name, `it contributes ${what}; define it with defineCorePlugin`);
    parts.push({ name: plugin.name, brought });
  }
  const routes = unique(
    parts,
    (b) => b.routes,
    (route) => `${route.method} ${shapeOf(route.path)}`,
    (route) => `the route ${route.method} ${route.path}`,
  );
  const pages = unique(
    parts,
    (b) => b.pages,
    (page) => page.path,
    (page) => `the page ${page.path}`,
  );
  const usedShapes = new Set([...routes, ...pages].map(({ path }) => shapeOf(path)));
  const facades = unique(
    parts,
    (b) => b.facades,
    (facade) => shapeOf(facade.path),
    (facade) => `the facade ${facade.path}`,
  );
  for (const { name, brought } of parts)
    for (const { path } of brought.facades ?? [])
      if (usedShapes.has(shapeOf(path)))
        throw new PluginError(name, `the facade ${path} conflicts with a route or page`);
  const policySources = uniqueNames(parts, (b) => b.policySources, "policy source");
  const notifiers = uniqueNames(parts, (b) => b.notifiers, "notifier");
  const reviewers = uniqueNames(parts, (b) => b.reviewers, "reviewer");
  const factSources = uniqueNames(parts, (b) => b.factSources, "fact source");
  for (const { name, brought } of parts)
    for (const source of brought.factSources ?? []) assertUsableSource(name, source);
  const authenticators = uniqueNames(parts, (b) => b.authenticators, "authenticator");
  const credentialIssuers = uniqueNames(parts, (b) => b.credentialIssuers, "credential issuer");
  const gauges = uniqueNames(parts, (b) => b.gauges, "gauge");
  const checks = uniqueNames(parts, (b) => b.checks, "health check");
  const steps = uniqueNames(parts, (b) => b.steps, "step of decisions");
  const tracers = unique(
    parts,
    ({ tracer }) => (tracer === undefined ? [] : [tracer]),
    () => "tracer",
    () => "the tracer",
  );
  const messengers = unique(
    parts,
    ({ messenger }) => (messenger === undefined ? [] : [messenger]),
    () => "messenger",
    () => "the messenger",
  );
  return Object.freeze({
    routes,
    pages,
    facades,
    authenticators,
    credentialIssuers,
    gauges,
    checks,
    steps,
    policySources,
    notifiers,
    notices,
    reviewers,
    factSources,
    tracer: tracers[0] ?? null,
    messenger: messengers[0] ?? null,
    onResponse: observers(parts, log),
    ...lifecycle(parts, log),
  });
}

/** Throws PluginError for a fact source whose name no policy can use, or whose bounds are not positive numbers. */
function assertUsableSource(plugin: string, source: FactSource): void {
  const { name, timeoutMs = 1, maxAgeMs = 1, maxConcurrent = 1 } = source;
  if (!new RegExp(FACT_SOURCE_NAME_PATTERN).test(name))
    throw new PluginError(plugin, `the name of the fact source "${name}" must match ${FACT_SOURCE_NAME_PATTERN}`);
  for (const [member, value, least] of [
    ["timeoutMs", timeoutMs, 1],
    ["maxAgeMs", maxAgeMs, 0],
    ["maxConcurrent", maxConcurrent, 1],
  ] as const)
    if (!Number.isFinite(value) || value < least)
      throw new PluginError(
        plugin,
        `${member} of the fact source "${name}" must be a number of at least ${least}; got ${value}`,
      );
}

/** Replaces parameter names, because paths that differ only in these names are the same route. */
const shapeOf = (path: string): string => path.replaceAll(/:[^/]+/g, ":");

async function setUp(plugin: Plugin, host: Host, options: unknown): Promise<Contributions> {
  try {
    // Return the value unchanged, because `undefined` must not count as an empty object.
    return (await plugin.setup?.(host, options as never)) as Contributions;
  } catch (error) {
    if (error instanceof PluginError) throw error;
    throw toPluginError(plugin.name, "setup", error, host.log);
  }
}

/**
 * Returns the items of all plugins. Throws PluginError if two items have the same name.
 * @param noun the word for an item in messages
 */
function uniqueNames<T extends { readonly name: string }>(
  parts: readonly { name: string; brought: Contributions }[],
  pick: (brought: Contributions) => T[] | undefined,
  noun: string,
): readonly T[] {
  return unique(
    parts,
    pick,
    ({ name }) => name,
    ({ name }) => `the ${noun} "${name}"`,
  );
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
      if (owner !== undefined) throw new PluginError(name, `${words(item)} is already used by plugin "${owner}"`);
      owners.set(key(item), name);
      items.push(item);
    }
  }
  return Object.freeze(items);
}

function observers(parts: readonly { name: string; brought: Contributions }[], log: Logger): Registry["onResponse"] {
  const listening = parts.filter(({ brought }) => brought.onResponse !== undefined);
  return (request) => {
    for (const { name, brought } of listening) {
      try {
        brought.onResponse?.(request);
      } catch (error) {
        log.error("a plugin's request observer threw an error", { plugin: name, error: String(error) });
      }
    }
  };
}

function lifecycle(
  parts: readonly { name: string; brought: Contributions }[],
  log: Logger,
): Pick<Registry, "start" | "stop"> {
  let started: { name: string; brought: Contributions }[] = [];
  async function stop(): Promise<void> {
    const running = started.reverse();
    started = [];
    for (const { name, brought } of running) {
      try {
        await brought.stop?.();
      } catch (error) {
        log.error("a plugin failed to stop", { plugin: name, error: String(error) });
      }
    }
  }
  return {
    stop,
    async start() {
      for (const part of parts) {
        // Add the plugin before its start, so that `stop` is called even if `start` fails halfway.
        started.push(part);
        try {
          await part.brought.start?.();
        } catch (error) {
          await stop();
          throw toPluginError(part.name, "start", error, log);
        }
      }
    },
  };
}
