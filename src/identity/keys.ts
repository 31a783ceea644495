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
import type { KeyRow, LedgerHead, StorageReader } from "../contract/storage.ts";
import { formatKey, checkKeyFormat } from "../domain/api-key.ts";
import { equalBytes, fromHex, sha256, toHex, utf8 } from "../domain/hash.ts";
import { principalOfKey } from "../domain/owner.ts";
import { scopesOfRoles } from "../domain/roles.ts";
import { hasScope, type Scope } from "../domain/scopes.ts";
import { listKeyMakers } from "../domain/vote-people.ts";
import { intersectVisibility, type GroupVisibility, type Visibility } from "../domain/visibility.ts";
import type { Users } from "../domain/users.ts";
import type { Directory } from "./directory.ts";
import { groupsOfUser, rightsOfUser, type UserService } from "./users.ts";
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
    const { epoch } = await this.options.head();
    this.newestEpoch = epoch;
    if (epoch !== this.cachedEpoch || this.cache.size > CACHE_LIMIT) {
      this.cache = new Map();
      this.cachedEpoch = epoch;
    }
    await this.options.directory.follow(this.options.storage, epoch);
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
      const row = await this.options.storage.keyByHash(hash);
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
    const { epoch } = await this.options.head();
    await this.options.directory.follow(this.options.storage, epoch);
    if (credential.session !== undefined) return this.options.users.refresh(credential.session);
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
    // The row in the store may have changed, so also verify the row that authenticated the request.
    if (altered.length === 0 && current !== credential) altered = this.options.directory.altered(credential.key);
    if (altered.length > 0) {
      this.options.log.error("a key in the store differs from the ledger; run assent audit", {
        key: current.key.id,
        altered: altered.join(", "),
      });
      throw new Refusal(
        "KEY_ALTERED",
        `the key ${current.key.id} in the store is not the one in the ledger (${altered.join(", ")}); nothing was done, and the operator has to look at the store with assent audit`,
      );
    }
    return current;
  }

  recordedKey(id: string): RecordedKey | null {
    return this.options.directory.key(id);
  }

  recordedKeysNamed(name: string): RecordedKey[] {
    return this.options.directory.keysNamed(name);
  }

  isUnknownOwner(owner: string | null): boolean {
    return this.options.directory.isUnknownOwner(owner);
  }

  isEndedOwner(owner: string, users = this.options.directory.users()): boolean {
    const named = this.options.directory.usersNamed(owner).map(({ id }) => users.get(id));
    return named.length > 0 && named.every((user) => user === undefined || user.ended_at !== null);
  }

  samePersonPrincipals(principal: string): readonly string[] {
    return this.options.directory.samePersonPrincipals(principal);
  }

  rightsOf(tx: RightsReader, id: string): Promise<Rights | null> {
    return readRights(this.options, tx, id);
  }

  mint(input: {
    name: string;
    scopes: readonly Scope[];
    agent_id?: string | null;
    owner?: string | null;
    created_by?: string | null;
    expires_at?: number | null;
    now: number;
  }): { row: KeyRow; value: string } {
    const value = formatKey(randomBytes(32));
    return { value, row: createKeyRow(this.options.newId(), value, input) };
  }

  async workload(
    bearer: Parameters<Keys["workload"]>[0],
    { claims, expires_at }: Pick<WorkloadIdentity, "claims" | "expires_at">,
  ): Promise<Credential | null> {
    const { epoch } = await this.options.head();
    await this.options.directory.follow(this.options.storage, epoch);
    if ("user_id" in bearer)
      return this.options.users.agentCredential(bearer.user_id, bearer.agent_id, {
        claims,
        expires_at,
        user_id: bearer.user_id,
      });
    const credential = await this.readKey(bearer.key_id, epoch);
    if (credential === null) return null;
    this.options.used(credential.key.id, this.options.clock());
    return toWorkloadCredential(credential, { claims, expires_at, user_id: null });
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
    const row = await this.options.storage.key(id);
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
  const user = tx.state(userState).get(id);
  if (user !== undefined) return user.ended_at === null ? rightsOfUser(user, groups) : null;
  const row = await tx.key(id);
  if (row === null || row.revoked_at !== null || (row.expires_at ?? Infinity) <= tx.now) return null;
  if (directory.altered(row).length > 0) return null;
  return toCredential(row, 0, groups, readInheritedRights(row, directory, groups, tx.state(userState)));
}

