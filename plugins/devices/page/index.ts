/** Devices in the console: a page, and the line of a device's entry. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "devices",
      title: "Devices",
      icon: "laptop",
      section: "Control",
      order: 52,
      load: () => import("./devices.tsx").then((module) => module.Devices),
      scopes: ["keys:manage", "users:read"],
    },
    {
      name: "enrol-device",
      title: "Enrol a machine",
      icon: "laptop",
      section: null,
      order: 0,
      load: () => import("./enrol.tsx").then((module) => module.EnrolDevice),
      scopes: [],
    },
  ],
  entries: { "devices:change": ["person", "system"] },
  texts: () => import("./devices.tsx").then((module) => module.texts),
} satisfies ConsolePart;
