/** Votes that a user signs with a passkey: the bytes to sign, and offline verification of the signature. */
import type { SumCap } from "./policy/policy-types.ts";
import { canonicalText } from "./canonical.ts";
import { isSecureOrigin } from "./loopback.ts";
import { equalBytes, fromBase64Url, concatBytes, sha256, sha256Hex, toBase64Url, utf8 } from "./hash.ts";

/**
 * The grant that an approving vote creates for later actions of the same agent, tool and operation. The signature of
 * the vote covers the grant.
 */
export interface VoteGrantTerms {
  /** Maximum number of uses. */
  count: number;
  ends_on_failure: boolean;
  /** Time from the vote to the end of the grant. */
  for_ms: number;
  /** CEL over the request; null covers every request. */
  scope: string | null;
  /** Maximum sum of a CEL expression over all uses; null if the sum has no cap. */
  sum: SumCap | null;
  /** Title of the task to start together with the grant. Absent if there is none. */
  task?: string;
}

/** The statement that an approver signs: what was displayed, and the vote. */
export interface VoteStatement {
  action_id: string;
  /** Salted commitment to the request hash, as in the action's entries. */
  commitment: string;
  /** Leaf hash of the entry that made the action pending: the decision, or the newest redecision. Lowercase hex. */
  decision: string;
  /** The grant that the vote creates; null if there is no grant. */
  grant: VoteGrantTerms | null;
  /** Nonce that the service issued for one list of votes. */
  nonce: string;
  /** Name of the log, so that a vote for one service is not valid at another. */
  origin: string;
  /** `actionListDigest` of the actions that remain after a vote on a plan; null for other votes. */
  plan: string | null;
  /** Salted commitment to the rule's preview. Lowercase hex; null if the rule has no preview. */
  preview: string | null;
  /** `questionsDigest` of the questions to the agent and its answers; null if there are no questions. */
  questions: string | null;
  reason: string | null;
  /** Principal of the approver: `user:<id>`. */
  user: string;
  /** `break_glass`: approves without a second approver in an emergency. */
  vote: "approve" | "deny" | "break_glass";
}

/** The result of `navigator.credentials.get`. Members are base64url. */
export interface PasskeyAssertion {
  credential_id: string;
  authenticator_data: string;
  client_data_json: string;
  signature: string;
}

/** The signature of a vote as the vote's entry records it. */
export interface VoteSignature extends PasskeyAssertion {
  kind: "passkey";
  decision: string;
  nonce: string;
  preview: string | null;
  /** Digests of all votes that were signed together, in the order of display. Lowercase hex. */
  votes: string[];
}

/** Maximum number of votes that one signature covers. Each vote's entry contains the digests of all of them. */
export const MAX_SIGNED_VOTES = 100;

/** Returns SHA-256 of `assent-vote/1`, a line feed and the canonical JSON of the statement. Lowercase hex. */
export function voteDigest(statement: VoteStatement): string {
  const { action_id, commitment, decision, nonce, origin, plan, preview, questions, reason, user, vote } = statement;
  const grant = statement.grant === null ? null : selectGrantTerms(statement.grant);
  const members = {
    action_id,
    commitment,
    decision,
    grant,
    nonce,
    origin,
    plan,
    preview,
    questions,
    reason,
    user,
    vote,
  };
  return sha256Hex(utf8(`assent-vote/1\n${canonicalText(members)}`));
}

/**
 * Returns the members of a grant that are signed. They exclude the id, because the service creates it with the vote.
 */
function selectGrantTerms({ count, ends_on_failure, for_ms, scope, sum, task }: VoteGrantTerms) {
  const cap = sum && {
    at_most: sum.at_most,
    of: sum.of,
    ...(sum.reserve === undefined ? {} : { reserve: sum.reserve }),
  };
  return { count, ends_on_failure, for_ms, scope, sum: cap, ...(task === undefined ? {} : { task }) };
}

/**
 * Returns the WebAuthn challenge for these votes: SHA-256 of `assent-votes/1`, a line feed and the canonical JSON of
 * their digests, in order.
 */
