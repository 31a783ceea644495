/** The services that every plugin receives. The services of privileged plugins are in core-host.ts. */
import type { Fold } from "../domain/fold.ts";
import type { DecisionEntry, EntryType, PluginEntryType } from "../domain/entries.ts";
import type { Delegation } from "../domain/delegations.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Scope } from "../domain/scopes.ts";
import type { User } from "../domain/users.ts";
import type { GroupVisibility, Visibility } from "../domain/visibility.ts";
import type { DocumentReader, DocumentWriter } from "./plugin-documents.ts";
import type { ErrorKind } from "./errors.ts";
import type { ActionFilter, ActionRow, EntryRow, KeyRow } from "./storage.ts";

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** An authenticated API key, the session of a person, or the token of a workload. */
export interface Credential {
  /**
   * The API key. For sessions, and for agents that act for a user, this row is a substitute that is not stored. Its
   * `id` is the user's id, and its `owner` is the user.
   */
  readonly key: KeyRow;
  /** The ledger's epoch when `key` was read, or an earlier epoch. */
  readonly epoch: number;
  /**
   * Time until which only a new epoch can change the rights, such as the expiry of the key or token, the end of the
   * session, or the start or end of a delegation. Milliseconds; null if there is no such time.
   */
  readonly valid_until: number | null;
  /** The identity that is compared for quorums and self-approval: `user:<id>`, or `key:<id>` for a key without an owner. */
  readonly principal: string;
  /** Groups of the principal, from the configuration or the sign-in. Sorted, without duplicates. */
  readonly groups: readonly string[];
  /** Roles of the user. Absent for an API key. */
  readonly roles?: readonly string[];
  readonly visibility: Visibility;
  /**
   * Limits on what the caller may administer, whatever its scopes: those of the groups of the user or key, of the owner
   * and all creators of a key, and of the agent of a bound key. Unlike `visibility`, they do not include what
   * delegators can see.
   */
  readonly limits: GroupVisibility;
  /** The session of a user who signed in. Absent for API keys and for agents that authenticate with a token. */
  readonly session?: Session;
  /** The verified token of an agent that authenticates with a token instead of an API key. */
  readonly workload?: WorkloadIdentity;
  hasScope(scope: Scope): boolean;
}

/** The session of a signed-in user. */
export interface Session {
  readonly id: string;
  readonly user: User;
  /**
   * Whether the session belongs to a terminal. Such a session cannot give emergency approvals or permissions for later
   * actions.
   */
  readonly terminal: boolean;
  /** The actions that the user can see without delegations. */
  readonly visibility: Visibility;
  /** The users who let this user approve on their behalf now. */
  readonly delegators: readonly ApprovalDelegator[];
}

/**
 * A user who lets another user approve on their behalf. Includes all groups of this user, and the actions that the
 * delegation covers.
 */
export interface ApprovalDelegator {
  readonly delegation: Delegation;
  readonly user: User;
  readonly groups: readonly string[];
  readonly visibility: GroupVisibility;
}

/** The verified token of an agent. */
export interface WorkloadIdentity {
  /** Verified claims, which conditions read as `principal.claims`. */
  readonly claims: JsonObject;
  /** Expiry of the token, including the tolerated clock difference. Milliseconds. */
  readonly expires_at: number;
  /** The user that the agent acts for. Null for a workload that has its own key. */
  readonly user_id: string | null;
  /** The only scopes of the preset `agent` that the token has. Absent if it has all of them. */
  readonly scopes?: readonly Scope[];
}

/** Sequence number and leaf hash of a recorded entry. */
export interface AppendedEntry {
  seq: number;
  /** Leaf hash of the entry in lowercase hex. */
  hash: string;
}

/** The part of the configuration that plugins can read. It contains no secrets. */
export interface HostConfig {
  /** The data folder. */
  readonly data: string;
  /** The folder of policies. */
  readonly policies: string;
  /** Environment that selects the values of shared data; null for no environment. */
  readonly environment: string | null;
  /** The actions that a key without an agent can submit. `bound`: none. `any`: actions of any agent. */
  readonly agents: "bound" | "any";
  readonly approvals: {
    readonly max_pending_per_key: number;
    readonly rejection_holds_seconds: number;
    readonly trust_key_makers: boolean;
  };
  readonly permits: { readonly valid_seconds: number };
  readonly server: {
    readonly max_wait_seconds: number;
    readonly max_page_bytes: number;
    readonly public_url: string | null;
  };
}

/** Text that the OpenAPI document contains in addition to the routes. */
export interface ApiDescription {
  description: string;
  /** Descriptions of the tags, keyed by name. */
  tags: Readonly<Record<string, string>>;
}

