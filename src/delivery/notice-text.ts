/**
 * Renders notices as plain text. Text from other people or systems cannot hide or reorder the surrounding text, and
 * cannot add lines. The caller must escape markup.
 */
import type { CoverageMessage, Message, NoticeMessage, StopMessage } from "../contract/notifier.ts";
import { formatPrincipal, renderText, formatTime } from "./approval-message-text.ts";

const MAX = 500;
const MAX_NAME = 80;

/** The rendered parts of a notice. */
export interface NoticeText {
  /** The subject, in one line. */
  title: string;
  /** Two sentences: what happened, and what it means. */
  opening: string;
  /** Names and values, the most important first. */
  facts: [name: string, value: string][];
}

/**
 * Returns true if the message is about the service instead of an action.
 * @example
 * if (isNotice(message)) renderNotice(message);
 */
export function isNotice(message: Message): message is NoticeMessage {
  return message.kind === "stop" || message.kind === "coverage_gap";
}

/**
 * Renders a message about a stop or about a gap in coverage.
 * @example
 * if (isNotice(message)) renderNotice(message).title; // "Stopped: tool stripe"
 */
export function renderNotice(message: NoticeMessage): NoticeText {
  return message.kind === "stop" ? renderStop(message) : renderGap(message);
}

function renderStop({ stop, names }: StopMessage): NoticeText {
  const words = { placed: "Stopped", lift_asked: "Someone wants to lift a stop", lifted: "Stop lifted" }[stop.change];
  const facts: [string, string | null][] = [
    ["Covers", formatStopScope(stop)],
    ["Why", renderText(stop.reason, MAX)],
    [stop.change === "placed" ? "Placed by" : "Asked by", formatPrincipal(stop.by, names)],
    ["Why lift it", stop.comment === null ? null : renderText(stop.comment, MAX)],
    ["Until", stop.until === null ? null : formatTime(stop.until)],
    ["Stop", stop.id],
  ];
  return {
    title: `${words}: ${formatStopScope(stop)}`,
    opening: describeStop(stop),
    facts: facts.flatMap(([name, value]): [string, string][] => (value === null ? [] : [[name, value]])),
  };
}

function describeStop({ change, until, approvals, needed }: StopMessage["stop"]): string {
  const end = until === null ? "until someone lifts it" : `until ${formatTime(until)}, or until it is lifted`;
  if (change === "placed") return `It is in effect ${end}. Nothing that it covers is approved or started until then.`;
  if (change === "lifted")
    return "It is no longer in effect. Actions that are waiting and have not expired can continue.";
  return `${approvals} of ${needed} people have requested that. It is in effect ${end}.`;
}

function formatStopScope({ agent, tool, policy }: StopMessage["stop"]): string {
  const parts = Object.entries({ agent, tool, policy }).flatMap(([name, value]) =>
    value === null ? [] : [`${name} ${renderText(value, MAX_NAME)}`],
  );
  return parts.length === 0 ? "everything" : parts.join(", ");
}

function renderGap({ coverage, names }: CoverageMessage): NoticeText {
  const { source, from, to, unmatched, missing, first_unmatched, first_missing, by, seq } = coverage;
  const effects = first_unmatched.map(({ at, event, actor }, i): [string, string] => [
    `Effect ${i + 1}`,
    `${renderText(event, MAX_NAME)} by ${renderText(actor, MAX_NAME)} at ${formatTime(at)}`,
  ]);
  return {
    title: `Gap in coverage: ${renderText(source, MAX_NAME)}, ${unmatched} unmatched and ${missing} missing`,
    opening: `The log of this source has ${unmatched} effects that no action explains, and lacks the effects of ${missing} actions that reported success. Someone may have acted without a decision, or a tool may have reported what it did not do.`,
    facts: [
      ["Window", `${formatTime(from)} to ${formatTime(to)}`],
      ...effects,
      ...first_missing.map((id, i): [string, string] => [`Action without effect ${i + 1}`, renderText(id, MAX_NAME)]),
      ["Compared by", formatPrincipal(by, names)],
      ["Ledger entry", String(seq)],
    ],
  };
}
