/**
 * A notifier that opens an incident in PagerDuty for each request, with a link to the approval page, and resolves it when
 * the request ends. PagerDuty does not prove who acknowledged an incident, so no one votes there.
 */
import {
  createPlaceNotifier,
  definePlugin,
  messageSheet,
  type MessageSheet,
  type Notifier,
  type PersonalMessage,
  renderFitting,
  type ResolveName,
  type Static,
  Type,
} from "../../src/plugin.ts";

const EVENTS_URL = "https://events.pagerduty.com/v2/enqueue";
/** PagerDuty's limit for a summary. Characters. */
const MAX_SUMMARY = 1024;
/** Maximum size of an event. Below PagerDuty's limit of 512 KB. */
const MAX_BYTES = 400_000;

const Destination = Type.Object(
  {
    routing_key: Type.String({
      pattern: "^[A-Za-z0-9]{32}$",
      description: "Integration key of a service or of an event orchestration (Events API v2).",
    }),
    url: Type.Optional(
      Type.String({ minLength: 1, maxLength: 2000, description: `Address of the Events API. Default: ${EVENTS_URL}.` }),
    ),
    allow_private: Type.Optional(Type.Boolean({ description: "Accepts a private address, including over HTTP." })),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "notify-pagerduty",
  needs: ["deliveries"],
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
  return createPlaceNotifier({
    name: "notify-pagerduty",
    place: "an incident of PagerDuty",
    destinations: Object.fromEntries(
      Object.entries(destinations).map(([name, options]) => [name, { url: EVENTS_URL, ...options }]),
    ),
    resolve,
    render: (message, { routing_key }) =>
      message.kind === "approval_closed"
        ? { routing_key, event_action: "resolve", dedup_key: dedupKey(message) }
        : renderFitting(
            messageSheet(message),
            (sheet) => triggerEvent(routing_key, message, sheet),
            (event) => Buffer.byteLength(JSON.stringify(event)) <= MAX_BYTES,
          ),
  });
}

function triggerEvent(routing_key: string, message: PersonalMessage, sheet: MessageSheet): object {
  const { title, opening, link, others, facts, sections } = sheet;
  const links = [
    ...(link === null ? [] : [{ href: link.url, text: link.label }]),
    ...others.map(({ text, link: href }) => ({ href, text })),
  ];
  return {
    routing_key,
    event_action: "trigger",
    dedup_key: dedupKey(message),
    client: "Assent",
    ...(link === null ? {} : { client_url: link.url }),
    payload: {
      summary: title.slice(0, MAX_SUMMARY),
      source: "assent",
      severity: severityOf(message),
      timestamp: message.at,
      custom_details: {
        about: opening,
        ...Object.fromEntries(facts),
        ...Object.fromEntries(sections.map(([name, lines]) => [name, lines.join("\n")])),
      },
    },
    links,
  };
}

/** Escalations and reminders of a request belong to its incident. Every other message is an incident of its own. */
function dedupKey(message: PersonalMessage): string {
  const isAboutRequest = message.kind.startsWith("approval_") && "action" in message;
  return isAboutRequest ? `assent-${message.action.id}` : `assent-${message.id}`;
}

function severityOf(message: PersonalMessage): "critical" | "error" | "warning" {
  if (!("action" in message)) return "error";
  const { risk_level: risk } = message.action;
  if (risk === "critical" || message.kind === "break_glass") return "critical";
  return risk === "high" ? "error" : "warning";
}
