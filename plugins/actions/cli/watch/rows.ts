/**
 * Renders lines about pending requests. Makes hidden characters in the agent's text visible, so that they cannot
 * control the terminal.
 */
import type { ActionRecord } from "../../../../clients/typescript/index.ts";
import { renderMarkedText } from "../../../../src/command.ts";
import { requestSummary } from "../request-summary.ts";

const MINUTE = 60_000;

/**
 * Returns a human-readable line that describes a pending request.
 * @example
 * requestLine(3, action, Date.now()); // "  3  support-bot  stripe refund  Refund 500 USD  (high risk, 3 h left)"
 */
export function requestLine(number: number, action: ActionRecord, now: number): string {
  const { agent_id, tool, operation, risk_level: risk, expires_at: expiry } = action;
  const details = [
    ...(risk === null ? [] : [`${renderMarkedText(risk)} risk`]),
    ...(expiry === null ? [] : [`${timeLeft(Date.parse(expiry) - now)} left`]),
  ];
  const parts = [
    renderMarkedText(agent_id),
    `${renderMarkedText(tool)} ${renderMarkedText(operation)}`,
    requestSummary(action),
  ];
  return `${String(number).padStart(3)}  ${parts.join("  ")}${details.length === 0 ? "" : `  (${details.join(", ")})`}`;
}

/**
 * Returns the cells of a tab-separated row, for programs.
 * @param event `pending`, or the status of a settled request
 */
export function requestCells(event: string, action: ActionRecord): string[] {
  const { id, agent_id, tool, operation, expires_at: expiry } = action;
  return [event, id, ...[agent_id, tool, operation].map(renderMarkedText), expiry ?? "-", requestSummary(action)];
}

function timeLeft(ms: number): string {
  if (ms < MINUTE) return "less than a minute";
  const minutes = Math.floor(ms / MINUTE);
  if (minutes < 60) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} d`;
}
