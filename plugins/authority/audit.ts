/** Checks that each proposal is made once, dismissed at most once, and made for the agent of its key. */
import { type FeatureAuditor, PersistentMap } from "../../src/plugin.ts";
import { applyProposal, type Proposal } from "./proposals.ts";

export function proposalAuditor(): FeatureAuditor {
  let proposals: PersistentMap<string, Proposal> = PersistentMap.of();
  return {
    check(entry) {
      if (entry.type !== "rule_proposal") return;
      proposals = applyProposal(proposals, entry);
      const { agent_id, by, change } = entry;
      if (change === "proposed" && by.agent_id !== null && by.agent_id !== agent_id)
        throw new RangeError(`a key of the agent ${by.agent_id} proposed a rule for ${agent_id}`);
    },
  };
}
