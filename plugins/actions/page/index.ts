/** Plans, and the outcomes that people settle, in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "plans",
      title: "Plans",
      icon: "list",
      section: "Work",
      order: 20,
      load: () => import("./plan.tsx").then((module) => module.Plan),
      scopes: ["actions:read", "actions:read_own"],
    },
  ],
  panels: [
    {
      place: "action-outcome",
      scopes: ["actions:settle"],
      load: () => import("./settle.tsx").then((module) => module.SettleOutcome),
    },
  ],
  entries: {
    plan: [],
    legal_hold: ["system"],
  },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
