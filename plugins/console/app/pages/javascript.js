/** Loads the pages that are still written in JavaScript with htm. */
export const LOADERS = {
  agents: () => import("./agents.js").then((module) => module.Agents),
  keys: () => import("./keys.js").then((module) => module.Keys),
  analytics: () => import("./analytics.js").then((module) => module.Analytics),
  system: () => import("./system.js").then((module) => module.System),
};
