/** A policy source that follows a branch or tag of a git repository, by polling and by webhook. */
import { defineCorePlugin } from "../../src/core.ts";
import { GitSource } from "./git-source.ts";
import { Options } from "./options.ts";
import { readRemote } from "./remote-repository.ts";
import { createWebhookRoute } from "./webhook.ts";

export default defineCorePlugin({
  name: "policy-git",
  options: Options,
  setup(host, options) {
    if (options.url === undefined) return {};
    const source = new GitSource(host, options, readRemote(options, options.url));
    return {
      policySources: [source],
      ...(options.webhook_secret === undefined
        ? {}
        : { routes: [createWebhookRoute(options.webhook_secret, () => source.pollNow())] }),
    };
  },
});
