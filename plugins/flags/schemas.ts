/** Schemas of flags: the errors, the entry and the body of the route. */
import { closed, orNull, textSchema } from "../../src/core.ts";
import { errorKind, type Static, Type } from "../../src/plugin.ts";

export const ERRORS = {
  notFlaggable: errorKind("ACTION_NOT_FLAGGABLE", 409, "The action was not let through"),
  flagged: errorKind("ALREADY_FLAGGED", 409, "The action is flagged already"),
};

/** The type of the entry about a flag. */
export const FLAG_ENTRY = "flags:flag";

/** `data` of the entry. */
export const Flag = Type.Object(
  {
    reason: textSchema("Why the action should not have been let through."),
    approver: orNull(textSchema("Principal whose approval was the last; null if no one approved the action.")),
  },
  closed,
);
export type Flag = Static<typeof Flag>;

export const FlagBody = Type.Object(
  { reason: Type.String({ minLength: 1, maxLength: 500, description: "Recorded in the ledger." }) },
  { ...closed, examples: [{ reason: "the invoice was paid last week" }] },
);
