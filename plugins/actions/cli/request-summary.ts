/** Summarizes an action in one line. */
import type { ActionRecord } from "../../../clients/typescript/index.ts";
import { rankParameters, renderMarkedText } from "../../../src/command.ts";

const MAX_LENGTH = 160;
/** Maximum length of one parameter, so that a long parameter leaves space for the next one. */
const MAX_PARAMETER = 60;
/** Parameters that are sufficient to show what a coding agent does. */
const TELLING_PARAMETERS = ["command", "paths", "urls"];

/**
 * Returns the preview of the policy. Without a preview, returns the command, the files or the URLs. Without these,
 * returns the parameters, starting with those in `shown_first`, followed by amounts. Makes hidden characters in the
 * agent's text visible.
 */
export function requestSummary(action: ActionRecord): string {
  if (action.erased_at !== null) return "erased";
  // The preview is safe to display as it is.
  if (typeof action.preview === "string") return clip(action.preview);
  return clip(renderMarkedText(clip((tellingText(action) ?? parametersText(action)).replace(/\s+/g, " ").trim())));
}

/**
 * Returns the command, the files or the URLs; null if there are none, or if `shown_first` lists only other parameters.
 * Also returns null if the request contains an amount, because an agent could otherwise hide the amount by adding a
 * command.
 */
function tellingText(action: ActionRecord): string | null {
  const ranked = rankParameters(action);
  if (ranked.some(({ isAmount }) => isAmount)) return null;
  const named = ranked.filter(({ isNamed }) => isNamed);
  const leading = (named.length > 0 ? named : ranked).map(({ name }) => name);
  for (const name of TELLING_PARAMETERS.filter((each) => leading.includes(each))) {
    const value = action.params[name];
    if (typeof value === "string") return value;
    if (Array.isArray(value)) return value.map(textOf).join(" ");
  }
  return null;
}

function parametersText(action: ActionRecord): string {
  const members = rankParameters(action).map(
    ({ name }) =>
      `${clip(JSON.stringify(name), MAX_PARAMETER)}:${clip(JSON.stringify(action.params[name]), MAX_PARAMETER)}`,
  );
  return `{${members.join(",")}}`;
}

/** Does not convert objects with String, because an object from the agent may have a member `toString`. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function clip(line: string, max = MAX_LENGTH): string {
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}
