/** The console's pages. */
import type { ComponentType } from "preact";
import { hasScope } from "../core/me.ts";
import type { IconName } from "../ui/icons.tsx";

/** Sections of the menu, in order. The first has no heading. */
export const SECTIONS = ["Work", "Control", "People", "Record", "Service"] as const;
export type Section = (typeof SECTIONS)[number];

type PageView = ComponentType<{ id: string | null; query: URLSearchParams }>;

export interface PageEntry {
  /** Name of the page in the address. */
  name: string;
  /** Label in the menu. */
  title: string;
  icon: IconName;
  /** Null for a page that is not in the menu. Other pages link to it. */
  section: Section | null;
  /** Imports the page's module, which the browser loads only once. */
  load(): Promise<PageView>;
  /** A credential with any of these scopes can open the page. If empty, no scope is needed. */
  scopes: readonly string[];
}

const READ_ACTIONS = ["actions:read", "actions:read_own"];
export const PAGES: readonly PageEntry[] = [
  {
    name: "approvals",
    title: "Approvals",
    icon: "inbox",
    section: "Work",
    load: () => import("../inbox/approvals.tsx").then((module) => module.Approvals),
    scopes: READ_ACTIONS,
  },
  {
    name: "plans",
    title: "Plans",
    icon: "list",
    section: "Work",
    load: () => import("../plans/plan.tsx").then((module) => module.Plan),
    scopes: READ_ACTIONS,
  },
  {
    name: "actions",
    title: "Actions",
    icon: "activity",
    section: "Work",
    load: () => import("../pages/actions.tsx").then((module) => module.Actions),
    scopes: READ_ACTIONS,
  },
  {
    name: "grants",
    title: "Grants",
    icon: "check",
    section: "Control",
    load: () => import("../grants/grants.tsx").then((module) => module.Grants),
    scopes: ["grants:write", "actions:read"],
  },
  {
    name: "policies",
    title: "Policies",
    icon: "scroll",
    section: "Control",
    load: () => import("../policies/policies.tsx").then((module) => module.Policies),
    scopes: ["policies:read"],
  },
  {
    name: "suggestions",
    title: "Suggestions",
    icon: "list",
    section: "Control",
    load: () => import("../suggestions/suggestions.tsx").then((module) => module.Suggestions),
    scopes: ["policies:read"],
  },
  {
    name: "agents",
    title: "Agents",
    icon: "bot",
    section: "Control",
    load: () => import("../agents/agents.tsx").then((module) => module.Agents),
    scopes: ["agents:read"],
  },
  {
    name: "keys",
    title: "API keys",
    icon: "key",
    section: "Control",
    load: () => import("../keys/keys.tsx").then((module) => module.Keys),
    scopes: ["keys:manage"],
  },
  {
    name: "users",
    title: "Users",
    icon: "users",
    section: "People",
    load: () => import("../people/users.tsx").then((module) => module.Users),
    scopes: ["users:read", "users:manage"],
  },
  {
    name: "people",
    title: "Person",
    icon: "user",
    section: null,
    load: () => import("../people/person.tsx").then((module) => module.Person),
    scopes: ["actions:read", "approvals:decide", "users:read", "users:manage", "actions:read_own"],
  },
  {
    name: "delegations",
    title: "Delegations",
    icon: "users",
    section: "People",
    load: () => import("../people/delegations.tsx").then((module) => module.Delegations),
    scopes: ["approvals:decide", "users:read", "users:manage"],
  },
  {
    name: "break-glass",
    title: "Break-glass",
    icon: "alert",
    section: "People",
    load: () => import("../people/break-glass.tsx").then((module) => module.BreakGlass),
    scopes: ["approvals:decide", "actions:read"],
  },
  {
    name: "access-review",
    title: "Access review",
    icon: "user",
    section: "People",
    load: () => import("../people/access-review.tsx").then((module) => module.AccessReview),
    scopes: ["users:read", "users:manage"],
  },
  {
    name: "analytics",
    title: "Analytics",
    icon: "chart",
    section: "Record",
    load: () => import("../analytics/analytics.tsx").then((module) => module.Analytics),
    scopes: ["analytics:read"],
  },
  {
    name: "provenance",
    title: "Provenance",
    icon: "shield",
    section: "Record",
    load: () => import("../pages/provenance.tsx").then((module) => module.Provenance),
    scopes: ["provenance:read"],
  },
  {
    name: "coverage",
    title: "Coverage",
    icon: "check",
    section: "Record",
    load: () => import("../pages/coverage.tsx").then((module) => module.Coverage),
    scopes: ["provenance:read"],
  },
  {
    name: "events",
    title: "Events",
    icon: "list",
    section: "Record",
    load: () => import("../pages/events.tsx").then((module) => module.Events),
    scopes: ["events:read"],
  },
  {
    name: "deliveries",
    title: "Deliveries",
    icon: "send",
    section: "Service",
    load: () => import("../pages/deliveries.tsx").then((module) => module.Deliveries),
    scopes: ["deliveries:read"],
  },
  {
    name: "system",
    title: "System",
    icon: "server",
    section: "Service",
    load: () => import("../system/system.tsx").then((module) => module.System),
    scopes: [],
  },
];

export function canOpenPage({ scopes }: PageEntry): boolean {
  return scopes.length === 0 || scopes.some(hasScope);
}
