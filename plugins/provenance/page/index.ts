/** The ledger in the console: a page, and the proofs on the pages about an action and a test request. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "provenance",
      title: "Provenance",
      icon: "shield",
      section: "Record",
      order: 20,
      load: () => import("./provenance.tsx").then((module) => module.Provenance),
      scopes: ["provenance:read"],
    },
  ],
  panels: [
    {
      place: "action",
      order: 10,
      scopes: ["provenance:read"],
      load: () => import("./action-proof.tsx").then((module) => module.ActionProof),
    },
    {
      place: "test-request",
      load: () => import("./test-proof.tsx").then((module) => module.TestRequestProof),
    },
  ],
  texts: () => import("./texts.ts").then((module) => module.texts),
} satisfies ConsolePart;
