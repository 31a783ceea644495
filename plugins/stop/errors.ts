import type { ErrorKind } from "../../src/plugin.ts";

const kind = <const Code extends string>(code: Code, status: number, title: string): ErrorKind & { code: Code } => ({
  code,
  status,
  title,
});

export const ERRORS = {
  stopped: kind("STOPPED", 409, "A stop is in effect"),
  notFound: kind("STOP_NOT_FOUND", 404, "No such stop"),
  over: kind("STOP_OVER", 409, "The stop is no longer in effect"),
  tooMany: kind("TOO_MANY_STOPS", 429, "Too many stops are in effect"),
};
