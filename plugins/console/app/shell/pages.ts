/** What features add to the console that do not have a page folder of their own. */
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
      name: "plans",
      title: "Plans",
      icon: "list",
      section: "Work",
      order: 20,
      load: () => import("../plans/plan.tsx").then((module) => module.Plan),
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
      name: "grants",
      title: "Grants",
      icon: "check",
      section: "Control",
      order: 10,
      load: () => import("../grants/grants.tsx").then((module) => module.Grants),
      scopes: ["grants:write", "actions:read"],
    },
    {
      name: "suggestions",
      title: "Suggestions",
      icon: "list",
      section: "Control",
      order: 30,
      load: () => import("../suggestions/suggestions.tsx").then((module) => module.Suggestions),
      scopes: ["policies:read"],
    },
    {
      name: "break-glass",
      title: "Break-glass",
      icon: "alert",
      section: "People",
      order: 30,
      load: () => import("../people/break-glass.tsx").then((module) => module.BreakGlass),
      scopes: ["approvals:decide", "actions:read"],
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
  panels: [
    {
      place: "agent",
      order: 10,
      scopes: ["grants:write", "actions:read"],
      load: () => import("../grants/agent-grants.tsx").then((module) => module.AgentGrants),
    },
  ],
};
