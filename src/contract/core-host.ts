/**
 * The services that only privileged plugins receive. A plugin is privileged if it is defined with `defineCorePlugin`
 * and the operator grants it `core: true`. Members marked "after start" throw if `setup` uses them, because the store
 * is not open yet.
 */
import type { PasskeyAssertion } from "../domain/gesture.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Rota } from "../domain/rota.ts";
import type { Scope } from "../domain/scopes.ts";
import type { GroupDefinition, GroupSubject } from "../domain/groups.ts";
import type { KeyColumns } from "../domain/recorded-keys.ts";
import type { RecordedKey } from "../domain/vote-people.ts";
import type { OpenActionCanceller } from "./open-action-canceller.ts";
import type { FactResult, FactCall } from "../domain/policy/decide/fact-reads.ts";
import type { ToolCredentialIssuer } from "./credentials.ts";
import type { FactSource } from "./fact-source.ts";
import type { HealthCheck } from "./check.ts";
import type { DecisionStep } from "./step.ts";
import type { Reaction } from "./reaction.ts";
import type { SoleApproval } from "./sole-approval.ts";
import type { Guard } from "./guard.ts";
import type { VoteAddition } from "./vote-addition.ts";
import type { Gauge } from "./gauge.ts";
import type { DocumentReader, DocumentWriter } from "./plugin-documents.ts";
import type { ErrorKind } from "./errors.ts";
import type { Credential, ApprovalDelegator, Host, WorkloadIdentity } from "./host.ts";
import type { AgentFacts, Ledger, LedgerTransaction, NewKey, Snapshot } from "./ledger.ts";
import type { Channels } from "./messenger.ts";
import type { Permits } from "./permits.ts";
import type { Policies } from "./policies.ts";
import type { Reviewer } from "./reviewer.ts";
import type { DocumentReads, Storage, StorageReader } from "./storage.ts";
import type { RequestTrace } from "./tracer.ts";
import type { User, Users } from "../domain/users.ts";
import type { GroupVisibility } from "../domain/visibility.ts";
import type { VisibleReads } from "./visible-reads.ts";

export interface Keys {
  /**
   * Authenticates an API key. Resolves to null if no active key has this value. Rejects with INVALID_CREDENTIAL if the
   * value's checksum is wrong, and with StorageError.
   */
  authenticate(value: string): Promise<Credential | null>;
  /**
   * Returns a key as recorded in the ledger. The result is current as of the last authentication or batch start in this
   * process.
   */
  recordedKey(id: string): RecordedKey | null;
  /** Returns all keys with this name as recorded in the ledger. As current as `recordedKey`. */
  recordedKeysNamed(name: string): KeyColumns[];
  /**
   * Returns true if no user owns the key. Returns false until the first user has enrolled, because until then each key
   * stands for a person. As current as `recordedKey`.
   */
  isUnknownOwner(owner: string | null): boolean;
  /**
   * Returns the credential of an agent whose token was verified; null if the key or user does not exist, the key is
   * revoked or expired, or the user is deactivated. The credential has at most the scopes of the preset `agent`, and
   * expires with the token.
   * @param bearer the key that represents the workload, or the user that the agent acts for
   */
  workload(
    bearer: { key_id: string } | { user_id: string; agent_id: string },
    token: Omit<WorkloadIdentity, "user_id">,
  ): Promise<Credential | null>;
  /**
   * Returns the current rights of the key or user with this id, for code that has no credential. Returns null if there
   * is no such key or user, if the key was revoked, has expired or was altered in the store, or if the user was
   * deactivated.
   * @param tx a ledger transaction, or a reader of one snapshot
   */
  rightsOf(tx: RightsReader, id: string): Promise<Rights | null>;
  /** Creates a key, to be recorded, and its secret value. The value is stored nowhere else. */
  mint(input: {
    name: string;
    scopes: readonly Scope[];
    agent_id?: string | null;
    owner?: string | null;
    expires_at?: number | null;
  }): { key: NewKey; value: string };
}

/** The rights of a key or a user. */
export type Rights = Pick<Credential, "key" | "principal" | "groups" | "roles" | "visibility" | "limits" | "hasScope">;

