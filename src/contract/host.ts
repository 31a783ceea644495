/**
 * What the core offers a plugin. Members marked "after start" throw when they are used in `setup`:
 * the store is not open yet.
 */
import type { EntryBody, EntryType } from "../domain/entries.ts";
import type { Facts } from "../domain/policy/types.ts";
import type { Scope } from "../domain/scopes.ts";
import type { RecordedKey } from "../domain/standing.ts";
import type { Config } from "../config/index.ts";
import type { Documents } from "./documents.ts";
import type { ErrorKind } from "./errors.ts";
import type {
  DocumentReads,
  DocumentWrites,
  KeyRow,
  Storage,
  StorageReader,
  StorageTransaction,
  Visibility,
} from "./storage.ts";
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

/** An authenticated API key. */
export interface Credential {
  readonly key: KeyRow;
  /** The ledger's epoch that `key` was read under, or an older one. */
  readonly epoch: number;
  /** Who this counts as for quorum and self-approval: `owner:<owner>` or `key:<id>`. */
  readonly principal: string;
  readonly visibility: Visibility;
  hasScope(scope: Scope): boolean;
}

/** The part of a decision's facts that is about the agent. */
export type AgentFacts = Pick<Facts, "agent" | "require_registered_agents" | "rejection_holds_ms">;

/** Where an entry came to stand. */
export interface AppendedEntry {
  seq: number;
  /** Lowercase hex. */
  hash: string;
}

/** One job's view of the batch it runs in. Reads see all earlier jobs of the batch. */
export interface LedgerTransaction extends Omit<
  StorageTransaction,
  "append" | "putCheckpoint" | "head" | keyof DocumentReads | keyof DocumentWrites
> {
  /** The service's clock, read once for the batch: not before any entry of the ledger. Milliseconds. */
  readonly now: number;
  /** The active policy set under the lock. */
  readonly activePolicies: ActivePolicies;
  /**
   * Adds an entry to the batch: canonicalised, numbered and hashed here. `submittedBy` is the key
   * that submitted the action the entry speaks of. Throws TypeError for a type that no plugin declares, for data of
   * another form than it declares, and for a plugin's entry that names an action without its submitter.
   */
  record(entry: EntryBody, submittedBy?: string): AppendedEntry;
  /**
   * A write of this job that must change a row, and that the job does not wait for: the others need not either. The batch
   * waits for it before it commits, and runs again without the job where it is false. Write last, and answer with what
   * the row then is.
   */
  expectChange(write: Promise<boolean>): void;
  /**
   * The credential as it stands under the lock. Rejects with INVALID_CREDENTIAL when the key was
   * revoked or has expired since the request was authenticated.
   */
  confirm(credential: Credential): Promise<Credential>;
  /** What a decision must know of the agent, as it stands under the lock. */
  agentFacts(agentId: string): Promise<AgentFacts>;
  /** Likewise of stops, those that this batch placed or lifted included. */
  stopFacts(action: Pick<ActionRequest, "agent_id" | "tool">): StopFacts;
  readonly stops: Stops;
  /** Makes this set the active one when the batch commits. The job must record it. */
  activatePolicySet(digest: string): Promise<void>;
  /** Says that a key, an agent or a stop changed: what other processes cached is stale. The job must record the change. */
  bumpEpoch(): void;
}

/**
 * Work for one batch. Checks first, then writes: a `Refusal` thrown before the first write or
 * record rejects this job alone; anything thrown later costs the batch a second run without it.
 * May run more than once, so it keeps no state between runs.
 */
export type Job<T> = (tx: LedgerTransaction) => Promise<T>;

/** Work that asks no policy, and so is done also where the active set cannot be loaded. */
export type UrgentJob<T> = (tx: Omit<LedgerTransaction, "activePolicies">) => Promise<T>;

/**
 * Thrown by a job, whatever it has written: something takes too long to be done under the ledger's lock. The batch is
 * rolled back, `prepare` is called without the lock, and the batch runs again. Where `prepare` returns a promise, the
 * job runs with a later batch, and nobody else waits for it.
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
  /** Null when no live key has this value. */
  authenticate(value: string): Promise<Credential | null>;
  /** The credential as it stands now; null when its key was revoked or has expired. For what lasts longer than a request. */
  refresh(credential: Credential): Promise<Credential | null>;
  /** A key as the ledger has it, of every key that was there when a request was last authenticated or a batch begun. */
  recordedKey(id: string): RecordedKey | null;
  /** A new key's row and its value, which exists nowhere else. */
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

