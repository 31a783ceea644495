/** Escapes untrusted text for Markdown. */
import { replaceControls } from "../domain/text.ts";

/** Returns the text as a code span that is safe inside a table cell, so that none of it becomes markup. */
export function markdownCell(value: string): string {
  return `\`${replaceControls(value).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
}
