/** Credentials for actions in the console. */
import type { ConsolePart } from "../../console/app/kit.ts";

const load = () => import("./credentials.tsx");

export default {
  panels: [{ place: "system", order: 1, load: () => load().then((module) => module.Credentials) }],
  texts: () => load().then((module) => module.texts),
} satisfies ConsolePart;
