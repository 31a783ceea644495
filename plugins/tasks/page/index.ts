/** Tasks in the console: a card on the page about an agent, a field that names a task when a vote also creates a grant, and a button on the page of a plan. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [
    {
      place: "agent",
      order: 9,
      scopes: ["grants:write", "actions:read"],
      load: () => import("./agent-tasks.tsx").then((module) => module.AgentTasks),
    },
    { place: "grant-offer", load: () => import("./start-task.tsx").then((module) => module.NameTask) },
    {
      place: "plan",
      scopes: ["grants:write"],
      load: () => import("./start-task.tsx").then((module) => module.StartFromPlan),
    },
  ],
  entries: { task: ["person"] },
  texts: () => import("./agent-tasks.tsx").then((module) => module.texts),
} satisfies ConsolePart;
