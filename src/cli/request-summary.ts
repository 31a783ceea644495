/** One line that says what an action does. */
import type { ActionRecord } from "../client/index.ts";
import { markedText } from "../domain/visible-text.ts";

const MAX_LENGTH = 160;

/**
 * Returns the preview of the policy, else the command, the files or the URLs, else all parameters as JSON. Hidden characters
 * of the agent's text are spelled out.
 */
export function requestSummary({ params, preview, erased_at: erased }: ActionRecord): string {
  if (erased !== null) return "erased";
  // The preview is safe to display as it is.
  if (typeof preview === "string") return clip(preview);
  const { command, paths, urls } = params;
  const list = [paths, urls].find((value) => Array.isArray(value)) as unknown[] | undefined;
  const text =
    typeof command === "string" ? command : list === undefined ? JSON.stringify(params) : list.map(textOf).join(" ");
  return clip(markedText(clip(text.replace(/\s+/g, " ").trim())));
}

/** An object of the agent may have a member `toString`, so it is not converted with String. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function clip(line: string): string {
  return line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH - 1)}…` : line;
}
