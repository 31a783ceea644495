/**
 * A notifier that sends messages through a Discord bot, with a button to the approval page. Updates the message when the
 * request is settled. With the public key of the application, people vote with buttons in Discord.
 */
import {
  definePlugin,
  type DeliveryResult,
  type Facade,
  type Message,
  messageSheet,
  type Notifier,
  NotifierError,
  type Static,
  Type,
} from "../../src/plugin.ts";
import { createDiscordCall, type DiscordCall, DiscordError } from "./discord-api.ts";
import { createInteractions } from "./interactions.ts";
import { MAX_URL, renderMessage, voteButton } from "./render.ts";
import { openButtons } from "../actions/api.ts";

const Options = Type.Object(
  {
    token: Type.Optional(Type.String({ description: "Token of the bot. A secret." })),
    public_key: Type.Optional(
      Type.String({
        pattern: "^[0-9a-f]{64}$",
        description:
          "Public key of the application, with which Discord signs interactions. Lets people vote in Discord.",
      }),
    ),
    api_url: Type.Optional(
      Type.String({ description: "Another URL of the API. Default: https://discord.com/api/v10." }),
    ),
  },
  { additionalProperties: false },
);
type DiscordOptions = Static<typeof Options> & { token: string };

export default definePlugin({
  name: "notify-discord",
  needs: ["actions", "deliveries"],
  options: Options,
  setup(_host, { token, ...rest }) {
    if (token !== undefined) return contributionsOf({ token, ...rest });
    if (Object.keys(rest).length > 0) throw new Error('the option "token" is missing');
    return {};
  },
});

function contributionsOf(options: DiscordOptions): { notifiers: Notifier[]; facades: Facade[] } {
  const { token, public_key: key } = options;
  return { notifiers: [createNotifier(options)], facades: key === undefined ? [] : [createInteractions(key, token)] };
}

/** Creates the notifier. Throws Error for invalid options that the schema cannot express. */
export function createNotifier(options: DiscordOptions): Notifier {
  const call = createDiscordCall(options);
  return {
    name: "notify-discord",
    check: (to) =>
      /^\d{17,20}$/.test(to)
        ? null
        : `"${to}" is not the id of a Discord user or channel; turn on the developer mode of Discord and copy the id`,
    verify: async (signal) => void (await call("GET", "/users/@me", null, signal)),
    deliver: (message, signal) => deliver(call, options, message, signal),
  };
}

async function deliver(
  call: DiscordCall,
  { token, public_key: key }: DiscordOptions,
  message: Message,
  signal: AbortSignal,
): Promise<DeliveryResult> {
  if (message.kind === "event") throw new NotifierError("notify-discord has no feeds", { permanent: true });
  const sheet = messageSheet(message);
  const sent = { to: message.to, link: sheet.link?.url ?? "" };
  // The vote needs the link, which Discord returns with the message's buttons.
  const buttons =
    key === undefined || message.kind === "notice" || sent.link.length > MAX_URL
      ? []
      : openButtons(token, sent).map(({ label, approve, value }) => voteButton(label, approve, value));
  const body = renderMessage(sheet, buttons);
  const before = "reference" in message ? readReference(message.reference) : null;
  if (before !== null && message.kind === "approval_closed")
    try {
      await call("PATCH", `/channels/${before.channel}/messages/${before.id}`, body, signal);
      return {};
    } catch (error) {
      // The message or its channel was deleted.
      if (!(error instanceof DiscordError) || error.status !== 404) throw error;
    }
  // A person's address is a user, and the address of a place is a channel. Without this step, the link of a person could
  // be posted to a channel with the same id.
  const channel =
    message.person === null
      ? message.to
      : await call("POST", "/users/@me/channels", { recipient_id: message.to }, signal);
  const reply =
    before === null || before.channel !== channel
      ? {}
      : { message_reference: { message_id: before.id, fail_if_not_exists: false } };
  // The nonce makes Discord return the earlier message for an attempt whose response was lost.
  const nonce = { nonce: message.id.replaceAll("-", "").slice(-25), enforce_nonce: true };
  const id = await call("POST", `/channels/${channel}/messages`, { ...body, ...reply, ...nonce }, signal);
  return { reference: `${channel}:${id}` };
}

function readReference(reference: string | null): { channel: string; id: string } | null {
  const [, channel, id] = /^(\d{17,20}):(\d{17,20})$/.exec(reference ?? "") ?? [];
  return channel === undefined || id === undefined ? null : { channel, id };
}
