/** Builds the JSON body of a webhook: `{type, timestamp, data}`. */
import { canonicalBytes, type JsonObject, sha256, toHex } from "../../src/core.ts";
import { type Message, type MessageAction, NotifierError, requestSections } from "../../src/plugin.ts";

/** Maximum size of a body in bytes. */
const MAX_BODY = 262_144;

/**
 * Returns the body. Its type is the kind of the message, or `ledger.` and the type of the entry. If the body is larger
 * than `max` bytes, replaces first the parameters and then the context with their SHA-256 and sets `truncated`. Throws
 * a permanent NotifierError if the body is still too large.
 */
export function buildWebhookBody(message: Message, max = MAX_BODY): string {
  if (message.kind === "event") {
    const { seq, hash, type, entry } = message.event;
    return selectFitting([{ type: `ledger.${type}`, timestamp: message.at, data: { seq, hash, entry } }], max);
  }
  if (message.kind === "notice") {
    const { channel, person, link, notice } = message;
    return selectFitting(
      [{ type: notice.name, timestamp: message.at, data: { channel, person, link, ...notice.data } }],
      max,
    );
  }
  const { action, kind, channel, person } = message;
  const link = "link" in message ? { link: message.link } : {};
  const others =
    "others" in message && message.others.length > 0
      ? { others: message.others.map((other) => ({ ...summaryOf(other.action), link: other.link })) }
      : {};
  const whole = (about: object): object => ({
    type: kind,
    timestamp: message.at,
    data: { channel, person, ...link, action: about, ...others },
  });
  const renderedAction = { ...action, text: textOf(action) };
  const withoutParams = { ...renderedAction, truncated: true, params: null, params_digest: digest(action.params) };
  return selectFitting(
    [
      whole({ ...renderedAction, truncated: false }),
      whole(withoutParams),
      whole({ ...withoutParams, context: null, context_digest: digest(action.context) }),
    ],
    max,
  );
}

/** Returns the summary of one of the other requests in a digest. */
function summaryOf({ id, agent_id, tool, operation, risk_level, preview, expires_at }: MessageAction): object {
  return { id, agent_id, tool, operation, risk_level, preview, expires_at };
}

/** Returns the first candidate that is not larger than `max` bytes. */
function selectFitting(candidates: readonly object[], max: number): string {
  for (const candidate of candidates) {
    const text = JSON.stringify(candidate);
    if (Buffer.byteLength(text) <= max) return text;
  }
  throw new NotifierError(`the message is larger than ${max} bytes even without parameters and context`, {
    permanent: true,
  });
}

/** Renders the request in the form that approvers see. */
function textOf(action: MessageAction): string {
  return requestSections(action)
    .map(([name, lines]) => `${name}:\n${lines.join("\n")}`)
    .join("\n\n");
}

/** Returns the SHA-256 of the canonical JSON. */
function digest(value: JsonObject): string {
  return `sha256:${toHex(sha256(canonicalBytes(value)))}`;
}