/** The reads that `Keys.rightsOf` needs. */
export interface RightsReader extends Pick<LedgerTransaction, "key" | "state"> {
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A lease on a background job, which only one of the processes that share the store runs at a time. */
export interface LeaderLease {
  /**
   * Acquires or renews the lease. Resolves to true if this process now holds the lease. Rejects with StorageError.
   */
  isLeader(): Promise<boolean>;
  /** Ends the lease, so that another process can take over at once. */
  release(): Promise<void>;
}

/** The groups of the configuration. */
export interface Groups {
  /**
   * Returns the groups of a user, a key without an owner, or an agent: those that the configuration assigns, and those
   * of the user's entry. Sorted.
   * @param users the users at the same time, to resolve the members that the configuration lists
   */
  of(principal: string, users: Users): readonly string[];
  /**
   * Returns true if members of the group can see and approve actions of this agent and tool. A group without limits
   * covers all actions.
   */
  covers(group: string, action: GroupSubject): boolean;
  /**
   * Returns the visibility of a member of these groups, which is the union of the groups' limits. A group without
   * limits does not lift the limits of other groups.
   */
  visibility(groups: readonly string[]): GroupVisibility;
  /** The groups that the configuration defines, keyed by name. */
  readonly definitions: Readonly<Record<string, GroupDefinition>>;
  /** The rotas of the configuration, keyed by name. A group and a rota never have the same name. */
  readonly rotas: ReadonlyMap<string, Rota>;
  /**
   * Returns the rotas in which the principal is on call at `at` (milliseconds). Sorted.
   * @param users as for `of`
   */
  onCall(principal: string, at: number, users: Users): readonly string[];
}

/** Users, as the ledger records them. */
export interface UserList {
  /**
   * Returns the users on whose behalf this user can approve now, each with the delegation. Omits delegations that have
   * no effect now, for example because the delegator is no longer an approver. Rejects with StorageError.
   */
  delegatorsOf(id: string): Promise<readonly ApprovalDelegator[]>;
  /**
   * Returns the credential of a session whose secret was verified; null if the user does not exist or was deactivated.
   */
  credential(session: VerifiedSession): Promise<Credential | null>;
  /**
   * Returns the passkeys of the user in the credential's session; null for credentials without a session, such as API
   * keys.
   */
  passkeys(credential: Credential): SessionPasskeys | null;
}

/** Signs votes with the passkeys of a session's user. */
export interface SessionPasskeys {
  /**
   * Returns a nonce that this session can use once before it expires at `expires_at` (milliseconds). Writes nothing.
   */
  createNonce(): { nonce: string; expires_at: number };
  /**
   * Returns the options for `navigator.credentials.get`. Throws VOTE_SIGNATURE_INVALID if the user has no passkey for
   * this service.
   */
  options(user: User, challenge: Uint8Array): JsonObject;
  /**
   * Verifies the result of `navigator.credentials.get` and consumes the nonce. Rejects with VOTE_SIGNATURE_INVALID if
   * the nonce, the passkey or the signature is not valid, or if the signature counter did not increase.
   */
  claim(nonce: string, challenge: Uint8Array, response: PasskeyResponse): Promise<PasskeyAssertion>;
}

/** The result of `navigator.credentials.get` as JSON. Members of `response` are base64url. */
export interface PasskeyResponse {
  id: string;
  response: { authenticatorData: string; clientDataJSON: string; signature: string };
}

export interface VerifiedSession {
  id: string;
  user_id: string;
  terminal: boolean;
  /** The epoch of the newest head that this process had seen before it read the session. */
  epoch: number;
  /** Time at which the session ends or must be checked again. Milliseconds. */
  valid_until: number;
  /**
   * Reads the session again. Resolves to its new `valid_until`; null if it has ended. With `tx`, reads under the
   * ledger's lock. Without `tx`, also verifies the session with its identity provider when that is due.
   */
  recheck(tx: LedgerTransaction | null): Promise<number | null>;
  passkeys: SessionPasskeys;
}

export interface Agents {
  /** Returns the agent's facts for a decision made now. */
  facts(agentId: string): Promise<AgentFacts>;
  /** Returns registered ids that are other spellings of this agent's id. */
  registeredIds(agentId: string): readonly string[];
}

/** The processes that share the store. */
export interface Processes {
  /** Counts the live processes, including this process, and returns the leased jobs. Rejects with StorageError. */
  list(): Promise<{ count: number; duties: { name: string; here: boolean }[] }>;
}

/** The configured machine reviewers. */
export interface Reviewers {
  /** Returns the names of the reviewers, sorted. */
  names(): readonly string[];
  /** Returns null if no plugin contributes a reviewer of this name. */
  find(name: string): Reviewer | null;
}

/**
 * Number of reads of a source since this process started, and number of failures. Failures include reads that got no
 * slot within the timeout and were therefore not made.
 */
export interface FactSourceCounts {
  reads: number;
  failures: number;
}

/** The configured fact sources. */
export interface FactSources {
  list(): readonly Pick<FactSource, "name" | "inputs">[];
  /**
   * Returns the cached result of a call (a value or a fault); null if no result is recent enough for a decision.
   * @param keyId the key whose request needs the facts. Absent for votes and the service's own work, which are queued
   * separately
   * @param since when the decision began, by `performance.now()`. A value that was read more than the source's maximum
   * age before that is not recent, nor is any earlier value if the call is `fresh`. Default: only the age counts
   */
  recent(call: FactCall, keyId?: string | null, since?: number): FactResult | null;
  /**
   * Reads the facts from their sources, except for calls with a recent result. A failed read is also a result. Rejects
   * only with OVERLOADED, if too many requests wait for a source.
   * @param keyId as for `recent`
   * @param since as for `recent`
   */
  read(calls: readonly FactCall[], keyId?: string | null, since?: number): Promise<FactResult[]>;
  /**
   * Expires cached results that an action may have changed: those of `calls`, and those that have one of `subjects` as
   * an input.
   */
  expire(calls: readonly FactCall[], subjects: readonly (string | number | boolean)[]): void;
  counts(): readonly (FactSourceCounts & { source: string })[];
}

/** Computes MACs and verifies signatures for plugins. Plugins never see the secrets. */
export interface Vault {
  /** Returns an HMAC-SHA256. Derives its key from the service's secret for this `purpose`. */
  mac(purpose: string, message: Uint8Array): Uint8Array;
  /** Verifies an Ed25519 signature. */
  verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
}

/** Read access to the store. Plugins write through the ledger. */
export type HostStorage = Omit<StorageReader, keyof DocumentReads | keyof VisibleReads> &
  VisibleReads &
  Pick<Storage, "name" | "exclusive" | "schema" | "ping">;

/** A plugin's documents, which it can also write within a ledger transaction. */
export interface Documents extends DocumentReader {
  /**
   * Returns a writer for the documents within a ledger transaction. Its writes commit with the transaction or not at
   * all.
   */
  within(tx: Omit<LedgerTransaction, "activePolicies">): DocumentWriter;
}

/** Passed to `setup` of a privileged plugin: the members of `Host`, and the services of the core. */
export interface CoreHost extends Host {
  /** Current use of this process's limits. */
  readonly load: {
    /** Returns the number of bytes of request bodies in flight. */
    bodyBytes(): number;
    /** Returns the number of bytes of large responses that are being built or sent. */
    responseBytes(): number;
    /** Returns the number of agents' requests in the ledger's queue. */
    queued(): number;
  };
  /**
   * Resolves in a later turn of the event loop, one caller in each turn. Await it before each slice of a long read, so
   * that decisions run between slices even with many readers.
   * @param key the id of the key that reads, so that its many reads do not delay the reads of others
   */
  waitForReadSlot(key?: string): Promise<void>;
  /** All scopes of the core, then the scopes of plugins. */
  readonly scopes: readonly Scope[];
  /** This plugin's private documents. Available after start. */
  readonly documents: Documents;
  /** Available after start. */
  readonly storage: HostStorage;
  /** Available after start. */
  readonly ledger: Ledger;
  /** Available after start. */
  readonly policies: Policies;
  /** Available after start. */
  readonly keys: Keys;
  readonly groups: Groups;
  /** Available after start. */
  readonly users: UserList;
  /** Available after start. */
  readonly agents: Agents;
  /** Returns all states at the newest commit, and the time. Available after start. Rejects with StorageError. */
  snapshot(): Promise<Snapshot>;
  /** The errors that a request gets if a bar denies its action. */
  readonly barErrors: readonly ErrorKind[];
  /** The errors with which steps refuse submissions. */
  readonly stepErrors: readonly ErrorKind[];
  readonly openActionCanceller: OpenActionCanceller;
  readonly reactions: readonly Reaction[];
  /** The conditions of features for approving and starting actions. */
  readonly guard: Guard<CoreHost>;
  /** Declares what else an approval can do, such as create a grant; null if no plugin adds anything. */
  readonly voteAddition: VoteAddition<CoreHost> | null;
  /** Declares how one person can approve without the other approvers; null if no plugin allows it. */
  readonly soleApproval: SoleApproval | null;
  /** Returns the trace of the running request; null if it is not traced. */
  trace(): RequestTrace | null;
  /** Available after start. */
  readonly vault: Vault;
  /** Available after start. */
  readonly permits: Permits;
  readonly channels: Channels;
  /** Issuers of all plugins. Available after start. */
  readonly credentialIssuers: readonly ToolCredentialIssuer[];
  /** Gauges of all plugins. Available after start. */
  readonly gauges: readonly Gauge[];
  readonly checks: readonly HealthCheck[];
  /** Steps of decisions of all plugins, in the order of the configuration. Available after start. */
  readonly steps: readonly DecisionStep[];
  /** Empty until all plugins are set up. */
  readonly reviewers: Reviewers;
  /** Available after start. */
  readonly factSources: FactSources;
  /** Available after start. */
  readonly processes: Processes;
  /** Returns the lease on a background job that only one process runs. Available after start. */
  leaderLease(name: string): LeaderLease;
}
