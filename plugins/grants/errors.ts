import type { ErrorKind } from "../../src/plugin.ts";

const kind = <const Code extends string>(code: Code, status: number, title: string): ErrorKind & { code: Code } => ({
  code,
  status,
  title,
});

export const ERRORS = {
  notFound: kind("GRANT_NOT_FOUND", 404, "No such grant"),
  notAllowed: kind("GRANT_NOT_ALLOWED", 403, "The policies do not allow this grant"),
  ended: kind("GRANT_ENDED", 409, "The grant has ended"),
  tooMany: kind("TOO_MANY_GRANTS", 429, "Too many open grants"),
};
