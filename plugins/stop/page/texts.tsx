/** Texts of stops on pages of other features. */
import { type EntryOf, MarkedValue, type PartTexts } from "../../console/app/kit.ts";
import { StopCover } from "./stop-cover.tsx";

export const texts: PartTexts = {
  entries: {
    stop: {
      summarize(entry) {
        const { change, stop } = entry as unknown as EntryOf<"stop">;
        return <MarkedValue value={`stop ${change.replaceAll("_", " ")}: ${stop.reason}`} />;
      },
      describe(entry) {
        const { stop } = entry as unknown as EntryOf<"stop">;
        return (
          <>
            of <StopCover stop={stop} /> (<MarkedValue value={stop.reason} />)
          </>
        );
      },
      marks: { placed: "bad", lift_asked: "busy", lifted: "good" },
    },
  },
  scopes: { "stop:write": "stop decisions, and lift stops" },
};
