/** Texts of policies on pages of other features. */
import { formatCounted, type PartTexts, type PolicySetEntry } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    policy_set: {
      summarize: (entry) =>
        formatCounted((entry as unknown as PolicySetEntry).policy_count, "active policy", "active policies"),
      describe: (entry) =>
        `with ${formatCounted((entry as unknown as PolicySetEntry).policy_count, "policy", "policies")}`,
    },
  },
  scopes: {
    "policies:read": "see policies",
    "policies:write": "write policies",
    "policies:activate": "activate policies",
  },
};
