/**
 * What becomes of a call's `_meta`. Servers may act by it, as by a tenant's name, so none of it reaches one undecided but
 * what only says where a call belongs.
 */
import { isTraceparent } from "../../domain/meta.ts";
import { matchesAny } from "../../domain/policy/compile/glob.ts";
import type { JsonObject } from "../transport/message.ts";

/** W3C Trace Context (SEP-414): other in each call, so that no approval could cover them. `baggage` has values of the application's. */
const TRACE_KEYS = new Set(["traceparent", "tracestate"]);

/** Set by the proxy itself, for each side anew. */
const isProxyKey = (key: string): boolean => key === "progressToken" || key.startsWith("io.modelcontextprotocol/");

export interface CallMeta {
  /** What the other side gets: `decided`, and where the call belongs. */
  sent: JsonObject;
  /** Of what is sent, what is part of the question. */
  decided: JsonObject;
  /** The rest, and where the call belongs: for the record. */
  recorded: JsonObject;
}

/** @param keys patterns of the configuration; none where nothing is decided */
export function readCallMeta(meta: JsonObject, keys: readonly string[]): CallMeta {
  const all = Object.entries(meta).filter(([key]) => !isProxyKey(key));
  const { traceparent: parent } = meta;
  // Without a trace there is no state of one, and any text could stand in either.
  const isTraced = typeof parent === "string" && isTraceparent(parent);
  const traces = ([key, value]: [string, unknown]): boolean =>
    isTraced && TRACE_KEYS.has(key) && typeof value === "string";
  const decides = ([key]: [string, unknown]): boolean => !TRACE_KEYS.has(key) && matchesAny(keys, key);
  return {
    sent: Object.fromEntries(all.filter((member) => traces(member) || decides(member))),
    decided: Object.fromEntries(all.filter(decides)),
    recorded: Object.fromEntries(all.filter((member) => !decides(member))),
  };
}
