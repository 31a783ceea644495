/** The actions resource: submit, look, approve, run. README.md tells its life. */
import { definePlugin } from "../../src/plugin.ts";
import { erasureRoutes } from "./erasure.ts";
import { executionRoutes } from "./execution.ts";
import { createExpiry } from "./expiry.ts";
import { lookupRoutes } from "./lookup.ts";
import { createRetention } from "./retention.ts";
import { submissionRoutes } from "./submission.ts";
import { verdictRoutes } from "./verdicts.ts";
import { createWaiters } from "./wait.ts";

const TAG = "actions";

export default definePlugin({
  name: "actions",
  setup(host) {
    const expiry = createExpiry(host);
    const waiters = createWaiters(host);
    const retention = createRetention(host);
    return {
      routes: [
        ...submissionRoutes(host, TAG, expiry, waiters),
        ...lookupRoutes(host, TAG, expiry, waiters),
        ...verdictRoutes(host, TAG),
        ...executionRoutes(host, TAG),
        ...erasureRoutes(host, TAG),
      ],
      async start() {
        await expiry.start();
        retention.start();
      },
      async stop() {
        waiters.stop();
        await retention.stop();
        await expiry.stop();
      },
    };
  },
});
