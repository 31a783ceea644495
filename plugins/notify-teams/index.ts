/** A notifier that posts adaptive cards to Microsoft Teams, through a workflow's webhook. */
import {
  type WebhookResponse,
  definePlugin,
  type Message,
  type Notifier,
  NotifierError,
  post,
  parseTargetUrl,
  type ResolveName,
  type Static,
  Type,
  retryAfterMs,
} from "../../src/plugin.ts";
import { findSimilarName } from "../../src/core.ts";
import { renderCard } from "./card.ts";

const TIMEOUT_MS = 10_000;
/**
 * Response statuses that a retry cannot change, because the workflow was removed, its address is wrong, or it refuses
 * the card.
 */
const PERMANENT = [400, 401, 403, 404, 410, 413];

const Destination = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 2000, description: "Address of the workflow's webhook. A secret." }),
    allow_private: Type.Optional(Type.Boolean({ description: "Accepts a private address, including over HTTP." })),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "notify-teams",
  options: Type.Object(
    { destinations: Type.Optional(Type.Record(Type.String(), Destination)) },
    { additionalProperties: false },
  ),
  setup: (_host, { destinations = {} }) =>
    Object.keys(destinations).length === 0 ? {} : { notifiers: [createNotifier(destinations)] },
});

/**
 * Creates the notifier. Throws Error for an address that cannot be used.
 * @param resolve replaces DNS in tests
 */
export function createNotifier(
  destinations: Record<string, Static<typeof Destination>>,
  resolve?: ResolveName,
): Notifier {
  const targets = new Map(
    Object.entries(destinations).map(([name, { url, allow_private: allowPrivate = false }]) => [
      name,
      { url: parseTargetUrl(`destination "${name}"`, url, allowPrivate), allowPrivate, timeoutMs: TIMEOUT_MS },
    ]),
  );
  return {
    name: "notify-teams",
    check(to, person) {
      if (person !== null)
        return `several people read a channel of Teams, and the link of ${person} would vote for anyone who opens it; name "${to}" under places`;
      if (targets.has(to)) return null;
      const suggestion = findSimilarName(to, [...targets.keys()]);
      return `notify-teams has no destination "${to}"; ${suggestion === null ? `there are ${[...targets.keys()].join(", ")}` : `did you mean "${suggestion}"?`}`;
    },
    async deliver(message: Message, signal: AbortSignal) {
      if (message.kind === "event") throw new NotifierError("notify-teams has no feeds", { permanent: true });
      const target = targets.get(message.to);
      if (target === undefined)
        throw new NotifierError(`notify-teams no longer has a destination "${message.to}"`, { permanent: true });
      const attachment = { contentType: "application/vnd.microsoft.card.adaptive", content: renderCard(message) };
      const body = JSON.stringify({ type: "message", attachments: [attachment] });
      const headers = { "content-type": "application/json", "user-agent": "assent" };
      judge(target.url, await post(target, headers, body, signal, resolve));
    },
  };
}

/** Throws NotifierError unless the response is a success. */
function judge({ host }: URL, { status, retryAfter }: WebhookResponse): void {
  if (status >= 200 && status < 300) return;
  throw new NotifierError(`${host} responded with status ${status}`, {
    permanent: PERMANENT.includes(status),
    retryAfterMs: retryAfterMs(retryAfter),
  });
}
