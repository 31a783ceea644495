/** Connected apps in the console: two pages, and the line of a grant's entry. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "apps",
      title: "Connected apps",
      icon: "key",
      section: "Control",
      order: 53,
      load: () => import("./apps.tsx").then((module) => module.Apps),
      // Everyone has their own.
      scopes: [],
    },
    {
      name: "connect-app",
      title: "Connect an app",
      icon: "key",
      section: null,
      order: 0,
      load: () => import("./apps.tsx").then((module) => module.ConnectApp),
      scopes: [],
    },
  ],
  entries: { "oauth:grant": ["person", "system"] },
  texts: () => import("./apps.tsx").then((module) => module.texts),
} satisfies ConsolePart;
