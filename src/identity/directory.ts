/**
 * Keys, users, agents, stops and legal holds as the ledger records them. The tables are only a cache, which anyone with
 * write access to the database can change. Therefore each write first compares the key's owner and rights with this
 * directory.
 */
import { StorageError, type EntryRow, type KeyRow, type StorageReader } from "../contract/storage.ts";
import {
  FOLLOWED_TYPES,
  decodeEntry,
  type AgentEntry,
  type BreakGlassEntry,
  type DelegationEntry,
  type FollowedType,
  type GrantEntry,
  type ApiKeyEntry,
  type LegalHoldEntry,
  type PermitKeyEntry,
  type StopEntry,
  type SuggestedRuleEntry,
  type UserEntry,
} from "../domain/entries.ts";
import { applyBreakGlassEntry, NO_BREAK_GLASS, type BreakGlassUses } from "../domain/break-glass.ts";
import { applyDelegationEntry, NO_DELEGATIONS, type Delegations } from "../domain/delegations.ts";
import { equalBytes } from "../domain/hash.ts";
import { applyGrantEntries, NO_GRANTS, type Grants } from "../domain/grants.ts";
import { applyLegalHoldEntry, NO_LEGAL_HOLDS, type LegalHolds } from "../domain/legal-holds.ts";
import { hashLeaf } from "../domain/merkle.ts";
import { foldName } from "../domain/names.ts";
import { NO_STOPS, applyStopEntry, type StopHistory } from "../domain/stops.ts";
import { applySuggestedRuleEntry, NO_SUGGESTED_RULES, type SuggestedRules } from "../domain/suggested-rules.ts";
import type { RecordedKey } from "../domain/vote-people.ts";
import { parseRfc3339 } from "../domain/time.ts";
import { UserNames } from "../domain/user-names.ts";
import { applyUserEntry, hasEnrolled, toRecordedKey, type User, type Users } from "../domain/users.ts";

const PAGE = 500;

/** Excludes the log's keys. The ledger itself reads their entries (src/ledger/sign/log-key-book.ts). */
type DirectoryType = Exclude<FollowedType, "log_key">;
const TYPES = FOLLOWED_TYPES.filter((type): type is DirectoryType => type !== "log_key");

interface RecordedPermitKey {
  /** Public key in hex. */
  public_key: string;
  previous: string;
  /** Expiry of the previous permit key. Milliseconds since the epoch. */
  previous_until: number;
}

export class Directory {
  private readonly keys = new Map<string, RecordedKey>();
  /** For each case-folded agent name, the registered ids that are spelled differently. */
  private readonly spelt = new Map<string, string[]>();
  private readonly permitKeyEntries: RecordedPermitKey[] = [];
  private readonly next: Record<DirectoryType, number> = {
    api_key: 0,
    agent: 0,
    user: 0,
    stop: 0,
    legal_hold: 0,
    grant: 0,
    delegation: 0,
    break_glass: 0,
    suggested_rule: 0,
    permit_key: 0,
  };
  // Replace the map instead of changing it, so that a running batch or request continues to use the same users.
  private userMap = new Map<string, User>();
  private readonly userNames = new UserNames();
  /** Whether a user has ever enrolled. */
  private hasPeople = false;
  private stopMap: StopHistory = NO_STOPS;
  private legalHoldMap: LegalHolds = NO_LEGAL_HOLDS;
  private delegationMap: Delegations = NO_DELEGATIONS;
  private breakGlassUses: BreakGlassUses = NO_BREAK_GLASS;
  private suggestedRuleMap: SuggestedRules = NO_SUGGESTED_RULES;
  private readonly grantMap = createGrantFollower();
  private followed = -1;
  /** The recorded key that each compared row equals. Such a row does not have to be compared again. */
  private readonly unaltered = new WeakMap<KeyRow, RecordedKey>();
  /** Returns the grants as of the last commit that was followed. */
  readonly grants: () => Grants;

  constructor() {
    this.grants = this.grantMap.current;
  }

