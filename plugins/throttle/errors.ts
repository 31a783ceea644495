import type { ErrorKind } from "../../src/plugin.ts";

export const THROTTLED: ErrorKind = {
  code: "AGENT_THROTTLED",
  status: 429,
  title: "The agent requests approval far more often than usual",
};
