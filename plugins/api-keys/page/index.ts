/** API keys in the console: a page, and cards on the pages about an agent and a user. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "keys",
      title: "API keys",
      icon: "key",
      section: "Control",
      order: 50,
      load: () => import("./keys.tsx").then((module) => module.Keys),
      scopes: ["keys:manage"],
      forms: [{ title: "New key…", path: "?form=true", scope: "keys:manage" }],
    },
  ],
  panels: [
    {
      place: "agent",
      order: 30,
      scopes: ["keys:manage"],
      load: () => import("./key-cards.tsx").then((module) => module.AgentKeys),
    },
    {
      place: "person",
      scopes: ["keys:manage"],
      load: () => import("./key-cards.tsx").then((module) => module.PersonKeys),
    },
  ],
  entries: { api_key: ["person", "system"] },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
