/** Plans: several actions that are submitted at once, approved as one list, and started one by one. */
import { defineCorePlugin } from "../../src/core.ts";
import { createPlanAuditor } from "./audit.ts";
import { PLAN_ENTRY } from "./entry.ts";
import { planRoutes } from "./routes.ts";
import { ERRORS } from "./schemas.ts";
import { planGuard } from "./state.ts";

export default defineCorePlugin({
  name: "plans",
  needs: ["actions"],
  errors: ERRORS,
  records: { plan: PLAN_ENTRY },
  guards: [planGuard],
  auditors: [createPlanAuditor],
  setup: (host) => ({ routes: planRoutes(host) }),
});

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    plans: typeof planRoutes;
  }
}
