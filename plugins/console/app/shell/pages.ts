/** The pages and panels that the console itself contains. Other features add theirs in `plugins/<name>/page`. */
import type { ConsolePart } from "../core/parts.ts";

const READ_ACTIONS = ["actions:read", "actions:read_own"];
export const OWN_PART: ConsolePart = {
  pages: [
    {
      name: "approvals",
      title: "Approvals",
      icon: "inbox",
      section: "Work",
      order: 10,
      load: () => import("../inbox/approvals.tsx").then((module) => module.Approvals),
      scopes: READ_ACTIONS,
    },
    {
      name: "actions",
      title: "Actions",
      icon: "activity",
      section: "Work",
      order: 30,
      load: () => import("../pages/actions.tsx").then((module) => module.Actions),
      scopes: READ_ACTIONS,
    },
    {
      name: "events",
      title: "Events",
      icon: "list",
      section: "Record",
      order: 40,
      load: () => import("../pages/events.tsx").then((module) => module.Events),
      scopes: ["events:read"],
    },
    {
      name: "system",
      title: "System",
      icon: "server",
      section: "Service",
      order: 20,
      load: () => import("../system/system.tsx").then((module) => module.System),
      scopes: [],
    },
  ],
  finders: [
    {
      icon: "activity",
      scopes: READ_ACTIONS,
      load: () => import("../pages/find-actions.ts").then((module) => module.findActions),
    },
  ],
};
