/**
 * Changes a user's own passkeys and recovery codes. A session alone is not enough, because it can be stolen: the user
 * confirms each change with one of their passkeys. A user without a passkey for this site must have signed in at their
 * identity provider within the last five minutes.
 */
import { type Credential, Refusal, type Session } from "../../src/plugin.ts";
import {
  userState,
  type CoreHost,
  findUser,
  type LedgerTransaction,
  type Passkey,
  toActor,
  type User,
  type Users,
  type UserEntry,
} from "../../src/core.ts";
import { useChallenge } from "./challenges.ts";
import { copiedPasskeyError, writePasskeyCounter } from "./passkey-counters.ts";
import { gestureOptions, passkeysForSite, useGesture, verifyGesture } from "./passkey-gesture.ts";
import { type NewPasskey, registrationOptions, verifyRegistration } from "./passkeys.ts";
import type { Sessions } from "./sessions.ts";
import type { Site } from "./site.ts";
import {
  assertNotManaged,
  hashRecoveryCode,
  MAX_PASSKEYS,
  newRecoveryCodes,
  recordUser,
  requireSession,
} from "./user-changes.ts";
import { ERRORS } from "./user-errors.ts";

/**
 * Time after a sign-in at a provider in which the user can confirm a change without a passkey for this site.
 * Milliseconds.
 */
const RECENT_MS = 5 * 60_000;

/** The session of a user who changes their own account. */
export interface OwnSession {
  credential: Credential;
  site: Site;
}

type OwnChange = Extract<UserEntry["change"], "passkey_added" | "passkey_removed" | "recovery_codes_created">;

/** Changes a user's own passkeys and recovery codes. */
export class PasskeyChanges {
  private readonly host: CoreHost;
  private readonly sessions: Sessions;

  constructor(host: CoreHost, sessions: Sessions) {
    this.host = host;
    this.sessions = sessions;
  }

  /**
   * Returns the options for creating a passkey, and the options of the gesture that confirms exactly this passkey.
   * `confirmation` is null if the user has no passkey for this site yet.
   */
  async additionOptions(ownSession: OwnSession): Promise<{ options: object; confirmation: object | null }> {
    const { user } = requireSession(ownSession.credential);
    assertHasRoom(user);
    const options = await registrationOptions(
      this.host,
      ownSession.site,
      user,
      purposeOf(ownSession, "registration", ""),
    );
    return { options, confirmation: await this.confirmationOptions(ownSession, "passkey_added", options.challenge) };
  }

  async add(ownSession: OwnSession, answer: { response: unknown; name: string; confirmation: unknown }): Promise<User> {
    const added = await verifyRegistration(
      this.host,
      ownSession.site,
      answer,
      purposeOf(ownSession, "registration", ""),
    );
    return this.change(ownSession, "passkey_added", added.challenge, answer.confirmation, {
      next: (before, tx) => withPasskey(tx, before, added.passkey),
      write: (tx) => recordRegistrationUse(this.host, tx, added),
    });
  }

  /** Returns the options of the gesture that confirms the removal of this passkey. Throws USERS_PASSKEY_NOT_FOUND. */
  async removalOptions(ownSession: OwnSession, passkeyId: string): Promise<object | null> {
    withoutPasskey(requireSession(ownSession.credential).user, ownSession.site, passkeyId);
    return this.confirmationOptions(ownSession, "passkey_removed", passkeyId);
  }

  /** Removes a passkey. Throws USERS_LAST_PASSKEY if the user could not sign in without it. */
  remove(ownSession: OwnSession, passkeyId: string, confirmation: unknown): Promise<User> {
    return this.change(ownSession, "passkey_removed", passkeyId, confirmation, {
      next: (before) => withoutPasskey(before, ownSession.site, passkeyId),
    });
  }

  /** Returns the options of the gesture that confirms new recovery codes. */
  async recoveryCodeOptions(ownSession: OwnSession): Promise<object | null> {
    assertNotManaged(requireSession(ownSession.credential).user);
    return this.confirmationOptions(ownSession, "recovery_codes_created", "");
  }

  /** Replaces the recovery codes. Returns the new codes, of which only hashes are stored. */
  async replaceRecoveryCodes(ownSession: OwnSession, confirmation: unknown): Promise<string[]> {
    const codes = newRecoveryCodes();
    await this.change(ownSession, "recovery_codes_created", "", confirmation, {
      next(before) {
        // Reject users of an identity provider: a recovery code would let them sign in without the provider.
        assertNotManaged(before);
        return { ...before, recovery_codes: codes.map(hashRecoveryCode) };
      },
    });
    return codes;
  }

  private async confirmationOptions(
    ownSession: OwnSession,
    change: OwnChange,
    subject: string,
  ): Promise<object | null> {
    const session = requireSession(ownSession.credential);
    const options = await gestureOptions(
      this.host,
      ownSession.site,
      session.user.id,
      purposeOf(ownSession, change, subject),
    );
    if (options === null) await this.assertRecentSignIn(ownSession.site, session, null);
    return options;
  }

