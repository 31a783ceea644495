/** A minimal client of Slack's Web API: sends JSON and reads `{ok, error}`. */
import { NotifierError, retryAfterMs } from "../../src/plugin.ts";

/** Maximum size of a response in bytes. Slack echoes the posted message. */
const MAX_ANSWER = 1_048_576;

/** Error codes after which a retry is useless, because the channel, the app or the message must change first. */
const PERMANENT = new Set([
  "channel_not_found",
  "user_not_found",
  "is_archived",
  "cannot_dm_bot",
  "messages_tab_disabled",
  "restricted_action",
  "restricted_action_read_only_channel",
  "restricted_action_thread_only_channel",
  "invalid_auth",
  "not_authed",
  "account_inactive",
  "token_revoked",
  "token_expired",
  "missing_scope",
  "no_permission",
  "not_allowed_token_type",
  "access_denied",
  "team_access_not_granted",
  "ekm_access_denied",
  "invalid_arguments",
  "invalid_blocks",
  "invalid_blocks_format",
  "msg_too_long",
  "msg_blocks_too_long",
  "no_text",
  "deprecated_endpoint",
  "method_deprecated",
  "unknown_method",
]);

/** An error that Slack returned. */
export class SlackError extends NotifierError {
  /** Slack's error code, such as `channel_not_found`. */
  readonly code: string;
  constructor(method: string, code: string, retryAfterMs: number | null) {
    super(`Slack responded to ${method} with ${code}`, { permanent: PERMANENT.has(code), retryAfterMs });
    this.name = "SlackError";
    this.code = code;
  }
}

/** Calls a method of Slack's API. */
export type SlackCall = (method: string, body: object, signal: AbortSignal) => Promise<Record<string, unknown>>;

/**
 * Returns a function that calls a method of the API. The call rejects with one of three errors:
 * - SlackError, if Slack returns an error code.
 * - NotifierError, for any HTTP status other than 200, such as a rate limit.
 * - Error, if the body is not a response of Slack's API.
 * @param apiUrl base URL without a trailing slash
 */
export function createSlackCall(apiUrl: string, token: string): SlackCall {
  return async (method, body, signal) => {
    const response = await fetch(`${apiUrl}/${method}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json; charset=utf-8" },
      body: JSON.stringify(body),
      redirect: "manual",
      signal,
    });
    const retryAfter = retryAfterMs(response.headers.get("retry-after"));
    if (response.status !== 200) {
      await response.body?.cancel().catch(() => undefined);
      throw new NotifierError(
        response.status === 429
          ? `Slack limits the rate of ${method}`
          : `Slack responded to ${method} with status ${response.status}`,
        { retryAfterMs: retryAfter },
      );
    }
    const answer = readAnswer(await readText(response));
    if (answer === null) throw new Error(`the response to ${method} is not from Slack: it is not JSON with "ok"`);
    if (answer["ok"] !== true)
      throw new SlackError(
        method,
        typeof answer["error"] === "string" ? answer["error"].slice(0, 100) : "no reason",
        retryAfter,
      );
    return answer;
  };
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let [text, size] = ["", 0];
  if (response.body === null) return text;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > MAX_ANSWER) {
      await reader.cancel().catch(() => undefined);
      throw new Error(`Slack's response is larger than ${MAX_ANSWER} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

function readAnswer(text: string): Record<string, unknown> | null {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && "ok" in value ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
