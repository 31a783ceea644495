/** Tasks in the console: a card on the page about an agent, and a field that names a task when a vote also creates a grant. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [
    {
      place: "agent",
      order: 9,
      scopes: ["grants:write", "actions:read"],
      load: () => import("./agent-tasks.tsx").then((module) => module.AgentTasks),
    },
    { place: "grant-offer", load: () => import("./name-task.tsx").then((module) => module.NameTask) },
  ],
  entries: { task: ["person"] },
  texts: () => import("./agent-tasks.tsx").then((module) => module.texts),
} satisfies ConsolePart;
