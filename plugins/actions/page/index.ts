/** Plans and break-glass approvals in the console. */
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
    {
      name: "break-glass",
      title: "Break-glass",
      icon: "alert",
      section: "People",
      order: 30,
      load: () => import("./break-glass.tsx").then((module) => module.BreakGlass),
      scopes: ["approvals:decide", "actions:read"],
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
    break_glass: ["person", "system"],
  },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
