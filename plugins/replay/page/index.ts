/** Replay in the console: a card on the page about an agent. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [
    {
      place: "agent",
      order: 20,
      scopes: ["replay:run"],
      load: () => import("./agent-limits.tsx").then((module) => module.AgentLimits),
    },
  ],
  texts: () => import("./texts.ts").then((module) => module.texts),
} satisfies ConsolePart;
