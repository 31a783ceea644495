/** Suggests rules that would have allowed what people approved. */
import { type CoreHost, defineCorePlugin } from "../../src/core.ts";
import { flaggedActionState } from "./mining/past-decisions.ts";
import { suggestRoute } from "./suggest-route.ts";

export default defineCorePlugin({
  name: "suggestions",
  folds: [flaggedActionState],
  setup: (host) => ({ routes: routes(host) }),
});

function routes(host: CoreHost) {
  return [suggestRoute(host, "policies")];
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    suggestions: typeof routes;
  }
}
