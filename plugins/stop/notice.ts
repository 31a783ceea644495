/** The notice of a stop that was placed or lifted, or whose lift was requested. */
import { formatTime, type NoticeKind, renderText } from "../../src/plugin.ts";
import type { StopEntry } from "./entry.ts";
import type { StopOptions } from "./options.ts";

const MAX = 500;
const MAX_NAME = 80;
const TITLES = { placed: "Stopped", lift_asked: "Someone wants to lift a stop", lifted: "Stop lifted" };

export const stopNotice: NoticeKind<typeof StopOptions> = {
  name: "stop",
  entry: "stop",
  channels: ({ notify }) => notify,
  render(entry, nameOf) {
    const { stop, change, comment, approvals, needed, by } = entry as StopEntry;
    const scope = formatScope(stop);
    const facts: [string, string | null][] = [
      ["Covers", scope],
      ["Why", renderText(stop.reason, MAX)],
      [change === "placed" ? "Placed by" : "Asked by", nameOf(by.principal)],
      ["Why lift it", comment === null ? null : renderText(comment, MAX)],
      ["Until", stop.until === null ? null : formatTime(stop.until)],
      ["Stop", stop.id],
    ];
    return {
      title: `${TITLES[change]}: ${scope}`,
      opening: describe(entry as StopEntry),
      facts: facts.flatMap(([name, value]): [string, string][] => (value === null ? [] : [[name, value]])),
      topic: `stop:${stop.id}`,
      page: "",
      data: { stop: { ...stop, change, comment, approvals, needed, by: by.principal } },
    };
  },
};

function describe({ change, stop: { until }, approvals, needed }: StopEntry): string {
  const end = until === null ? "until someone lifts it" : `until ${formatTime(until)}, or until it is lifted`;
  if (change === "placed") return `It is in effect ${end}. Nothing that it covers is approved or started until then.`;
  if (change === "lifted")
    return "It is no longer in effect. Actions that are waiting and have not expired can continue.";
  return `${approvals} of ${needed} people have requested that. It is in effect ${end}.`;
}

function formatScope({ agent, tool, policy }: StopEntry["stop"]): string {
  const parts = Object.entries({ agent, tool, policy }).flatMap(([name, value]) =>
    value === null ? [] : [`${name} ${renderText(value, MAX_NAME)}`],
  );
  return parts.length === 0 ? "everything" : parts.join(", ");
}
