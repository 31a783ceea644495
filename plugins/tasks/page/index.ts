/** Tasks in the console: a card on the page about an agent, with the tasks in progress. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [
    {
      place: "agent",
      order: 9,
      scopes: ["grants:write", "actions:read"],
      load: () => import("./agent-tasks.tsx").then((module) => module.AgentTasks),
    },
  ],
  entries: { task: ["person"] },
  texts: () => import("./agent-tasks.tsx").then((module) => module.texts),
} satisfies ConsolePart;
