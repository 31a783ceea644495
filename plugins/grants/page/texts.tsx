/** Texts of grants on pages of other features. */
import { type EntryOf, MarkedValue, type PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    grant: {
      summarize(entry) {
        const { grant, change, agent_id } = entry as unknown as EntryOf<"grant">;
        return <MarkedValue value={`grant ${change}: ${grant.tool} ${grant.operation} by ${agent_id}`} />;
      },
      describe(entry) {
        const { grant } = entry as unknown as EntryOf<"grant">;
        return <MarkedValue value={`for ${grant.tool} ${grant.operation}`} />;
      },
    },
  },
};
