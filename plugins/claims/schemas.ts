/** Schemas of claims: the options, the errors, the entry and the routes. */
import { closed, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { errorKind, PAGE_QUERY, type Static, Type } from "../../src/plugin.ts";

export const ERRORS = {
  held: errorKind("CLAIM_HELD", 409, "Someone else has claimed the request"),
  notFound: errorKind("CLAIM_NOT_FOUND", 404, "No such claim"),
  tooMany: errorKind("TOO_MANY_CLAIMS", 429, "Too many claims"),
};

/** The options of claims: the key `claims` of `assent.yaml`. */
export const ClaimOptions = Type.Object(
  {
    minutes: Type.Integer({ default: 15, minimum: 1, maximum: 240, description: "Time after which a claim ends." }),
  },
  { default: {}, additionalProperties: false, description: "Claims of pending requests by approvers." },
);
export type ClaimOptions = Static<typeof ClaimOptions>;

/** The type of the entry about a claim. */
export const CLAIM_ENTRY = "claims:change";

/** `data` of the entry: an approver claimed a request, handed it to another approver, or released it. */
export const ClaimChange = Type.Object(
  {
    change: Type.Union([Type.Literal("claimed"), Type.Literal("handed_over"), Type.Literal("released")]),
    holder: textSchema("Principal of the approver whose claim begins, or ends if the claim was released."),
    until: orNull(timeSchema("When the claim ends; null if it was released.")),
  },
  closed,
);
export type ClaimChange = Static<typeof ClaimChange>;

export const ClaimBody = Type.Object(
  {
    user_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: "The user who gets the claim. Default: the caller." }),
    ),
    take_over: Type.Optional(
      Type.Boolean({ description: "Replaces the claim of someone else. Without it, such a request is refused." }),
    ),
  },
  { ...closed, examples: [{}, { user_id: "019346a0-0000-7000-8000-000000000000" }] },
);
export type ClaimBody = Static<typeof ClaimBody>;

export const ReleaseBody = Type.Object({}, closed);

export const ClaimRecord = Type.Object(
  {
    action_id: Type.String(),
    holder: textSchema("Principal of the approver who looks at the request."),
    claimed_at: timeSchema("When the approver claimed it or it was handed to them."),
    until: timeSchema("When the claim ends by itself."),
    claimed_by: textSchema("Principal who claimed it or handed it over."),
  },
  { title: "Claim", ...closed },
);
export type ClaimRecord = Static<typeof ClaimRecord>;

export const ClaimList = Type.Object({ claims: Type.Array(ClaimRecord), next_cursor: orNull(Type.String()) }, closed);
export const ClaimQuery = Type.Object({ limit: PAGE_QUERY.limit, cursor: PAGE_QUERY.cursor }, closed);

export const ApproverQuery = Type.Object(
  { name: Type.Optional(Type.String({ maxLength: 200, description: "Part of the name, in any case." })) },
  closed,
);
export const ApproverList = Type.Object(
  {
    users: Type.Array(Type.Object({ id: Type.String(), name: Type.String() }, closed), {
      description: "Sorted by name; at most 20.",
    }),
  },
  closed,
);
