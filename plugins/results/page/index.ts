/** Entries of inspections in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  entries: { "results:inspection": ["system"], "results:labels": ["system"] },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
