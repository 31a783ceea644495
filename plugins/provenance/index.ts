/** Serves the ledger to verifiers: entries by leaf hash, proofs, checkpoints and keys. */
import { Type } from "@sinclair/typebox";
import { defineCorePlugin } from "../../src/core.ts";
import { entryRoutes } from "./entry-routes.ts";
import { logRoutes } from "./log-routes.ts";
import { NOT_WITNESSED } from "./witnessed-checkpoint.ts";

const Options = Type.Object(
  {
    public: Type.Boolean({
      default: false,
      description:
        "Checkpoint, consistency proofs, keys and tiles of hashes need no credential, so that witnesses can follow the log. Only the entries that change the log's key become public.",
    }),
  },
  { additionalProperties: false },
);

export default defineCorePlugin({
  name: "provenance",
  needs: ["actions"],
  errors: { notWitnessed: NOT_WITNESSED },
  options: Options,
  setup: (host, options) => ({ routes: [...logRoutes(host, options.public), ...entryRoutes(host)] }),
});

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    provenance: typeof logRoutes | typeof entryRoutes;
  }
}
