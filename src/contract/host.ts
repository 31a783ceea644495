/**
 * The core's services for plugins. Members marked "after start" throw if `setup` uses them, because the store is
 * not open yet.
 */
import type { EntryBody, EntryType } from "../domain/entries.ts";
import type { Facts } from "../domain/policy/types.ts";
import type { Scope } from "../domain/scopes.ts";
import type { RecordedKey } from "../domain/standing.ts";
import type { Config } from "../config/index.ts";
import type { Documents } from "./documents.ts";
import type { ErrorKind } from "./errors.ts";
import type { DocumentReads, DocumentWrites, KeyRow, Storage, StorageReader, StorageTransaction } from "./storage.ts";
import type { VisibleReads } from "./visible-reads.ts";
import type { Visibility } from "../domain/visibility.ts";
import type { GroupSubject } from "../domain/groups.ts";
import type { ActionRequest } from "../domain/actions.ts";
import type { Stops } from "../domain/stops.ts";
import type { Containment } from "./containment.ts";
import type { Route } from "./resource.ts";
import type { StopFacts, StopList } from "./stops.ts";
import type { Ledger } from "./ledger.ts";
import type { Permits } from "./permits.ts";
import type { ActivePolicies, Policies } from "./policies.ts";

export type { InclusionProof, Ledger, LogKeyView, Prefetch, PrefetchKeys, SignedCheckpoint } from "./ledger.ts";
export type { ContainmentTarget, Containment, OpenActionCursor } from "./containment.ts";
export type { StopFacts, StopList } from "./stops.ts";
export type { ActivePolicies, PlannedPolicySet, Policies, PolicyEdit } from "./policies.ts";

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/**
 * A person's confirmation of one vote with a passkey. Only the plugin that signs people in sets it, after it has verified
 * the assertion. Credentials of API keys and links never have one.
 */
export interface Gesture {
  kind: "passkey";
  /** Id of the passkey. */
  credential_id: string;
  /** What the passkey signed: the result of `gestureDigest` for this vote. Lowercase hex. */
  digest: string;
}

/** An authenticated API key, or the session of a person. */
export interface Credential {
  readonly key: KeyRow;
  /** The ledger's epoch when `key` was read, or an earlier one. */
  readonly epoch: number;
  /** The identity that counts for quorum and self-approval: `owner:<owner>` or `key:<id>`. */
  readonly principal: string;
  /** Groups of the principal, from the configuration or the sign-in. Sorted, without duplicates. */
  readonly groups: readonly string[];
  /** Null unless this request carries a verified passkey gesture. */
  readonly gesture: Gesture | null;
  readonly visibility: Visibility;
  hasScope(scope: Scope): boolean;
}

/** The facts of a decision that concern the agent. */
export type AgentFacts = Pick<Facts, "agent" | "require_registered_agents" | "rejection_holds_ms">;

/** Sequence number and leaf hash of a recorded entry. */
export interface AppendedEntry {
  seq: number;
  /** Lowercase hex. */
  hash: string;
}

/** A job's access to its batch. Reads see the writes of all earlier jobs in the batch. */
export interface LedgerTransaction extends Omit<
  StorageTransaction,
  "append" | "putCheckpoint" | "head" | keyof DocumentReads | keyof DocumentWrites
> {
  /** The service's time in milliseconds, read once per batch. Never earlier than the last ledger entry. */
  readonly now: number;
  /** The active policy set, read under the ledger's lock. */
  readonly activePolicies: ActivePolicies;
  /**
   * Adds an entry to the batch, and canonicalises, numbers and hashes it. `submittedBy` is the key that submitted the
   * entry's action. Throws TypeError if no plugin declares the entry type, if the data does not match the declared
   * schema, or if a plugin's entry names an action without its submitter.
   */
  record(entry: EntryBody, submittedBy?: string): AppendedEntry;
  /**
   * Registers a write that must change a row, without waiting for it, so that later jobs need not wait either. The batch
   * awaits the write before it commits. If the write resolves to false, the batch runs again without this job. Make
   * this the job's last write, and return the row as it will be.
   */
  expectChange(write: Promise<boolean>): void;
  /**
   * Reads the credential again under the lock. Rejects with INVALID_CREDENTIAL if the key was revoked or expired after
   * the request was authenticated.
   */
  confirm(credential: Credential): Promise<Credential>;
  /** Reads the agent's facts for a decision under the lock. */
  agentFacts(agentId: string): Promise<AgentFacts>;
  /** Returns the stops that apply to an action, including changes made earlier in this batch. */
  stopFacts(action: Pick<ActionRequest, "agent_id" | "tool">): StopFacts;
  readonly stops: Stops;
  /** Activates this policy set when the batch commits. The job must also record an entry. */
  activatePolicySet(digest: string): Promise<void>;
  /** Invalidates the caches of other processes after a change of a key, agent or stop. The job must also record an entry. */
  bumpEpoch(): void;
}

/**
 * Work for one batch. Check first, then write: a `Refusal` before the first write rejects only this job, but any later
 * error makes the batch run again without it. A job can run more than once, so it must keep no state between runs.
 */
export type Job<T> = (tx: LedgerTransaction) => Promise<T>;

/** A job that needs no policy, so it runs even if the active policy set cannot be loaded. */
export type UrgentJob<T> = (tx: Omit<LedgerTransaction, "activePolicies">) => Promise<T>;

/**
 * Thrown by a job that needs work too slow for the ledger's lock. The batch rolls back, calls `prepare` without the lock
 * and runs again. If `prepare` returns a promise, the job moves to a later batch, so other jobs do not wait for it.
 */
