/** The ledger entry of a suggested rule. */
import { ActorSchema, closed, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineRecord, type RecordOf, Type } from "../../src/plugin.ts";

export const literalUnion = <const Values extends readonly string[]>(description: string, ...values: Values) =>
  Type.Unsafe<Values[number]>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      { description },
    ),
  );

/**
 * A suggested rule changed: its policy was activated or deactivated, or the rule was reverted or restored. The rule
 * allows actions only from its activation until it is reverted or deactivated.
 */
export const SUGGESTED_RULE_ENTRY = defineRecord("suggested_rule", {
  at: timeSchema("Time of the entry."),
  change: literalUnion("The change.", "activated", "deactivated", "reverted", "restored"),
  rule: Type.Object(
    {
      policy: textSchema("Name of the rule's policy, which identifies the rule."),
      in_place_of: Type.Object(
        { policy: Type.String(), rule: Type.String() },
        { description: "The rule that requires approval.", ...closed },
      ),
      tool: Type.String(),
      operation: Type.String(),
      agents: Type.Array(Type.String()),
      max_failed: Type.Number({ description: "Maximum share of failed results." }),
    },
    { description: "The rule as it was when it was activated.", ...closed },
  ),
  cause: orNull(literalUnion("Why the rule was reverted; null otherwise.", "flag", "stop", "failure")),
  related_action: orNull(textSchema("The action that was flagged or that failed.")),
  related_stop: orNull(textSchema("The stop that reverted the rule.")),
  comment: orNull(textSchema("Comment of the person who flagged a use or restored the rule.")),
  by: orNull(ActorSchema),
});
export type SuggestedRuleEntry = RecordOf<typeof SUGGESTED_RULE_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    suggested_rule: SuggestedRuleEntry;
  }
}
