/**
 * Casts votes that a signed-in user signs with a passkey. One gesture signs an ordered list of votes
 * (docs/approvals.md, "Signed votes").
 */
import { decodeBase64Url } from "../core/base64url.ts";
import type { Action, Api } from "../core/api-types.ts";
import { ApiError, request } from "../core/api.ts";
import type { VoteAddition } from "../core/parts.ts";

/** Maximum number of votes that one signature covers. */
export const MAX_SIGNED_VOTES = 100;

type Votes = Api["POST /v1/votes"]["body"]["votes"];
type Challenge = Api["POST /v1/votes/challenge"]["response"];
export type SignedResult = Api["POST /v1/votes"]["response"]["results"][number];

/** A person's vote on a request. */
export interface VoteToSign {
  approve: boolean;
  /** Empty if the voter gave no reason. */
  reason: string;
  /** Approves in an emergency, without other approvers. */
  break_glass?: boolean;
  /** What the voter added to the approval, such as a grant. */
  addition?: VoteAddition | null;
}

/** Returns the vote in the format of the API. */
export function buildVoteBody({ approve, reason, break_glass, addition = null }: VoteToSign) {
  return {
    approve,
    ...(reason === "" ? {} : { reason }),
    ...(break_glass === true ? { break_glass } : {}),
    ...(addition === null ? {} : { grant: addition.body }),
  };
}

const NOT_SIGNED = "the passkey did not sign, so no vote is recorded; vote again";
/** Message for a challenge whose statements do not match the votes. */
export const DIFFERENT_VOTES_MESSAGE =
  "the service requested a signature for votes other than yours; nothing was signed; report this to its operator";

/** A vote on an action. */
interface Ballot {
  current: Pick<Action, "id">;
  vote: VoteToSign;
}

/** Votes, and the challenge that the user signs to cast them. */
interface SignatureRequest {
  votes: Votes;
  challenge: Challenge;
}

/**
 * Requests the statement to sign for votes on up to `MAX_SIGNED_VOTES` actions. Returns null if the user has no passkey
 * for this site. Rejects with an `ApiError` if the service refuses, and with an Error if the service's response
 * is for different votes.
 */
export async function requestSignature(ballots: readonly Ballot[]): Promise<SignatureRequest | null> {
  const votes: Votes = ballots.map(({ current, vote }) => ({ action_id: current.id, ...buildVoteBody(vote) }));
  const challenge = await nullWithoutPasskey(request("POST /v1/votes/challenge", { body: { votes } }));
  if (challenge === null) return null;
  assertSameVotes(challenge, ballots);
  return { votes, challenge };
}

/**
 * Signs and casts the votes. Returns the result of each vote, in order. Rejects with an Error if the user did not sign,
 * and with an `ApiError` if the service refused.
 */
export async function sendSignedVotes({ votes, challenge }: SignatureRequest): Promise<SignedResult[]> {
  const body = { nonce: challenge.nonce, votes, response: await signVotesWithPasskey(challenge.options) };
  return (await request("POST /v1/votes", { body })).results;
}

/** Returns the requested challenge; null if the user has no passkey for this site. */
export async function nullWithoutPasskey<T>(challenge: Promise<T>): Promise<T | null> {
  try {
    return await challenge;
  } catch (error) {
    // Before the signature is requested, this code means that the user has no passkey.
    if (error instanceof ApiError && error.code === "VOTE_SIGNATURE_INVALID") return null;
    throw error;
  }
}

function assertSameVotes({ statements, nonce }: Challenge, ballots: readonly Ballot[]): void {
  const areSame = ballots.every(({ current, vote: { approve, reason, break_glass = false, addition = null } }, i) => {
    const statement = statements[i];
    return (
      statement?.action_id === current.id &&
      statement.vote === (break_glass ? "break_glass" : approve ? "approve" : "deny") &&
      statement.reason === (reason === "" ? null : reason) &&
      sortMembers(statement.grant) === sortMembers(addition?.signed ?? null) &&
      statement.nonce === nonce
    );
  });
  if (!areSame || statements.length !== ballots.length) throw new Error(DIFFERENT_VOTES_MESSAGE);
}

/** Returns a text that is equal for objects with the same members. */
const sortMembers = (value: object | null): string =>
  Object.entries(value ?? {})
    .map((member) => JSON.stringify(member))
    .sort()
    .join();

type Signature = Api["POST /v1/votes"]["body"]["response"];
interface Options {
  challenge: string;
  rpId: string;
  userVerification: UserVerificationRequirement;
  allowCredentials: readonly { id: string }[];
}

export async function signVotesWithPasskey(options: Challenge["options"]): Promise<Signature> {
  const { challenge, rpId, userVerification, allowCredentials } = options as unknown as Options;
  const publicKey: PublicKeyCredentialRequestOptions = {
    challenge: decodeBase64Url(challenge),
    rpId,
    userVerification,
    allowCredentials: allowCredentials.map(({ id }) => ({ id: decodeBase64Url(id), type: "public-key" })),
  };
  const credential = await navigator.credentials.get({ publicKey }).catch((error: unknown) => {
    // The person cancelled, the ceremony timed out, or no device with this passkey is available.
    throw new Error(NOT_SIGNED, { cause: error });
  });
  if (!(credential instanceof PublicKeyCredential)) throw new Error(NOT_SIGNED);
  const response = credential.response as AuthenticatorAssertionResponse;
  return {
    id: credential.id,
    response: {
      authenticatorData: toText(response.authenticatorData),
      clientDataJSON: toText(response.clientDataJSON),
      signature: toText(response.signature),
    },
  };
}

/** Encodes as base64url. */
function toText(buffer: ArrayBuffer): string {
  const letters = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
