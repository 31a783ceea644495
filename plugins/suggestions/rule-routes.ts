/** Routes that list suggested rules, flag one of their uses, and restore a rule that was reverted. */
import { Type, type Static } from "@sinclair/typebox";
import {
  canSee,
  closed,
  confirmCredential,
  type CoreHost,
  type LedgerTransaction,
  orNull,
  textSchema,
  timeSchema,
  toActor,
} from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { verifyAgainstLedger, visibleAction } from "../actions/api.ts";
import { literalUnion } from "./entry.ts";
import { ERRORS } from "./errors.ts";
import { suggestedPoliciesOf } from "./reaction.ts";
import {
  buildSuggestedRuleEntry,
  isRuleInForce,
  resultsMetaKey,
  type SuggestedRule,
  type SuggestedRules,
  suggestedRuleState,
} from "./state.ts";

const BODY_BYTES = 16_384;

const Params = Type.Object(
  { policy: Type.String({ minLength: 1, maxLength: 64, description: "Name of the rule's policy." }) },
  { additionalProperties: false },
);
const Comment = Type.String({ minLength: 1, maxLength: 500, description: "Recorded in the ledger." });
const FlagBody = Type.Object(
  { action_id: Type.String({ format: "uuid", description: "An action that the rule allowed." }), reason: Comment },
  closed,
);
const RestoreBody = Type.Object({ reason: Comment }, closed);

const RuleRecord = Type.Object(
  {
    policy: textSchema("Name of the rule's policy, which identifies the rule."),
    status: literalUnion(
      "`active`: allows actions. `reverted`: requires approval again, until a person restores it. `inactive`: its policy is not active, or in shadow mode.",
      "active",
      "reverted",
      "inactive",
    ),
    in_place_of: Type.Object(
      { policy: Type.String(), rule: Type.String() },
      { description: "The rule that requires approval.", ...closed },
    ),
    tool: Type.String(),
    operation: Type.String(),
    agents: Type.Array(Type.String()),
    max_failed: Type.Number({ description: "The rule reverts above this share of failed results." }),
    results: textSchema(
      "Newest results of its uses since it was put in force, oldest first: `s` for a success, `f` for a failure.",
    ),
    reverted: orNull(
      Type.Object(
        {
          cause: literalUnion("Why it was reverted.", "flag", "stop", "failure"),
          at: timeSchema("When it was reverted."),
          by: orNull(textSchema("Principal.")),
          action_id: orNull(textSchema("The action that was flagged or that failed.")),
          stop_id: orNull(textSchema("The stop.")),
          comment: orNull(Type.String()),
        },
        closed,
      ),
    ),
  },
  { title: "SuggestedRule", ...closed },
);
type RuleRecord = Static<typeof RuleRecord>;

const RuleList = Type.Object({ suggested_rules: Type.Array(RuleRecord) }, closed);

