/** Flags in the console: a button next to what is still possible with an action that was let through. */
import type { ConsolePart } from "../../console/app/kit.ts";

const load = () => import("./flag.tsx");

export default {
  panels: [{ place: "settled", scopes: ["approvals:decide"], load: () => load().then((module) => module.FlagAction) }],
  entries: { "flags:flag": ["person"] },
  texts: () => load().then((module) => module.texts),
} satisfies ConsolePart;
