import { errorKind } from "../../src/plugin.ts";

export const ERRORS = {
  notAllowed: errorKind("EDIT_NOT_ALLOWED", 403, "The request cannot be changed like this"),
};
