/** The console's pages. */
import type { ComponentType } from "preact";
import { may } from "../core/me.ts";
import { LOADERS } from "../pages/javascript.js";
import type { IconName } from "../ui/icons.tsx";

export type PageView = ComponentType<{ id: string | null; query: URLSearchParams }>;

export interface PageEntry {
  /** Name in the address. */
  name: string;
  /** Label in the menu. */
  title: string;
  icon: IconName;
  /** Loads its module when the page is opened for the first time. */
  load(): Promise<PageView>;
  /** Scopes of which one is enough to open it; none are needed if empty. */
  scopes: readonly string[];
}

const READ_ACTIONS = ["actions:read", "actions:read_own"];
export const PAGES: readonly PageEntry[] = [
  {
    name: "approvals",
    title: "Approvals",
    icon: "inbox",
    load: () => import("../inbox/approvals.tsx").then((module) => module.Approvals),
    scopes: READ_ACTIONS,
  },
  {
    name: "actions",
    title: "Actions",
    icon: "activity",
    load: LOADERS.actions,
    scopes: READ_ACTIONS,
  },
  {
    name: "policies",
    title: "Policies",
    icon: "scroll",
    load: LOADERS.policies,
    scopes: ["policies:read"],
  },
  {
    name: "agents",
    title: "Agents",
    icon: "bot",
    load: LOADERS.agents,
    scopes: ["agents:read"],
  },
  {
    name: "keys",
    title: "API keys",
    icon: "key",
    load: LOADERS.keys,
    scopes: ["keys:manage"],
  },
  {
    name: "analytics",
    title: "Analytics",
    icon: "chart",
    load: LOADERS.analytics,
    scopes: ["analytics:read"],
  },
  {
    name: "provenance",
    title: "Provenance",
    icon: "shield",
    load: LOADERS.provenance,
    scopes: ["provenance:read"],
  },
  {
    name: "events",
    title: "Events",
    icon: "list",
    load: LOADERS.events,
    scopes: ["events:read"],
  },
  {
    name: "deliveries",
    title: "Deliveries",
    icon: "send",
    load: LOADERS.deliveries,
    scopes: ["deliveries:read"],
  },
  {
    name: "system",
    title: "System",
    icon: "server",
    load: LOADERS.system,
    scopes: [],
  },
];

export function mayOpen({ scopes }: PageEntry): boolean {
  return scopes.length === 0 || scopes.some(may);
}
