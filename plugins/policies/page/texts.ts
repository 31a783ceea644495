/** Texts of policies on pages of other features. */
import { type EntryOf, formatCounted, type PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    policy_set: {
      summarize: (entry) =>
        formatCounted((entry as unknown as EntryOf<"policy_set">).policy_count, "active policy", "active policies"),
      describe: (entry) =>
        `with ${formatCounted((entry as unknown as EntryOf<"policy_set">).policy_count, "policy", "policies")}`,
    },
  },
  scopes: {
    "policies:read": "see policies",
    "policies:write": "write policies",
    "policies:activate": "activate policies",
  },
};
