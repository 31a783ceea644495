/** The notice to the person whose agent is throttled. */
import { formatTime, type NoticeKind, parseRfc3339, renderText } from "../../src/plugin.ts";
import type { ThrottleEntry } from "./entry.ts";
import type { ThrottleOptions } from "./options.ts";

const MAX_NAME = 80;

export const throttleNotice: NoticeKind<typeof ThrottleOptions> = {
  name: "agent_throttled",
  entry: "throttle",
  person: (entry) => (entry as ThrottleEntry).submitted_by.owner,
  obsoleteReason: (entry, now) =>
    (parseRfc3339((entry as ThrottleEntry).until) ?? 0) <= now ? "the throttling is over" : null,
  render(entry) {
    const { agent_id, requests, usual, until, related_action } = entry as ThrottleEntry;
    const agent = renderText(agent_id, MAX_NAME);
    const rate = Math.round(usual.requests / usual.hours);
    return {
      title: `Agent throttled: ${agent}`,
      opening: `Your agent made ${requests} requests for approval in this hour. It usually makes ${rate}. More requests are refused until ${formatTime(until)}.`,
      facts: [
        ["Agent", agent],
        ["Last request", related_action],
      ],
      topic: `throttle:${related_action}`,
      page: `#/actions/${related_action}`,
      data: { throttle: { requests, usual, until }, agent_id, action_id: related_action },
    };
  },
};
