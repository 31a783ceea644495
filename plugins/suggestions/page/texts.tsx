/** Texts of suggested rules on pages of other features. */
import { type EntryOf, MarkedValue, type PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    suggested_rule: {
      summarize(entry) {
        const { rule, change } = entry as unknown as EntryOf<"suggested_rule">;
        return <MarkedValue value={`suggested rule of ${rule.policy} ${change}`} />;
      },
      describe: (entry) => <MarkedValue value={(entry as unknown as EntryOf<"suggested_rule">).rule.policy} />,
    },
  },
};
