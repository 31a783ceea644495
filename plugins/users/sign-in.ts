/** Ledger transactions that sign a user in: with a passkey, or with a link or recovery code that adds a passkey. */
import { type Credential, Refusal } from "../../src/plugin.ts";
import {
  type CoreHost,
  type LedgerTransaction,
  sha256Hex,
  toActor,
  utf8,
  findUserByPasskey,
  type Actor,
  type User,
} from "../../src/core.ts";
import { useChallenge } from "./challenges.ts";
import { advancePasskeyCounter, writePasskeyCounter } from "./passkey-counters.ts";
import {
  assertNotManaged,
  findEnrolment,
  hashRecoveryCode,
  requireActiveUser,
  MAX_PASSKEYS,
  newRecoveryCodes,
  recordUser,
  requireSession,
} from "./user-changes.ts";
import { ERRORS } from "./user-errors.ts";
import { type NewPasskey, readPasskeyId, SIGN_IN_PURPOSE, verifyAssertion, verifyRegistration } from "./passkeys.ts";
import type { Sessions } from "./sessions.ts";
import type { Site } from "./site.ts";

export interface SignedIn {
  user: User;
  session_id: string;
  cookie: string;
}

/** Signs in the user of a passkey. Throws USERS_PASSKEY_CLONED if the passkey's signature counter did not increase. */
export async function signInWithPasskey(
  host: CoreHost,
  sessions: Sessions,
  site: Site,
  response: unknown,
  browser: string,
): Promise<SignedIn> {
  const id = readPasskeyId(response);
  const found = findUserByPasskey(await host.users.list(), id);
  const passkey = found?.passkeys.find((each) => each.id === id);
  if (found === null || passkey === undefined || found.ended_at !== null) throw unknown();
  assertNotManaged(found);
  const { counter, challenge } = await verifyAssertion(host, site, response, found, passkey, SIGN_IN_PURPOSE);
  const signedIn = await host.ledger.transact(async (tx) => {
    const user = findUserByPasskey(tx.users, id);
    if (user === null || user.ended_at !== null) throw unknown();
    assertNotManaged(user);
    await useChallenge(host, tx, challenge);
    if (!(await advancePasskeyCounter(host, tx, user, { id, counter }))) return null;
    const session = await sessions.start(tx, user, { method: "passkey", browser }, site);
    return { user, session_id: session.id, cookie: session.cookie };
  });
  if (signedIn !== null) return signedIn;
  throw copiedPasskeyError(host, found);
}

/** Logs that the counter of a passkey went back, and returns the refusal. */
export function copiedPasskeyError(host: CoreHost, { id }: Pick<User, "id">): Refusal {
  host.log.error("a passkey was refused because its signature counter went back", { user: id });
  return new Refusal(
    ERRORS.PASSKEY_CLONED,
    "the passkey's signature counter did not increase, so there may be a copy of it; sign in with another passkey or a recovery code, and remove this one",
  );
}

/** Returns the purpose of an enrolment's challenge. */
export function enrolmentPurpose(token: string): string {
  return `enrol:${sha256Hex(utf8(token))}`;
}

/**
 * Adds the passkey of an enrolment by link or recovery code, and signs the user in. The link or code cannot be used
 * again afterwards.
 */
export async function enrolUser(
  host: CoreHost,
  sessions: Sessions,
  site: Site,
  answer: { token: string; response: unknown; name: string },
  browser: string,
): Promise<SignedIn & { recovery_codes: string[] | null }> {
  findEnrolment(await host.users.list(), answer.token, host.clock());
  const added = await verifyRegistration(host, site, answer, enrolmentPurpose(answer.token));
  const codes = newRecoveryCodes();
  return host.ledger.transact(async (tx) => {
    const { spent, kind } = findEnrolment(tx.users, answer.token, tx.now);
    assertNotManaged(spent);
    const shows = spent.recovery_codes.length === 0;
    const user = await addPasskey(host, tx, added, {
      ...spent,
      ...(shows ? { recovery_codes: codes.map(hashRecoveryCode) } : {}),
    });
    const session = await sessions.start(tx, user, { method: kind, browser }, site);
    return { user, session_id: session.id, cookie: session.cookie, recovery_codes: shows ? codes : null };
  });
}

/** Purpose of the challenge that adds a passkey in a session. */
export function passkeyAdditionPurpose(credential: Credential): string {
  const { user, id } = requireSession(credential);
  return `add:${user.id}:${id}`;
}

/** Adds another passkey for the user of the session. */
export async function addOwnPasskey(
  host: CoreHost,
  site: Site,
  credential: Credential,
  answer: { response: unknown; name: string },
): Promise<User> {
  const added = await verifyRegistration(host, site, answer, passkeyAdditionPurpose(credential));
  return host.ledger.transact(async (tx) => {
    const caller = await tx.confirm(credential);
    const user = requireActiveUser(tx.users, requireSession(caller).user.id);
    return addPasskey(host, tx, added, user, toActor(caller.key, caller.principal));
  });
}

async function addPasskey(
  host: CoreHost,
  tx: LedgerTransaction,
  { passkey, counter, challenge }: NewPasskey,
  before: User,
  by: Actor | null = null,
): Promise<User> {
  if (before.passkeys.length >= MAX_PASSKEYS)
    throw new Refusal(ERRORS.TOO_MANY_PASSKEYS, `a user has at most ${MAX_PASSKEYS} passkeys; remove one first`);
  if (findUserByPasskey(tx.users, passkey.id) !== null)
    throw new Refusal(ERRORS.PASSKEY_INVALID, "this passkey is already enrolled");
  await useChallenge(host, tx, challenge);
  await writePasskeyCounter(host, tx, passkey.id, counter);
  return recordUser(tx, "passkey_added", { ...before, passkeys: [...before.passkeys, passkey] }, by);
}

function unknown(): Refusal {
  return new Refusal(
    ERRORS.PASSKEY_UNKNOWN,
    "no user has this passkey, or the user is deactivated; use another passkey, or ask an admin for an enrolment link",
  );
}
