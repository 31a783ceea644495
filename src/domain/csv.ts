/** Cells of CSV (RFC 4180) in which spreadsheets find no formulas. */

/**
 * Matches the start of a cell that a spreadsheet could run as a formula: one of `=+-@`, also in a compatibility form
 * such as `＝`, after characters that spreadsheets ignore. Some spreadsheets separate cells by semicolons or tabs, so a
 * formula can also start after these.
 */
const FORMULA = /(^|[;\t\r\n])((?:(?![\t\r\n])[\p{C}\p{Z}"'])*[=＝﹦+＋﹢\-－﹣−@＠﹫])/gu;

/**
 * Renders a cell. Marks what looks like a formula as text with an apostrophe.
 * @example
 * renderCsvCell("=1+1"); // "'=1+1"
 */
export function renderCsvCell(text: string): string {
  const marked = /^[\t\r\n]/.test(text) ? `'${text}` : text;
  const safe = marked.replaceAll(FORMULA, "$1'$2");
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
