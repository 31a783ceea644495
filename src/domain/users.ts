/**
 * Users: people who sign in. They are stored only as ledger entries and are rebuilt from these entries. No write to the
 * database can add a user or give a user a role or a passkey.
 */
import type { UserEntry } from "./entries.ts";
import { canonicalText } from "./canonical.ts";
import type { Fold } from "./fold.ts";
import { sha256Hex, utf8 } from "./hash.ts";
import type { JsonObject } from "./json.ts";
import { PersistentMap } from "./persistent-map.ts";
import { principalOfUser } from "./principals.ts";
import type { RecordedKey } from "./vote-people.ts";
import { scopesOfRoles } from "./roles.ts";
import { toRfc3339 } from "./time.ts";

/** A user, as of the newest entry about them. */
export type User = UserEntry["user"];

export type Passkey = User["passkeys"][number];

/** All users, including deactivated ones, keyed by id. */
export type Users = PersistentMap<string, User>;

export const NO_USERS: Users = PersistentMap.of();

/** Lifetime of an enrolment link. Milliseconds. */
const LINK_MS = 24 * 3_600_000;

/**
 * Returns a user who cannot sign in yet.
 * @param profile the members that are already known
 */
export function newUser(
  id: string,
  now: number,
  profile: Pick<User, "name" | "roles" | "groups"> & Partial<User>,
): User {
  return {
    id,
    identities: [],
    passkeys: [],
    link: null,
    recovery_codes: [],
    provider_groups: [],
    managed_by: null,
    email: null,
    created_at: toRfc3339(now),
    ended_at: null,
    ...profile,
  };
}

/**
 * Returns the recorded form of an enrolment link.
 * @param token 32 random bytes in base64url, which are not stored
 */
export function createEnrolmentLinkRecord(token: string, now: number): NonNullable<User["link"]> {
  return { hash: sha256Hex(utf8(token)), expires_at: toRfc3339(now + LINK_MS) };
}

/**
 * Returns the user after an entry. Throws RangeError if the entry contradicts earlier entries.
 * @param before the previous state of the user; null for a new user
 */
export function applyUserEntry(before: User | null, entry: UserEntry): User {
  const { change, user } = entry;
  const userLabel = `the user ${user.id}`;
  if ((change === "created") !== (before === null))
    throw new RangeError(before === null ? `${userLabel} was never created` : `${userLabel} is created twice`);
  if (before === null) return user;
  if (isProfileChangeAfterEnd(before, entry)) return user;
  if (change === "resumed" ? before.ended_at === null : before.ended_at !== null)
    throw new RangeError(
      change === "resumed" ? `${userLabel} was not deactivated` : `${userLabel} is changed after the deactivation`,
    );
  if ((change === "ended") !== (user.ended_at !== null))
    throw new RangeError(`${userLabel} is not deactivated by such an entry`);
  if (
    change !== "passkey_added" &&
    user.passkeys.some(({ id }) => !before.passkeys.some((passkey) => passkey.id === id))
  )
    throw new RangeError(`${userLabel} gets a passkey without an enrolment`);
  assertConfirmed(before, entry);
  return user;
}

export const userState: Fold<Users> = {
  name: "users",
  initial: NO_USERS,
  on: {
    user: (users, entry: UserEntry) =>
      users.with(entry.user.id, applyUserEntry(users.get(entry.user.id) ?? null, entry)),
  },
};

/**
 * Returns true if the entry changes only the name, the groups and the roles of a deactivated user. A provider continues
 * to report these, and they apply if the user is reactivated.
 */
function isProfileChangeAfterEnd(before: User, { change, user }: UserEntry): boolean {
  const { name, groups, roles, provider_groups } = user;
  const expected = { ...before, name, groups, roles, provider_groups };
  return (
    change === "updated" &&
    before.ended_at !== null &&
    before.managed_by !== null &&
    canonicalText(expected as unknown as JsonObject) === canonicalText(user as unknown as JsonObject)
  );
}

/**
 * Throws RangeError unless the user confirmed a change of their own passkeys or recovery codes with a passkey that they
 * had. Users with an account at an identity provider can make such a change without this confirmation.
 */
function assertConfirmed({ id, passkeys, identities }: User, { change, by, confirmed_by }: UserEntry): void {
  // Without an actor, a link or a recovery code added the passkey.
  const isOwn =
    (change === "passkey_added" && by !== null) || change === "passkey_removed" || change === "recovery_codes_created";
  if (confirmed_by === null) {
    if (isOwn && identities.length === 0) throw new RangeError(`the user ${id} did not confirm the change "${change}"`);
  } else if (!isOwn || !passkeys.some((passkey) => passkey.id === confirmed_by))
    throw new RangeError(`the change "${change}" is confirmed with a passkey that the user ${id} did not have`);
}

/** Returns the first user who matches; null if no user matches. */
export function findUser(users: Users, matches: (user: User) => boolean): User | null {
  for (const user of users.values()) if (matches(user)) return user;
  return null;
}

/** Returns true if the user has a passkey or an account at a provider. */
export function hasEnrolled({ passkeys, identities }: User): boolean {
  return passkeys.length > 0 || identities.length > 0;
}

/** Returns the user with this external identity, even if the user is deactivated. */
export function findUserByIdentity(users: Users, issuer: string, subject: string): User | null {
  return findUser(users, ({ identities }) =>
    identities.some((identity) => identity.issuer === issuer && identity.subject === subject),
  );
}

/** Returns a user in the form of a recorded key, because voters and creators of keys are recorded as keys. */
export function toRecordedKey(user: User): RecordedKey {
  return {
    id: user.id,
    name: user.name,
    hash: "",
    scopes: scopesOfRoles(user.roles),
    agent_id: null,
    owner: principalOfUser(user.id),
    created_by: null,
    expires_at: null,
    isUser: true,
  };
}
