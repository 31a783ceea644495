/** The page of coverage statements in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "coverage",
      title: "Coverage",
      icon: "scan",
      section: "Record",
      order: 30,
      load: () => import("./coverage.tsx").then((module) => module.Coverage),
      scopes: ["provenance:read"],
    },
  ],
  texts: () => import("./texts.ts").then((module) => module.texts),
} satisfies ConsolePart;
