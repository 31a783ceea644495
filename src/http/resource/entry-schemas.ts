/** The ledger's entries as schemas, one of each type: for the API's document and for docs/record.md. */
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import type {
  AgentEntry,
  ApprovalEntry,
  DecisionEntry,
  ENTRY_TYPES,
  ErasureEntry,
  ExecutionEntry,
  GrantEntry,
  KeyEntry,
  LogKeyEntry,
  PermitKeyEntry,
  PluginEntry,
  PolicySetEntry,
  QuestionEntry,
  RedecisionEntry,
  ReviewEntry,
  StopEntry,
  UserEntry,
} from "../../domain/entries.ts";
import { DENIED_BY } from "../../domain/denied-by.ts";
import { REVIEW_ANSWERS, REVIEW_FAULTS } from "../../domain/reviews.ts";
import {
  orNull,
  text,
  time,
  digest,
  count,
  oneOfSchema,
  closed,
  Actor,
  ApproverPlans,
  Facts,
  GrantSum,
  DecisionMade,
} from "./entry-parts.ts";

/** Members of every entry. `Entry` holds the names to the type, so that none is missing and none is made up. */
function entry<Entry extends { type: string; v: number }>(
  title: string,
  type: string,
  fields: Record<Exclude<keyof Entry, "type" | "v">, TSchema>,
): TObject {
  const every = {
    type: Type.Literal(type),
    v: Type.Literal(1, { description: "Version of the entry type." }),
    seq: Type.Integer({ minimum: 0, description: "Place in the ledger: the index of its leaf." }),
  };
  return Type.Object({ ...every, ...(fields as Record<string, TSchema>) }, { title, ...closed });
}

const ABOUT_ACTION = {
  action_id: Type.String({ format: "uuid", description: "The action." }),
  at: time("When, by the service's clock: the clock of the decision."),
  agent_id: text("The agent that wants to act."),
  commitment: digest("SHA-256(salt ‖ request hash): the request, without telling it."),
};
const POLICY_SET = orNull(digest("Digest of the policy set; null before the first."));
const UNTIL = orNull(time("Deadline for starting; null if the action cannot start."));

