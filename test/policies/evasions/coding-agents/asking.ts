/**
 * Calls of a coding agent, as the hook makes them.
 * @needs hook
 */
import { runsLater, suggestsSecrets } from "../../../../clients/hook/action/place-table.ts";
import { parsedParams } from "../../../support/parsed-shell.ts";
import type { Evasion, Outcome } from "../index.ts";

export const WORKSPACE = "/work/app";
/** A shell command with the result of the hook's parser. */
export const sh = (outcome: Outcome, command: string, more: Record<string, unknown> = {}): Evasion => [
  outcome,
  "shell",
  "run",
  {
    command,
    cwd: WORKSPACE,
    workspace: WORKSPACE,
    parsed: parsedParams(command, WORKSPACE),
    ...more,
  },
];
export const file = (
  outcome: Outcome,
  operation: string,
  path: unknown,
  more: Record<string, unknown> = {},
): Evasion => {
  const paths = (Array.isArray(path) ? path : [path]) as string[];
  const named = paths.filter((each) => typeof each === "string");
  const properties = {
    secrets: named.filter(suggestsSecrets),
    untracked: [],
    later: operation === "write" || operation === "delete" ? named.filter((each) => runsLater(each, WORKSPACE)) : [],
  };
  return [outcome, "files", operation, { paths, workspace: WORKSPACE, ...properties, ...more }];
};
