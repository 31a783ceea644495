/** A notifier that posts adaptive cards to Microsoft Teams, through a workflow's webhook. */
import {
  createPlaceNotifier,
  definePlugin,
  type Notifier,
  type ResolveName,
  type Static,
  Type,
} from "../../src/plugin.ts";
import { renderCard } from "./card.ts";

const Destination = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 2000, description: "Address of the workflow's webhook. A secret." }),
    allow_private: Type.Optional(Type.Boolean({ description: "Accepts a private address, including over HTTP." })),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "notify-teams",
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
    name: "notify-teams",
    place: "a channel of Teams",
    destinations,
    resolve,
    render: (message) => ({
      type: "message",
      attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", content: renderCard(message) }],
    }),
  });
}
