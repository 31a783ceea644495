/** What a notifier answers or throws, made fit for the store: whoever wrote it may return anything. */
import type { Delivered } from "../contract/notifier.ts";
import { clipText } from "../domain/text.ts";

const MAX_ERROR = 500;
const MAX_REFERENCE = 500;

const LINK_TOKEN = /apl1_[\w-]*(?:\.[\w-]*)?/g;
const HALF_PAIR = /\p{Cs}/gu;

/** What an error says, whatever was thrown: never a link, which a notifier may quote from its message; never what no store keeps. */
export function errorText(error: unknown): string {
  let text: unknown;
  try {
    text = error instanceof Error ? error.message : String(error);
  } catch {
    text = null;
  }
  return typeof text === "string"
    ? clipText(text.replace(LINK_TOKEN, "apl1_…").replace(HALF_PAIR, "\ufffd"), MAX_ERROR)
    : "it failed and did not say how";
}

/**
 * The message was delivered, whatever is wrong with the answer. A reference is kept whole or not at all: half of one
 * finds nothing.
 */
export function readReference(answer: Delivered | void): string | null {
  try {
    const { reference } = answer ?? {};
    return typeof reference === "string" &&
      reference.length <= MAX_REFERENCE &&
      reference.search(HALF_PAIR) < 0 &&
      reference.search(LINK_TOKEN) < 0
      ? reference
      : null;
  } catch {
    return null;
  }
}
