/**
 * Authenticates API keys. Finds a key by the SHA-256 of its value, and caches it for one epoch of the ledger. Every
 * change of a key increases the epoch, so the next request with a revoked key is rejected. A request that writes
 * confirms its key again under the ledger's lock.
 */
import { userState } from "../domain/users.ts";
import type { RecordedKey } from "../domain/vote-people.ts";
import { randomBytes } from "node:crypto";
import { Refusal } from "../contract/errors.ts";
import type { Groups, Keys, Rights, RightsReader } from "../contract/core-host.ts";
import type { Credential, Logger, WorkloadIdentity } from "../contract/host.ts";
import type { NewKey } from "../contract/ledger.ts";
import type { KeyRow, LedgerHead, StorageReader } from "../contract/storage.ts";
import { formatKey, checkKeyFormat } from "../domain/api-key.ts";
import { equalBytes, fromHex, sha256, toHex, utf8 } from "../domain/hash.ts";
import { principalOfKey, userOfPrincipal } from "../domain/principals.ts";
import type { KeyColumns } from "../domain/recorded-keys.ts";
import { ownerAllows } from "../domain/roles.ts";
import { hasScope, type Scope } from "../domain/scopes.ts";
import { listKeyMakers } from "../domain/vote-people.ts";
import { intersectVisibility, type GroupVisibility, type Visibility } from "../domain/visibility.ts";
import type { Users } from "../domain/users.ts";
import type { Directory } from "./directory.ts";
import { rightsOfUser, type UserService } from "./users.ts";
import { assertUnexpired, toWorkloadCredential } from "./workloads.ts";

const CACHE_LIMIT = 10_000;

interface KeysOptions {
  storage: StorageReader;
  directory: Directory;
  groups: Groups;
  log: Pick<Logger, "error">;
  head(): Promise<LedgerHead>;
  clock(): number;
  newId(): string;
  users: Pick<UserService, "refresh" | "agentCredential">;
  /** Called for every request that was authenticated with an API key, or with a workload token for a key. */
  used(keyId: string, now: number): void;
}

export class KeyService implements Keys {
  private readonly options: KeysOptions;
  private cache = new Map<string, Credential>();
  private cachedEpoch = -1;
  /** The highest epoch of any batch or head so far, including batches that were rolled back. */
  private newestEpoch = -1;
  /** Ids of keys that were rejected as expired. They remain expired even if the clock is set back. */
  private readonly expired = new Set<string>();

  constructor(options: KeysOptions) {
    this.options = options;
  }

  /**
   * Returns the credential for a key's value; null if the key is not valid. Throws INVALID_CREDENTIAL if the value's
   * checksum is wrong. Set `confirmed` only if the caller confirms the credential under the ledger's lock before it
   * changes or returns anything. A cached key is then accepted without a read of the store.
   */
  async authenticate(value: string, { confirmed = false }: { confirmed?: boolean } = {}): Promise<Credential | null> {
    if (value.length > 512) return null;
    const lately = confirmed && this.cachedEpoch >= this.newestEpoch ? this.cache.get(value) : undefined;
    if (lately !== undefined) return this.admit(lately);
    // Read the head first, so that the row is at least as new as the epoch.
    const head = await this.options.head();
    const { epoch } = head;
    this.newestEpoch = epoch;
    if (epoch !== this.cachedEpoch || this.cache.size > CACHE_LIMIT) {
      this.cache = new Map();
      this.cachedEpoch = epoch;
    }
    await this.options.directory.follow(this.options.storage, head);
    let credential = this.cache.get(value);
    if (credential === undefined) {
      if (checkKeyFormat(value) === "mistyped") {
        throw new Refusal(
          "INVALID_CREDENTIAL",
          "the key's checksum is wrong; the key was mistyped or truncated; copy it again",
          challengeHeaders(),
        );
      }
      const digest = sha256(utf8(value));
      const hash = toHex(digest);
      const row = await this.assertRecorded(await this.options.storage.keyByHash(hash));
      if (row === null || !equalBytes(fromHex(row.hash), digest)) return null;
      credential = toCredential(row, epoch, this.options.groups, this.inheritedRights(row));
      if (this.cachedEpoch === epoch) this.cache.set(value, credential);
    }
    return this.admit(credential);
  }

