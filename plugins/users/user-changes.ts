/** Changes users. Each change is a ledger transaction that records the user's new state. */
import { randomBytes } from "node:crypto";
import { type Credential, Refusal, type Session, toRfc3339 } from "../../src/plugin.ts";
import {
  userState,
  confirmCredential,
  type CoreHost,
  keyState,
  type LedgerTransaction,
  sha256Hex,
  toActor,
  utf8,
  type Actor,
  findUser,
  hasEnrolled,
  hasScope,
  createEnrolmentLinkRecord,
  listKeyMakers,
  newUser,
  parseRfc3339,
  principalOfKey,
  principalOfUser,
  type RecordedKey,
  type Role,
  scopesOfRoles,
  type User,
  type UserEntry,
  type Users,
} from "../../src/core.ts";
import type { KeyRow } from "../../src/storage/index.ts";
import { endDelegationsOf } from "./delegation-entries.ts";
import { ERRORS } from "./user-errors.ts";
import type { Sessions } from "./sessions.ts";

export const MAX_PASSKEYS = 20;
const RECOVERY_CODES = 10;
/** Alphabet without 0, 1, I, L, O and U, which people misread. */
const CODE_ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ23456789";
const CODE_LENGTH = 20;

/** Records the user's new state. Throws USERS_EMAIL_TAKEN if another active user has the e-mail address. */
export function recordUser(
  tx: LedgerTransaction,
  change: UserEntry["change"],
  user: User,
  by: Actor | null,
  { reason = null, confirmed_by = null }: Partial<Pick<UserEntry, "reason" | "confirmed_by">> = {},
): User {
  const holder = user.email === null || user.ended_at !== null ? null : findOtherHolder(tx.state(userState), user);
  if (holder !== null)
    throw new Refusal(
      ERRORS.EMAIL_TAKEN,
      `the user ${holder.id} has the same verified e-mail address; if both are the same person, an admin must deactivate one of the two users`,
    );
  tx.record({ type: "user", v: 1, at: toRfc3339(tx.now), change, user, reason, confirmed_by, by });
  return user;
}

function findOtherHolder(users: Users, { id, email }: User): User | null {
  return findUser(users, (other) => other.id !== id && other.email === email && other.ended_at === null);
}

/** Returns the user. Throws USERS_NOT_FOUND for an unknown id, and USERS_ENDED for a deactivated user. */
export function requireActiveUser(users: Users, id: string): User {
  const user = requireUser(users, id);
  if (user.ended_at !== null) throw new Refusal(ERRORS.ENDED, `the user ${id} was deactivated at ${user.ended_at}`);
  return user;
}

export function requireUser(users: Users, id: string): User {
  const user = users.get(id);
  if (user === undefined) throw new Refusal(ERRORS.NOT_FOUND, `there is no user ${id}`);
  return user;
}

/** Creates a user with an open enrolment link, and returns both. */
export function createUser(
  host: CoreHost,
  credential: Credential,
  { name, roles, groups }: { name: string; roles: Role[]; groups: string[] },
): Promise<{ user: User; token: string }> {
  const id = host.newId();
  const token = newToken();
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "users:manage");
    assertMayGive(caller, roles);
    const user = newUser(id, tx.now, { name, roles, groups, link: createEnrolmentLinkRecord(token, tx.now) });
    return { user: recordUser(tx, "created", user, toActor(caller.key, caller.principal)), token };
  });
}

/** Changes the user's name, roles or groups. Records nothing if they stay the same. */
export function changeUser(
  host: CoreHost,
  credential: Credential,
  id: string,
  change: { name?: string; roles?: Role[]; groups?: string[] },
): Promise<User> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "users:manage");
    const before = requireActiveUser(tx.state(userState), id);
    assertNotManaged(before);
    assertMayGive(caller, [...before.roles, ...(change.roles ?? [])]);
    const user = { ...before, ...change };
    if (JSON.stringify(user) === JSON.stringify(before)) return before;
    if (isAdmin(before) && !isAdmin(user)) await assertNotLastAdmin(host, tx, before);
    return recordUser(tx, "updated", user, toActor(caller.key, caller.principal));
  });
}

/** Creates a one-time link with which the user adds a passkey. It replaces an earlier link. */
export function createEnrolmentLink(
  host: CoreHost,
  credential: Credential,
  id: string,
): Promise<{ user: User; token: string }> {
  const token = newToken();
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "users:manage");
    const before = requireActiveUser(tx.state(userState), id);
    assertNotManaged(before);
    // Reject links for the caller's own user, even with a key of that user. Otherwise, someone with a stolen session of
    // an admin could add a passkey to the admin's user.
    const keys = await tx.keys();
    const isTheirs = keysOf(host, before, keys);
    if (caller.session?.user.id === id || keys.some((key) => key.id === caller.key.id && isTheirs(key)))
      throw new Refusal(ERRORS.OWN_LINK, "add a passkey on the page /sign-in, and confirm it with one that you have");
    // Anyone with the link can sign in as the user, so the caller needs every scope of the user's roles.
    assertMayGive(caller, before.roles);
    const user = { ...before, link: createEnrolmentLinkRecord(token, tx.now) };
    return { user: recordUser(tx, "link_created", user, toActor(caller.key, caller.principal)), token };
  });
}

