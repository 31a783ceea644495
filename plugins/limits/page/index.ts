/** Limits in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "limits",
      title: "Limits",
      icon: "gauge",
      section: "Control",
      order: 25,
      load: () => import("./limits.tsx").then((module) => module.Limits),
      scopes: ["policies:read"],
    },
  ],
} satisfies ConsolePart;
