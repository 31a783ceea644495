/** Schemas of the ledger's entries, one for each type, for the OpenAPI document and docs/record.md. */
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import type { ENTRY_TYPES } from "../../src/browser.ts";
import {
  ActorSchema as Actor,
  closed,
  countSchema,
  DENIED_BY,
  ERASABLE_PARTS,
  orNull,
  type PluginEntry,
  REVIEW_ANSWERS,
  REVIEWER_FAILURES,
  textSchema,
  timeSchema,
} from "../../src/core.ts";
import type { EntryBody } from "../../src/plugin.ts";
import { ApproverPlans, DecisionInEntry, digestSchema, Facts, oneOfSchema, VOTED_GRANT } from "./entry-parts.ts";

/** The types of entries that no plugin declares. */
type CoreType = (typeof ENTRY_TYPES)[number];

/**
 * Returns the schema of an entry, including the members that every entry has. The compiler rejects missing and unknown
 * member names.
 */
function entrySchema<Type extends CoreType>(
  title: string,
  type: Type,
  fields: Record<Exclude<keyof Extract<EntryBody, { type: Type }>, "type" | "v">, TSchema>,
): TObject {
  const every = {
    type: Type.Literal(type),
    v: Type.Literal(1, { description: "Version of the entry type." }),
    seq: Type.Integer({ minimum: 0, description: "Sequence number: position of the entry's leaf in the ledger." }),
  };
  return Type.Object({ ...every, ...(fields as Record<string, TSchema>) }, { title, ...closed });
}

const ABOUT_ACTION = {
  action_id: Type.String({ format: "uuid", description: "The action." }),
  at: timeSchema("Time of the entry, by the service's clock, which is also the clock of the decision."),
  agent_id: textSchema("The agent that wants to act."),
  commitment: digestSchema("SHA-256(salt ‖ request hash): commits to the request without revealing it."),
};
const POLICY_SET = orNull(digestSchema("Digest of the policy set; null before the first set was activated."));
const PINS = Type.Optional(
  digestSchema("Salted commitment to the values of the pinned facts. Absent if the rule pins no facts."),
);
const UNTIL = orNull(timeSchema("Deadline for starting; null if the action cannot start."));

