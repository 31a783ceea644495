/** Policies over the API: immutable versions, activation, rollback, diffs and dry runs. */
import { type CoreHost, defineCorePlugin } from "../../src/core.ts";
import { activateRoute, deactivateRoute } from "./activation-routes.ts";
import { createRoute, deleteRoute, importRoute, updateRoute } from "./change-routes.ts";
import { editorRoutes } from "./check.ts";
import { dryRunRoute } from "./dry-run.ts";
import { listRoute, readRoute } from "./read-policies.ts";
import { shadowRoute } from "./shadow.ts";
import { versionRoutes } from "./versions.ts";

/** Maximum size of a body. Parsing YAML takes seconds per megabyte and delays other requests with policies. */
const MAX_BODY = 512 * 1024;
const TAG = "policies";

export default defineCorePlugin({ name: "policies", setup: (host) => ({ routes: routes(host) }) });

function routes(host: CoreHost) {
  return [
    listRoute(host, TAG),
    createRoute(host, TAG, MAX_BODY),
    importRoute(host, TAG, MAX_BODY),
    dryRunRoute(host, TAG, MAX_BODY),
    ...editorRoutes(host, TAG, MAX_BODY),
    readRoute(host, TAG),
    updateRoute(host, TAG, MAX_BODY),
    deleteRoute(host, TAG),
    activateRoute(host, TAG),
    deactivateRoute(host, TAG),
    shadowRoute(host, TAG),
    ...versionRoutes(host, TAG),
  ];
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    policies: typeof routes;
  }
}
