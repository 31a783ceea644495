import { renderCsvCell } from "../../../src/core.ts";
import type { ReviewRow } from "./review.ts";

const COLUMNS = [
  "kind",
  "id",
  "name",
  "principal",
  "roles",
  "groups",
  "may_approve",
  "limits",
  "agent_id",
  "approvals",
  "rejections",
  "break_glass",
  "delegators",
  "approval_rate",
  "median_seconds",
  "last_used_at",
  "unused",
  "ended_at",
] as const satisfies readonly (keyof ReviewRow)[];

/** Returns the rows as CSV (RFC 4180) with a header. Lists are joined with spaces, and limits are JSON. */
export function renderCsv(rows: readonly ReviewRow[]): string {
  const lines = rows.map((row) => COLUMNS.map((column) => renderCell(row[column])).join(","));
  return [COLUMNS.join(","), ...lines].map((line) => `${line}\r\n`).join("");
}

function renderCell(value: ReviewRow[keyof ReviewRow]): string {
  if (value === null) return "";
  const isNames = Array.isArray(value) && value.every((each) => typeof each === "string");
  return renderCsvCell(isNames ? value.join(" ") : typeof value === "string" ? value : JSON.stringify(value));
}
