/** Summarizes an action in one line. */
import type { ActionRecord } from "../client/index.ts";
import { markedText } from "../domain/visible-text.ts";

const MAX_LENGTH = 160;

/**
 * Returns the policy's preview, or else the command, the files or the URLs, or else all parameters as JSON. Hidden
 * characters in the agent's text are made visible.
 */
export function requestSummary({ params, preview, erased_at: erased }: ActionRecord): string {
  if (erased !== null) return "erased";
  // The preview is already safe to display.
  if (typeof preview === "string") return clip(preview);
  const { command, paths, urls } = params;
  const list = [paths, urls].find((value) => Array.isArray(value)) as unknown[] | undefined;
  const text =
    typeof command === "string" ? command : list === undefined ? JSON.stringify(params) : list.map(textOf).join(" ");
  return clip(markedText(clip(text.replace(/\s+/g, " ").trim())));
}

/** Does not convert objects with String, because an object from the agent may have a member `toString`. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function clip(line: string): string {
  return line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH - 1)}…` : line;
}
