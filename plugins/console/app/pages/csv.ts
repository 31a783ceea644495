/** Writes CSV (RFC 4180) in which spreadsheets find no formulas. Pure. */

import { renderCsvCell } from "../../../../src/browser.ts";

/** Returns rows as CSV. Values other than strings are written as JSON; null is an empty cell. */
export function toCsv(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  return [head, ...rows].map((row) => `${row.map(toCell).join(",")}\r\n`).join("");
}

function toCell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  return renderCsvCell(typeof value === "string" ? value : JSON.stringify(value));
}
