/** Texts of plans on pages of other features. */
import { type EntryOf, formatCounted, MarkedValue, type PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    plan: {
      summarize(entry) {
        const { plan, agent_id } = entry as unknown as EntryOf<"plan">;
        return <MarkedValue value={`plan of ${formatCounted(plan.actions.length, "action")} by ${agent_id}`} />;
      },
      describe: (entry) => (
        <>
          of <MarkedValue value={(entry as unknown as EntryOf<"plan">).agent_id} />
        </>
      ),
    },
  },
};
