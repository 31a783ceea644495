/**
 * Suggested rules: rules that would have allowed what people approved, and the changes of these rules once they are
 * active.
 */
import { type CoreHost, defineCorePlugin } from "../../src/core.ts";
import { suggestedRuleAuditor } from "./audit.ts";
import { SUGGESTED_RULE_ENTRY } from "./entry.ts";
import { ERRORS } from "./errors.ts";
import { flaggedActionState } from "./mining/past-decisions.ts";
import { suggestedRuleReaction } from "./reaction.ts";
import { suggestedRuleRoutes } from "./rule-routes.ts";
import { findSuggestedFacts, suggestedRuleState } from "./state.ts";
import { suggestRoute } from "./suggest-route.ts";

export default defineCorePlugin({
  name: "suggestions",
  needs: ["actions"],
  errors: ERRORS,
  records: { suggested_rule: SUGGESTED_RULE_ENTRY },
  folds: [suggestedRuleState, flaggedActionState],
  auditors: [suggestedRuleAuditor],
  reactions: [suggestedRuleReaction],
  setup: (host) => ({
    routes: routes(host),
    steps: [
      {
        name: "suggested rules",
        ruleFacts: ({ state }, policies) =>
          policies.suggested.length === 0 ? {} : findSuggestedFacts(state(suggestedRuleState), policies),
      },
    ],
  }),
});

function routes(host: CoreHost) {
  return [suggestRoute(host, "policies"), ...suggestedRuleRoutes(host, "actions")];
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    suggestions: typeof routes;
  }
}
