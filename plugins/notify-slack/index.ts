/**
 * A notifier that posts approval requests to Slack, with a button to the approval page. Updates the message when the
 * request is settled.
 */
import {
  type ApprovalMessage,
  type ClosedMessage,
  definePlugin,
  type DeliveryResult,
  type Facade,
  type Message,
  type Notifier,
  NotifierError,
  Type,
} from "../../src/plugin.ts";
import { createInteractions } from "./interactions.ts";
import { createSlackCall, type SlackCall, SlackError } from "./slack-api.ts";
import { renderBlocks, renderNoticeBlocks, renderReminder, type RenderedSlackMessage } from "./blocks.ts";

/** Errors for an earlier message that was deleted or cannot be changed. The notifier then posts a new message. */
const LOST = [
  "message_not_found",
  "thread_not_found",
  "cannot_reply_to_message",
  "cant_update_message",
  "edit_window_closed",
  "channel_not_found",
];
/** Errors for blocks that are too long. */
const REFUSED = ["invalid_blocks", "invalid_blocks_format", "msg_too_long", "msg_blocks_too_long"];
/** Hosts to which plain HTTP is allowed, because the connection does not leave the machine. */
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

interface SlackOptions {
  token: string;
  /** Signing secret of the app. Lets people vote in Slack. */
  signing_secret?: string;
  api_url?: string;
}

export default definePlugin({
  name: "notify-slack",
  needs: ["actions", "deliveries"],
  options: Type.Object(
    {
      token: Type.Optional(Type.String()),
      signing_secret: Type.Optional(Type.String({ minLength: 16, maxLength: 200 })),
      api_url: Type.Optional(Type.String()),
    },
    { additionalProperties: false },
  ),
  setup(_host, { token, ...rest }) {
    if (token !== undefined) return contributionsOf({ token, ...rest });
    if (Object.keys(rest).length > 0) throw new Error('the option "token" is missing');
    return {};
  },
});

function contributionsOf(options: SlackOptions): { notifiers: Notifier[]; facades: Facade[] } {
  const { signing_secret: secret } = options;
  const facades = secret === undefined ? [] : [createInteractions(secret, connect(options))];
  return { notifiers: [createNotifier(options)], facades };
}

/** Returns the function that calls Slack. Throws Error for invalid options that the schema cannot express. */
function connect({ token, api_url = "https://slack.com/api" }: SlackOptions): SlackCall {
  if (!/^xoxb-[\x21-\x7e]+$/.test(token))
    throw new Error('the option "token" must be a bot token, which begins with xoxb-');
  const url = URL.canParse(api_url) ? new URL(api_url) : null;
  const safe =
    url !== null && (url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.includes(url.hostname)));
  if (!safe) throw new Error('the option "api_url" must begin with https://');
  return createSlackCall(api_url.replace(/\/+$/, ""), token);
}

/** Creates the notifier. Throws Error for invalid options that the schema cannot express. */
export function createNotifier(options: SlackOptions): Notifier {
  const call = connect(options);
  const votes = options.signing_secret !== undefined;

  async function post(
    channel: string,
    rendered: RenderedSlackMessage,
    signal: AbortSignal,
    more: object = {},
  ): Promise<DeliveryResult> {
    const answer = await call(
      "chat.postMessage",
      { channel, ...rendered, ...INERT, ...more, unfurl_links: false, unfurl_media: false },
      signal,
    );
    return typeof answer["channel"] === "string" && typeof answer["ts"] === "string"
      ? { reference: `${answer["channel"]}:${answer["ts"]}` }
      : {};
  }

  async function deliver(message: Message, signal: AbortSignal): Promise<DeliveryResult> {
    if (message.kind === "event") throw new NotifierError("notify-slack has no feeds", { permanent: true });
    if (message.kind === "notice") return post(message.to, renderNoticeBlocks(message), signal);
    const before = readReference(message.reference);
    return withoutRefusal(message, votes, async (rendered) => {
      if (before === null) return post(message.to, rendered, signal);
      try {
        if (message.kind === "approval_reminder")
          return await post(before.channel, renderReminder(message, votes), signal, { thread_ts: before.ts });
        await call("chat.update", { ...before, ...rendered, ...INERT }, signal);
        return {};
      } catch (error) {
        if (!(error instanceof SlackError) || !LOST.includes(error.code)) throw error;
        return post(message.to, rendered, signal);
      }
    });
  }

  const verify = async (signal: AbortSignal): Promise<void> => void (await call("auth.test", {}, signal));
  return { name: "notify-slack", check: checkRecipient, verify, deliver };
}

/** Disables markup and mentions in `text`. Blocks have their own settings for this. */
const INERT = { parse: "none", link_names: false, mrkdwn: false };

/**
 * Sends brief blocks if Slack rejects the full blocks, so that an agent cannot suppress a notification with a long
 * request.
 */
async function withoutRefusal(
  message: ApprovalMessage | ClosedMessage,
  votes: boolean,
  send: (rendered: RenderedSlackMessage) => Promise<DeliveryResult>,
): Promise<DeliveryResult> {
  try {
    return await send(renderBlocks(message, { votes }));
  } catch (error) {
    if (!(error instanceof SlackError) || !REFUSED.includes(error.code)) throw error;
    return send(renderBlocks(message, { brief: true, votes }));
  }
}

function checkRecipient(to: string, person: string | null): string | null {
  if (!/^[CDGUW][A-Z0-9]{5,30}$/.test(to))
    return `"${to}" is not a Slack id; write the id of a user (U0123456789) or of a channel (C0123456789), which Slack shows in their details`;
  if (person !== null && /^[CG]/.test(to))
    return `${to} is a channel that several people see, and the link of ${person} would vote for anyone who clicks it; write the id of the user (U0123456789), or name the channel under places`;
  return null;
}

function readReference(reference: string | null): { channel: string; ts: string } | null {
  const [, channel, ts] = /^([A-Z0-9]+):(\d+\.\d+)$/.exec(reference ?? "") ?? [];
  return channel === undefined || ts === undefined ? null : { channel, ts };
}
