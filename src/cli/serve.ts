import { ConfigError, loadConfig } from "../config/index.ts";
import { StorageError } from "../contract/storage.ts";
import { LedgerTampered } from "../ledger/tampered.ts";
import { ChannelError } from "../delivery/channels.ts";
import { VaultError } from "../identity/key-files.ts";
import { PluginError } from "../runtime/plugins/options.ts";
import { PluginLoadError } from "../runtime/plugins/loader.ts";
import { createRuntime, type Runtime } from "../runtime/runtime.ts";
import { reportStrayErrors } from "../delivery/notifier-errors.ts";
import { onSignals, serve as serveHttp, ServerResponse, type Listening } from "../serve/index.ts";
import { placeOf, showFirstKeys } from "./first-keys.ts";
import { beginHere, isUnbegun } from "./init.ts";
import { listen } from "./listen.ts";
import { assertStorable } from "./store.ts";
import { releaseYoungSpace } from "../serve/young-space.ts";
import { CommandError, parse, usage, type Command } from "./command.ts";

export const serve: Command = {
  summary: "run the service",
  help: `usage: assent serve [--config FILE] [--host HOST] [--port PORT] [--first-keys print|file]
                    [--accept-rollback] [--accept-secret]

Runs the service until SIGINT or SIGTERM. Reads assent.yaml in the working folder when it is there;
environment variables win over it (docs/configuration.md). In a folder with neither of them, nor a store, it
writes first what "assent init" writes. The first start that serves shows an admin key and an agent key, once.

  --config FILE   configuration file
  --host HOST     address to listen on (127.0.0.1)
  --port PORT     port; 0 picks a free one (8000)
  --first-keys WHERE  print, or file: first-keys in the data folder, for its user alone, as the main process of a
                  container does by itself (ASSENT_FIRST_KEYS)
  --accept-rollback   start though the store is older than the checkpoint kept beside it: after a restore
  --accept-secret     take another token secret than the other processes on this database had

examples:
  assent serve
  assent serve --port 9000
  ASSENT_DATA=/var/lib/assent assent serve --config /etc/assent.yaml
`,
  async run(args, io) {
    const { values } = parse(args, {
      config: { type: "string" },
      host: { type: "string" },
      port: { type: "string" },
      "first-keys": { type: "string" },
      "accept-rollback": { type: "boolean" },
      "accept-secret": { type: "boolean" },
    });
    if (values.port !== undefined && !(/^\d{1,5}$/.test(values.port) && Number(values.port) <= 65_535))
      throw usage(`--port takes 0 to 65535, not "${values.port}"`);
    const env = {
      ...process.env,
      ...(values.host === undefined ? {} : { ASSENT_HOST: values.host }),
      ...(values.port === undefined ? {} : { ASSENT_PORT: values.port }),
    };
    const place = placeOf(values["first-keys"], env);
    if (values.config === undefined && isUnbegun(env)) {
      await assertStorable(configFrom(env, undefined));
      await beginHere(io);
    }
    const config = configFrom(env, values.config);
    if (config.plugins?.length === 0)
      throw new CommandError(
        "the configuration has no plugins, so there is nothing to serve; without `plugins` it has the built-in ones",
      );
    const runtime = await startRuntime(() =>
      createRuntime(config, {
        Response: ServerResponse,
        acceptRollback: values["accept-rollback"] === true,
        acceptSecret: values["accept-secret"] === true,
      }),
    );
    reportStrayErrors(runtime.host.log);
    let listening: Listening;
    try {
      listening = await listen(serveHttp(runtime.fetch, config.server), "--port or ASSENT_PORT");
    } catch (error) {
      await runtime.stop();
      throw error;
    }
    releaseYoungSpace();
    const about = { url: listening.url, data: config.data, console: runtime.hasHomePage };
    try {
      // Not before it serves: a start that failed would have stored keys that nobody was shown.
      await runtime.createFirstKeys((keys) => showFirstKeys(io, place, about, keys));
    } catch (error) {
      await listening.stop();
      await runtime.stop();
      if (error instanceof CommandError) throw error;
      throw new CommandError(
        `the first keys could not be stored, and those that were shown are of no use: ${(error as Error).message}`,
      );
    }
    return new Promise<number>((resolve) => {
      // Before the address is printed: whoever reads it may send a signal at once.
      onSignals(async () => {
        // Waits end first, so that their requests can finish; then connections; then the ledger.
        runtime.beginStop();
        await listening.stop();
        await runtime.stop();
        resolve(0);
      });
      io.out(`assent is listening on ${listening.url}`);
    });
  },
};

export function configFrom(
  env: Record<string, string | undefined>,
  file: string | undefined,
): ReturnType<typeof loadConfig>["config"] {
  try {
    return loadConfig({ cwd: process.cwd(), env, ...(file === undefined ? {} : { file }) }).config;
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message);
    throw error;
  }
}

/** Creates and starts; what an operator can mend is said in its own words, without a stack. */
export async function startRuntime(create: () => Promise<Runtime>): Promise<Runtime> {
  try {
    const runtime = await create();
    await runtime.start();
    return runtime;
  } catch (error) {
    const isExpected = [StorageError, LedgerTampered, VaultError, PluginError, PluginLoadError, ChannelError].some(
      (kind) => error instanceof kind,
    );
    if (isExpected) throw new CommandError((error as Error).message);
    throw error;
  }
}
