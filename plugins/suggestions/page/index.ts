/** Suggested rules in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "suggestions",
      title: "Suggestions",
      icon: "lightbulb",
      section: "Control",
      order: 30,
      load: () => import("./suggestions.tsx").then((module) => module.Suggestions),
      scopes: ["policies:read"],
    },
  ],
  panels: [
    { place: "action-allowed", load: () => import("./allowed-by-rule.tsx").then((module) => module.AllowedByRule) },
  ],
  entries: { suggested_rule: ["person", "system"] },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
