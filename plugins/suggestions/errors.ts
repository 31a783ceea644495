import type { ErrorKind } from "../../src/plugin.ts";

const kind = <const Code extends string>(code: Code, status: number, title: string): ErrorKind & { code: Code } => ({
  code,
  status,
  title,
});

export const ERRORS = {
  notFound: kind("SUGGESTED_RULE_NOT_FOUND", 404, "No such suggested rule"),
  reverted: kind("SUGGESTED_RULE_REVERTED", 409, "The suggested rule is already reverted"),
  notReverted: kind("SUGGESTED_RULE_NOT_REVERTED", 409, "The suggested rule is not reverted"),
  untried: kind("SUGGESTED_RULE_UNTRIED", 409, "The suggested policy was not in shadow mode first"),
};
