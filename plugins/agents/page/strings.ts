/** Texts of the pages of agents. */
import { formatCounted } from "../../console/app/kit.ts";

export const TEXTS = {
  title: "Agents",
  register: "Register an agent…",
  none: "No agent is registered.",
  noneHelp:
    "An agent with a key can also submit without being registered, unless require_registered_agents is on. Registering an agent lets you limit its tools and suspend it. With curl:",
  command: (origin: string) =>
    `curl -s ${origin}/v1/agents -H "Authorization: Bearer $ADMIN_KEY" -H "Content-Type: application/json" \\
  -d '{"id": "support-bot", "allowed_tools": ["stripe", "crm.*"]}'`,
  cut: "The list shows the newest 1,000 agents.",
  allTools: "all tools",
  noTools: "none",
  done: {
    registered: (id: string) => `“${id}” is registered.`,
    changed: (id: string) => `“${id}” is changed.`,
    suspended: (id: string) => `“${id}” is suspended: everything it submits is denied.`,
    resumed: (id: string) => `“${id}” can submit again.`,
  },
  help: {
    id: "Value of agent_id in its actions.",
    name: "For people.",
    tools:
      "Globs, separated by spaces: stripe crm.*. Empty allows no tools. Any other tool is denied before policies are evaluated.",
    suspend: ": everything it submits is denied from now on, and its actions that have not started are cancelled.",
    resume: " can submit again; policies decide as before.",
    reason: "Recorded in the ledger.",
  },
} as const;

/** Texts of the page about one agent. */
export const AGENT_TEXTS = {
  unregistered: "not registered",
  unregisteredHelp:
    "It is not registered, so its tools are not limited, and it cannot be suspended. Its keys can be revoked.",
  unseen: "No agent with this id is registered, and none has submitted an action.",
  unseenHelp:
    "The id may be mistyped. If the agent is new, create a key that is bound to it, and submit its first action.",
  newKey: "Create a key",
  latest: "Latest actions",
  newest: "Newest actions",
  allActions: "All of its actions",
  noActions: "It has not submitted an action yet.",
  typical: "Typical parameters",
  typicalHelp: (count: number) =>
    `From the newest ${formatCounted(count, "action")}. A range covers 90 % of the values; the number in the middle is the median.`,
  noTypical: "Its actions had no parameters, or they were erased.",
  timeline: "Timeline",
} as const;