/** Rights of a user or key that created a key. */
interface MakerRights {
  scopes: readonly string[];
  groups: readonly string[];
  visibility: GroupVisibility;
}

/**
 * Limits on a key's rights: the key has only rights that all its creators have, and can see only actions that its owner
 * can see.
 */
interface InheritedRights {
  makers: readonly MakerRights[];
  owner: GroupVisibility;
}

function readInheritedRights(row: KeyRow, directory: Directory, groups: Groups, users: Users): InheritedRights {
  return {
    makers: listMakerRights(row, directory, groups, users),
    owner: ownerVisibility(row, directory, groups, users),
  };
}

/**
 * Returns the actions that all active users who have or had the name of the key's owner can see. If there are no such
 * users, there is no limit.
 */
function ownerVisibility(
  { owner }: Pick<KeyRow, "owner">,
  directory: Directory,
  groups: Groups,
  users: Users,
): GroupVisibility {
  const named = owner === null ? [] : directory.usersNamed(owner).flatMap(({ id }) => users.get(id) ?? []);
  return named
    .filter(({ ended_at }) => ended_at === null)
    .map((user) => groups.visibility(groupsOfUser(groups, user)))
    .reduce<GroupVisibility>(intersectVisibility, { all: true });
}

/**
 * Returns the rights of the creators of the key, direct or through other keys. Omits admin keys, because they can grant
 * any rights. A deactivated user has no scopes; a revoked key still has the scopes that it was created with.
 */
function listMakerRights({ created_by }: KeyRow, directory: Directory, groups: Groups, users: Users): MakerRights[] {
  if (created_by === null) return [];
  return listKeyMakers(created_by, (id) => directory.key(id)).flatMap((maker) => {
    const user = users.get(maker.id);
    if (user === undefined && hasScope(maker.scopes, "admin")) return [];
    const memberOf = user === undefined ? groups.of(principalOfKey(maker)) : groupsOfUser(groups, user);
    const scopes = user === undefined ? maker.scopes : user.ended_at === null ? scopesOfRoles(user.roles) : [];
    const ofOwner = user === undefined ? ownerVisibility(maker, directory, groups, users) : ({ all: true } as const);
    return [{ scopes, groups: memberOf, visibility: intersectVisibility(groups.visibility(memberOf), ofOwner) }];
  });
}

/** Creates the row of a key with the given value. */
export function createKeyRow(id: string, value: string, input: Parameters<Keys["mint"]>[0]): KeyRow {
  return {
    id,
    name: input.name,
    hash: toHex(sha256(utf8(value))),
    prefix: value.slice(0, 12),
    scopes: [...input.scopes],
    agent_id: input.agent_id ?? null,
    owner: input.owner ?? null,
    created_by: input.created_by ?? null,
    created_at: input.now,
    expires_at: input.expires_at ?? null,
    revoked_at: null,
    last_used_at: null,
  };
}

export function toCredential(
  key: KeyRow,
  epoch: number,
  groups: Groups,
  { makers, owner }: InheritedRights = { makers: [], owner: { all: true } },
): Credential {
  const principal = principalOfKey(key);
  const rights = [key.scopes, ...makers.map(({ scopes }) => scopes)];
  const hasGrantedScope = (scope: Scope): boolean => rights.every((scopes) => hasScope(scopes, scope));
  const memberOf = groups.of(principal).filter((group) => makers.every((maker) => maker.groups.includes(group)));
  const limit = makers
    .map(({ visibility }) => visibility)
    .reduce<GroupVisibility>(intersectVisibility, intersectVisibility(groups.visibility(groups.of(principal)), owner));
  return {
    key,
    epoch,
    valid_until: key.expires_at,
    principal,
    groups: memberOf,
    visibility: visibilityOf(key, hasGrantedScope, limit),
    hasScope: hasGrantedScope,
  };
}

/**
 * Returns the actions that a key can see. The limits are those of its groups, its creators and its owner.
 *
 * - An unbound key with `actions:read` sees all actions within the limits.
 * - An unbound key without `actions:read` sees its own submissions.
 * - A bound key without limits sees all actions of its agent.
 * - A bound key with limits sees the agent's actions within the limits if it has `actions:read` or `approvals:decide`,
 *   and otherwise its own submissions.
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
