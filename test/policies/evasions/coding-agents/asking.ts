/** Calls of a coding agent, as the hook makes them. */
import { parseShell } from "../../../../src/hook/shell/parse-command.ts";
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
    parsed: parseShell(command, { cwds: [WORKSPACE], home: "/home/ada" }),
    ...more,
  },
];
export const file = (
  outcome: Outcome,
  operation: string,
  path: unknown,
  more: Record<string, unknown> = {},
): Evasion => [
  outcome,
  "files",
  operation,
  { paths: Array.isArray(path) ? path : [path], workspace: WORKSPACE, ...more },
];
