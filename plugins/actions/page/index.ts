/** The outcomes that people settle, in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [
    {
      place: "action-outcome",
      scopes: ["actions:settle"],
      load: () => import("./settle.tsx").then((module) => module.SettleOutcome),
    },
  ],
} satisfies ConsolePart;