  /**
   * Verifies the confirmation of a change, and records the change.
   * @param subject the changed object, such as a passkey's id; the confirmation is valid only for it
   */
  private async change(
    ownSession: OwnSession,
    change: OwnChange,
    subject: string,
    confirmation: unknown,
    work: { next(before: User, tx: LedgerTransaction): User; write?(tx: LedgerTransaction): Promise<void> },
  ): Promise<User> {
    const { host } = this;
    const { id } = requireSession(ownSession.credential).user;
    const gesture = await verifyGesture(
      host,
      ownSession.site,
      id,
      confirmation,
      purposeOf(ownSession, change, subject),
    );
    const changed = await host.ledger.transact(async (tx) => {
      const caller = await tx.confirm(ownSession.credential);
      const session = requireSession(caller);
      const user = work.next(session.user, tx);
      if (passkeysForSite(session.user, ownSession.site).length === 0)
        await this.assertRecentSignIn(ownSession.site, session, tx);
      const used = await useGesture(host, tx, ownSession.site, session.user, gesture);
      if (used === "copied") return null;
      await work.write?.(tx);
      const by = toActor(caller.key, caller.principal);
      return recordUser(tx, change, user, by, { confirmed_by: used.passkey_id });
    });
    if (changed === null) throw copiedPasskeyError(host, { id });
    return changed;
  }

  /**
   * Throws USERS_SIGN_IN_TOO_OLD unless the session of a user without a passkey has just started at their provider.
   * @param tx null to read without the ledger's lock
   */
  private async assertRecentSignIn(site: Site, { id, user }: Session, tx: LedgerTransaction | null): Promise<void> {
    const { documents, clock } = this.host;
    const reader = tx === null ? documents : documents.within(tx);
    const stored = await this.sessions.read(reader, user.id, id);
    const now = tx?.now ?? clock();
    const isOfProvider = stored !== null && stored.session.provider !== null;
    if (isOfProvider && now - stored.session.started_at <= RECENT_MS) return;
    throw new Refusal(
      ERRORS.SIGN_IN_TOO_OLD,
      isOfProvider
        ? `you have no passkey for ${site.origin} that could confirm this; sign out, sign in at your provider again, and do it within ${RECENT_MS / 60_000} minutes`
        : `you have no passkey for ${site.origin} that could confirm this; ask an admin for an enrolment link`,
    );
  }
}

/** Returns the purpose of a challenge. An assertion for one change, user and session is not valid for another. */
function purposeOf({ credential }: OwnSession, kind: OwnChange | "registration", subject: string): string {
  const { user, id } = requireSession(credential);
  return `${kind}:${user.id}:${id}:${subject}`;
}

function assertHasRoom({ passkeys }: User): void {
  if (passkeys.length >= MAX_PASSKEYS)
    throw new Refusal(ERRORS.TOO_MANY_PASSKEYS, `a user has at most ${MAX_PASSKEYS} passkeys; remove one first`);
}

/**
 * Returns the user with the passkey added. Throws USERS_TOO_MANY_PASSKEYS, or USERS_PASSKEY_INVALID if the passkey is
 * already enrolled.
 */
export function withPasskey(tx: LedgerTransaction, before: User, passkey: Passkey): User {
  assertHasRoom(before);
  if (findUserByPasskey(tx.state(userState), passkey.id) !== null)
    throw new Refusal(ERRORS.PASSKEY_INVALID, "this passkey is already enrolled");
  return { ...before, passkeys: [...before.passkeys, passkey] };
}

/** Records that the challenge of a registration was used, and stores the signature counter of the new passkey. */
export async function recordRegistrationUse(
  host: CoreHost,
  tx: LedgerTransaction,
  { passkey, counter, challenge }: NewPasskey,
): Promise<void> {
  await useChallenge(host, tx, challenge);
  await writePasskeyCounter(host, tx, passkey.id, counter);
}

function withoutPasskey(before: User, site: Site, passkeyId: string): User {
  const user = { ...before, passkeys: before.passkeys.filter(({ id }) => id !== passkeyId) };
  if (user.passkeys.length === before.passkeys.length)
    throw new Refusal(ERRORS.PASSKEY_NOT_FOUND, "you have no passkey with this id");
  if (passkeysForSite(user, site).length === 0 && before.identities.length === 0)
    throw new Refusal(ERRORS.LAST_PASSKEY, `this is your last passkey for ${site.origin}; add another one first`);
  return user;
}

/**
 * Returns the user with this passkey, even if the user is deactivated.
 * @param id the credential id in base64url
 */
export function findUserByPasskey(users: Users, id: string): User | null {
  return findUser(users, ({ passkeys }) => passkeys.some((passkey) => passkey.id === id));
}
