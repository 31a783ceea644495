/** The actions resource: submit, read, vote on and run actions. README.md describes its routes. */
import { Type } from "@sinclair/typebox";
import { defineCorePlugin } from "../../src/core.ts";
import { agentSessionRoutes } from "./agent-sessions.ts";
import { createWaitTracker } from "./wait-tracker.ts";
import { executionRoutes } from "./execution-routes.ts";
import { createFactWrites } from "./fact-writes.ts";
import { createExpiryTask } from "./expiry.ts";
import { readRoutes } from "./read-routes.ts";
import { createUnknownOutcomeTask } from "./unknown-outcome.ts";
import { submissionRoutes } from "./submission-routes.ts";
import { voteRoutes } from "./vote-routes.ts";
import { createActionWaits } from "./wait.ts";

const TAG = "actions";

const Options = Type.Object(
  {
    max_waits_per_key: Type.Integer({
      default: 100,
      minimum: 1,
      maximum: 100_000,
      description:
        "Maximum number of requests of one API key or user that can wait for pending actions at the same time, per process.",
    }),
    unknown_after_minutes: Type.Integer({
      default: 60,
      minimum: 1,
      maximum: 525_600,
      description:
        "Number of minutes after the start of an action after which its status becomes `unknown` if no result was reported.",
    }),
  },
  { additionalProperties: false },
);

export default defineCorePlugin({
  name: "actions",
  options: Options,
  setup(host, options) {
    const expiry = createExpiryTask(host);
    const waitTracker = createWaitTracker(host);
    const waiters = createActionWaits(host, options.max_waits_per_key, waitTracker);
    const factWrites = createFactWrites(host);
    const unknownOutcomes = createUnknownOutcomeTask(host, options.unknown_after_minutes * 60_000);
    return {
      routes: [
        ...submissionRoutes(host, TAG, waiters),
        ...agentSessionRoutes(host, TAG),
        ...readRoutes(host, TAG, waiters),
        ...voteRoutes(host, TAG),
        ...executionRoutes(host, TAG),
      ],
      async start() {
        await expiry.start();
        unknownOutcomes.start();
        factWrites.start();
      },
      async stop() {
        waiters.stop();
        factWrites.stop();
        await waitTracker.stop();
        await unknownOutcomes.stop();
        await expiry.stop();
      },
    };
  },
});

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    actions:
      | typeof submissionRoutes
      | typeof agentSessionRoutes
      | typeof readRoutes
      | typeof voteRoutes
      | typeof executionRoutes;
  }
}
