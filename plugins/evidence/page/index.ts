/** Evidence in the console: a page that makes packs. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "evidence",
      title: "Evidence",
      icon: "archive",
      section: "Record",
      order: 25,
      load: () => import("./evidence.tsx").then((module) => module.Evidence),
      scopes: ["admin"],
    },
  ],
} satisfies ConsolePart;
