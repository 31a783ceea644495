/** Texts of stops on pages of other features. */
import { type EntryOf, MarkedValue, type PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    stop: {
      summarize(entry) {
        const { change, stop } = entry as unknown as EntryOf<"stop">;
        return <MarkedValue value={`stop ${change.replaceAll("_", " ")}: ${stop.reason}`} />;
      },
      describe: (entry) => <MarkedValue value={describeStop(entry as unknown as EntryOf<"stop">)} />,
      marks: { placed: "bad", lift_asked: "busy", lifted: "good" },
    },
  },
  scopes: { "stop:write": "stop decisions, and lift stops" },
};

/** Returns the description of a stop, such as "of agent support-* (the invoice run is wrong)". */
function describeStop({ stop }: EntryOf<"stop">): string {
  const parts = (["agent", "tool", "policy"] as const).flatMap((name) =>
    stop[name] === null ? [] : [`${name} ${stop[name]}`],
  );
  return `of ${parts.length === 0 ? "everything" : parts.join(", ")} (${stop.reason})`;
}