export class PreparationRequired extends Error {
  readonly prepare: () => void | Promise<void>;
  constructor(what: string, prepare: () => void | Promise<void>) {
    super(`${what} must be prepared before the ledger's lock is taken`);
    this.name = "PreparationRequired";
    this.prepare = prepare;
  }
}

export interface Keys {
  /** Resolves to null if no live key has this value. */
  authenticate(value: string): Promise<Credential | null>;
  /** Reads the credential again; null if its key was revoked or expired. For work that outlasts a request. */
  refresh(credential: Credential): Promise<Credential | null>;
  /** Returns a key as recorded in the ledger. Current as of the last authentication or batch start in this process. */
  recordedKey(id: string): RecordedKey | null;
  /** Creates a key's row and its secret value. The value is stored nowhere else. */
  mint(input: {
    name: string;
    scopes: readonly Scope[];
    agent_id?: string | null;
    owner?: string | null;
    created_by?: string | null;
    expires_at?: number | null;
    now: number;
  }): { row: KeyRow; value: string };
}

/** A lease on a background job, which only one of the processes that share the store runs at a time. */
export interface LeaderLease {
  /** Acquires or renews the lease. True if this process holds it for at least a few seconds. Rejects with StorageError. */
  isLeader(): Promise<boolean>;
  /** Ends the lease, so that another process can take over at once. */
  release(): Promise<void>;
}

/** The groups of the configuration. */
export interface Groups {
  /** Returns the groups that the configuration gives this principal. Sorted. */
  of(principal: string): readonly string[];
  /** Whether members of the group may see and approve actions of this agent and tool. True for a group without limits. */
  covers(group: string, action: GroupSubject): boolean;
  /**
   * Returns what a member of these groups can see. If some of the groups have limits, the member sees what at least one
   * of those allows; a group without limits does not lift the limits of another.
   */
  visibility(groups: readonly string[]): Visibility;
}

export interface Agents {
  /** Returns the agent's facts for a decision made now. */
  facts(agentId: string): Promise<AgentFacts>;
  /** Returns registered ids that are other spellings of this agent's id. */
  registeredIds(agentId: string): readonly string[];
}

/** The processes that share the store. */
export interface Processes {
  /** Counts the live processes, including this one, and lists the leased jobs. Rejects with StorageError. */
  list(): Promise<{ count: number; duties: { name: string; here: boolean }[] }>;
}

/** The notification channels of the configuration. */
export interface Channels {
  names(): readonly string[];
  /** Whether one of these channels, or a channel they escalate to, notifies this person. */
  notifiesPerson(named: readonly string[], owner: string): boolean;
}

/** Signing operations for plugins. Plugins never see the secrets. */
export interface Vault {
  /** HMAC-SHA256 under a key derived from the service's secret for `purpose`. */
  mac(purpose: string, message: Uint8Array): Uint8Array;
  verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
}

/** The part of the configuration that plugins can read. It contains no secrets. */
export interface HostConfig extends Pick<Config, "data" | "policies" | "agents" | "approvals" | "retention" | "stop"> {
  readonly permits: Pick<Config["permits"], "valid_seconds">;
  readonly server: Pick<Config["server"], "max_wait_seconds" | "max_page_bytes" | "public_url">;
}

/** Read access to the store. Writes go through the ledger. */
export type HostStorage = Omit<StorageReader, keyof DocumentReads | keyof VisibleReads> &
  VisibleReads &
  Pick<Storage, "name" | "exclusive" | "schema" | "ping">;

/** Text of the OpenAPI document in addition to the routes. */
export interface ApiDescription {
  description: string;
  /** Descriptions of tags. */
  tags: Readonly<Record<string, string>>;
}

export interface Host {
  readonly config: HostConfig;
  readonly log: Logger;
  /** Returns the time in milliseconds since the epoch. Never earlier than the last ledger entry. */
  clock(): number;
  /** Current use of this process's limits. */
  readonly load: {
    /** Bytes of request bodies in flight. */
    bodyBytes(): number;
    /** Bytes of large responses that are being built or sent. */
    responseBytes(): number;
    /** Agent requests in the ledger's queue. */
    queued(): number;
  };
  /**
   * Resolves in a later turn of the event loop, for one caller per turn. Await it before each slice of a long read, so
   * that decisions run between slices even with many readers.
   */
  waitForReadSlot(): Promise<void>;
  /** UUIDv7. */
  newId(): string;
  /** Aborts when the service begins to stop. Long waits must then return what they have. */
  readonly stopping: AbortSignal;
  /** All routes of all plugins. After start. */
  readonly routes: readonly Route[];
  /** Every route as one OpenAPI 3.1 document. After start. */
  openapi(about: ApiDescription): Record<string, unknown>;
  /** All scopes: the core's, then those of plugins. */
  readonly scopes: readonly Scope[];
  /** All types of ledger entries: the core's, then those of plugins. */
  readonly entryTypes: readonly EntryType[];
  /** Errors that plugins define. */
  readonly errors: readonly ErrorKind[];
  /** This plugin's private documents. After start. */
  readonly documents: Documents;
  /** After start. */
  readonly storage: HostStorage;
  /** After start. */
  readonly ledger: Ledger;
  /** After start. */
  readonly policies: Policies;
  /** After start. */
  readonly keys: Keys;
  readonly groups: Groups;
  /** After start. */
  readonly agents: Agents;
  /** After start. */
  readonly stops: StopList;
  readonly containment: Containment;
  /** After start. */
  readonly vault: Vault;
  /** After start. */
  readonly permits: Permits;
  readonly channels: Channels;
  /** After start. */
  readonly processes: Processes;
  /** Returns the lease on a background job that only one process runs. After start. */
  leaderLease(name: string): LeaderLease;
}
