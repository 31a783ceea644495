/** Replay in the console: cards on the pages about an action and an agent, and backtests of policies. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [
    {
      place: "action",
      order: 20,
      scopes: ["replay:run"],
      load: () => import("./action-replay.tsx").then((module) => module.ActionReplay),
    },
    {
      place: "agent",
      order: 20,
      scopes: ["replay:run"],
      load: () => import("./agent-limits.tsx").then((module) => module.AgentLimits),
    },
    { place: "policy-candidate", load: () => import("./backtest.tsx").then((module) => module.Backtest) },
  ],
  texts: () => import("./texts.ts").then((module) => module.texts),
} satisfies ConsolePart;