  /**
   * Reads the entries that were recorded since the last call. Does nothing if the epoch is not newer, because nothing
   * changes within an epoch.
   * @param epoch the epoch of a committed head
   */
  async follow(reader: Pick<StorageReader, "entriesOfType">, epoch: number): Promise<void> {
    if (epoch <= this.followed) return;
    for (const type of TYPES) {
      for (;;) {
        const rows = await reader.entriesOfType(type, this.next[type], PAGE);
        if (type === "user" && rows.length > 0) this.userMap = new Map(this.userMap);
        for (const row of rows) this.take(row, type);
        this.grantMap.apply();
        if (rows.length < PAGE) break;
      }
    }
    this.followed = Math.max(this.followed, epoch);
  }

  /** Returns the stops as of the last commit that was followed. */
  stops(): StopHistory {
    return this.stopMap;
  }

  /** Returns the legal holds as of the last commit that was followed. */
  legalHolds(): LegalHolds {
    return this.legalHoldMap;
  }

  /** Returns the delegations as of the last commit that was followed. */
  delegations(): Delegations {
    return this.delegationMap;
  }

  /** Returns the break-glass approvals as of the last commit that was followed. */
  breakGlass(): BreakGlassUses {
    return this.breakGlassUses;
  }

  /** Returns the suggested rules as of the last commit that was followed. */
  suggestedRules(): SuggestedRules {
    return this.suggestedRuleMap;
  }

  /** Returns a key, or a user in the form of a key; null if the id is unknown. */
  key(id: string): RecordedKey | null {
    const user = this.userMap.get(id);
    return this.keys.get(id) ?? (user === undefined ? null : toRecordedKey(user));
  }

  /** Returns the keys with this name, including revoked keys. */
  keysNamed(name: string): RecordedKey[] {
    return [...this.keys.values()].filter((key) => key.name === name);
  }

  /** Returns the users as of the last commit that was followed. */
  users(): Users {
    return this.userMap;
  }

  /**
   * Returns true if there is no owner, or if the owner is not a past or present name of a user. Returns false until the
   * first user has enrolled.
   */
  isUnknownOwner(owner: string | null): boolean {
    return this.hasPeople && (owner === null || this.userNames.idsNamed(owner).length === 0);
  }

  /** Returns the users who have or had the owner's name. */
  usersNamed(owner: string): User[] {
    return this.userNames.idsNamed(owner).flatMap((id) => this.userMap.get(id) ?? []);
  }

  /** See `Keys.samePersonPrincipals`. */
  samePersonPrincipals(principal: string): readonly string[] {
    return this.userNames.samePersonPrincipals(principal);
  }

  /** Returns the recorded keys that sign permits, in order. */
  permitKeys(): readonly RecordedPermitKey[] {
    return this.permitKeyEntries;
  }

  /** Returns the registered agent ids that equal this name after case folding, except the case-folded name itself. */
  spellings(folded: string): readonly string[] {
    return this.spelt.get(folded) ?? [];
  }

  /** Returns the names of the columns in which the row differs from the ledger. */
  altered(row: KeyRow): string[] {
    const recorded = this.keys.get(row.id);
    if (recorded === undefined) return ["id"];
    // Cache the result, because every request of a credential checks the same row.
    if (this.unaltered.get(row) === recorded) return [];
    const { scopes, revoked, ...columns } = recorded;
    const altered = Object.entries(columns)
      .filter(([column, value]) => row[column as keyof KeyRow] !== value)
      .map(([column]) => column);
    if (scopes.length !== row.scopes.length || scopes.some((scope, i) => scope !== row.scopes[i]))
      altered.push("scopes");
    if (revoked && row.revoked_at === null) altered.push("revoked_at");
    if (altered.length === 0) this.unaltered.set(row, recorded);
    return altered;
  }

