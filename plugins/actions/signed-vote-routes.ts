/**
 * Routes for votes that a user signs with a passkey. `/v1/votes/challenge` returns the challenge for an ordered list of
 * votes, and `/v1/votes` accepts the signed votes.
 */
import type { Static } from "@sinclair/typebox";
import {
  type CoreHost,
  type VoteSignature,
  MAX_SIGNED_VOTES,
  type SessionPasskeys,
  voteDigest,
  createVotesChallenge,
  type VoteStatement,
} from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { assertNotErased, visibleAction } from "./visible-action.ts";
import { signedVotesBody, SignedVotesResult, VoteChallenge, voteChallengeBody } from "./signed-vote-schemas.ts";
import { readVerifiedHistory, recordAlteredError } from "./verify-record.ts";
import { createFactReadingHost } from "./read-inputs.ts";
import { castVoteOnAction } from "./cast-vote.ts";
import { type Vote, voteStatement } from "./voter.ts";

type Votes = Static<ReturnType<typeof voteChallengeBody>>["votes"];
type Results = Static<typeof SignedVotesResult>["results"];

const READ_ERRORS = [
  "ACTION_NOT_FOUND",
  "ACTION_NOT_PENDING",
  "ACTION_ERASED",
  "RECORD_ALTERED",
  "VOTE_SIGNATURE_REQUIRED",
  "VOTE_SIGNATURE_INVALID",
] as const;

export function signedVoteRoutes(host: CoreHost, tag: string) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/votes/challenge",
      tag,
      summary: "Start to sign votes with a passkey",
      description: `For a signed-in user. Returns what the passkey signs for up to ${MAX_SIGNED_VOTES} votes (docs/record.md). Records nothing.`,
      scope: "approvals:decide",
      body: voteChallengeBody(host),
      bodyLimit: 262_144,
      responses: { 200: { description: "The statements, and the options for the browser.", schema: VoteChallenge } },
      errors: READ_ERRORS,
      async handle({ credential, body: { votes } }) {
        const { passkeys, user } = requireVoteSigner(host, credential);
        const { nonce, expires_at } = passkeys.createNonce();
        const statements = await readStatements(host, credential, votes, nonce);
        const options = passkeys.options(user, createVotesChallenge(statements.map(voteDigest)));
        return { status: 200, json: { nonce, expires_at: toRfc3339(expires_at), statements, options } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/votes",
      tag,
      summary: "Vote with a passkey",
      description:
        "Casts the votes that POST /v1/votes/challenge listed, in the same order. The signature is used up even if a vote is refused. The votes are recorded one after another, and a refused vote does not affect the others. If a single vote is refused, the response is its error.",
      scope: "approvals:decide",
      body: signedVotesBody(host),
      bodyLimit: 262_144,
      responses: { 200: { description: "The result of each vote.", schema: SignedVotesResult } },
      errors: [
        ...READ_ERRORS,
        "SELF_APPROVAL",
        "APPROVER_NOT_ELIGIBLE",
        "ALREADY_VOTED",
        ...host.guard.approvalErrors,
        "APPROVAL_EXPIRED",
        "NO_LONGER_ALLOWED",
        ...host.barErrors,
        "FACTS_UNAVAILABLE",
        "FACTS_CHANGED",
        "AGENT_MISMATCH",
        ...(host.soleApproval?.errors ?? []),
        ...(host.voteAddition?.errors ?? []),
      ],
      async handle({ credential, body }) {
        const results = await castSignedVotes(host, credential, body);
        return { status: 200, json: { results } };
      },
    }),
  ];
}

/** Returns the signed-in user and their passkeys. Throws VOTE_SIGNATURE_REQUIRED for callers without a session. */
export function requireVoteSigner(host: CoreHost, credential: Credential) {
  const passkeys: SessionPasskeys | null = host.users.passkeys(credential);
  const user = credential.session?.user;
  if (passkeys === null || user === undefined)
    throw new Refusal("VOTE_SIGNATURE_REQUIRED", "only a signed-in user can sign votes; open /sign-in");
  return { passkeys, user };
}

async function readStatements(
  host: CoreHost,
  credential: Credential,
  votes: Votes,
  nonce: string,
): Promise<VoteStatement[]> {
  if (new Set(votes.map(({ action_id }) => action_id)).size < votes.length)
    throw new Refusal("VALIDATION_FAILED", "`votes` names an action twice; vote once on each");
  const statements: VoteStatement[] = [];
  for (const vote of votes) {
    const row = await visibleAction(host.storage, vote.action_id, credential);
    statements.push(await readVoteStatement(host, row, credential, vote, nonce));
  }
  return statements;
}

/** Returns the statement that the credential signs for a vote on this action. */
export async function readVoteStatement(
  host: CoreHost,
  row: ActionRow,
  credential: Credential,
  vote: Vote,
  nonce: string,
): Promise<VoteStatement> {
  assertNotErased(row);
  const history = await readVerifiedHistory(host.storage, row);
  if (history === null) throw recordAlteredError(row, ["entries"]);
  const { compiled: set } = await host.policies.current();
  return voteStatement(host, row, credential, vote, nonce, { history, set });
}

async function castSignedVotes(
  host: CoreHost,
  credential: Credential,
  { nonce, votes, response }: Static<ReturnType<typeof signedVotesBody>>,
): Promise<Results> {
  const { passkeys } = requireVoteSigner(host, credential);
  const statements = await readStatements(host, credential, votes, nonce);
  const digests = statements.map(voteDigest);
  const assertion = await passkeys.claim(nonce, createVotesChallenge(digests), response);
  const results: Results = [];
  for (const [i, vote] of votes.entries()) {
    const { decision, preview } = statements[i] as VoteStatement;
    const gesture: VoteSignature = { kind: "passkey", decision, nonce, preview, votes: digests, ...assertion };
    const { action_id } = vote;
    try {
      const { row, grantId } = await castVoteOnAction(
        createFactReadingHost(host, null),
        { credential, id: action_id, proof: { gesture } },
        vote,
      );
      results.push({ action_id, status: row.status, grant_id: grantId, error: null });
    } catch (error) {
      if (!(error instanceof Refusal) || votes.length === 1) throw error;
      results.push({ action_id, status: null, grant_id: null, error: { code: error.code, detail: error.message } });
    }
  }
  return results;
}
