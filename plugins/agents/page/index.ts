/** Agents in the console: the list, and the page about one agent. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "agents",
      title: "Agents",
      icon: "bot",
      section: "Control",
      order: 40,
      load: () => import("./agents.tsx").then((module) => module.Agents),
      scopes: ["agents:read"],
    },
  ],
  finders: [
    {
      icon: "bot",
      scopes: ["agents:read"],
      load: () => import("./find-agents.ts").then((module) => module.findAgents),
    },
  ],
  entries: { agent: ["person", "system"] },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