  private take(row: EntryRow, type: DirectoryType): void {
    if (row.seq < this.next[type]) return;
    if (!equalBytes(hashLeaf(row.bytes), row.leaf_hash))
      throw new StorageError("corrupt", `entry ${row.seq} of the ledger was changed; run assent audit`);
    if (type === "stop") this.stopMap = applyStopEntry(this.stopMap, decodeEntry<StopEntry>(row.bytes));
    else if (type === "legal_hold") this.takeLegalHold(row);
    else if (type === "api_key") this.takeKey(row);
    else if (type === "agent") this.takeAgent(row);
    else if (type === "user") this.takeUser(row);
    else if (type === "grant") this.grantMap.take(row);
    else if (type === "break_glass") this.takeBreakGlass(row);
    else if (type === "suggested_rule") this.takeSuggestedRule(row);
    else if (type === "delegation") this.takeDelegation(row);
    else this.takePermitKey(row);
    this.next[type] = row.seq + 1;
  }

  private takeAgent({ bytes }: EntryRow): void {
    const { change, agent } = decodeEntry<AgentEntry>(bytes);
    const id = agent["id"] as string;
    const name = foldName(id);
    if (change === "registered" && name !== id) this.spelt.set(name, [...(this.spelt.get(name) ?? []), id]);
  }

  private takeUser({ seq, bytes }: EntryRow): void {
    const entry = decodeEntry<UserEntry>(bytes);
    const { id } = entry.user;
    const before = this.userMap.get(id) ?? null;
    this.userMap.set(
      id,
      applied(seq, () => applyUserEntry(before, entry)),
    );
    this.userNames.add(entry.user);
    this.hasPeople ||= hasEnrolled(entry.user);
  }

  private takeLegalHold({ seq, bytes }: EntryRow): void {
    const entry = decodeEntry<LegalHoldEntry>(bytes);
    this.legalHoldMap = applied(seq, () => applyLegalHoldEntry(this.legalHoldMap, { ...entry, seq }));
  }

  private takeDelegation({ seq, bytes }: EntryRow): void {
    const entry = decodeEntry<DelegationEntry>(bytes);
    this.delegationMap = applied(seq, () => applyDelegationEntry(this.delegationMap, entry));
  }

  private takeBreakGlass({ seq, bytes }: EntryRow): void {
    const entry = decodeEntry<BreakGlassEntry>(bytes);
    this.breakGlassUses = applied(seq, () => applyBreakGlassEntry(this.breakGlassUses, entry));
  }

  private takeSuggestedRule({ seq, bytes }: EntryRow): void {
    const entry = decodeEntry<SuggestedRuleEntry>(bytes);
    this.suggestedRuleMap = applied(seq, () => applySuggestedRuleEntry(this.suggestedRuleMap, entry));
  }

  private takePermitKey({ bytes }: EntryRow): void {
    const { public_key, previous, previous_until } = decodeEntry<PermitKeyEntry>(bytes);
    this.permitKeyEntries.push({ public_key, previous, previous_until: parseRfc3339(previous_until) as number });
  }

  private takeKey(row: EntryRow): void {
    const { change, key, by } = decodeEntry<ApiKeyEntry>(row.bytes);
    const earlier = this.keys.get(key.id);
    // If several entries have the same id, the first entry created the key.
    if (change === "revoked") {
      if (earlier !== undefined) this.keys.set(key.id, { ...earlier, revoked: true });
    } else if (earlier === undefined) {
      const expires_at = key.expires_at === null ? null : parseRfc3339(key.expires_at);
      this.keys.set(key.id, { ...key, expires_at, created_by: by?.key_id ?? null, revoked: false });
    }
  }
}

/** Returns the result of `apply`. Throws StorageError if the entry contradicts earlier entries. */
function applied<T>(seq: number, apply: () => T): T {
  try {
    return apply();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new StorageError("corrupt", `entry ${seq} of the ledger is not valid: ${error.message}; run assent audit`);
  }
}

/** Collects a page of grant entries and applies them together, because each application copies the maps. */
function createGrantFollower() {
  let grants: Grants = NO_GRANTS;
  let entries: (GrantEntry & { seq: number })[] = [];
  return {
    take: ({ bytes }: EntryRow): void => void entries.push(decodeEntry<GrantEntry>(bytes)),
    apply(): void {
      const page = entries;
      entries = [];
      try {
        grants = applyGrantEntries(grants, page);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        const words = `the grants in the ledger contradict each other: ${error.message}; run assent audit`;
        throw new StorageError("corrupt", words);
      }
    },
    current: (): Grants => grants,
  };
}
