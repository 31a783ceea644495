/** Evidence packs: the command `assent evidence`, and a route with which the console makes a pack. */
import { defineCorePlugin } from "../../src/core.ts";
import { packRoute } from "./pack-route.ts";

export default defineCorePlugin({ name: "evidence", setup: (host) => ({ routes: [packRoute(host)] }) });

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    evidence: typeof packRoute;
  }
}
