/**
 * A notifier that posts messages to the incoming webhook of a chat service such as Mattermost, Rocket.Chat or Google
 * Chat. These services accept `{"text": …}`, but each interprets different markup. So all text is formatted as code,
 * and characters that start markup are replaced.
 */
import {
  createPlaceNotifier,
  definePlugin,
  messageSheet,
  type MessageSheet,
  type Notifier,
  renderFitting,
  type ResolveName,
  sheetLines,
  type Static,
  Type,
} from "../../src/plugin.ts";

/** Google Chat accepts 4,096 characters, and Rocket.Chat accepts 5,000 by default. */
const MAX_TEXT = 4000;

const Destination = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 2000, description: "Address of the incoming webhook. A secret." }),
    allow_private: Type.Optional(Type.Boolean({ description: "Accepts a private address, including over HTTP." })),
    body: Type.Optional(
      Type.Record(Type.String({ minLength: 1, maxLength: 100 }), Type.String({ maxLength: 2000 }), {
        description:
          'Members of the posted JSON. `{text}`, `{title}` and `{link}` are replaced. Default: text: "{text}".',
      }),
    ),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "notify-chat",
  needs: ["deliveries"],
  options: Type.Object(
    { destinations: Type.Optional(Type.Record(Type.String(), Destination)) },
    { additionalProperties: false },
  ),
  setup: (_host, { destinations = {} }) =>
    Object.keys(destinations).length === 0 ? {} : { notifiers: [createNotifier(destinations)] },
});

/**
 * Creates the notifier. Throws Error for options that cannot be used.
 * @param resolve replaces DNS in tests
 */
export function createNotifier(
  destinations: Record<string, Static<typeof Destination>>,
  resolve?: ResolveName,
): Notifier {
  for (const [name, { body }] of Object.entries(destinations))
    if (body !== undefined && !Object.values(body).some((value) => value.includes("{text}")))
      throw new Error(`destination "${name}": no member of "body" contains {text}, so its messages would be empty`);
  return createPlaceNotifier({
    name: "notify-chat",
    place: "a channel",
    destinations,
    resolve,
    render: (message, { body = { text: "{text}" } }) => fillTemplate(body, messageSheet(message)),
  });
}

function fillTemplate(body: Readonly<Record<string, string>>, sheet: MessageSheet): object {
  const values: Record<string, string> = {
    text: renderFitting(sheet, renderText, (text) => text.length <= MAX_TEXT).slice(0, MAX_TEXT),
    title: defuse(sheet.title),
    link: sheet.link?.url ?? "",
  };
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      value.replaceAll(/\{(text|title|link)\}/g, (_, key: string) => values[key] ?? ""),
    ]),
  );
}

function renderText(sheet: MessageSheet): string {
  const { title, link, others } = sheet;
  return [
    `\`${defuse(title)}\``,
    "```",
    ...sheetLines(sheet).map(defuse),
    "```",
    ...(link === null ? [] : [`${link.label}: ${link.url}`, defuse(link.about)]),
    ...others.map(({ text, link: url }) => `\`${defuse(text)}\` ${url}`),
  ].join("\n");
}

/**
 * Replaces characters that end code, or that start a mention or a link even within code, by characters that look alike.
 */
const defuse = (text: string): string =>
  text
    .replaceAll("`", "[U+0060]")
    .replaceAll("@", "\uff20")
    .replaceAll("<", "\uff1c")
    .replaceAll("://", ":\u2044\u2044");
