/** The ledger entry of a proposed rule. */
import { ActorSchema, closed, countSchema, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineRecord, type RecordOf, Type } from "../../src/plugin.ts";

/** An agent proposed a rule, or a person dismissed the proposal. A proposal changes no policy. */
export const PROPOSAL_ENTRY = defineRecord("rule_proposal", {
  at: timeSchema("Time of the entry."),
  change: Type.Union([Type.Literal("proposed"), Type.Literal("dismissed")], { description: "The change." }),
  agent_id: textSchema("The agent that the rule would be for."),
  proposal: Type.Object(
    {
      id: Type.String(),
      tool: textSchema("The tool."),
      operation: textSchema("The operation of the tool."),
      most: orNull(
        Type.Object(
          { path: textSchema("Such as `params.amount`."), value: Type.Number({ description: "Its highest value." }) },
          { description: "The bound of one parameter; null for any parameters.", ...closed },
        ),
      ),
      reason: textSchema("Why the agent wants it, in its own words."),
    },
    { description: "The proposal as it was made.", ...closed },
  ),
  evidence: Type.Object(
    {
      compared: countSchema("Number of the agent's newest actions that were counted."),
      allowed: countSchema(
        "Those with this tool and operation, and at most the proposed value, that policies allowed.",
      ),
      approved: countSchema("Those that people approved."),
      denied: countSchema("Those that policies or people denied."),
      failed: countSchema("Those that reported a failure."),
    },
    { description: "Earlier actions of the agent, counted when the proposal was made.", ...closed },
  ),
  comment: orNull(textSchema("Comment of the person who dismissed it.")),
  by: ActorSchema,
});
export type ProposalEntry = RecordOf<typeof PROPOSAL_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    rule_proposal: ProposalEntry;
  }
}