/**
 * Deactivates a user: revokes their keys, and ends their sessions, grants and delegations. Cancels the actions that
 * they or these keys submitted and that have not started.
 */
export async function deactivateUser(
  host: CoreHost,
  sessions: Sessions,
  credential: Credential,
  id: string,
  reason: string | null,
): Promise<{ user: User; revoked_keys: string[] }> {
  const done = await host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "users:manage");
    const before = requireActiveUser(tx.state(userState), id);
    assertMayGive(caller, before.roles);
    if (isAdmin(before)) await assertNotLastAdmin(host, tx, before);
    const by = toActor(caller.key, caller.principal);
    return { by, ...(await deactivateUserWithin(host, sessions, tx, before, by, reason)) };
  });
  await cancelOpenActions(host, [id, ...done.revoked_keys], done.by, done.user);
  return { user: done.user, revoked_keys: done.revoked_keys };
}

/**
 * Deactivates a user within a ledger transaction: revokes their keys, and ends their sessions, grants and delegations.
 */
export async function deactivateUserWithin(
  host: CoreHost,
  sessions: Sessions,
  tx: LedgerTransaction,
  before: User,
  by: Actor,
  reason: string | null,
): Promise<{ user: User; revoked_keys: string[] }> {
  const revoked_keys: string[] = [];
  const keys = await tx.keys();
  const isTheirs = keysOf(host, before, keys);
  for (const key of keys) {
    // A key that no entry created has no rights, and must not prevent the deactivation.
    const isRecorded = tx.state(keyState).has(key.id);
    if (key.revoked_at !== null || !isRecorded || !isTheirs(key)) continue;
    tx.recordKey("revoked", key, by);
    revoked_keys.push(key.id);
  }
  await sessions.endAll(tx, before.id, by, "the user was deactivated");
  for (const reaction of host.reactions) reaction.userDeactivated?.(tx, before, revoked_keys, by);
  endDelegationsOf(tx, before, by);
  // Record this last, because a user who deactivates themselves is the author of the entries above.
  const user = { ...before, link: null, recovery_codes: [], ended_at: toRfc3339(tx.now) };
  return { user: recordUser(tx, "ended", user, by, { reason }), revoked_keys };
}

/** Cancels the open actions that these keys submitted, in as many transactions as needed. */
export async function cancelOpenActions(
  host: CoreHost,
  keys: readonly string[],
  by: Actor | null,
  user: User,
): Promise<void> {
  // Entries after a user's deactivation must not have the user as their author.
  const author = by?.key_id === user.id ? null : by;
  const reason = { by: author, comment: `the user "${user.name}", whose key submitted it, was deactivated` };
  for (const key_id of keys) {
    while (await host.ledger.transact((tx) => host.openActionCanceller.cancelPage(tx, { key_id }, reason)));
  }
}

/** Reactivates a deactivated user, who can then sign in again. Does not restore their sessions and keys. */
export function reactivateUser(host: CoreHost, credential: Credential, id: string): Promise<User> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "users:manage");
    const before = requireUser(tx.state(userState), id);
    if (before.ended_at === null) throw new Refusal(ERRORS.NOT_ENDED, `the user ${id} is not deactivated`);
    assertMayGive(caller, before.roles);
    return recordUser(tx, "resumed", { ...before, ended_at: null }, toActor(caller.key, caller.principal));
  });
}

/** The target of an enrolment link or a recovery code. */
interface Enrolment {
  user: User;
  kind: "link" | "recovery_code";
  /** The user without the used link or code. */
  spent: User;
}

/** Returns the user of a link's token or of a recovery code. Throws USERS_LINK_INVALID. */
export function findEnrolment(users: Users, token: string, now: number): Enrolment {
  const linkHash = sha256Hex(utf8(token));
  const codeHash = hashRecoveryCode(token);
  const user = findUser(
    users,
    ({ ended_at, link, recovery_codes }) =>
      ended_at === null && (link?.hash === linkHash || recovery_codes.includes(codeHash)),
  );
  if (user?.link?.hash === linkHash) {
    if ((parseRfc3339(user.link.expires_at) ?? 0) <= now)
      throw new Refusal(ERRORS.LINK_INVALID, "the enrolment link has expired; ask an admin for a new one");
    return { user, kind: "link", spent: { ...user, link: null } };
  }
  if (user === null)
    throw new Refusal(
      ERRORS.LINK_INVALID,
      "no open enrolment link or recovery code has this value: it was used, was replaced or never existed",
    );
  const recovery_codes = user.recovery_codes.filter((hash) => hash !== codeHash);
  return { user, kind: "recovery_code", spent: { ...user, recovery_codes } };
}

