/** Renders stop messages as plain text. The caller escapes markup. */
import type { StopMessage } from "../contract/notifier.ts";
import { formatPrincipal, renderText, formatTime } from "./approval-message-text.ts";

const MAX = 500;

/**
 * Returns the subject of a message about a stop, in one line.
 * @example
 * stopMessageTitle(message); // "Stopped: tool stripe"
 */
export function stopMessageTitle({ stop }: StopMessage): string {
  const words = { placed: "Stopped", lift_asked: "Somebody wants to lift a stop", lifted: "Stop lifted" }[stop.change];
  return `${words}: ${formatStopScope(stop)}`;
}

/**
 * Returns two sentences: what is in effect now, and what that means.
 * @example
 * if (message.kind === "stop") describeStop(message);
 */
export function describeStop({ stop }: StopMessage): string {
  const end =
    stop.until === null ? "until somebody lifts it" : `until ${formatTime(stop.until)}, or until it is lifted`;
  if (stop.change === "placed") return `It holds ${end}. Nothing that it covers is approved or started meanwhile.`;
  if (stop.change === "lifted") return "It does not hold any more. What waited and has not run out may go on.";
  return `${stop.approvals} of ${stop.needed} people have asked for that. It holds ${end}.`;
}

/**
 * Returns the facts about a stop, as names and values, the most important first.
 * @example
 * const text = stopMessageFacts(message).map(([name, value]) => `${name}: ${value}`).join("\n");
 */
export function stopMessageFacts({ stop }: StopMessage): [name: string, value: string][] {
  const facts: [string, string | null][] = [
    ["Covers", formatStopScope(stop)],
    ["Why", renderText(stop.reason, MAX)],
    [stop.change === "placed" ? "Placed by" : "Asked by", formatPrincipal(stop.by)],
    ["Why lift it", stop.comment === null ? null : renderText(stop.comment, MAX)],
    ["Until", stop.until === null ? null : formatTime(stop.until)],
    ["Stop", stop.id],
  ];
  return facts.flatMap(([name, value]): [string, string][] => (value === null ? [] : [[name, value]]));
}

function formatStopScope({ agent, tool, policy }: StopMessage["stop"]): string {
  const parts = Object.entries({ agent, tool, policy }).flatMap(([name, value]) =>
    value === null ? [] : [`${name} ${renderText(value, 80)}`],
  );
  return parts.length === 0 ? "everything" : parts.join(", ");
}