export function suggestedRuleRoutes(host: CoreHost, tag: string) {
  const response = { description: "The rule.", schema: RuleRecord };
  return [
    defineRoute({
      method: "GET",
      path: "/v1/suggested-rules",
      tag,
      summary: "List suggested rules that were activated",
      scope: "policies:read",
      responses: { 200: { description: "The rules, by name of their policy.", schema: RuleList } },
      async handle({ credential }) {
        const rules = [...(await host.state(suggestedRuleState)).values()].filter((rule) =>
          isVisible(credential, rule),
        );
        rules.sort((a, b) => (a.policy < b.policy ? -1 : 1));
        return { status: 200, json: { suggested_rules: await Promise.all(rules.map((rule) => render(host, rule))) } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/suggested-rules/:policy/flag",
      tag,
      summary: "Flag a use of a suggested rule",
      description:
        "Records that an action should not have been allowed, and reverts the rule: its actions require approval again, on every process, before the response is sent.",
      scope: "approvals:decide",
      params: Params,
      body: FlagBody,
      bodyLimit: BODY_BYTES,
      responses: { 200: response },
      errors: [ERRORS.notFound, ERRORS.reverted, "ACTION_NOT_FOUND", "RECORD_ALTERED"],
      async handle({ params: { policy }, body: { action_id, reason }, credential }) {
        const rule = await host.ledger.transact(async (tx) => {
          const caller = await confirmCredential(tx, credential, "approvals:decide");
          const before = findRule(tx.state(suggestedRuleState), policy, caller);
          const row = await visibleAction(tx, action_id, caller);
          const { first, newest } = await verifyAgainstLedger(host, tx, row);
          if (!suggestedPoliciesOf([first.facts, newest.facts]).includes(policy))
            throw new Refusal("VALIDATION_FAILED", `the rule of "${policy}" did not allow the action ${action_id}`, {
              errors: [{ pointer: "/action_id", detail: "an action that the rule allowed" }],
            });
          if (before.reverted !== null)
            throw new Refusal(ERRORS.reverted, `the rule of "${policy}" is already reverted`);
          return recordChange(tx, before, caller, {
            change: "reverted",
            cause: "flag",
            related_action: action_id,
            comment: reason,
          });
        });
        return { status: 200, json: await render(host, rule) };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/suggested-rules/:policy/restore",
      tag,
      summary: "Restore a suggested rule that was reverted",
      description:
        "Puts the rule in force again and counts its results anew. Only a person can do this, with a key that is bound to no agent, or in a session. Activating policies leaves a reversal in effect.",
      scope: "policies:activate",
      params: Params,
      body: RestoreBody,
      bodyLimit: BODY_BYTES,
      responses: { 200: response },
      errors: [ERRORS.notFound, ERRORS.notReverted, "AGENT_MISMATCH"],
      async handle({ params: { policy }, body: { reason }, credential }) {
        const rule = await host.ledger.transact(async (tx) => {
          const caller = await confirmCredential(tx, credential, "policies:activate");
          if (caller.key.agent_id !== null)
            throw new Refusal(
              "AGENT_MISMATCH",
              `the key "${caller.key.name}" is bound to the agent "${caller.key.agent_id}"; restore the rule in a session, or with a key that is bound to no agent`,
            );
          const before = findRule(tx.state(suggestedRuleState), policy, caller);
          if (before.reverted === null)
            throw new Refusal(ERRORS.notReverted, `the rule of "${policy}" is not reverted`);
          await tx.putMeta(resultsMetaKey(policy), "");
          return recordChange(tx, before, caller, { change: "restored", comment: reason });
        });
        return { status: 200, json: await render(host, rule) };
      },
    }),
  ];
}

function recordChange(
  tx: LedgerTransaction,
  rule: SuggestedRule,
  { key, principal }: Credential,
  change: Omit<Parameters<typeof buildSuggestedRuleEntry>[1], "by">,
): SuggestedRule {
  tx.record(buildSuggestedRuleEntry(rule, { ...change, by: toActor(key, principal) }, tx.now));
  return tx.state(suggestedRuleState).get(rule.policy) as SuggestedRule;
}

/** Returns true if the credential can see actions that the rule applies to. */
function isVisible({ visibility }: Pick<Credential, "visibility">, { agents, tool }: SuggestedRule): boolean {
  return agents.some((agent_id) => canSee(visibility, { agent_id, tool, submitted_by: null }));
}

function findRule(rules: SuggestedRules, policy: string, credential: Credential): SuggestedRule {
  const rule = rules.get(policy);
  if (rule === undefined || !isVisible(credential, rule))
    throw new Refusal(ERRORS.notFound, `no suggested rule of a policy "${policy}" that this key may see was activated`);
  return rule;
}

async function render(host: CoreHost, rule: SuggestedRule): Promise<RuleRecord> {
  const { policy, in_place_of, tool, operation, agents, max_failed, reverted } = rule;
  return {
    policy,
    status: reverted !== null ? "reverted" : isRuleInForce(rule) ? "active" : "inactive",
    in_place_of,
    tool,
    operation,
    agents,
    max_failed,
    results: (await host.storage.meta(resultsMetaKey(policy))) ?? "",
    reverted:
      reverted === null
        ? null
        : {
            cause: reverted.cause,
            at: toRfc3339(reverted.at),
            by: reverted.by?.principal ?? null,
            action_id: reverted.related_action,
            stop_id: reverted.related_stop,
            comment: reverted.comment,
          },
  };
}