export function createVotesChallenge(digests: readonly string[]): Uint8Array {
  return sha256(utf8(`assent-votes/1\n${canonicalText([...digests])}`));
}

/** Verifies a signature under a COSE key. Returns false if the key is malformed. */
type VerifyPasskeySignature = (coseKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean;

/** The values that an assertion must have. */
interface ExpectedAssertion {
  challenge: Uint8Array;
  /** The passkey. It signs only for pages of the origin at which it was enrolled. */
  passkey: { id: string; public_key: string; origin: string };
}

const HEADER_BYTES = 37;
const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;

/** Returns the fault of an assertion; null if it is valid. Does not compare the signature counter; the caller does. */
export function findAssertionFault(
  assertion: PasskeyAssertion,
  { challenge, passkey }: ExpectedAssertion,
  verify: VerifyPasskeySignature,
): string | null {
  if (assertion.credential_id !== passkey.id) return "it is by a different passkey";
  const data = decode(assertion.authenticator_data);
  const client = decode(assertion.client_data_json);
  const signature = decode(assertion.signature);
  const key = decode(passkey.public_key);
  if (data === null || client === null || signature === null || key === null || data.length < HEADER_BYTES)
    return "it is malformed";
  const fault = findClientFault(client, challenge, passkey.origin);
  if (fault !== null) return fault;
  if (!equalBytes(data.subarray(0, 32), sha256(utf8(new URL(passkey.origin).hostname))))
    return "it is for another relying party";
  const flags = data[32] as number;
  if ((flags & USER_PRESENT) === 0) return "the user was not present";
  if ((flags & USER_VERIFIED) === 0) return "the authenticator did not verify the user";
  if (!verify(key, concatBytes(data, sha256(client)), signature)) return "its signature is wrong";
  return null;
}

/**
 * Returns the reason why the signature does not cover the recorded vote; null if it covers the vote.
 * @param origin the name of the log
 * @param entry the vote's entry
 * @param passkey the passkey with the id `gesture.credential_id`, as it was at the time of the vote
 * @example
 * findGestureFault(origin, entry, userId, passkey, verify); // null if the passkey signed the vote
 */
export function findGestureFault(
  origin: string,
  entry: {
    action_id: string;
    commitment: string;
    verdict: string;
    comment: string | null;
    questions: string | null;
    plan: string | null;
    break_glass: boolean;
    grant: VoteGrantTerms | null;
    gesture: VoteSignature;
  },
  user: string,
  passkey: ExpectedAssertion["passkey"],
  verify: VerifyPasskeySignature,
): string | null {
  const { action_id, commitment, comment: reason, break_glass, gesture, grant, plan, questions, verdict } = entry;
  if (verdict !== "approve" && verdict !== "deny") return "it is not a vote";
  const { decision, nonce, preview, votes } = gesture;
  const statement = {
    action_id,
    commitment,
    decision,
    grant,
    nonce,
    origin,
    plan,
    preview,
    questions,
    reason,
    user,
    vote: break_glass ? "break_glass" : verdict,
  } as const;
  if (votes.length > MAX_SIGNED_VOTES || !votes.includes(voteDigest(statement)))
    return "the passkey signed something else";
  return findAssertionFault(gesture, { challenge: createVotesChallenge(votes), passkey }, verify);
}

function findClientFault(client: Uint8Array, challenge: Uint8Array, origin: string): string | null {
  let data: Record<string, unknown>;
  try {
    data = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(client)) as Record<string, unknown>;
  } catch {
    return "its client data is malformed";
  }
  if (data["type"] !== "webauthn.get") return "it is not an assertion";
  if (data["challenge"] !== toBase64Url(challenge)) return "the passkey signed something else";
  if (data["crossOrigin"] === true) return "it comes from a frame of another site";
  const page = data["origin"];
  if (page !== origin || !isSecureOrigin(origin)) return `it comes from another origin: ${String(page).slice(0, 200)}`;
  return null;
}

function decode(text: string): Uint8Array | null {
  try {
    return fromBase64Url(text);
  } catch {
    return null;
  }
}
