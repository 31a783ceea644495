/**
 * Splits the `_meta` of a call. A server may act on `_meta`, for example on a tenant's name. The server therefore
 * receives only the members that the configuration shows to policies, and the trace context.
 */
import { isTraceparent } from "../../../src/domain/traceparent.ts";
import { matchesAny } from "../../../src/domain/policy/compile/glob.ts";
import type { JsonObject } from "../transport/rpc-message.ts";

/**
 * Keys of the W3C Trace Context (SEP-414). No decision covers them, because they differ in each call. `baggage` is not
 * among them, because the application chooses its values.
 */
const TRACE_KEYS = new Set(["traceparent", "tracestate"]);

/** Key with which a client names the authority under which its agent acts. Servers do not get it. */
export const AUTHORITY_KEY = "assent/authority-id";

/** Whether the key is for the proxy, or the proxy sets it with separate values for the client and the server. */
const isProxyKey = (key: string): boolean =>
  key === AUTHORITY_KEY || key === "progressToken" || key.startsWith("io.modelcontextprotocol/");

interface CallMeta {
  /** The members that the receiver gets: the members in `decided`, and the trace context. */
  sent: JsonObject;
  /** The forwarded members that policies see. */
  decided: JsonObject;
  /** The members that are recorded although policies do not see them: all members that are not in `decided`. */
  recorded: JsonObject;
}

/** @param keys patterns from the configuration; empty for methods that never require a decision */
export function readCallMeta(meta: JsonObject, keys: readonly string[]): CallMeta {
  const members = Object.entries(meta).filter(([key]) => !isProxyKey(key));
  const { traceparent: parent } = meta;
  // Drop the trace context unless it has a valid `traceparent`: `tracestate` is then meaningless, and both could
  // contain any text.
  const isTraced = typeof parent === "string" && isTraceparent(parent);
  const isTraceMember = ([key, value]: [string, unknown]): boolean =>
    isTraced && TRACE_KEYS.has(key) && typeof value === "string";
  const isDecidedMember = ([key]: [string, unknown]): boolean => !TRACE_KEYS.has(key) && matchesAny(keys, key);
  return {
    sent: Object.fromEntries(members.filter((member) => isTraceMember(member) || isDecidedMember(member))),
    decided: Object.fromEntries(members.filter(isDecidedMember)),
    recorded: Object.fromEntries(members.filter((member) => !isDecidedMember(member))),
  };
}