/** A job that one process at a time does for all that share the store. */
export interface LeaderLease {
  /** True while this process is the one, for some seconds at least. Rejects with StorageError. */
  isLeader(): Promise<boolean>;
  /** Lets another take over at once. */
  release(): Promise<void>;
}

export interface Agents {
  /** What a decision made now would know of the agent. */
  facts(agentId: string): Promise<AgentFacts>;
  /** Ids under which this agent was registered, of those that are not written in the form that names are compared in. */
  registeredIds(agentId: string): readonly string[];
}

/** The processes that share the store. */
export interface Processes {
  /** Those that live, this one among them, and the jobs that one of them does for all. Rejects with StorageError. */
  list(): Promise<{ count: number; duties: { name: string; here: boolean }[] }>;
}

/** The channels of policies, as the configuration maps them to people. */
export interface Channels {
  names(): readonly string[];
  /** Whether one of these channels, or one that they escalate to, tells this person. */
  notifiesPerson(named: readonly string[], owner: string): boolean;
}

/** Signing and secrets that plugins may use but never see. */
export interface Vault {
  /** HMAC-SHA256 under a key derived from the service's secret for `purpose`. */
  mac(purpose: string, message: Uint8Array): Uint8Array;
  verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
}

/** What plugins may know of the configuration: nothing in it is a secret. */
export interface HostConfig extends Pick<Config, "data" | "policies" | "agents" | "approvals" | "retention" | "stop"> {
  readonly permits: Pick<Config["permits"], "valid_seconds">;
  readonly server: Pick<Config["server"], "max_wait_seconds" | "max_page_bytes" | "public_url">;
}

/** The store, to be read. What is written goes through the ledger. */
export type HostStorage = Omit<StorageReader, keyof DocumentReads> &
  Pick<Storage, "name" | "exclusive" | "schema" | "ping">;

/** What the documentation says besides the routes. */
export interface ApiDescription {
  description: string;
  /** Descriptions of tags. */
  tags: Readonly<Record<string, string>>;
}

export interface Host {
  readonly config: HostConfig;
  readonly log: Logger;
  /** Milliseconds since the epoch: the time of day, and never before the last entry of the ledger. */
  clock(): number;
  /** How much of what this process bounds is in use. */
  readonly load: {
    /** Bytes of request bodies in flight. */
    bodyBytes(): number;
    /** Bytes of large responses that are put together or not read yet. */
    responseBytes(): number;
    /** Requests of agents on their way into the ledger. */
    queued(): number;
  };
  /**
   * Resolves in a later turn of the event loop, for one caller a turn. Await it before each slice of a long read, so
   * that decisions are made between the slices, however many clients read.
   */
  waitForReadSlot(): Promise<void>;
  /** UUIDv7. */
  newId(): string;
  /** Aborts when the service begins to stop: long waits answer what they have. */
  readonly stopping: AbortSignal;
  /** Every route that plugins brought. After start. */
  readonly routes: readonly Route[];
  /** Every route as one OpenAPI 3.1 document. After start. */
  openapi(about: ApiDescription): Record<string, unknown>;
  /** Every scope that a key can hold: the core's, then those that plugins bring. */
  readonly scopes: readonly Scope[];
  /** Every type that an entry of the ledger can have: the core's, then those that plugins bring. */
  readonly entryTypes: readonly EntryType[];
  /** Errors that plugins bring. */
  readonly errors: readonly ErrorKind[];
  /** What this plugin keeps for itself. After start. */
  readonly documents: Documents;
  /** After start. */
  readonly storage: HostStorage;
  /** After start. */
  readonly ledger: Ledger;
  /** After start. */
  readonly policies: Policies;
  /** After start. */
  readonly keys: Keys;
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
  /** Where several processes share the store, the one that does this job. After start. */
  leaderLease(name: string): LeaderLease;
}
