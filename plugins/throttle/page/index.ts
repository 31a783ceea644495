/** Entries of throttled keys in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  entries: { throttle: ["system"] },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
