/** Policy sources that follow branches or tags of git repositories, by polling and by webhook. */
import type { Static } from "@sinclair/typebox";
import { defineCorePlugin } from "../../src/core.ts";
import { GitSource } from "./git-source.ts";
import { Options, type RepositoryOptions } from "./options.ts";
import { readRemote } from "./remote-repository.ts";
import { createWebhookRoute } from "./webhook.ts";

const NAME = "policy-git";

export default defineCorePlugin({
  name: NAME,
  needs: ["policies"],
  options: Options,
  setup(host, options) {
    const sources = listRepositories(options).map(
      ([name, repository]) => new GitSource(name, host, repository, readRemote(repository, repository.url)),
    );
    const names = sources.map(({ name }) => name);
    const repeated = names.find((name, i) => names.indexOf(name) !== i);
    if (repeated !== undefined)
      throw new Error(`option "repositories": two repositories have the source name "${repeated}"`);
    if (sources.length === 0) return {};
    const pollAll = (): void => {
      for (const source of sources) source.pollNow();
    };
    return {
      policySources: sources,
      ...(options.webhook_secret === undefined
        ? {}
        : { routes: [createWebhookRoute(options.webhook_secret, pollAll)] }),
    };
  },
});

/** Returns the repositories, each with the name of its policy source. */
function listRepositories({
  url,
  repositories,
  ...first
}: Static<typeof Options>): [source: string, options: RepositoryOptions][] {
  return [
    ...(url === undefined ? [] : [[NAME, { ...first, url }] satisfies [string, RepositoryOptions]]),
    ...repositories.map(({ name, ...more }): [string, RepositoryOptions] => [`${NAME}/${name}`, more]),
  ];
}
