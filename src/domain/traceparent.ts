/** The header of W3C Trace Context that names a trace. */

/** A `traceparent` of version 00, or of a later version with the same fields. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * Returns true if the string is a `traceparent` as defined by W3C Trace Context, section 3.2.2.
 * @example
 * isTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"); // true
 */
export function isTraceparent(text: string): boolean {
  return TRACEPARENT.test(text);
}
