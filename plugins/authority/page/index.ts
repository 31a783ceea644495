/** Proposed rules in the console: a card on the page about an agent. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [
    {
      place: "agent",
      order: 25,
      scopes: ["policies:read"],
      load: () => import("./proposals.tsx").then((module) => module.Proposals),
    },
  ],
  entries: { rule_proposal: ["system"] },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
