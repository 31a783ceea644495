/** What the scopes of the feature permit. */
import type { PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  scopes: {
    "deliveries:read": "see messages that were sent to people",
    "deliveries:retry": "send failed messages again",
  },
};
