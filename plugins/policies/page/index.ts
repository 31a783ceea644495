/** Policies in the console: the list, the page about one policy, and the editor. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "policies",
      title: "Policies",
      icon: "scroll",
      section: "Control",
      order: 20,
      load: () => import("./policies.tsx").then((module) => module.Policies),
      scopes: ["policies:read"],
      forms: [{ title: "New policy", path: "/new", scope: "policies:write" }],
    },
  ],
  finders: [
    {
      icon: "scroll",
      scopes: ["policies:read"],
      load: () => import("./find-policies.ts").then((module) => module.findPolicies),
    },
  ],
  entries: { policy_set: ["person", "system"] },
  texts: () => import("./texts.ts").then((module) => module.texts),
} satisfies ConsolePart;
