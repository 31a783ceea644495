/** Sub-agents in the console: the authorities of an agent on its page, and the chain of an action on the action's page. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [
    {
      place: "agent",
      order: 10,
      scopes: ["actions:read"],
      load: () => import("./authorities.tsx").then((module) => module.AgentAuthorities),
    },
    { place: "action", order: -1, load: () => import("./authorities.tsx").then((module) => module.ActionChain) },
  ],
  entries: { authority: ["system"] },
  texts: () => import("./authorities.tsx").then((module) => module.texts),
} satisfies ConsolePart;
