/** Registered agents and their allowed tools. A change applies from the next submission on every process. */
import { defineCorePlugin } from "../../src/core.ts";
import { agentRoutes } from "./agent-routes.ts";

export default defineCorePlugin({ name: "agents", setup: (host) => ({ routes: agentRoutes(host, "agents") }) });

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    agents: typeof agentRoutes;
  }
}
