/** Plans in the console: their pages, and where to vote on an action of a plan. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "plans",
      title: "Plans",
      icon: "checklist",
      section: "Work",
      order: 20,
      load: () => import("./plan.tsx").then((module) => module.Plan),
      scopes: ["actions:read", "actions:read_own"],
    },
  ],
  votesElsewhere: [
    {
      code: "PLAN_VOTE_REQUIRED",
      includes: ({ plan }) => plan !== null,
      load: () => import("./in-plan.tsx").then((module) => module.InPlan),
    },
  ],
  entries: { plan: [] },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
