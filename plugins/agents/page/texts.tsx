/** Texts of agents on pages of other features. */
import { type EntryOf, encodeSegment, MarkedValue, type PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    agent: {
      summarize(entry) {
        const { agent, change } = entry as unknown as EntryOf<"agent">;
        return <MarkedValue value={`${idOf(agent)} ${change}`} />;
      },
      describe(entry) {
        const id = idOf((entry as unknown as EntryOf<"agent">).agent);
        return (
          <a href={`#/agents/${encodeSegment(id)}`}>
            <MarkedValue value={id} />
          </a>
        );
      },
    },
  },
  scopes: {
    "agents:read": "see agents",
    "agents:write": "register, change and suspend agents",
  },
};

const idOf = (agent: EntryOf<"agent">["agent"]): string => agent["id"] as string;
