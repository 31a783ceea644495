/** Grants: one approver allows later actions of an agent with one tool and operation, within a scope and caps. */
import { defineCorePlugin } from "../../src/core.ts";
import { grantAuditor } from "./audit.ts";
import { GRANT_ENTRY } from "./entry.ts";
import { ERRORS } from "./errors.ts";
import { grantReaction } from "./reaction.ts";
import { grantRoutes } from "./routes.ts";
import { grantState } from "./state.ts";
import { grantStep } from "./step.ts";
import { voteAddition } from "./vote-addition.ts";

export default defineCorePlugin({
  name: "grants",
  needs: ["actions"],
  errors: ERRORS,
  records: { grant: GRANT_ENTRY },
  folds: [grantState],
  auditors: [grantAuditor],
  reactions: [grantReaction],
  voteAddition,
  setup: (host) => ({ routes: grantRoutes(host), steps: [grantStep(host)] }),
});

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    grants: typeof grantRoutes;
  }
}
