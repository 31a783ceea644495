import { errorKind } from "../../src/plugin.ts";

export const ERRORS = {
  notFound: errorKind("SUGGESTED_RULE_NOT_FOUND", 404, "No such suggested rule"),
  reverted: errorKind("SUGGESTED_RULE_REVERTED", 409, "The suggested rule is already reverted"),
  notReverted: errorKind("SUGGESTED_RULE_NOT_REVERTED", 409, "The suggested rule is not reverted"),
  untried: errorKind("SUGGESTED_RULE_UNTRIED", 409, "The suggested policy was not in shadow mode first"),
};
