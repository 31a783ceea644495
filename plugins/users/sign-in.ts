/** Ledger transactions that sign a user in: with a passkey, or with a link or recovery code that adds a passkey. */
import { Refusal } from "../../src/plugin.ts";
import { userState, type CoreHost, sha256Hex, utf8, type User } from "../../src/core.ts";
import { useChallenge } from "./challenges.ts";
import { findUserByPasskey, recordRegistrationUse, withPasskey } from "./passkey-changes.ts";
import { advancePasskeyCounter, copiedPasskeyError } from "./passkey-counters.ts";
import { assertNotManaged, findEnrolment, hashRecoveryCode, newRecoveryCodes, recordUser } from "./user-changes.ts";
import { ERRORS } from "./user-errors.ts";
import { readPasskeyId, SIGN_IN_PURPOSE, verifyAssertion, verifyRegistration } from "./passkeys.ts";
import type { Sessions, StartedSession } from "./sessions.ts";
import type { Site } from "./site.ts";

export interface SignInResult extends StartedSession {
  user: User;
}

/** Signs in the user of a passkey. Throws USERS_PASSKEY_CLONED if the passkey's signature counter did not increase. */
export async function signInWithPasskey(
  host: CoreHost,
  sessions: Sessions,
  site: Site,
  response: unknown,
  browser: string,
): Promise<SignInResult> {
  const id = readPasskeyId(response);
  const found = findUserByPasskey(await host.state(userState), id);
  const passkey = found?.passkeys.find((each) => each.id === id);
  if (found === null || passkey === undefined || found.ended_at !== null) throw unknownUserRefusal();
  assertNotManaged(found);
  const { counter, challenge } = await verifyAssertion(host, site, response, found, passkey, SIGN_IN_PURPOSE);
  const signedIn = await host.ledger.transact(async (tx) => {
    const user = findUserByPasskey(tx.state(userState), id);
    if (user === null || user.ended_at !== null) throw unknownUserRefusal();
    assertNotManaged(user);
    await useChallenge(host, tx, challenge);
    if (!(await advancePasskeyCounter(host, tx, user, { id, counter }))) return null;
    const session = await sessions.start(tx, user, { method: "passkey", browser }, site);
    return { user, ...session };
  });
  if (signedIn !== null) return signedIn;
  throw copiedPasskeyError(host, found);
}

/** Returns the purpose of an enrolment's challenge. */
export function enrolmentChallengePurpose(token: string): string {
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
): Promise<SignInResult & { recovery_codes: string[] | null }> {
  findEnrolment(await host.state(userState), answer.token, host.clock());
  const added = await verifyRegistration(host, site, answer, enrolmentChallengePurpose(answer.token));
  const codes = newRecoveryCodes();
  return host.ledger.transact(async (tx) => {
    const { spent, kind } = findEnrolment(tx.state(userState), answer.token, tx.now);
    assertNotManaged(spent);
    const shows = spent.recovery_codes.length === 0;
    const before = { ...spent, ...(shows ? { recovery_codes: codes.map(hashRecoveryCode) } : {}) };
    const enrolled = withPasskey(tx, before, added.passkey);
    await recordRegistrationUse(host, tx, added);
    const user = recordUser(tx, "passkey_added", enrolled, null);
    const session = await sessions.start(tx, user, { method: kind, browser }, site);
    return { user, ...session, recovery_codes: shows ? codes : null };
  });
}

function unknownUserRefusal(): Refusal {
  return new Refusal(
    ERRORS.PASSKEY_UNKNOWN,
    "no user has this passkey, or the user is deactivated; use another passkey, or ask an admin for an enrolment link",
  );
}