/** Reads the actions that one credential can see. */
export interface VisibleActions {
  /** Rejects with ACTION_NOT_FOUND if the action does not exist or the credential cannot see it. */
  get(id: string): Promise<ActionRow>;
  /** Lists actions, newest first. */
  list(filter: Omit<ActionFilter, "visibility">): Promise<ActionRow[]>;
  /**
   * Iterates over the decisions on actions created from `since` (inclusive) to `until` (exclusive), newest first. Times
   * are milliseconds. Reads in pages, so that decisions can run between them. Throws SHUTTING_DOWN before the next
   * page if `signal` has aborted.
   */
  decisions(range: {
    since: number;
    until: number;
    signal?: AbortSignal;
  }): AsyncIterable<DecisionEntry & { seq: number }>;
}

/** An entry of a type that the plugin defines. The core adds the version, the time and the actor. */
export interface NewPluginEntry {
  /** One of the types in the plugin's `entries`. */
  type: PluginEntryType;
  /**
   * The action that the entry is about. It must have been read within this transaction. Keys that can see the action
   * can see the entry.
   */
  action?: { readonly id: string };
  /** Must match the schema that the plugin declares for the type. */
  data: JsonObject;
}

/** The transaction that a `transact` callback uses. All members throw after the callback has ended. */
export interface Transaction<Caller extends Credential | null = Credential | null> {
  /** The caller's credential, read again under the ledger's lock. */
  readonly caller: Caller;
  /** The service's time in milliseconds, read once per batch. Not earlier than the time of the last ledger entry. */
  readonly now: number;
  /** Reads an action. Rejects with ACTION_NOT_FOUND if it does not exist or the caller cannot see it. */
  action(id: string): Promise<ActionRow>;
  /** Returns the value of one of the plugin's folds, including changes made earlier in this batch. */
  state<State>(fold: Fold<State>): State;
  /** The plugin's own documents. Writes commit with the transaction or not at all. */
  readonly documents: DocumentWriter;
  /**
   * Adds an entry to the ledger. Throws TypeError if the plugin does not declare the type or the data does not match
   * it.
   */
  record(entry: NewPluginEntry): AppendedEntry;
}

/**
 * Passed to `setup` of every plugin. Members marked "after start" throw if `setup` uses them, because the store is
 * not open yet.
 */
export interface Host {
  readonly config: HostConfig;
  readonly log: Logger;
  /**
   * Returns the origin at which people use the service in a browser: that of `server.public_url`, or
   * `http://assent.localhost:<port>` if the service listens on a loopback address. Never depends on a request. Null if
   * neither applies, or if the port is not known yet.
   */
  origin(): string | null;
  /** Returns the time in milliseconds since the epoch. Not earlier than the time of the last ledger entry. */
  clock(): number;
  /**
   * Returns this machine's time of day in milliseconds since the epoch. Use it for times that other systems set or
   * check. `clock` can be ahead of it, because another machine with a fast clock might have recorded an entry.
   */
  timeOfDay(): number;
  /** Returns a new UUIDv7. */
  newId(): string;
  /** Aborts when the service begins to stop. Handlers that wait must then return a response with the current state. */
  readonly stopping: AbortSignal;
  /** This plugin's private documents. Available after start. */
  readonly documents: DocumentReader;
  /**
   * Returns the value of one of the plugin's folds at the newest commit. Available after start. Rejects with
   * StorageError.
   * @example
   * const frozen = await host.state(frozenTools);
   */
  state<State>(fold: Fold<State>): Promise<State>;
  /** Returns a reader of the actions that this credential can see. Available after start. */
  actions(credential: Credential): VisibleActions;
  /**
   * Runs `job` under the ledger's lock and resolves to its result after the commit. First reads the credential again:
   * rejects with a `Refusal`, such as INVALID_CREDENTIAL, if it is no longer valid, and with INSUFFICIENT_SCOPE if it
   * lost a scope. Pass `null` for work that no caller requested, such as a timer. In `job`, run all checks before the
   * first write: a `Refusal` before the first write rejects only this job. A job can run more than once, so it must not
   * keep state between runs. Available after start.
   * @example
   * await host.transact(credential, async (tx) => {
   *   const action = await tx.action(params.id);
   *   await tx.documents.put(action.id, { text }, null);
   *   tx.record({ type: "notes:change", action, data: { change: "added" } });
   * });
   */
  transact<Caller extends Credential | null, T>(
    credential: Caller,
    job: (tx: Transaction<Caller>) => Promise<T>,
  ): Promise<T>;
  /**
   * Reads committed ledger entries with `from <= seq < to`, in order. They contain no arguments of actions. Available
   * after start.
   */
  entries(from: number, to: number): Promise<EntryRow[]>;
  /** Calls `listener` with new committed entries, in order. Returns a function that stops it. Available after start. */
  subscribe(listener: (entries: readonly EntryRow[]) => void): () => void;
  /** All loaded plugins, each with the path of its `page`; null if it declares none. */
  readonly plugins: readonly { readonly name: string; readonly page: string | null }[];
  /** All types of ledger entries of the core, then the types of plugins. */
  readonly entryTypes: readonly EntryType[];
  /** Errors that plugins define. */
  readonly errors: readonly ErrorKind[];
  /** Returns every route as one OpenAPI 3.1 document. Available after start. */
  openapi(description: ApiDescription): Record<string, unknown>;
}
