/**
 * Creates notifiers that post each message to one configured address that several people read, such as a chat channel.
 * The readers cannot be distinguished, so a message links to the approval page and contains no personal link.
 */
import { type Notifier, NotifierError } from "../contract/notifier.ts";
import type { PersonalMessage } from "../messages/message-sheet.ts";
import { findSimilarName } from "../domain/similar-name.ts";
import { parseTargetUrl } from "./target.ts";
import { post, type ResolveName, retryAfterMs, type WebhookResponse } from "./send.ts";

const TIMEOUT_MS = 10_000;
/** Response statuses that a retry cannot change: the address is wrong or was removed, or the message is refused. */
const PERMANENT_STATUSES = [400, 401, 403, 404, 410, 413];

export interface PlaceNotifierOptions<Destination> {
  /** Name of the notifier. */
  name: string;
  /** Description of what people read, such as `a channel of Teams`. */
  place: string;
  destinations: Readonly<Record<string, Destination & { url: string; allow_private?: boolean }>>;
  /** Returns the body of the request, as JSON. */
  render(message: PersonalMessage, destination: Destination): object;
  /** Replaces DNS in tests. */
  resolve?: ResolveName | undefined;
}

/**
 * Creates the notifier. Throws Error for an address that cannot be used.
 * @example
 * createPlaceNotifier({ name: "notify-chat", place: "a channel", destinations, render: (message) => ({ text: "…" }) });
 */
export function createPlaceNotifier<Destination>(options: PlaceNotifierOptions<Destination>): Notifier {
  const { name, place, destinations, render, resolve } = options;
  const targets = new Map(
    Object.entries(destinations).map(([to, destination]) => {
      const allowPrivate = destination.allow_private ?? false;
      const url = parseTargetUrl(`destination "${to}"`, destination.url, allowPrivate);
      return [to, { destination, target: { url, allowPrivate, timeoutMs: TIMEOUT_MS } }];
    }),
  );
  return {
    name,
    check(to, person) {
      if (person !== null)
        return `several people read ${place}, and the link of ${person} would vote for anyone who opens it; name "${to}" under places`;
      if (targets.has(to)) return null;
      const suggestion = findSimilarName(to, [...targets.keys()]);
      return `${name} has no destination "${to}"; ${suggestion === null ? `there are ${[...targets.keys()].join(", ")}` : `did you mean "${suggestion}"?`}`;
    },
    async deliver(message, signal) {
      if (message.kind === "event") throw new NotifierError(`${name} has no feeds`, { permanent: true });
      const found = targets.get(message.to);
      if (found === undefined)
        throw new NotifierError(`${name} no longer has a destination "${message.to}"`, { permanent: true });
      const body = JSON.stringify(render(message, found.destination));
      const headers = { "content-type": "application/json", "user-agent": "assent" };
      assertAccepted(found.target.url, await post(found.target, headers, body, signal, resolve));
    },
  };
}

/** Throws NotifierError unless the response is a success. */
function assertAccepted({ host }: URL, { status, retryAfter }: WebhookResponse): void {
  if (status >= 200 && status < 300) return;
  throw new NotifierError(`${host} responded with status ${status}`, {
    permanent: PERMANENT_STATUSES.includes(status),
    retryAfterMs: retryAfterMs(retryAfter),
  });
}
