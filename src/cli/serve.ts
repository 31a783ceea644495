import { setTimeout as pause } from "node:timers/promises";
import { StorageError } from "../contract/storage.ts";
import { LedgerTampered } from "../ledger/tampered.ts";
import { ChannelError } from "../contract/messenger.ts";
import { VaultError } from "../identity/key-files.ts";
import { EnvironmentError } from "../policies/pin-environment.ts";
import { PluginError } from "../runtime/plugins/plugin-options.ts";
import { PluginLoadError } from "../runtime/plugins/loader.ts";
import { createRuntime, type Runtime } from "../runtime/runtime.ts";
import { reportStrayErrors } from "../serve/stray-errors.ts";
import { stopOnSignals, serve as serveHttp, ServerResponse, type RunningServer } from "../serve/index.ts";
import { chooseKeyOutput, showFirstKeys } from "./first-keys.ts";
import { initializeWorkingFolder, isWorkingFolderUninitialized } from "./init.ts";
import { listen } from "./listen.ts";
import { loadServeConfig } from "./load-config.ts";
import { assertStorageUsable } from "./with-store.ts";
import { allowOptimization, prepareForRequests } from "../serve/v8-flags.ts";
import { CommandError, parseArguments, parsePort, type Output } from "./command.ts";

/** Runs the command until SIGINT or SIGTERM. */
export async function runServe(args: string[], io: Output): Promise<number> {
  const { values } = parseArguments(args, {
    config: { type: "string" },
    host: { type: "string" },
    port: { type: "string" },
    "first-keys": { type: "string" },
    "accept-rollback": { type: "boolean" },
    "accept-secret": { type: "boolean" },
    "accept-environment": { type: "boolean" },
  });
  if (values.port !== undefined) parsePort(values.port);
  const env = {
    ...process.env,
    ...(values.host === undefined ? {} : { ASSENT_HOST: values.host }),
    ...(values.port === undefined ? {} : { ASSENT_PORT: values.port }),
  };
  const keyOutput = chooseKeyOutput(values["first-keys"], env);
  if (values.config === undefined && isWorkingFolderUninitialized(env)) {
    await assertStorageUsable(loadServeConfig(env, undefined));
    await initializeWorkingFolder(io);
  }
  const config = loadServeConfig(env, values.config);
  if (config.plugins?.length === 0)
    throw new CommandError(
      "the configuration has no plugins, so there is nothing to serve; remove the key `plugins` to use the built-in ones",
    );
  const runtime = await startRuntime(() =>
    createRuntime(config, {
      Response: ServerResponse,
      acceptRollback: values["accept-rollback"] === true,
      acceptSecret: values["accept-secret"] === true,
      acceptEnvironment: values["accept-environment"] === true,
    }),
  );
  reportStrayErrors(runtime.host.log);
  let listening: RunningServer;
  try {
    listening = await listen(serveHttp(runtime.fetch, config.server), "--port or ASSENT_PORT");
  } catch (error) {
    await runtime.stop();
    throw error;
  }
  runtime.listensAt(listening.port);
  prepareForRequests();
  const origin = runtime.host.origin();
  const fields = { url: listening.url, data: config.data, console: runtime.hasHomePage, origin };
  try {
    // Create the keys only after the server listens. A failed start would otherwise store keys that no one has seen.
    await runtime.createFirstKeys((keys) => showFirstKeys(io, keyOutput, fields, keys));
  } catch (error) {
    await listening.stop();
    await runtime.stop();
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      `the first keys could not be stored, and the printed keys are not valid: ${(error as Error).message}`,
    );
  }
  stopWithNpm(env);
  return new Promise<number>((resolve) => {
    // Install the handlers before the address is printed, because a reader may send a signal as soon as it appears.
    stopOnSignals(async () => {
      // Shut down in this order: end long-polling requests and report unready, close connections, close the ledger.
      runtime.beginStop();
      await pause(config.server.drain_seconds * 1000);
      await listening.stop();
      await runtime.stop();
      if (runtime.hanging.length > 0) throw new Error(`${runtime.hanging.join(", ")} did not close in time`);
      resolve(0);
    });
    if (runtime.hasHomePage && origin !== null) io.out(`the console is at ${origin}`);
    io.out(`assent is listening on ${listening.url}`);
  });
}

/** Interval at which the service checks whether npm has exited. Milliseconds. */
const PARENT_INTERVAL_MS = 500;

/**
 * Stops this process when the npm that started it exits. npm runs a script in a shell, which does not pass SIGTERM on,
 * so the service would keep running after `npm start` was stopped.
 */
function stopWithNpm(env: Record<string, string | undefined>): void {
  if (env["npm_command"] === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, PARENT_INTERVAL_MS);
  timer.unref();
}

/** Creates and starts a runtime. Throws CommandError, without a stack trace, for problems that an operator can fix. */
export async function startRuntime(create: () => Promise<Runtime>): Promise<Runtime> {
  try {
    const runtime = await create();
    allowOptimization();
    await runtime.start();
    return runtime;
  } catch (error) {
    const isExpected = [
      StorageError,
      LedgerTampered,
      VaultError,
      EnvironmentError,
      PluginError,
      PluginLoadError,
      ChannelError,
    ].some((kind) => error instanceof kind);
    if (isExpected) throw new CommandError((error as Error).message);
    throw error;
  }
}
