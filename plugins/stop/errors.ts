import { errorKind } from "../../src/plugin.ts";

export const ERRORS = {
  stopped: errorKind("STOPPED", 409, "A stop is in effect"),
  notFound: errorKind("STOP_NOT_FOUND", 404, "No such stop"),
  over: errorKind("STOP_OVER", 409, "The stop is no longer in effect"),
  tooMany: errorKind("TOO_MANY_STOPS", 429, "Too many stops are in effect"),
};
