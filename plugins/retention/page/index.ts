/** Legal holds in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

const load = () => import("./holds.tsx");

export default {
  panels: [
    {
      place: "system",
      scopes: ["holds:write", "actions:erase", "provenance:read"],
      load: () => load().then((module) => module.Holds),
    },
  ],
  entries: { legal_hold: ["system"] },
  texts: () => load().then((module) => module.texts),
} satisfies ConsolePart;
