import type { DeliveryResult } from "../../../src/plugin.ts";
import { clipText } from "../../../src/core.ts";
/** Makes the result or error of a notifier safe to store. A notifier can return or throw any value. */

const MAX_ERROR = 500;
const MAX_REFERENCE = 500;

const LINK_TOKEN = /apl1_[\w-]*(?:\.[\w-]*)?/g;
const LONE_SURROGATE = /\p{Cs}/gu;

/**
 * Returns a shortened error message for any thrown value. Removes approval links, which a notifier may quote from its
 * message, and lone surrogates, which cannot be stored.
 */
export function shortErrorText(error: unknown): string {
  let text: unknown;
  try {
    text = error instanceof Error ? error.message : String(error);
  } catch {
    text = null;
  }
  return typeof text === "string"
    ? clipText(text.replace(LINK_TOKEN, "apl1_…").replace(LONE_SURROGATE, "\ufffd"), MAX_ERROR)
    : "the notifier failed without a message";
}

/**
 * Returns the reference in the result of a notifier, or null if it is missing or cannot be stored. Never throws,
 * because the message was delivered even if the result is invalid.
 */
export function readDeliveryReference(answer: DeliveryResult | void): string | null {
  try {
    const { reference } = answer ?? {};
    return typeof reference === "string" &&
      reference.length <= MAX_REFERENCE &&
      reference.search(LONE_SURROGATE) < 0 &&
      reference.search(LINK_TOKEN) < 0
      ? reference
      : null;
  } catch {
    return null;
  }
}
