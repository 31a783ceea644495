/**
 * The endpoint that Telegram calls when a person presses a button. Telegram proves itself with the secret token of the
 * webhook, and states who pressed the button. Only the user to whom the message was sent can vote with it.
 */
import { equalSecrets, type Facade, type FacadeCall, type Reply } from "../../src/plugin.ts";
import { fitsTelegram, keyboardOf, renderHtml } from "./html.ts";
import type { TelegramCall } from "./telegram-api.ts";
import { answerButton } from "../actions/api.ts";

const UPDATES_PATH = "/telegram/updates";
const MAX_BODY = 262_144;
const CALL_TIMEOUT_MS = 8_000;
/** Telegram's limit for a notification. Characters. */
const MAX_NOTICE = 200;

/** The members of an update that this module reads. */
interface CallbackQuery {
  id?: unknown;
  data?: unknown;
  from?: { id?: unknown };
  message?: {
    message_id?: unknown;
    chat?: { id?: unknown };
    reply_markup?: { inline_keyboard?: unknown };
  };
}

/**
 * @param secret the secret token of the webhook
 * @param token the token of the bot, with which buttons are sealed
 */
export function createUpdates(secret: string, token: string, telegram: TelegramCall): Facade {
  return {
    path: UPDATES_PATH,
    title: "Telegram updates",
    methods: ["POST"],
    verifiesCallers: true,
    bodyLimit: MAX_BODY,
    async serve(call) {
      if (!equalSecrets(call.request.headers.get("x-telegram-bot-api-secret-token") ?? "", secret))
        return { status: 401, text: "the request does not have the secret token of this service's webhook" };
      const query = readQuery(call.body);
      if (query === undefined) return { status: 400, text: "the body is not an update" };
      if (query !== null) await answer(call, query, token, telegram);
      return OK;
    },
    fault: ({ status, detail }) => ({ status, text: detail }),
  };
}

const OK: Reply = { status: 200, text: "" };

async function answer(call: FacadeCall, query: CallbackQuery, token: string, telegram: TelegramCall): Promise<void> {
  const { id, data, from, message } = query;
  const [chat, messageId] = [message?.chat?.id, message?.message_id];
  if (typeof id !== "string" || typeof data !== "string" || typeof from?.id !== "number") return;
  const sent = { to: String(from.id), link: linkOf(message?.reply_markup?.inline_keyboard) };
  const result = await answerButton(call, token, data, sent);
  const messageIds = { chat_id: chat, message_id: messageId };
  const signal = AbortSignal.timeout(CALL_TIMEOUT_MS);
  // Do not fail the update if Telegram rejects the display of its answer, for example because the person pressed the
  // button too long ago. Telegram would repeat the update, although the vote is already recorded.
  const display = async (method: string, body: object): Promise<void> => {
    await telegram(method, body, signal).catch((error: unknown) =>
      call.log.warn("Telegram did not display the answer to a pressed button", { error: String(error) }),
    );
  };
  const notify = (text: string): Promise<void> =>
    display("answerCallbackQuery", { callback_query_id: id, text: text.slice(0, MAX_NOTICE), show_alert: true });
  if (result.kind === "notice") {
    await notify(result.text);
    return;
  }
  if (result.kind === "voted") {
    await notify(result.text);
    const page = [[{ text: "Open the approval page", url: sent.link }]];
    await display("editMessageReplyMarkup", { ...messageIds, reply_markup: { inline_keyboard: page } });
    return;
  }
  // A vote covers the whole request, so the person must be able to see it.
  if (!fitsTelegram(result.sheet)) {
    await notify("The request is too long for Telegram. Vote on the approval page.");
    return;
  }
  const button = { text: result.approve ? "Approve" : "Deny", callback_data: result.value };
  const reply_markup = keyboardOf(result.sheet, [button]);
  await display("editMessageText", { ...messageIds, ...renderHtml(result.sheet), reply_markup });
  await display("answerCallbackQuery", { callback_query_id: id });
}

/** Returns the personal link among the buttons of a message, which Telegram returns unchanged; "" if there is none. */
function linkOf(keyboard: unknown): string {
  const rows = Array.isArray(keyboard) ? (keyboard as unknown[]).flat() : [];
  const urls = rows.map((button) => (button as { url?: unknown } | null)?.url);
  return urls.find((url): url is string => typeof url === "string") ?? "";
}

/** Returns the pressed button; null for an update about something else, and undefined if it is not an update. */
function readQuery(body: Uint8Array): CallbackQuery | null | undefined {
  try {
    const update = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as unknown;
    if (typeof update !== "object" || update === null) return undefined;
    return (update as { callback_query?: CallbackQuery }).callback_query ?? null;
  } catch {
    return undefined;
  }
}
