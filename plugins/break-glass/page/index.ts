/** Emergency approvals in the console: the page of their reviews, and the button in a request. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "break-glass",
      title: "Break-glass",
      icon: "alert",
      section: "People",
      order: 30,
      load: () => import("./approvals.tsx").then((module) => module.BreakGlass),
      scopes: ["approvals:decide", "actions:read"],
    },
  ],
  panels: [{ place: "other-votes", load: () => import("./emergency.tsx").then((module) => module.EmergencyApproval) }],
  entries: { break_glass: ["person", "system"] },
  texts: () => import("./approvals.tsx").then((module) => module.texts),
} satisfies ConsolePart;
