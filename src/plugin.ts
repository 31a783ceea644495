import type { Static, TObject } from "@sinclair/typebox";
/** For options: a plugin's schemas must be of the TypeBox that checks them. */
export { Type, type Static } from "@sinclair/typebox";
import type { PluginCommand } from "./contract/command.ts";
import type { ErrorKind } from "./contract/errors.ts";
import type { Host, Logger } from "./contract/host.ts";
import type { Facade } from "./contract/facade.ts";
import type { Notifier } from "./contract/notifier.ts";
import type { Page } from "./contract/page.ts";
import type { PolicySource } from "./contract/policy-source.ts";
import type { Route } from "./contract/resource.ts";
import type { Storage } from "./contract/storage.ts";
import type { PluginEntryType } from "./domain/entries.ts";
import type { PluginScope } from "./domain/scopes.ts";

/**
 * What a plugin brings. A closed set: a new kind is a change to the core.
 * `start` and `stop` live here and not on the plugin, so that two runtimes in one process share no
 * state. `start` runs in order of configuration once the store is open; `stop` in reverse, also
 * when a later plugin's start failed, and must be idempotent.
 */
export interface Contributions {
  routes?: Route[];
  policySources?: PolicySource[];
  notifiers?: Notifier[];
  pages?: Page[];
  facades?: Facade[];
  /** Told of every request once its response is made. Must be quick; what it throws is logged and harms nobody. */
  onResponse?(request: CompletedRequest): void;
  start?(): Promise<void>;
  stop?(): Promise<void>;
}

export interface CompletedRequest {
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
  /** Scopes that it brings: what `defineScopes` gives. */
  scopes?: Readonly<Record<string, PluginScope>>;
  /** Errors that it brings: what `defineErrors` gives. */
  errors?: Readonly<Record<string, ErrorKind>>;
  /** Types of ledger entries that it brings, `<name>:<type>`, each with the form of its `data`. */
  entries?: Readonly<Record<PluginEntryType, TObject>>;
  /** A command of the command line, run as `assent <name>`. It runs without the service, and asks it. */
  command?: PluginCommand;
  /**
   * Exactly one plugin brings the storage, not yet open. Beside `setup` and not in it: a command that works on the
   * store alone runs nothing else of any plugin.
   */
  storage?(host: StorageHost, options: Static<Options>): Storage | Promise<Storage>;
  /** Everything else that the plugin brings. */
  setup?(host: Host, options: Static<Options>): Contributions | Promise<Contributions>;
}

/** What there is when the storage is made: nothing is open yet. */
export interface StorageHost {
  readonly log: Logger;
  /** The data folder. */
  readonly data: string;
  /** Where the configuration has the database; null when it names none. */
  readonly databaseUrl: string | null;
}

/** Gives `setup` its option types. */
export function definePlugin<Options extends TObject>(plugin: Plugin<Options>): Plugin<Options> {
  return plugin;
}

export type { Credential, Host, Logger } from "./contract/host.ts";
export type { ApiResponse, Facade, FacadeCall, FacadeFault } from "./contract/facade.ts";
export {
  DELIVERY_RETRY_MS,
  NotifierError,
  type ApprovalMessage,
  type ClosedMessage,
  type Delivered,
  type Feed,
  type Message,
  type MessageAction,
  type Notifier,
  type StopMessage,
} from "./contract/notifier.ts";
export { describeOutcome, messageFacts, messageTitle, requestSections } from "./contract/approval-message-text.ts";
export { describeStop, stopMessageFacts, stopMessageTitle } from "./contract/stop-message-text.ts";
export type { Page } from "./contract/page.ts";
export { PolicySourceError, type PolicyBundle, type PolicySource } from "./contract/policy-source.ts";
export type { CommandContext, PluginCommand } from "./contract/command.ts";
export type { Document, DocumentReader, Documents, DocumentWriter } from "./contract/documents.ts";
export { defineErrors, Refusal, type ErrorCode, type ErrorKind } from "./contract/errors.ts";
export type { LedgerTransaction } from "./contract/host.ts";
export { defineRoute, type Reply, type RequestContext, type Route } from "./contract/resource.ts";
export { toActor } from "./domain/actor.ts";
export { decodeEntry, type DecisionEntry, type EntryBody, type PluginEntry } from "./domain/entries.ts";
export { sha256Hex, utf8 } from "./domain/hash.ts";
export { defineScopes, type PluginScope, type Scope } from "./domain/scopes.ts";
export { toRfc3339 } from "./domain/time.ts";
export { canSee, type Visibility } from "./domain/visibility.ts";
export { confirmWithScope } from "./http/resource/confirm-scope.ts";
export { assertIfMatch, IF_MATCH } from "./http/resource/preconditions.ts";
export { cutPage, decodeCursor, DEFAULT_LIMIT, nextLink, PAGE_QUERY, slicePage } from "./http/resource/paging.ts";
export {
  findCreatedResource,
  readIdempotentCall,
  recordCreatedResource,
  REPLAYED_HEADERS,
} from "./http/resource/idempotency.ts";
export { parsePolicies, type TextFault } from "./domain/policy/parse/parse.ts";
export {
  checkPolicyFolder,
  parsePolicyFolder,
  testPolicyFolder,
  type CheckedFolder,
  type PolicyFile,
  type PolicyFolder,
} from "./policies/folder.ts";
export { listPolicyTree, readPolicyTree, sizePolicyTree, type TreeFile } from "./policies/git-tree.ts";
