/** Loads the pages that are still written in JavaScript with htm. */
export const LOADERS = {
  policies: () => import("./policies.js").then((module) => module.Policies),
  agents: () => import("./agents.js").then((module) => module.Agents),
  keys: () => import("./keys.js").then((module) => module.Keys),
  analytics: () => import("./analytics.js").then((module) => module.Analytics),
  provenance: () => import("./provenance.js").then((module) => module.Provenance),
  events: () => import("./events.js").then((module) => module.Events),
  deliveries: () => import("./deliveries.js").then((module) => module.Deliveries),
  system: () => import("./system.js").then((module) => module.System),
};