  /**
   * Reads the credential again. Resolves to null if its key was revoked or expired, its session or token has ended, or
   * its user was deactivated.
   */
  async refresh(credential: Credential): Promise<Credential | null> {
    const head = await this.options.head();
    const { epoch } = head;
    await this.options.directory.follow(this.options.storage, head);
    if (credential.session !== undefined) return this.options.users.refresh(credential.session, epoch);
    if (credential.workload !== undefined) return this.refreshWorkload(credential, credential.workload);
    if (credential.epoch !== epoch) return this.readKey(credential.key.id, epoch);
    return this.isLive(credential.key, this.options.clock()) ? credential : null;
  }

  async confirm(tx: StorageReader, credential: Credential, epoch: number, now: number): Promise<Credential> {
    this.newestEpoch = Math.max(this.newestEpoch, epoch);
    if (credential.workload !== undefined) assertUnexpired(credential.workload, now);
    let current = credential;
    if (credential.epoch !== epoch) {
      const row = await tx.key(credential.key.id);
      if (row === null) throw endedKeyRefusal(credential.key);
      current = toCredential(row, epoch, this.options.groups, this.inheritedRights(row));
      if (credential.workload !== undefined) current = toWorkloadCredential(current, credential.workload);
    }
    if (!this.isLive(current.key, now)) throw endedKeyRefusal(current.key);
    let altered = this.options.directory.altered(current.key);
    // The stored row may have changed since it authenticated the request, so also verify the earlier row.
    if (altered.length === 0 && current !== credential) altered = this.options.directory.altered(credential.key);
    if (altered.length > 0) throw this.alteredRefusal(current.key, altered);
    return current;
  }

  /**
   * Returns the row if it matches the ledger, and null if there is none. If the row might be newer than the entries
   * that this process has read, reads both again. Throws KEY_ALTERED.
   */
  private async assertRecorded(row: KeyRow | null): Promise<KeyRow | null> {
    const { directory, storage, head } = this.options;
    if (row === null || directory.altered(row).length === 0) return row;
    await directory.follow(storage, await head());
    const current = await storage.key(row.id);
    if (current === null) return null;
    const altered = directory.altered(current);
    if (altered.length > 0) throw this.alteredRefusal(current, altered);
    return current;
  }

  private alteredRefusal({ id }: KeyRow, altered: readonly string[]): Refusal {
    const columns = altered.join(", ");
    this.options.log.error("a key in the store differs from the ledger; run assent audit", {
      key: id,
      altered: columns,
    });
    return new Refusal(
      "KEY_ALTERED",
      `the key ${id} in the store is not the one in the ledger (${columns}); nothing was done, and the operator has to look at the store with assent audit`,
    );
  }

  recordedKey(id: string): RecordedKey | null {
    return this.options.directory.key(id);
  }

  recordedKeysNamed(name: string): KeyColumns[] {
    return this.options.directory.keysNamed(name);
  }

  isUnknownOwner(owner: string | null): boolean {
    return this.options.directory.isUnknownOwner(owner);
  }

  rightsOf(tx: RightsReader, id: string): Promise<Rights | null> {
    return readRights(this.options, tx, id);
  }

  mint(input: {
    name: string;
    scopes: readonly Scope[];
    agent_id?: string | null;
    owner?: string | null;
    expires_at?: number | null;
  }): { key: NewKey; value: string } {
    const value = formatKey(randomBytes(32));
    return { value, key: createKey(this.options.newId(), value, input) };
  }

  async workload(
    bearer: Parameters<Keys["workload"]>[0],
    token: Omit<WorkloadIdentity, "user_id">,
  ): Promise<Credential | null> {
    const head = await this.options.head();
    const { epoch } = head;
    await this.options.directory.follow(this.options.storage, head);
    if ("user_id" in bearer)
      return this.options.users.agentCredential(bearer.user_id, bearer.agent_id, { ...token, user_id: bearer.user_id });
    const credential = await this.readKey(bearer.key_id, epoch);
    if (credential === null) return null;
    this.options.used(credential.key.id, this.options.clock());
    return toWorkloadCredential(credential, { ...token, user_id: null });
  }

