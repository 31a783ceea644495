/** Claims in the console: who is looking at a request, in the rows of the inbox and in the open request. */
import type { ConsolePart } from "../../console/app/kit.ts";

const load = () => import("./claim.tsx");

export default {
  panels: [
    { place: "request-row", load: () => load().then((module) => module.RowClaim) },
    { place: "request", load: () => load().then((module) => module.RequestClaim) },
  ],
  entries: { "claims:change": ["person"] },
  texts: () => load().then((module) => module.texts),
} satisfies ConsolePart;