export const ENTRY_SCHEMAS: Record<CoreType, TObject> = {
  decision: entrySchema("DecisionEntry", "decision", {
    ...ABOUT_ACTION,
    effective: Type.Optional(
      digestSchema(
        "Commitment to the request as obligations changed it. Later entries commit to it. Absent if not changed.",
      ),
    ),
    tool: textSchema("The tool."),
    operation: textSchema("Operation of the tool."),
    submitted_by: Actor,
    policy_set: POLICY_SET,
    facts: Facts,
    decision: DecisionInEntry,
    status: oneOfSchema("Status of the action after this entry.", "allowed", "denied", "pending_approval"),
    denied_by: orNull(oneOfSchema("What denied the action; null if it was not denied.", ...DENIED_BY)),
    expires_at: orNull(timeSchema("Deadline for approval.")),
    approved_until: UNTIL,
    meta: orNull(digestSchema("Commitment to `meta`; null without `meta`.")),
    plan: orNull(
      Type.Object(
        { id: textSchema("The plan."), position: Type.Integer({ minimum: 1, description: "Position in the plan." }) },
        { ...closed, description: "The plan that the action was submitted with; null if none." },
      ),
    ),
    pins: PINS,
  }),
  approval: entrySchema("ApprovalEntry", "approval", {
    ...ABOUT_ACTION,
    verdict: oneOfSchema(
      "A vote, or the event that ended the request or the rejection.",
      "approve",
      "deny",
      "expired",
      "cancelled",
      "rejection_lifted",
    ),
    by: orNull(Actor),
    comment: orNull(textSchema("Comment of the actor.")),
    self_approval: Type.Boolean({
      description: "The person behind the agent confirmed their own action, in the mode self_confirm.",
    }),
    delegation: orNull(
      Type.Object(
        {
          id: textSchema("The delegation."),
          from: textSchema("Principal of the user on whose behalf the approver voted."),
        },
        { ...closed, description: "The delegation that the approver used; null if none." },
      ),
    ),
    break_glass: Type.Boolean({
      description: "The approver approved without a second approver in an emergency (break-glass).",
    }),
    grant: orNull(
      Type.Object(
        { id: textSchema("The grant."), ...VOTED_GRANT },
        { ...closed, description: "The grant that was created with the vote; null if there is none." },
      ),
    ),
    groups: Type.Array(Type.String(), {
      description: "Groups of the approver that the approval names, at the time of the vote.",
    }),
    independent: Type.Boolean({
      description:
        "Whether the approver was in none of the requester's groups; false if the requester's groups are unknown.",
    }),
    gesture: orNull(
      Type.Object(
        {
          kind: Type.Literal("passkey"),
          credential_id: textSchema("Id of the passkey, base64url."),
          decision: digestSchema("Leaf hash of the entry that made the action pending, as displayed to the approver."),
          nonce: textSchema("Issued by the service for one list of votes."),
          preview: orNull(
            digestSchema("Salted commitment to the preview of the rule; null if the rule has no preview."),
          ),
          votes: Type.Array(Type.String(), {
            description: "Digests of all votes that were signed together, in order.",
          }),
          authenticator_data: textSchema("Base64url."),
          client_data_json: textSchema("Base64url."),
          signature: textSchema("Base64url."),
        },
        { ...closed, description: "Signature of the vote with a passkey; null if it was not signed." },
      ),
    ),
    preview: orNull(
      digestSchema(
        "Salted commitment to the preview that was displayed to the approver; null if there was none or this is not a vote.",
      ),
    ),
    questions: orNull(
      digestSchema(
        "Digest of the questions to the agent and its answers so far; null if there are none or this is not a vote.",
      ),
    ),
    plan: orNull(
      digestSchema("Digest of the actions that remain after the vote on a plan; null unless the vote is part of one."),
    ),
    pins: PINS,
    approvals: countSchema("Number of people who have approved, including this one."),
    quorum: countSchema("Number of approvals required."),
    status: oneOfSchema(
      "Status of the action after this entry.",
      "pending_approval",
      "approved",
      "denied",
      "expired",
      "cancelled",
    ),
    approved_until: orNull(
      timeSchema(
        "Deadline for starting, if this entry approves the action; for `expired`, the deadline that has passed, if it was for starting. Null otherwise.",
      ),
    ),
    rejection_until: orNull(
      timeSchema("Time until which the rejection denies duplicate requests; null if it does not deny them."),
    ),
  }),
  redecision: entrySchema("RedecisionEntry", "redecision", {
    ...ABOUT_ACTION,
    occasion: oneOfSchema(
      "The request or event that caused the new decision.",
      "vote",
      "start",
      "permit",
      "review",
      "edit",
    ),
    by: orNull(Actor),
    policy_set: POLICY_SET,
    facts: Facts,
    decision: DecisionInEntry,
    status: oneOfSchema("Status of the action after this entry.", "denied", "pending_approval", "allowed", "approved"),
    quorum: orNull(countSchema("Number of approvals required; null if none is required.")),
    expires_at: orNull(timeSchema("Deadline for approval; null if no approval is required.")),
    approvers: orNull(ApproverPlans),
    edit: orNull(
      Type.Object(
        {
          previous: digestSchema("Commitment to the request before the change."),
          comment: orNull(textSchema("Reason that was given.")),
        },
        { ...closed, description: "An approver's change of the request; null unless this entry records a change." },
      ),
    ),
    pins: PINS,
  }),
  question: entrySchema("QuestionEntry", "question", {
    ...ABOUT_ACTION,
    phase: oneOfSchema("An approver's question, or the agent's answer.", "ask", "answer"),
    number: countSchema("Number of the question within the action, starting at 1."),
    by: Actor,
    text: digestSchema("Commitment to the text."),
  }),
  review: entrySchema("ReviewEntry", "review", {
    ...ABOUT_ACTION,
    reviewer: textSchema("The machine reviewer, as the policies name it."),
    version: orNull(
      textSchema("Version of the reviewer's model, prompt or rules; null if the reviewer was not called."),
    ),
    asked: Type.Integer({ minimum: 0, description: "`seq` of the entry that made the action pending." }),
    input: orNull(
      digestSchema("SHA-256(salt ‖ SHA-256(request to the reviewer)); null if the reviewer was not called."),
    ),
    answer: orNull(oneOfSchema("The answer; null if the reviewer gave no valid answer in time.", ...REVIEW_ANSWERS)),
    fault: orNull(oneOfSchema("Why there is no answer; null if there is one.", ...REVIEWER_FAILURES)),
    comment: orNull(textSchema("Reason that the reviewer gave.")),
    latency_ms: countSchema("Milliseconds from the call to its answer, fault or timeout."),
    outstanding: countSchema("Number of reviewers of the same request that have not answered yet."),
    status: oneOfSchema("Status of the action after the answer.", "pending_approval", "approved", "denied"),
    approved_until: orNull(timeSchema("Deadline for starting; null unless this answer approves the action.")),
    rejection_until: orNull(
      timeSchema("Time until which the denial also denies the same request; null if it does not."),
    ),
  }),
  execution: entrySchema("ExecutionEntry", "execution", {
    ...ABOUT_ACTION,
    phase: oneOfSchema(
      "The start, the result, or the fact that no result was reported in time.",
      "start",
      "no_result",
      "result",
    ),
    by: orNull(Actor),
    permit: orNull(digestSchema("SHA-256 of the permit; null unless this is a start with a permit.")),
    attempt: orNull(
      digestSchema(
        "SHA-256 of the `attempt` that was sent with the start; null unless this is a start with an `attempt`.",
      ),
    ),
    success: orNull(
      Type.Boolean({ description: "Whether the action had its effect, as reported; null unless this is a result." }),
    ),
    result: orNull(digestSchema("Commitment to the reported result; null unless this is a result.")),
    comment: orNull(textSchema("How the person who reported an unknown outcome knows it; null for other entries.")),
    usage: Type.Optional(
      Type.Record(Type.String(), Type.Number(), {
        description: "Amounts that the result reported for limits, such as `cost_usd`. Absent without a report.",
      }),
    ),
    pins: PINS,
    status: oneOfSchema("Status of the action after this entry.", "executing", "unknown", "succeeded", "failed"),
  }),
  erasure: entrySchema("ErasureEntry", "erasure", {
    ...ABOUT_ACTION,
    cause: oneOfSchema(
      "asked: someone requested the erasure. subject: a person requested the erasure of their data, which the action contained. retention: the retention period ended.",
      "asked",
      "subject",
      "retention",
    ),
    rejected: Type.Optional(
      Type.Array(Type.String({ pattern: "^[0-9a-f]{64}$" }), {
        description:
          "Commitments to the keyed digests by which the service recognizes duplicates of the erased request while its rejection is in force: of the submitted request, and of the changed request if there is one. Absent if no rejection is in force.",
      }),
    ),
    reason: textSchema("Reason of the erasure."),
    by: orNull(Actor),
  }),
  part_erasure: entrySchema("PartErasureEntry", "part_erasure", {
    ...ABOUT_ACTION,
    part: oneOfSchema("What was erased.", ...ERASABLE_PARTS),
    reason: textSchema("Reason of the erasure."),
    by: Type.Null({ description: "Always null, because only the end of a retention period erases parts." }),
  }),
  policy_set: entrySchema("PolicySetEntry", "policy_set", {
    at: timeSchema("Time of the entry."),
    previous: POLICY_SET,
    policy_set: POLICY_SET,
    policy_count: countSchema("Number of policies in the set."),
    policies: orNull(
      Type.Array(Type.Object({ policy: Type.String(), version: Type.Integer() }, closed), {
        description: "Null if the set has more than 200 policies. The digest covers all policies.",
      }),
    ),
    source: Type.Record(Type.String(), Type.String(), { description: "Origin of the set." }),
    changes: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          name: Type.String(),
          managed_by: orNull(Type.String()),
          version: Type.Integer(),
          digest: orNull(digestSchema("Digest of that version's definition.")),
          active: orNull(Type.Integer()),
          deleted: Type.Boolean(),
        },
        closed,
      ),
      { description: "The policies after the change." },
    ),
    by: orNull(Actor),
  }),
  api_key: entrySchema("KeyEntry", "api_key", {
    at: timeSchema("Time of the entry."),
    change: oneOfSchema("The change.", "created", "revoked"),
    key: Type.Object(
      {
        id: Type.String(),
        name: Type.String(),
        hash: Type.String(),
        scopes: Type.Array(Type.String()),
        agent_id: orNull(Type.String()),
        owner: orNull(Type.String()),
        expires_at: orNull(Type.String()),
      },
      { description: "The key after the change, with the hash of its value.", ...closed },
    ),
    by: orNull(Actor),
  }),
  agent: entrySchema("AgentEntry", "agent", {
    at: timeSchema("Time of the entry."),
    change: oneOfSchema("The change.", "registered", "updated", "suspended", "resumed"),
    agent: Type.Record(Type.String(), Type.Unknown(), { description: "The agent after the change." }),
    by: orNull(Actor),
  }),
  user: entrySchema("UserEntry", "user", {
    at: timeSchema("Time of the entry."),
    change: oneOfSchema(
      "The change.",
      "created",
      "updated",
      "link_created",
      "passkey_added",
      "passkey_removed",
      "recovery_codes_created",
      "ended",
      "resumed",
    ),
    user: Type.Object(
      {
        id: Type.String(),
        name: textSchema("Display name. It does not identify the user."),
        roles: Type.Array(Type.String()),
        groups: Type.Array(Type.String()),
        identities: Type.Array(Type.Object({ issuer: Type.String(), subject: Type.String() }, closed), {
          description: "Accounts at identity providers.",
        }),
        passkeys: Type.Array(
          Type.Object(
            {
              id: textSchema("Credential id, base64url."),
              public_key: textSchema("COSE key, base64url."),
              origin: textSchema("Origin of the page on which it was created. Its host name is the relying party id."),
              name: Type.String(),
              added_at: timeSchema("When it was added."),
            },
            closed,
          ),
        ),
        link: orNull(
          Type.Object(
            { hash: digestSchema("SHA-256 of the token."), expires_at: timeSchema("When the link expires.") },
            { description: "The open one-time link that adds a passkey.", ...closed },
          ),
        ),
        recovery_codes: Type.Array(digestSchema("SHA-256 of an unused recovery code.")),
        provider_groups: Type.Array(Type.String(), {
          description: "Names of the provider's groups to which a SCIM client added the user.",
        }),
        email: orNull(digestSchema("Digest of the e-mail address that the provider has verified.")),
        managed_by: orNull(
          textSchema("`oidc:<provider>` or `scim:<provider>`; null if this service manages the user."),
        ),
        created_at: timeSchema("When the user was created."),
        ended_at: orNull(timeSchema("When the user was deactivated.")),
      },
      { description: "The user after the change.", ...closed },
    ),
    reason: orNull(textSchema("Comment of the actor.")),
    confirmed_by: orNull(
      textSchema("Credential id of the passkey with which the user confirmed a change of their own ways to sign in."),
    ),
    by: orNull(Actor),
  }),
  delegation: entrySchema("DelegationEntry", "delegation", {
    at: timeSchema("Time of the entry."),
    change: oneOfSchema("The change.", "created", "ended"),
    delegation: Type.Object(
      {
        id: Type.String(),
        from: textSchema("Id of the user on whose behalf the other user approves."),
        to: textSchema("Id of the user who approves."),
        groups: orNull(
          Type.Array(Type.String(), { description: "Groups and rotas for which the delegate's votes count." }),
        ),
        agents: orNull(Type.Array(Type.String(), { description: "Globs of the agents that the delegation covers." })),
        tools: orNull(Type.Array(Type.String(), { description: "Globs of the tools that the delegation covers." })),
        starts_at: timeSchema("When it starts."),
        until: timeSchema("When it expires."),
      },
      { description: "The delegation as it was when it was created. A null member means no restriction.", ...closed },
    ),
    cause: orNull(oneOfSchema("Why the delegation ended; null when it was created.", "revoked", "user_ended")),
    comment: orNull(textSchema("Comment of the delegator, or of the credential that ended the delegation.")),
    by: Actor,
  }),
  permit_key: entrySchema("PermitKeyEntry", "permit_key", {
    at: timeSchema("Time of the entry."),
    public_key: digestSchema("The new key: Ed25519, 32 bytes."),
    previous: digestSchema("The previous key."),
    previous_until: timeSchema("Time until which permits of the previous key are accepted."),
    by: Type.Null({ description: "Null: only an operator on the host can rotate the key." }),
  }),
  log_key: entrySchema("LogKeyEntry", "log_key", {
    at: timeSchema("Time of the entry."),
    vkey: textSchema("The new key, as C2SP vkey."),
    previous: textSchema("The previous key."),
    previous_until: timeSchema("Time until which the previous key signs in addition to the new key."),
    handover: textSchema(
      "A checkpoint before the entry with the line `log-key <previous> <vkey>`, signed by both keys.",
    ),
    by: Type.Null({ description: "Null: only an operator on the host can rotate the key." }),
  }),
};

export const PluginEntrySchema = Type.Object(
  {
    type: Type.String({ pattern: "^[^:]+:.+$", description: "`<plugin>:<type>`" }),
    v: Type.Integer(),
    seq: Type.Integer({ minimum: 0 }),
    at: timeSchema("Time of the entry."),
    action_id: orNull(Type.String()),
    agent_id: orNull(Type.String()),
    data: Type.Record(Type.String(), Type.Unknown(), {
      description: "Data of the entry, in the schema that the plugin declares.",
    }),
    by: orNull(Actor),
  } satisfies Record<keyof PluginEntry | "seq", TSchema>,
  { title: "PluginEntry", ...closed },
);

const CoreEntry = Type.Union(Object.values(ENTRY_SCHEMAS), {
  title: "CoreEntry",
  description: "A ledger entry of the core; `type` identifies its schema (docs/record.md).",
  discriminator: { propertyName: "type" },
});

/** Schema of any entry. The type of a plugin's entry contains a colon. */
export const LedgerEntry = Type.Unsafe<Record<string, unknown>>(
  Type.Union([CoreEntry, PluginEntrySchema], { title: "LedgerEntry" }),
);
