/**
 * Users: people who sign in. They are stored only as ledger entries and are rebuilt from them, so writing to the
 * database can neither add a user nor give one a role or a passkey.
 */
import type { UserEntry } from "./entries.ts";
import { sha256Hex, utf8 } from "./hash.ts";
import type { RecordedKey } from "./standing.ts";
import { scopesOfRoles } from "./roles.ts";
import { toRfc3339 } from "./time.ts";

/** A user as the newest entry left them. */
export type User = UserEntry["user"];

/** An account at an OpenID Connect provider or a SCIM client. Names and e-mail addresses change hands; this pair does not. */
export type ExternalIdentity = User["identities"][number];

export type Passkey = User["passkeys"][number];

/** All users that were ever created, by id. */
export type Users = ReadonlyMap<string, User>;

export const NO_USERS: Users = new Map();

/** Time to open an enrolment link. Milliseconds. */
const LINK_MS = 24 * 3_600_000;

/** Returns a user who cannot sign in yet. @param about members that are already known */
export function newUser(id: string, now: number, about: Pick<User, "name" | "roles" | "groups"> & Partial<User>): User {
  return {
    id,
    identities: [],
    passkeys: [],
    link: null,
    recovery_codes: [],
    provider_groups: [],
    managed_by: null,
    created_at: toRfc3339(now),
    ended_at: null,
    ...about,
  };
}

/** Returns the recorded form of an enrolment link. @param token 32 random bytes, base64url; stored nowhere */
export function createEnrolmentLinkRecord(token: string, now: number): NonNullable<User["link"]> {
  return { hash: sha256Hex(utf8(token)), expires_at: toRfc3339(now + LINK_MS) };
}

/**
 * Returns the user after an entry. Throws RangeError if the entry contradicts earlier ones.
 * @param before the user before the entry; null if there was none
 */
export function applyUserEntry(before: User | null, { change, user }: UserEntry): User {
  const who = `the user ${user.id}`;
  if ((change === "created") !== (before === null))
    throw new RangeError(before === null ? `${who} was never created` : `${who} is created twice`);
  if (before === null) return user;
  if (change === "resumed" ? before.ended_at === null : before.ended_at !== null)
    throw new RangeError(change === "resumed" ? `${who} was not ended` : `${who} is changed after the end`);
  if ((change === "ended") !== (user.ended_at !== null)) throw new RangeError(`${who} is not ended by such an entry`);
  if (
    change !== "passkey_added" &&
    user.passkeys.some(({ id }) => !before.passkeys.some((passkey) => passkey.id === id))
  )
    throw new RangeError(`${who} gets a passkey without an enrolment`);
  return user;
}

/** Returns the first user who matches; null if none does. */
export function findUser(users: Users, matches: (user: User) => boolean): User | null {
  for (const user of users.values()) if (matches(user)) return user;
  return null;
}

/** Returns the user with this external identity, ended or not. */
export function findUserByIdentity(users: Users, issuer: string, subject: string): User | null {
  return findUser(users, ({ identities }) =>
    identities.some((identity) => identity.issuer === issuer && identity.subject === subject),
  );
}

/** Returns the user with this passkey, ended or not. @param id credential id in base64url */
export function findUserByPasskey(users: Users, id: string): User | null {
  return findUser(users, ({ passkeys }) => passkeys.some((passkey) => passkey.id === id));
}

/**
 * Returns a user as a recorded key, for its use as the creator of keys and the person behind votes.
 * @param earlier names that the user had before
 */
export function userAsKey(user: User, earlier: readonly string[] = []): RecordedKey {
  return {
    id: user.id,
    name: user.name,
    hash: "",
    scopes: scopesOfRoles(user.roles),
    agent_id: null,
    owner: user.name,
    created_by: null,
    expires_at: null,
    revoked: user.ended_at !== null,
    isUser: true,
    ...(earlier.length === 0 ? {} : { earlier_owners: earlier }),
  };
}
