/** Analytics in the console: a page, and a card on the page about an agent. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "analytics",
      title: "Analytics",
      icon: "chart",
      section: "Record",
      order: 10,
      load: () => import("./analytics.tsx").then((module) => module.Analytics),
      scopes: ["analytics:read"],
    },
  ],
  panels: [
    {
      place: "agent-summary",
      scopes: ["analytics:read"],
      load: () => import("./agent-activity.tsx").then((module) => module.AgentActivity),
    },
  ],
  texts: () => import("./texts.ts").then((module) => module.texts),
} satisfies ConsolePart;
