/** Lists groups and rotas: who is a member, who is on call, and which actions members see. */
import { defineCorePlugin } from "../../src/core.ts";
import { groupRoute } from "./groups.ts";
import { requiredRoute } from "./required.ts";
import { rotaRoute } from "./rotas.ts";

const TAG = "groups";

export default defineCorePlugin({
  name: "groups",
  setup: (host) => ({ routes: [groupRoute(host, TAG), requiredRoute(host, TAG), rotaRoute(host, TAG)] }),
});

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    groups: typeof groupRoute | typeof requiredRoute | typeof rotaRoute;
  }
}
