/** A minimal client of Discord's HTTP API: sends JSON and reads the id of the created object. */
import { get, NotifierError, parseTargetUrl, post, retryAfterMs } from "../../src/plugin.ts";

const TIMEOUT_MS = 10_000;
/** Hosts to which plain HTTP is allowed, because the connection does not leave the machine. */
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** The bot, the recipient or the message must change before a retry can succeed. */
const PERMANENT = [400, 401, 403, 404];

/** An error that Discord returned. */
export class DiscordError extends NotifierError {
  readonly status: number;
  constructor(request: string, status: number, reason: string, retryAfterMs: number | null) {
    super(`Discord responded to ${request} with ${status}${reason === "" ? "" : `: ${reason}`}`, {
      permanent: PERMANENT.includes(status),
      retryAfterMs,
    });
    this.name = "DiscordError";
    this.status = status;
  }
}

/** Sends a request to the API. `GET` has no body. Resolves to the id of the object in the response. */
export type DiscordCall = (
  method: "GET" | "POST" | "PATCH",
  path: string,
  body: object | null,
  signal: AbortSignal,
) => Promise<string>;

/** Returns the function that calls Discord. Throws Error for invalid options that the schema cannot express. */
export function createDiscordCall({
  token,
  api_url: base = "https://discord.com/api/v10",
}: {
  token: string;
  api_url?: string;
}): DiscordCall {
  if (!/^[\w-]{20,40}\.[\w-]{4,10}\.[\w-]{20,60}$/.test(token))
    throw new Error('the option "token" must be the token of a bot, in three parts with dots between them');
  const isLocal = URL.canParse(base) && LOOPBACK.includes(new URL(base).hostname);
  const apiUrl = parseTargetUrl('the option "api_url"', base, isLocal).href.replace(/\/+$/, "");
  return async (method, path, body, signal) => {
    const target = {
      url: new URL(`${apiUrl}${path}`),
      allowPrivate: isLocal,
      timeoutMs: TIMEOUT_MS,
      method: method === "PATCH" ? method : undefined,
    };
    const headers = { authorization: `Bot ${token}`, "content-type": "application/json", "user-agent": "assent" };
    const response = body === null ? get(target, headers, signal) : post(target, headers, JSON.stringify(body), signal);
    const { status, body: text, retryAfter } = await response;
    const { id, message, retry_after: seconds } = readAnswer(text);
    if (status >= 200 && status < 300) {
      if (typeof id === "string" && /^\d{1,20}$/.test(id)) return id;
      throw new NotifierError(`the response to ${method} ${path} is not from Discord: it has no id`);
    }
    throw new DiscordError(
      `${method} ${path}`,
      status,
      typeof message === "string" ? message.slice(0, 200) : "",
      typeof seconds === "number" ? seconds * 1000 : retryAfterMs(retryAfter),
    );
  };
}

function readAnswer(text: string | null): Record<string, unknown> {
  try {
    const value = JSON.parse(text ?? "") as unknown;
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
