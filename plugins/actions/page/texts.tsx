/** Texts of plans, suggested rules and break-glass approvals on pages of other features. */
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
    suggested_rule: {
      summarize(entry) {
        const { rule, change } = entry as unknown as EntryOf<"suggested_rule">;
        return <MarkedValue value={`suggested rule of ${rule.policy} ${change}`} />;
      },
      describe: (entry) => <MarkedValue value={(entry as unknown as EntryOf<"suggested_rule">).rule.policy} />,
    },
    break_glass: {
      summarize(entry) {
        const { use, change, agent_id } = entry as unknown as EntryOf<"break_glass">;
        return <MarkedValue value={`emergency approval ${change}: ${use.tool} ${use.operation} by ${agent_id}`} />;
      },
      describe(entry) {
        const { use } = entry as unknown as EntryOf<"break_glass">;
        return <MarkedValue value={`for ${use.tool} ${use.operation}`} />;
      },
    },
  },
  scopes: { "approvals:break_glass": "approve in an emergency without other approvers (in a session)" },
};
