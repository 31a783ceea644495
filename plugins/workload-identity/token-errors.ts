import { defineErrors } from "../../src/plugin.ts";

export const ERRORS = defineErrors("workload-identity", {
  KEYS_UNAVAILABLE: [503, "The keys of a token issuer cannot be read"],
});
