/** The line of a proposed rule on pages about entries. */
import { type EntryOf, MarkedValue, type PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    rule_proposal: {
      summarize: describeProposal,
      describe: describeProposal,
      marks: { proposed: "busy", dismissed: "good" },
    },
  },
};

function describeProposal(entry: Record<string, unknown>) {
  const { agent_id, change, proposal } = entry as unknown as EntryOf<"rule_proposal">;
  return <MarkedValue value={`rule ${change}: ${proposal.tool} ${proposal.operation} for ${agent_id}`} />;
}
