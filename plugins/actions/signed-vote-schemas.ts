/** Schemas of votes that are signed with a passkey. */
import { Type } from "@sinclair/typebox";
import { ACTION_STATUSES, closed, MAX_SIGNED_VOTES, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { VOTED_GRANT } from "./entry-parts.ts";
import { type VoteFeatures, voteMembers } from "./schemas.ts";

/** Returns the schema of the votes; see `voteMembers`. */
const votes = (features: VoteFeatures) =>
  Type.Array(
    Type.Object(
      {
        action_id: Type.String({ format: "uuid" }),
        approve: Type.Boolean({ description: "true approves; false rejects." }),
        reason: Type.Optional(Type.String({ maxLength: 2000, description: "Recorded in the ledger, and signed." })),
        ...voteMembers(features),
      },
      closed,
    ),
    { minItems: 1, maxItems: MAX_SIGNED_VOTES, description: "In the order in which the approver sees them." },
  );

export const voteChallengeBody = (features: VoteFeatures) => Type.Object({ votes: votes(features) }, closed);

const Base64Url = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: "^[A-Za-z0-9_-]+$" });

export const PasskeyResponse = Type.Object(
  {
    id: Base64Url(1400),
    response: Type.Object(
      {
        authenticatorData: Base64Url(2048),
        clientDataJSON: Base64Url(4096),
        signature: Base64Url(2048),
      },
      { additionalProperties: true },
    ),
  },
  { additionalProperties: true, description: "`toJSON()` of the result of `navigator.credentials.get`." },
);

export const Nonce = Base64Url(200);

export const signedVotesBody = (features: VoteFeatures) =>
  Type.Object({ nonce: Nonce, votes: votes(features), response: PasskeyResponse }, closed);

export const VoteChallenge = Type.Object(
  {
    nonce: textSchema("Send it with the votes. Accepted once, in this session."),
    expires_at: timeSchema("Time until which the votes must be sent."),
    statements: Type.Array(
      Type.Object(
        {
          action_id: Type.String({ format: "uuid" }),
          commitment: textSchema("SHA-256(salt ‖ request hash)."),
          decision: textSchema("Leaf hash of the entry that made the action pending."),
          grant: orNull(
            Type.Object(VOTED_GRANT, {
              ...closed,
              description: "The grant to create with the vote; null if there is none.",
            }),
          ),
          nonce: textSchema("The nonce."),
          origin: textSchema("Origin of the log."),
          plan: orNull(
            textSchema(
              "Digest of the actions that remain after the vote on a plan; null unless the vote is part of one.",
            ),
          ),
          preview: orNull(textSchema("Salted commitment to the preview of the rule; null if the rule has no preview.")),
          questions: orNull(
            textSchema("Digest of the questions to the agent and its answers; null if there are none."),
          ),
          reason: orNull(textSchema("The reason given.")),
          user: textSchema("The approver's principal."),
          vote: Type.Union([Type.Literal("approve"), Type.Literal("deny"), Type.Literal("break_glass")]),
        },
        closed,
      ),
      { description: "What is signed, in order." },
    ),
    options: Type.Record(Type.String(), Type.Unknown(), {
      description: "Options for `navigator.credentials.get`; binary members are base64url.",
    }),
  },
  closed,
);

export const SignedVotesResult = Type.Object(
  {
    results: Type.Array(
      Type.Object(
        {
          action_id: Type.String({ format: "uuid" }),
          status: orNull(Type.Union(ACTION_STATUSES.map((status) => Type.Literal(status)))),
          grant_id: orNull(textSchema("The grant that the vote created.")),
          error: orNull(
            Type.Object(
              { code: Type.String(), detail: Type.String() },
              { ...closed, description: "Why it was refused." },
            ),
          ),
        },
        closed,
      ),
      { description: "In the order of the votes." },
    ),
  },
  closed,
);
