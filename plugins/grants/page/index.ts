/** Grants in the console: their page, the offer with a vote, a card on the page about an agent. */
import type { ConsolePart } from "../../console/app/kit.ts";

const READERS = ["grants:write", "actions:read"];

export default {
  pages: [
    {
      name: "grants",
      title: "Grants",
      icon: "calendar",
      section: "Control",
      order: 10,
      load: () => import("./grants.tsx").then((module) => module.Grants),
      scopes: READERS,
    },
  ],
  panels: [
    {
      place: "agent",
      order: 10,
      scopes: READERS,
      load: () => import("./agent-grants.tsx").then((module) => module.AgentGrants),
    },
    {
      place: "action-allowed",
      load: () => import("./allowed-by-grant.tsx").then((module) => module.AllowedByGrant),
    },
    { place: "vote", scopes: ["grants:write"], load: () => import("./offer.tsx").then((module) => module.GrantOffer) },
  ],
  entries: { grant: ["person"] },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
