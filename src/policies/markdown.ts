/** Escapes untrusted text for Markdown. */
import { replaceControlCharacters } from "../domain/text.ts";

/** Returns the string as a code span that is safe in a table cell, so that no part of it becomes markup. */
export function markdownCell(value: string): string {
  return `\`${replaceControlCharacters(value).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
}
