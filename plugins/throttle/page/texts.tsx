/** The line of a throttled key on pages about entries. */
import { type EntryOf, MarkedValue, type PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: { throttle: { summarize: describeThrottle, describe: describeThrottle } },
};

function describeThrottle(entry: Record<string, unknown>) {
  const { agent_id } = entry as unknown as EntryOf<"throttle">;
  return <MarkedValue value={`${agent_id} is throttled`} />;
}
