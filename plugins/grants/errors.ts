import { errorKind } from "../../src/plugin.ts";

export const ERRORS = {
  notFound: errorKind("GRANT_NOT_FOUND", 404, "No such grant"),
  notAllowed: errorKind("GRANT_NOT_ALLOWED", 403, "The policies do not allow this grant"),
  ended: errorKind("GRANT_ENDED", 409, "The grant has ended"),
  tooMany: errorKind("TOO_MANY_GRANTS", 429, "Too many open grants"),
};
