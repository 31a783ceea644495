/** Checks the passkey signature of a vote, for `assent verify`. */
import { findGestureFault } from "../../src/browser.ts";
import { CommandError, EXIT_CODES, toPrintable, usageError, type EntryCheck } from "../../src/command.ts";
import {
  principalOfUser,
  verifyPasskeySignature,
  type ApprovalEntry,
  type Passkey,
  type UserEntry,
  type VoteGrantTerms,
} from "../../src/core.ts";

type Verified = Parameters<EntryCheck["check"]>[0];

/**
 * Verifies the passkey signature of a vote. Returns the result as text for people; null if the entry is not a signed
 * vote.
 */
export async function checkSignedVote(
  verified: Verified,
  enrolment: string | undefined,
  verifyFile: (path: string) => Promise<Verified>,
): Promise<string | null> {
  const entry = verified.entry as (ApprovalEntry & { seq: number }) | null;
  if (entry?.type !== "approval" || entry.gesture === null || entry.by === null) {
    if (enrolment !== undefined)
      throw usageError("--enrolment is for the proof of a vote that was signed with a passkey");
    return null;
  }
  if (enrolment === undefined)
    return `the vote has a signature of the passkey ${entry.gesture.credential_id}, which was not checked; give --enrolment`;
  const { entry: user } = await verifyFile(enrolment);
  const passkey = findEnrolledPasskey(user as (UserEntry & { seq: number }) | null, entry.by.principal, entry);
  const fault = findGestureFault(
    verified.origin,
    { ...entry, gesture: entry.gesture },
    entry.by.principal,
    passkey,
    verifyPasskeySignature,
  );
  if (fault !== null)
    throw new CommandError(`NOT VERIFIED: the signature of the vote is not valid: ${fault}`, EXIT_CODES.unverified);
  const signer = `signed by ${entry.by.principal} with the passkey ${passkey.id}`;
  return entry.grant === null ? signer : `${signer}\nthe signature covers a grant of ${describeGrant(entry.grant)}`;
}

function describeGrant({ count, for_ms, scope, sum, ends_on_failure, task }: VoteGrantTerms): string {
  const minutes = Math.round(for_ms / 60_000);
  return [
    `up to ${count} later actions for ${minutes} minutes`,
    scope === null ? "" : `, where ${toPrintable(scope)}`,
    sum === null ? "" : `, with at most ${sum.at_most} as the sum of ${toPrintable(sum.of)}`,
    ends_on_failure ? ", until one fails" : "",
    task === undefined ? "" : `, for the task "${toPrintable(task)}"`,
  ].join("");
}

function findEnrolledPasskey(
  user: (UserEntry & { seq: number }) | null,
  principal: string,
  vote: ApprovalEntry & { seq: number },
): Passkey {
  const passkey =
    user?.type === "user" ? user.user.passkeys.find(({ id }) => id === vote.gesture?.credential_id) : undefined;
  if (
    user?.type !== "user" ||
    principalOfUser(user.user.id) !== principal ||
    user.seq >= vote.seq ||
    passkey === undefined
  )
    throw new CommandError(
      `NOT VERIFIED: --enrolment is not an entry of ${principal} before the vote that has the passkey`,
      EXIT_CODES.unverified,
    );
  return passkey;
}
