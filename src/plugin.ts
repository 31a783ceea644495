import type { Static, TObject } from "@sinclair/typebox";
/** For options: a plugin's schemas must be of the TypeBox that checks them. */
export { Type, type Static } from "@sinclair/typebox";
import type { Host } from "./contract/host.ts";
import type { Notifier } from "./contract/notifier.ts";
import type { Page } from "./contract/page.ts";
import type { PolicySource } from "./contract/policy-source.ts";
import type { Route } from "./contract/resource.ts";
import type { Storage } from "./contract/storage.ts";

/**
 * What a plugin brings. A closed set: a new kind is a change to the core.
 * `start` and `stop` live here and not on the plugin, so that two runtimes in one process share no
 * state. `start` runs in order of configuration once the store is open; `stop` in reverse, also
 * when a later plugin's start failed, and must be idempotent.
 */
export interface Contributions {
  storage?: Storage;
  routes?: Route[];
  policySources?: PolicySource[];
  notifiers?: Notifier[];
  pages?: Page[];
  /** Told of every request once its response is made. Must be quick; what it throws is logged and harms nobody. */
  answered?(request: AnsweredRequest): void;
  start?(): Promise<void>;
  stop?(): Promise<void>;
}

export interface AnsweredRequest {
  method: string;
  /** The route's path with its parameters' names, e.g. `/v1/actions/:id`; null where none matched. */
  route: string | null;
  status: number;
  /** Until the response was made; a stream goes on behind it. */
  ms: number;
}

export interface Plugin<Options extends TObject = TObject> {
  name: string;
  /** Checked before `setup`; unknown keys are refused. Absent: the plugin takes no options. */
  options?: Options;
  setup(host: Host, options: Static<Options>): Contributions | Promise<Contributions>;
}

/** Gives `setup` its option types. */
export function definePlugin<Options extends TObject>(plugin: Plugin<Options>): Plugin<Options> {
  return plugin;
}

export type { Credential, Host, Logger } from "./contract/host.ts";
export { NotifierError, type Delivered, type Feed, type Message, type Notifier } from "./contract/notifier.ts";
export { PolicySourceError, type PolicyBundle, type PolicySource } from "./contract/policy-source.ts";
export { Refusal } from "./contract/errors.ts";
export type { Reply, RequestContext, Route } from "./contract/resource.ts";
export type { DecisionEntry, EntryBody } from "./domain/entries.ts";
export { parsePolicies, type TextFault } from "./domain/policy/parse.ts";
