/** Slack's Web API, as far as it is used: JSON in, `{ok, error}` out. */
import { NotifierError } from "../../src/plugin.ts";

/** Bytes. Slack echoes what was posted. */
const MAX_ANSWER = 1_048_576;

/** No later attempt can do better: the place, the app or what is sent must change first. */
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

/** Slack took the call and said no. */
export class SlackError extends NotifierError {
  /** Slack's word for it, such as `channel_not_found`. */
  readonly code: string;
  constructor(method: string, code: string, retryAfterMs: number | null) {
    super(`Slack answered ${method} with ${code}`, { permanent: PERMANENT.has(code), retryAfterMs });
    this.name = "SlackError";
    this.code = code;
  }
}

export type SlackCall = (method: string, body: object, signal: AbortSignal) => Promise<Record<string, unknown>>;

/** @param apiUrl without a slash at its end. The call rejects with SlackError, with NotifierError for a rate limit, with Error for what is no answer of Slack. */
export function createSlackCall(apiUrl: string, token: string): SlackCall {
  return async (method, body, signal) => {
    const response = await fetch(`${apiUrl}/${method}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json; charset=utf-8" },
      body: JSON.stringify(body),
      redirect: "manual",
      signal,
    });
    const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    const retryAfterMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
    if (response.status !== 200) {
      await response.body?.cancel().catch(() => undefined);
      throw new NotifierError(
        response.status === 429
          ? `Slack limits the rate of ${method}`
          : `Slack answered ${method} with status ${response.status}`,
        { retryAfterMs },
      );
    }
    const answer = readAnswer(await readText(response));
    if (answer === null) throw new Error(`what answered ${method} is not Slack: no JSON with "ok"`);
    if (answer["ok"] !== true)
      throw new SlackError(
        method,
        typeof answer["error"] === "string" ? answer["error"].slice(0, 100) : "no reason",
        retryAfterMs,
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
      throw new Error(`Slack's answer is larger than ${MAX_ANSWER} bytes`);
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