  private isLive(key: KeyRow, now: number): boolean {
    if (key.expires_at !== null && key.expires_at <= now) this.expired.add(key.id);
    return key.revoked_at === null && !this.expired.has(key.id);
  }

  private inheritedRights(row: KeyRow): InheritedRights {
    const { directory, groups } = this.options;
    return readInheritedRights(row, directory, groups, directory.users());
  }

  private admit(credential: Credential): Credential | null {
    const now = this.options.clock();
    if (!this.isLive(credential.key, now)) return null;
    this.options.used(credential.key.id, now);
    return credential;
  }

  /** Reads the key again. Returns null if it does not exist, was revoked or has expired. */
  private async readKey(id: string, epoch: number): Promise<Credential | null> {
    const row = await this.assertRecorded(await this.options.storage.key(id));
    if (row === null || !this.isLive(row, this.options.clock())) return null;
    return toCredential(row, epoch, this.options.groups, this.inheritedRights(row));
  }

  private async refreshWorkload({ key }: Credential, workload: WorkloadIdentity): Promise<Credential | null> {
    if (workload.expires_at <= this.options.clock()) return null;
    const { user_id } = workload;
    return this.workload(
      user_id === null ? { key_id: key.id } : { user_id, agent_id: key.agent_id as string },
      workload,
    );
  }
}

/** See `Keys.rightsOf`. */
async function readRights(
  { directory, groups }: { directory: Directory; groups: Groups },
  tx: RightsReader,
  id: string,
): Promise<Rights | null> {
  const users = tx.state(userState);
  const user = users.get(id);
  if (user !== undefined) return user.ended_at === null ? rightsOfUser(user, groups, users) : null;
  const row = await tx.key(id);
  if (row === null || row.revoked_at !== null || (row.expires_at ?? Infinity) <= tx.now) return null;
  if (directory.altered(row).length > 0) return null;
  return toCredential(row, 0, groups, readInheritedRights(row, directory, groups, users));
}

/** A limit on a key's rights. */
interface RightsLimit {
  allows(scope: Scope): boolean;
  /** The groups in which the key can be; null for any. */
  groups: readonly string[] | null;
  /** The actions that the key can see besides its own submissions. */
  visibility: GroupVisibility;
  /** The limits of the groups, which do not depend on scopes. */
  limits: GroupVisibility;
}

/**
 * The groups of a key, and the limits on its rights. A key has only the rights that its owner and all its creators
 * have, and sees only the actions that all of them can see.
 */
interface InheritedRights {
  groups: readonly string[];
  limits: readonly RightsLimit[];
}

type KeyParts = Pick<RecordedKey, "id" | "scopes" | "agent_id" | "owner">;

function readInheritedRights(row: KeyRow, directory: Directory, groups: Groups, users: Users): InheritedRights {
  return {
    groups: groups.of(principalOfKey(row), users),
    limits: [...ownerLimits(row, groups, users), ...makerLimits(row, directory, groups, users)],
  };
}

/**
 * Returns the limit of the key's owner; an empty list for a key without an owner. An owner who is not an active user has
 * no rights.
 */
function ownerLimits({ owner, agent_id }: KeyParts, groups: Groups, users: Users): RightsLimit[] {
  if (owner === null) return [];
  const user = users.get(userOfPrincipal(owner) ?? "");
  if (user === undefined || user.ended_at !== null)
    return [{ allows: () => false, groups: [], visibility: { within: [] }, limits: { within: [] } }];
  const rights = rightsOfUser(user, groups, users);
  const allows = (scope: Scope): boolean => ownerAllows(rights.hasScope, agent_id, scope);
  return [{ allows, groups: null, visibility: visibilityToPass(rights), limits: rights.limits }];
}

/** Returns the actions that keys of a user can see besides their own submissions: none if the user cannot read actions. */
function visibilityToPass({ hasScope: may, limits }: Rights): GroupVisibility {
  return may("actions:read") ? limits : { within: [] };
}

/**
 * Returns the limits of the creators of the key, direct or through other keys. Omits admin keys without limits, because
 * they can grant any rights. A deactivated user has no scopes. A revoked key counts with its original scopes.
 */
