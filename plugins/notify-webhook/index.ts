/**
 * A notifier that sends webhooks, signed according to Standard Webhooks 1.0.0. By default, only to public addresses.
 */
import type { Static } from "@sinclair/typebox";
import { findSimilarName } from "../../src/core.ts";
import {
  type WebhookResponse,
  definePlugin,
  type Feed,
  type Message,
  type Notifier,
  NotifierError,
  post,
  readWebhookTarget,
  type ResolveName,
  signatureHeaders,
  Type,
  WEBHOOK_TARGET_OPTIONS,
  type WebhookTarget,
} from "../../src/plugin.ts";
import { buildWebhookBody } from "./webhook-body.ts";

const Destination = Type.Object(
  {
    ...WEBHOOK_TARGET_OPTIONS,
    events: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    agents: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: 100 })),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "notify-webhook",
  needs: ["deliveries"],
  options: Type.Object(
    { destinations: Type.Optional(Type.Record(Type.String(), Destination)) },
    { additionalProperties: false },
  ),
  setup(host, { destinations = {} }) {
    if (Object.keys(destinations).length === 0) return {};
    for (const [name, { events = [] }] of Object.entries(destinations)) assertTypes(name, events, host.entryTypes);
    return { notifiers: [createNotifier(destinations)] };
  },
});

/** Throws for unknown event types. Called after all plugins are loaded, because plugins define event types. */
function assertTypes(name: string, events: readonly string[], types: readonly string[]): void {
  const wrong = events.find((type) => type !== "*" && !types.includes(type));
  if (wrong === undefined) return;
  const suggestion = findSimilarName(wrong, types);
  throw new Error(
    `destination "${name}": no entry of the ledger has the type "${wrong}"; ${suggestion === null ? `there are ${types.join(", ")}, or "*" for all` : `did you mean "${suggestion}"?`}`,
  );
}

/**
 * Creates the notifier. Throws Error for invalid options that the schema cannot express.
 * @param resolve replaces DNS in tests
 */
export function createNotifier(
  destinations: Record<string, Static<typeof Destination>>,
  resolve?: ResolveName,
): Notifier {
  const targets = new Map(
    Object.entries(destinations).map(([name, options]) => [name, readWebhookTarget(`destination "${name}"`, options)]),
  );
  return {
    name: "notify-webhook",
    feeds: Object.entries(destinations).flatMap(([name, { events, agents }]) => feedOf(name, events, agents)),
    check(to) {
      if (targets.has(to)) return null;
      const suggestion = findSimilarName(to, [...targets.keys()]);
      return `notify-webhook has no destination "${to}"; ${suggestion === null ? `there are ${[...targets.keys()].join(", ")}` : `did you mean "${suggestion}"?`}`;
    },
    async deliver(message: Message, signal: AbortSignal) {
      const destination = targets.get(message.to);
      if (destination === undefined)
        throw new NotifierError(`notify-webhook no longer has a destination "${message.to}"`, { permanent: true });
      const body = buildWebhookBody(message);
      const now = Date.now();
      const headers = {
        ...destination.headers,
        "content-type": "application/json",
        "user-agent": "assent",
        ...signatureHeaders(destination.keys, message.id, Math.floor(now / 1000), body),
      };
      judge(destination.target, await post(destination.target, headers, body, signal, resolve), now);
    },
  };
}

function feedOf(to: string, events: readonly string[] | undefined, agents: readonly string[] | undefined): Feed[] {
  if (events === undefined && agents === undefined) return [];
  return [
    {
      to,
      ...(events === undefined || events.includes("*") ? {} : { types: events }),
      ...(agents === undefined ? {} : { agents }),
    },
  ];
}

/**
 * Throws NotifierError unless the response is a success. Only 410 Gone is permanent: the receiver can fix other errors
 * while the message is retried.
 */
function judge({ url }: WebhookTarget["target"], { status, retryAfter }: WebhookResponse, now: number): void {
  if (status >= 200 && status < 300) return;
  const redirect = status >= 300 && status < 400 ? ", and redirects are not followed" : "";
  throw new NotifierError(`${url.host} responded with status ${status}${redirect}`, {
    permanent: status === 410,
    retryAfterMs: readRetryAfter(retryAfter, now),
  });
}

/**
 * Parses Retry-After (RFC 9110, section 10.2.3). Returns milliseconds from `now`, or null if it is absent or invalid.
 */
export function readRetryAfter(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
