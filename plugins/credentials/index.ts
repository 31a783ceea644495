/** Credentials for actions: a tool gets a short-lived credential when its action starts, and loses it when the action ends. */
import { defineCorePlugin } from "../../src/core.ts";
import { createCredentialAuditor } from "./audit.ts";
import { createCredentialEndingTask } from "./ending.ts";
import { CREDENTIAL_ENTRIES } from "./entries.ts";
import { createPreparation } from "./issue.ts";

export default defineCorePlugin({
  name: "credentials",
  needs: ["actions"],
  entries: CREDENTIAL_ENTRIES,
  auditors: [createCredentialAuditor],
  setup(host) {
    const ending = createCredentialEndingTask(host);
    return {
      steps: [{ name: "credentials", preparation: createPreparation(host) }],
      start: async () => ending.start(),
      stop: () => ending.stop(),
    };
  },
});
