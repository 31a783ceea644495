/** Text of others in Markdown. */
import { safe } from "../command.ts";

/** A code span that also stands in a cell of a table: nothing in it becomes markup. */
export function cell(value: string): string {
  return `\`${safe(value).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
}