function makerLimits({ created_by }: KeyRow, directory: Directory, groups: Groups, users: Users): RightsLimit[] {
  if (created_by === null) return [];
  return listKeyMakers(created_by, (id) => directory.key(id)).flatMap((maker): RightsLimit[] => {
    const user = users.get(maker.id);
    if (user !== undefined) {
      const rights = rightsOfUser(user, groups, users);
      const allows = user.ended_at === null ? rights.hasScope : () => false;
      return [{ allows, groups: rights.groups, visibility: visibilityToPass(rights), limits: rights.limits }];
    }
    const ofOwner = ownerLimits(maker, groups, users);
    const allows = (scope: Scope): boolean =>
      hasScope(maker.scopes, scope) && ofOwner.every((limit) => limit.allows(scope));
    const memberOf = groups.of(principalOfKey(maker), users);
    const ofGroups = groups.visibility(memberOf);
    const limits = ofOwner.map((limit) => limit.limits).reduce(intersectVisibility, ofGroups);
    if (allows("admin") && "all" in limits) return [];
    // A key that is bound to an agent creates keys only for that agent, whose actions it can see.
    const seesMore = allows("actions:read") || maker.agent_id !== null;
    const visibility = ofOwner
      .map((limit) => limit.visibility)
      .reduce(intersectVisibility, seesMore ? ofGroups : { within: [] });
    return [{ allows, groups: memberOf, visibility, limits }];
  });
}

/** Creates a key with the given value. */
export function createKey(id: string, value: string, input: Parameters<Keys["mint"]>[0]): NewKey {
  return {
    id,
    name: input.name,
    hash: toHex(sha256(utf8(value))),
    prefix: value.slice(0, 12),
    scopes: [...input.scopes],
    agent_id: input.agent_id ?? null,
    owner: input.owner ?? null,
    expires_at: input.expires_at ?? null,
  };
}

export function toCredential(
  key: KeyRow,
  epoch: number,
  groups: Pick<Groups, "visibility">,
  { groups: own, limits: inherited }: InheritedRights = { groups: [], limits: [] },
): Credential {
  const hasGrantedScope = (scope: Scope): boolean =>
    hasScope(key.scopes, scope) && inherited.every((limit) => limit.allows(scope));
  const memberOf = own.filter((group) => inherited.every((limit) => limit.groups?.includes(group) ?? true));
  const ofGroups = groups.visibility(own);
  const visibility = inherited.map((limit) => limit.visibility).reduce(intersectVisibility, ofGroups);
  return {
    key,
    epoch,
    valid_until: key.expires_at,
    principal: principalOfKey(key),
    groups: memberOf,
    visibility: visibilityOf(key, hasGrantedScope, visibility),
    limits: inherited.map((limit) => limit.limits).reduce(intersectVisibility, limitsOf(key, ofGroups)),
    hasScope: hasGrantedScope,
  };
}

/** Returns the limits of the key's groups, and of its agent if it is bound to one. */
function limitsOf({ agent_id }: KeyRow, ofGroups: GroupVisibility): GroupVisibility {
  return agent_id === null
    ? ofGroups
    : intersectVisibility(ofGroups, { within: [{ agents: null, tools: null, agent_id }] });
}

/**
 * Returns the actions that a key can see. The limits are those of its groups, its creators and its owner.
 *
 * - An unbound key with `actions:read` sees all actions within the limits.
 * - An unbound key without `actions:read` sees its own submissions.
 * - A bound key without limits sees all actions of its agent.
 * - A bound key with limits sees the agent's actions within the limits if it has `actions:read` or `approvals:decide`.
 *   Otherwise, it sees its own submissions.
 */
function visibilityOf({ id, agent_id }: KeyRow, may: (scope: Scope) => boolean, ofGroups: GroupVisibility): Visibility {
  if (agent_id === null) return may("actions:read") ? ofGroups : { key_id: id };
  if ("all" in ofGroups) return { agent_id };
  if (!(may("actions:read") || may("approvals:decide"))) return { key_id: id };
  return { within: ofGroups.within.map((limits) => ({ ...limits, agent_id })) };
}

function endedKeyRefusal(key: KeyRow): Refusal {
  return new Refusal(
    "INVALID_CREDENTIAL",
    `the key "${key.name}" was revoked or has expired; use an active key`,
    challengeHeaders(),
  );
}

function challengeHeaders(): { headers: Record<string, string> } {
  return { headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' } };
}