function newToken(): string {
  return randomBytes(32).toString("base64url");
}

export function newRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    // 240 is the largest multiple of the alphabet's 30 characters below 256.
    const bytes = [...randomBytes(8 * CODE_LENGTH)].filter((byte) => byte < 240).slice(0, CODE_LENGTH);
    const text = bytes.map((byte) => CODE_ALPHABET[byte % CODE_ALPHABET.length]).join("");
    return text.replace(/(.{5})(?=.)/g, "$1-");
  });
}

/**
 * Returns the hash of a recovery code. Ignores case, spaces and hyphens, which people change when they copy a code by
 * hand.
 */
export function hashRecoveryCode(code: string): string {
  return sha256Hex(utf8(`recovery:${code.toUpperCase().replaceAll(/[^A-Z0-9]/g, "")}`));
}

export function sessionRequiredError(): Refusal {
  return new Refusal(ERRORS.SESSION_REQUIRED, "sign in to do this; an API key cannot");
}

/** Returns the credential's session. Throws USERS_SESSION_REQUIRED. */
export function requireSession({ session }: Credential): Session {
  if (session === undefined) throw sessionRequiredError();
  return session;
}

/** Returns the user of the credential's session. Throws USERS_SESSION_REQUIRED unless it is the user with this id. */
export function requireOwnUser({ session }: Credential, id: string): User {
  if (session?.user.id !== id) throw sessionRequiredError();
  return session.user;
}

/**
 * Throws USERS_MANAGED for a user of an identity provider. The provider determines name, roles and groups. A passkey
 * here would still work after the provider's account ends.
 */
export function assertNotManaged({ managed_by }: User): void {
  if (managed_by !== null)
    throw new Refusal(ERRORS.MANAGED, `${managed_by} manages this user; change the account there, and sign in there`);
}

/** Throws SCOPE_ESCALATION if a role contains a scope that the caller lacks, or if the caller has limits. */
function assertMayGive(caller: Credential, roles: readonly string[]): void {
  assertUnlimited(caller);
  const lacking = scopesOfRoles(roles).filter((scope) => !caller.hasScope(scope));
  if (lacking.length > 0)
    throw new Refusal(
      "SCOPE_ESCALATION",
      `you do not have ${lacking.join(", ")}, so you cannot give these roles, or change a user who has them`,
    );
}

/**
 * Throws SCOPE_ESCALATION if the caller is limited to certain agents or tools. A user whom a limited caller manages
 * could have rights beyond these limits, and so could the caller.
 */
export function assertUnlimited({ key, limits }: Credential): void {
  if ("all" in limits) return;
  throw new Refusal(
    "SCOPE_ESCALATION",
    key.agent_id === null
      ? "your groups limit your rights, and users can have rights beyond these limits; ask an admin without limits to manage users"
      : `the key "${key.name}" is bound to an agent, and users can have rights beyond it; manage users with a key that is bound to none`,
  );
}

function isAdmin({ roles }: User): boolean {
  return hasScope(scopesOfRoles(roles), "admin");
}

async function assertNotLastAdmin(host: CoreHost, tx: LedgerTransaction, user: User): Promise<void> {
  const other = findUser(
    tx.state(userState),
    (each) => each.id !== user.id && each.ended_at === null && isAdmin(each) && hasEnrolled(each),
  );
  if (other !== null) return;
  const keys = await tx.keys();
  const isTheirs = keysOf(host, user, keys);
  const others = keys.filter((key) => key.expires_at === null && !isTheirs(key));
  const rights = await Promise.all(others.map(({ id }) => host.keys.rightsOf(tx, id)));
  if (!rights.some((each) => each?.hasScope("admin") === true))
    throw new Refusal(
      ERRORS.LAST_ADMIN,
      `${user.name} is the last admin, and no admin key remains; give the role to another user first`,
    );
}

/**
 * Returns a function that selects the user's keys: keys that the user created or owns, and keys that were created with
 * one of these.
 * @param rows all keys, including those that the same batch created, which are not in the directory yet
 */
function keysOf(host: CoreHost, { id }: User, rows: readonly KeyRow[]): (key: KeyRow) => boolean {
  const stored = new Map(rows.map((row) => [row.id, { ...row, revoked: row.revoked_at !== null }]));
  const keyOf = (keyId: string): RecordedKey | null => host.keys.recordedKey(keyId) ?? stored.get(keyId) ?? null;
  return (key) =>
    listKeyMakers(key.id, keyOf).some((maker) =>
      maker.isUser === true ? maker.id === id : principalOfKey(maker) === principalOfUser(id),
    );
}
