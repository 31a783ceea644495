/** What the scopes of the feature permit. */
import type { PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  scopes: {
    "provenance:read": "read the ledger and its proofs",
  },
};