export const ENTRY_SCHEMAS: Record<(typeof ENTRY_TYPES)[number], TObject> = {
  decision: entry<DecisionEntry>("DecisionEntry", "decision", {
    ...ABOUT_ACTION,
    tool: text("The tool."),
    operation: text("What the tool is to do."),
    submitted_by: Actor,
    policy_set: POLICY_SET,
    facts: Facts,
    decision: DecisionMade,
    status: oneOfSchema("The action's status with it.", "allowed", "denied", "pending_approval"),
    denied_by: orNull(oneOfSchema("What denied the action; null if it was not denied.", ...DENIED_BY)),
    expires_at: orNull(time("End of the time to approve.")),
    approved_until: UNTIL,
    meta: orNull(digest("Commitment to `meta`; null without `meta`.")),
  }),
  approval: entry<ApprovalEntry>("ApprovalEntry", "approval", {
    ...ABOUT_ACTION,
    verdict: oneOfSchema("What was said, or happened.", "approve", "deny", "expired", "cancelled", "rejection_lifted"),
    by: orNull(Actor),
    comment: orNull(text("Reason that was given.")),
    self_approval: Type.Boolean({
      description: "The person behind the agent confirmed their own action, in the mode self_confirm.",
    }),
    groups: Type.Array(Type.String(), {
      description: "Groups of the approver that the approval names, at the time of the vote.",
    }),
    independent: Type.Boolean({
      description: "Whether the approver was in none of the requester's groups; false if those are unknown.",
    }),
    gesture: orNull(
      Type.Object(
        {
          kind: Type.Literal("passkey"),
          credential_id: text("Id of the passkey, base64url."),
          decision: digest("Leaf hash of the entry that made the action pending, as the approver was shown."),
          nonce: text("Issued by the service for one list of votes."),
          preview: orNull(digest("Salted commitment to the preview that the rule renders; null if it has none.")),
          votes: Type.Array(Type.String(), {
            description: "Digests of all votes that were signed together, in order.",
          }),
          authenticator_data: text("Base64url."),
          client_data_json: text("Base64url."),
          signature: text("Base64url."),
        },
        { ...closed, description: "Signature of the vote with a passkey; null if it was not signed." },
      ),
    ),
    questions: orNull(digest("Of the questions to the agent and its answers so far; null if there are none.")),
    approvals: count("People who approved so far, this one included."),
    quorum: count("How many it takes."),
    status: oneOfSchema(
      "The action's status with it.",
      "pending_approval",
      "approved",
      "denied",
      "expired",
      "cancelled",
    ),
    approved_until: UNTIL,
    rejection_until: orNull(time("Until when the rejection refuses the same request; null if it does not.")),
  }),
  redecision: entry<RedecisionEntry>("RedecisionEntry", "redecision", {
    ...ABOUT_ACTION,
    occasion: oneOfSchema("What it was decided again for.", "vote", "start", "permit", "review"),
    by: orNull(Actor),
    policy_set: POLICY_SET,
    facts: Facts,
    decision: DecisionMade,
    status: oneOfSchema("The action's status with it.", "denied", "pending_approval", "allowed", "approved"),
    quorum: orNull(count("Number of approvals required; null if none is.")),
    expires_at: orNull(time("End of the time to approve; null if no approval is required.")),
    approvers: orNull(ApproverPlans),
  }),
  question: entry<QuestionEntry>("QuestionEntry", "question", {
    ...ABOUT_ACTION,
    phase: oneOfSchema("An approver's question, or the agent's answer.", "ask", "answer"),
    number: count("Which question of the action, from 1."),
    by: Actor,
    text: digest("Commitment to the text."),
  }),
  review: entry<ReviewEntry>("ReviewEntry", "review", {
    ...ABOUT_ACTION,
    reviewer: text("The machine reviewer, as the policies name it."),
    version: orNull(text("Version of its model, prompt or rules; null if it was not called.")),
    asked: Type.Integer({ minimum: 0, description: "`seq` of the entry that made the action pending." }),
    input: orNull(digest("SHA-256(salt ‖ SHA-256(input)) of what the reviewer was sent; null if it was not called.")),
    answer: orNull(oneOfSchema("Its answer; null if it gave no valid answer in time.", ...REVIEW_ANSWERS)),
    fault: orNull(oneOfSchema("Why there is no answer; null if there is one.", ...REVIEW_FAULTS)),
    comment: orNull(text("Reason that the reviewer gave.")),
    latency_ms: count("Milliseconds from the call to its answer, fault or timeout."),
    outstanding: count("Reviewers of the same request that have not answered yet."),
    status: oneOfSchema("The action's status with it.", "pending_approval", "approved", "denied"),
    approved_until: orNull(time("Deadline for starting; null unless this approves the action.")),
    rejection_until: orNull(time("Until when the denial refuses the same request; null if it does not.")),
  }),
  execution: entry<ExecutionEntry>("ExecutionEntry", "execution", {
    ...ABOUT_ACTION,
    phase: oneOfSchema(
      "Its beginning, its end, or that no result was reported in time.",
      "start",
      "no_result",
      "result",
    ),
    by: orNull(Actor),
    permit: orNull(digest("SHA-256 of the permit's text, where one was used.")),
    attempt: orNull(digest("SHA-256 of the `attempt` sent with the start; null for a result.")),
    success: orNull(Type.Boolean({ description: "As it was reported; null unless this is a result." })),
    result: orNull(digest("Commitment to what was reported; null unless this is a result.")),
    comment: orNull(text("How whoever settled an unknown outcome knows it; null if this settles none.")),
    status: oneOfSchema("The action's status with it.", "executing", "unknown", "succeeded", "failed"),
  }),
  erasure: entry<ErasureEntry>("ErasureEntry", "erasure", {
    ...ABOUT_ACTION,
    cause: oneOfSchema("Somebody asked for it, or its time was over.", "asked", "retention"),
    reason: text("Why."),
    by: orNull(Actor),
  }),
  policy_set: entry<PolicySetEntry>("PolicySetEntry", "policy_set", {
    at: time("When."),
    previous: POLICY_SET,
    policy_set: POLICY_SET,
    policy_count: count("Policies of the set."),
    policies: orNull(
      Type.Array(Type.Object({ policy: Type.String(), version: Type.Integer() }, closed), {
        description: "Null above 200, which the digest covers.",
      }),
    ),
    source: Type.Record(Type.String(), Type.String(), { description: "Where the set came from." }),
    changes: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          name: Type.String(),
          managed_by: orNull(Type.String()),
          version: Type.Integer(),
          digest: orNull(digest("Of that version's definition.")),
          active: orNull(Type.Integer()),
          deleted: Type.Boolean(),
        },
        closed,
      ),
      { description: "Policies as the change left them." },
    ),
    by: orNull(Actor),
  }),
  api_key: entry<KeyEntry>("KeyEntry", "api_key", {
    at: time("When."),
    change: oneOfSchema("What became of it.", "created", "revoked"),
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
      { description: "The key: its hash, never its value.", ...closed },
    ),
    by: orNull(Actor),
  }),
  agent: entry<AgentEntry>("AgentEntry", "agent", {
    at: time("When."),
    change: oneOfSchema("What became of it.", "registered", "updated", "suspended", "resumed"),
    agent: Type.Record(Type.String(), Type.Unknown(), { description: "The agent as the change left it." }),
    by: orNull(Actor),
  }),
  user: entry<UserEntry>("UserEntry", "user", {
    at: time("When."),
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
        name: text("Display name. It identifies no one."),
        roles: Type.Array(Type.String()),
        groups: Type.Array(Type.String()),
        identities: Type.Array(Type.Object({ issuer: Type.String(), subject: Type.String() }, closed), {
          description: "Accounts at identity providers.",
        }),
        passkeys: Type.Array(
          Type.Object(
            {
              id: text("Credential id, base64url."),
              public_key: text("COSE key, base64url."),
              rp_id: text("Relying party id."),
              name: Type.String(),
              added_at: time("When it was added."),
            },
            closed,
          ),
        ),
        link: orNull(
          Type.Object(
            { hash: digest("SHA-256 of the token."), expires_at: time("When the link expires.") },
            { description: "The open one-time link that adds a passkey.", ...closed },
          ),
        ),
        recovery_codes: Type.Array(digest("SHA-256 of an unused recovery code.")),
        provider_groups: Type.Array(Type.String(), {
          description: "Names of the provider's groups that a SCIM client put the user in.",
        }),
        managed_by: orNull(text("`oidc:<provider>` or `scim:<provider>`; null if managed here.")),
        created_at: time("When the user was created."),
        ended_at: orNull(time("When the user was ended.")),
      },
      { description: "The user after the change.", ...closed },
    ),
    reason: orNull(text("Reason that was given.")),
    by: orNull(Actor),
  }),
  stop: entry<StopEntry>("StopEntry", "stop", {
    at: time("When."),
    change: oneOfSchema("What became of it.", "placed", "lift_asked", "lifted"),
    stop: Type.Object(
      {
        id: Type.String(),
        agent: orNull(Type.String()),
        tool: orNull(Type.String()),
        policy: orNull(Type.String()),
        reason: Type.String(),
        until: orNull(Type.String()),
      },
      { description: "As it was placed.", ...closed },
    ),
    comment: orNull(text("Of whoever lifts it.")),
    approvals: count("People who asked for it to be lifted so far."),
    needed: count("How many it takes."),
    by: Actor,
  }),
  grant: entry<GrantEntry>("GrantEntry", "grant", {
    at: time("When."),
    change: oneOfSchema("What became of it.", "granted", "ended"),
    agent_id: text("The agent that may act."),
    grant: Type.Object(
      {
        id: Type.String(),
        tool: Type.String(),
        operation: Type.String(),
        scope: orNull(text("CEL over the request; null covers every request.")),
        count: count("Number of uses."),
        sum: orNull(GrantSum),
        until: time("End of its time."),
        ends_on_failure: Type.Boolean({ description: "Whether a failed result of a use ends it." }),
      },
      { description: "As it was granted.", ...closed },
    ),
    cause: orNull(oneOfSchema("Why it ended; null when it was granted.", "revoked", "rejection", "flag", "failure")),
    related_action: orNull(text("The action that it was granted with, that was rejected or flagged, or that failed.")),
    comment: orNull(text("Of the grantor, or of whoever ended it.")),
    by: Actor,
  }),
  permit_key: entry<PermitKeyEntry>("PermitKeyEntry", "permit_key", {
    at: time("When."),
    public_key: digest("The new key: Ed25519, 32 bytes."),
    previous: digest("The one before."),
    previous_until: time("Until when its permits are taken."),
    by: Type.Null({ description: "An operator at the machine." }),
  }),
  log_key: entry<LogKeyEntry>("LogKeyEntry", "log_key", {
    at: time("When."),
    vkey: text("The new key, as C2SP vkey."),
    previous: text("The one before."),
    previous_until: time("Until when it signs along."),
    handover: text("A checkpoint before the entry with the line `log-key <previous> <vkey>`, signed by both keys."),
    by: Type.Null({ description: "An operator at the machine." }),
  }),
};

export const PluginEntrySchema = Type.Object(
  {
    type: Type.String({ pattern: "^[^:]+:.+$", description: "`<plugin>:<type>`" }),
    v: Type.Integer(),
    seq: Type.Integer({ minimum: 0 }),
    at: time("When."),
    action_id: orNull(Type.String()),
    agent_id: orNull(Type.String()),
    data: Type.Record(Type.String(), Type.Unknown(), { description: "As the plugin declares it." }),
    by: orNull(Actor),
  } satisfies Record<keyof PluginEntry | "seq", TSchema>,
  { title: "PluginEntry", ...closed },
);

const CoreEntry = Type.Union(Object.values(ENTRY_SCHEMAS), {
  title: "CoreEntry",
  description: "A ledger entry of the service's own; `type` says which (docs/record.md).",
  discriminator: { propertyName: "type" },
});

/** Any entry. One of a plugin has a colon in its type. */
export const LedgerEntry = Type.Unsafe<Record<string, unknown>>(
  Type.Union([CoreEntry, PluginEntrySchema], { title: "LedgerEntry" }),
);
