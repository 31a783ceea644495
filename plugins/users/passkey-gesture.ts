/**
 * A gesture with a passkey that confirms one change in one session, such as the sign-in of a terminal or a new passkey.
 */
import { userState, type CoreHost, type LedgerTransaction, type Passkey, type User } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import { useChallenge } from "./challenges.ts";
import { advancePasskeyCounter } from "./passkey-counters.ts";
import { assertionOptions, readPasskeyId, verifyAssertion } from "./passkeys.ts";
import type { Site } from "./site.ts";
import { ERRORS } from "./user-errors.ts";

/** A verified WebAuthn assertion. Its challenge has not been marked as used yet; `useGesture` does that. */
interface Gesture {
  passkey_id: string;
  counter: number;
  challenge: string;
}

/**
 * Returns the user's passkeys for this site. The service accepts a passkey only from the origin where it was enrolled:
 * browsers offer it on every port of its host, and each port can belong to another program.
 */
export function passkeysForSite(user: User | undefined, site: Site): readonly Passkey[] {
  return (user?.passkeys ?? []).filter(({ origin }) => origin === site.origin);
}

/**
 * Returns the options for `navigator.credentials.get`; null if the user has no passkey for this site.
 * @param purpose identifies user, session and change; an assertion for one purpose is not valid for another
 */
export async function gestureOptions(
  host: CoreHost,
  site: Site,
  userId: string,
  purpose: string,
): Promise<Record<string, unknown> | null> {
  const passkeys = passkeysForSite((await host.state(userState)).get(userId), site);
  return passkeys.length === 0 ? null : { ...(await assertionOptions(host, site, purpose, passkeys)) };
}

/**
 * Verifies an assertion. Returns null if there is none, which `useGesture` accepts only from a user without a passkey
 * for this site.
 * Throws USERS_CHALLENGE_INVALID, or USERS_PASSKEY_INVALID for a passkey of another user or another site.
 */
export async function verifyGesture(
  host: CoreHost,
  site: Site,
  userId: string,
  response: unknown,
  purpose: string,
): Promise<Gesture | null> {
  if (response === undefined) return null;
  const user = (await host.state(userState)).get(userId);
  const passkey = passkeysForSite(user, site).find(({ id }) => id === readPasskeyId(response));
  if (user === undefined || passkey === undefined) throw notConfirmedRefusal();
  const { counter, challenge } = await verifyAssertion(host, site, response, user, passkey, purpose);
  return { passkey_id: passkey.id, counter, challenge };
}

/**
 * Records within a ledger transaction that the gesture was used. Returns the id of its passkey; the id is null if the
 * user has no passkey for this site. Returns "copied" if the signature counter did not increase: the refusal is then
 * recorded, and the caller must change nothing and throw `copiedPasskeyError`.
 *
 * Throws USERS_PASSKEY_INVALID if the user has a passkey for this site but did not sign with one, or if the passkey
 * was removed after the assertion was verified. Throws USERS_CHALLENGE_INVALID if the assertion was used before.
 * @param user the user as of this transaction
 */
export async function useGesture(
  host: CoreHost,
  tx: LedgerTransaction,
  site: Site,
  user: User,
  gesture: Gesture | null,
): Promise<{ passkey_id: string | null } | "copied"> {
  const passkeys = passkeysForSite(user, site);
  if (passkeys.length === 0 && gesture === null) return { passkey_id: null };
  if (gesture === null || !passkeys.some(({ id }) => id === gesture.passkey_id)) throw notConfirmedRefusal();
  const { passkey_id: id, counter, challenge } = gesture;
  await useChallenge(host, tx, challenge);
  return (await advancePasskeyCounter(host, tx, user, { id, counter })) ? { passkey_id: id } : "copied";
}

function notConfirmedRefusal(): Refusal {
  return new Refusal(ERRORS.PASSKEY_INVALID, "confirm with one of your passkeys for this service");
}
