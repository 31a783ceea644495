/** The page of deliveries in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "deliveries",
      title: "Deliveries",
      icon: "send",
      section: "Service",
      order: 10,
      load: () => import("./deliveries.tsx").then((module) => module.Deliveries),
      scopes: ["deliveries:read"],
    },
  ],
  texts: () => import("./texts.ts").then((module) => module.texts),
} satisfies ConsolePart;
