/** A minimal client of Telegram's Bot API: sends JSON and reads `{ok, result, description}`. */
import { NotifierError, parseTargetUrl, post, retryAfterMs } from "../../src/plugin.ts";

const TIMEOUT_MS = 10_000;
/** Hosts to which plain HTTP is allowed, because the connection does not leave the machine. */
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** The bot or the chat must change before a retry can succeed. */
const PERMANENT = [400, 401, 403, 404];

/** An error that Telegram returned. Does not contain the address, which contains the token. */
export class TelegramError extends NotifierError {
  readonly status: number;
  readonly description: string;
  constructor(method: string, status: number, description: string, retryAfterMs: number | null) {
    super(`Telegram responded to ${method} with ${status}${description === "" ? "" : `: ${description}`}`, {
      permanent: PERMANENT.includes(status),
      retryAfterMs,
    });
    this.name = "TelegramError";
    this.status = status;
    this.description = description;
  }
}

/** Calls a method of the Bot API. Resolves to its result. */
export type TelegramCall = (method: string, body: object, signal: AbortSignal) => Promise<unknown>;

/** Returns the function that calls Telegram. Throws Error for invalid options that the schema cannot express. */
export function createTelegramCall({
  token,
  api_url: base = "https://api.telegram.org",
}: {
  token: string;
  api_url?: string;
}): TelegramCall {
  if (!/^\d{5,15}:[\w-]{30,60}$/.test(token))
    throw new Error('the option "token" must be the token of a bot, such as 123456:ABC…');
  const isLocal = URL.canParse(base) && LOOPBACK.includes(new URL(base).hostname);
  const apiUrl = parseTargetUrl('the option "api_url"', base, isLocal).href.replace(/\/+$/, "");
  return async (method, body, signal) => {
    const target = { url: new URL(`${apiUrl}/bot${token}/${method}`), allowPrivate: isLocal, timeoutMs: TIMEOUT_MS };
    const headers = { "content-type": "application/json", "user-agent": "assent" };
    const response = await post(target, headers, JSON.stringify(body), signal);
    const answer = readAnswer(response.body);
    if (response.status === 200 && answer?.["ok"] === true) return answer["result"] ?? {};
    if (answer === null && response.status < 300)
      throw new NotifierError(`the response to ${method} is not from Telegram: it is not JSON with "ok"`);
    const { description, parameters } = answer ?? {};
    const seconds = (parameters as { retry_after?: unknown } | undefined)?.retry_after;
    throw new TelegramError(
      method,
      response.status,
      typeof description === "string" ? description.slice(0, 200) : "",
      typeof seconds === "number" ? seconds * 1000 : retryAfterMs(response.retryAfter),
    );
  };
}

function readAnswer(text: string | null): Record<string, unknown> | null {
  try {
    const value = JSON.parse(text ?? "") as unknown;
    return typeof value === "object" && value !== null && "ok" in value ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
