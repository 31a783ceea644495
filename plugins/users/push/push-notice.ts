/**
 * The text of a notification on a device. A device displays it even while it is locked. The text therefore contains no
 * parameters, preview, reasons or tokens. The console displays them to a signed-in person.
 */
import { utf8 } from "../../../src/core.ts";
import {
  type ApprovalMessage,
  type Message,
  listMessageFacts,
  messageTitle,
  type NoticeMessage,
} from "../../../src/plugin.ts";
import { MAX_PUSH_BYTES } from "./encrypt-message.ts";

/** The payload of a push message, which the console's service worker displays. */
interface PushNotice {
  title: string;
  body: string;
  /** Address in the console that the notification opens, such as `/#/approvals/<id>`. */
  path: string;
  /** Replaces an earlier notification with the same tag, so that a settled request is marked on the device. */
  tag: string;
  /** Whether the notification appears without sound and vibration. */
  silent: boolean;
}

/** Names of the facts about the request that the notification contains. */
const SHOWN_FACTS = ["Agent", "Expires"];
const HEAD_FACTS = ["Agent"];

/**
 * Returns the notification for a message. Names of agents, tools and operations are rendered so that they cannot hide
 * text.
 * @example
 * buildNotice(message).title; // "Approval needed: stripe refund (high risk)"
 */
export function buildNotice(message: Exclude<Message, { kind: "event" }>): PushNotice {
  if (message.kind === "notice") return serviceNotice(message);
  const { action } = message;
  const title = messageTitle(message);
  const facts = listMessageFacts(action).map(([name, value]) => ({ name, text: `${name}: ${value}` }));
  const lines = (names: readonly string[]): string =>
    facts.flatMap(({ name, text }) => (names.includes(name) ? [text] : [])).join("\n");
  if ("others" in message) {
    if (message.others.length > 0) return digestNotice(message, title);
    const page = action.plan === null ? `approvals/${action.id}` : `plans/${action.plan.id}`;
    return { title, body: lines(SHOWN_FACTS), path: `/#/${page}`, tag: tagOf(action.id), silent: false };
  }
  const isOutcome = message.kind === "approval_closed";
  return { title, body: lines(HEAD_FACTS), path: `/#/actions/${action.id}`, tag: tagOf(action.id), silent: isOutcome };
}

/** Returns a notification with only the title, because the message also contains text from people and other systems. */
function serviceNotice(message: NoticeMessage): PushNotice {
  const path = `/${new URL(message.link).hash || "#/"}`;
  return { title: message.notice.title, body: "", path, tag: message.notice.topic, silent: false };
}

const tagOf = (actionId: string): string => `action:${actionId}`;

/** Returns a notification that lists the requests of a digest, as many as fit into one message. */
function digestNotice(message: ApprovalMessage, title: string): PushNotice {
  const titles = message.others.map(({ action }) => messageTitle({ ...message, action, others: [] }));
  const notice = (titleCount: number): PushNotice => {
    const hidden = titles.length - titleCount;
    const body = [...titles.slice(0, titleCount), ...(hidden === 0 ? [] : [`and ${hidden} more`])].join("\n");
    return { title, body, path: "/#/approvals", tag: `digest:${message.id}`, silent: false };
  };
  let titleCount = titles.length;
  while (titleCount > 0 && encodeNotice(notice(titleCount)).length > MAX_PUSH_BYTES) titleCount--;
  return notice(titleCount);
}

/** Returns the payload as bytes. */
export function encodeNotice(notice: PushNotice): Uint8Array {
  return utf8(JSON.stringify(notice));
}
