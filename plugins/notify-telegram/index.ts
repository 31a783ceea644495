/**
 * A notifier that sends messages through a Telegram bot, with a button to the approval page. Updates the message when the
 * request is settled. With a secret token, people vote with buttons in Telegram.
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
import { createUpdates } from "./updates.ts";
import { createTelegramCall, type TelegramCall, TelegramError } from "./telegram-api.ts";
import { keyboardOf, renderHtml } from "./html.ts";
import { openButtons } from "../actions/api.ts";

const Options = Type.Object(
  {
    token: Type.Optional(Type.String({ description: "Token of the bot. A secret." })),
    secret_token: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9_-]{16,256}$",
        description: "Secret that Telegram sends with each update (setWebhook). Lets people vote in Telegram.",
      }),
    ),
    api_url: Type.Optional(
      Type.String({ description: "Another server of the Bot API. Default: https://api.telegram.org." }),
    ),
  },
  { additionalProperties: false },
);
type TelegramOptions = Static<typeof Options> & { token: string };

export default definePlugin({
  name: "notify-telegram",
  needs: ["actions", "deliveries"],
  options: Options,
  setup(_host, { token, ...rest }) {
    if (token !== undefined) return contributionsOf({ token, ...rest });
    if (Object.keys(rest).length > 0) throw new Error('the option "token" is missing');
    return {};
  },
});

function contributionsOf(options: TelegramOptions): { notifiers: Notifier[]; facades: Facade[] } {
  const { token, secret_token: secret } = options;
  const facades = secret === undefined ? [] : [createUpdates(secret, token, createTelegramCall(options))];
  return { notifiers: [createNotifier(options)], facades };
}

/** Creates the notifier. Throws Error for invalid options that the schema cannot express. */
export function createNotifier(options: TelegramOptions): Notifier {
  const call = createTelegramCall(options);
  return {
    name: "notify-telegram",
    check: checkRecipient,
    verify: async (signal) => void (await call("getMe", {}, signal)),
    deliver: (message, signal) => deliver(call, options, message, signal),
  };
}

async function deliver(
  call: TelegramCall,
  { token, secret_token: secret }: TelegramOptions,
  message: Message,
  signal: AbortSignal,
): Promise<DeliveryResult> {
  if (message.kind === "event") throw new NotifierError("notify-telegram has no feeds", { permanent: true });
  const sheet = messageSheet(message);
  const sent = { to: message.to, link: sheet.link?.url ?? "" };
  const buttons =
    secret === undefined || message.kind === "notice"
      ? []
      : openButtons(token, sent).map(({ label, value }) => ({ text: label, callback_data: value }));
  const rendered = { ...renderHtml(sheet), reply_markup: keyboardOf(sheet, buttons) };
  const before = "reference" in message ? readReference(message.reference) : null;
  if (before !== null && message.kind === "approval_closed")
    try {
      await call("editMessageText", { ...before, ...rendered }, signal);
      return {};
    } catch (error) {
      // The message was deleted, is too old to be edited, or has this text already.
      if (!(error instanceof TelegramError) || error.status !== 400) throw error;
      if (/not modified/.test(error.description)) return {};
    }
  const reply =
    before === null ? {} : { reply_parameters: { message_id: before.message_id, allow_sending_without_reply: true } };
  const { message_id } = (await call("sendMessage", { chat_id: message.to, ...rendered, ...reply }, signal)) as {
    message_id?: unknown;
  };
  return Number.isSafeInteger(message_id) ? { reference: `${message.to}:${String(message_id)}` } : {};
}

function checkRecipient(to: string, person: string | null): string | null {
  if (!/^(-?[1-9]\d{0,15}|@[A-Za-z][A-Za-z0-9_]{4,31})$/.test(to))
    return `"${to}" is not the id of a Telegram chat; write the number of a user or group, or the @name of a channel`;
  if (person !== null && !/^\d/.test(to))
    return `several people read ${to}, and the link of ${person} would vote for anyone who opens it; write the number of the user, or name the chat under places`;
  return null;
}

function readReference(reference: string | null): { chat_id: string; message_id: number } | null {
  const [, chat, id] = /^(-?\d+|@\w+):(\d+)$/.exec(reference ?? "") ?? [];
  return chat === undefined || id === undefined ? null : { chat_id: chat, message_id: Number(id) };
}
