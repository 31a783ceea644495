/**
 * `assent/command`: functions for commands of plugins. Separate from `assent/plugin`, because the service does not need
 * them.
 * @example
 * const { values } = parseArguments(args, { json: { type: "boolean" } });
 */
import { CommandError, EXIT_CODES, type Output } from "./cli/command.ts";
import { listBuiltInCommands } from "./config/built-in-plugins.ts";
import { homedir } from "node:os";
import { isAbsolute } from "node:path";
import type { Config } from "./config/index.ts";
import type { StorageReader } from "./contract/storage.ts";
import type { FetchHandler } from "./http/handler.ts";
import type { Plugin } from "./plugin.ts";
import type { Runtime } from "./runtime/runtime.ts";
import type { RunningServer } from "./serve/index.ts";
import type { PolicyDocument } from "./domain/policy/policy-types.ts";

export {
  colourText,
  CommandError,
  createProgressReporter,
  describeSubcommands,
  EXIT_CODES,
  parseArguments,
  parseChoice,
  parseFormat,
  parsePort,
  printFacts,
  printJson,
  printTable,
  readCheckpointFlag,
  runSubcommand,
  toPrintable,
  usageError,
  type Command,
  type CommandEntry,
  type Output,
  type Subcommand,
} from "./cli/command.ts";
export { findAvailableKey, readLogin, serviceUrl, type StoredLogin } from "./cli/credentials.ts";
export type { DoctorCheck } from "./cli/doctor.ts";
export type { EntryCheck } from "./cli/verify.ts";
export { isTemporaryInstall, programArguments, programCommand } from "./cli/invocation.ts";
export { withJsonReport } from "./cli/json-report.ts";
export { loadServeConfig } from "./cli/load-config.ts";
export {
  actionExitCode,
  createClient,
  createPrivilegedClient,
  readAllPages,
  readJsonFlag,
  readSecretFlag,
  readTextFlag,
  REQUEST_TIMEOUT,
  withNames,
  withServiceErrors,
} from "./cli/remote.ts";
export { describeSystemError } from "./cli/system-error.ts";
export { withStatusLine } from "./cli/status-line.ts";
export { parseTimeWindow } from "./cli/time-window.ts";
export { parseFuture, parsePast, parseSeconds } from "./cli/times.ts";
export { askYesOrNo, canAsk, isYes } from "./cli/yes-or-no.ts";
export { stateFolder } from "./config/index.ts";
export { requestSections } from "./messages/approval-message-text.ts";
export { rankParameters } from "./domain/headline.ts";
export { isJsonObject, type JsonObject, parseJson } from "./domain/json.ts";
export { reachesSite, siteOrigin } from "./domain/loopback.ts";
export { displayPrincipal } from "./domain/principals.ts";
export { parseDuration, toRfc3339 } from "./domain/time.ts";
export { renderMarkedText } from "./domain/visible-text.ts";
export { VERSION } from "./version.ts";

/**
 * Loads what plugins add to a command: the default exports of `plugins/<folder>/commands/<command>/<name>`, by name.
 * @example
 * const options = await loadCommandAdditions("approve");
 */
export async function loadCommandAdditions(command: string): Promise<unknown[]> {
  const loads = Object.values(listBuiltInCommands(command));
  return (await Promise.all(loads.map((load) => load()))).map((module) => module.default);
}

/**
 * Returns what `collect` returns for the plugins of the configuration. Throws CommandError if the configuration or a
 * plugin cannot be loaded.
 * @param configFile path of the configuration; undefined for the default
 * @param collect gets each plugin, and a function that returns its options
 * @example
 * const names = await collectFromPlugins(undefined, ({ name }) => [name]);
 */
export async function collectFromPlugins<T>(
  configFile: string | undefined,
  collect: (plugin: Plugin, options: () => unknown) => readonly T[],
): Promise<T[]> {
  // Loaded here, because most commands use no configuration.
  return (await import("./cli/plugin-commands.ts")).collectFromPlugins(configFile, collect);
}

/**
 * Returns the members of later requests that a CEL condition does not constrain; null if it is not CEL.
 * @example
 * const free = await findFreeMembers("params.repo == \"web\"", action);
 */
export async function findFreeMembers(
  scope: string | null,
  request: { params: object; context: object },
): Promise<string[] | null> {
  // Loaded here, because most commands do not need the parser of CEL.
  const { findFreeMembers: find } = await import("./domain/scope-freedom.ts");
  try {
    return find(scope, request);
  } catch {
    return null;
  }
}

/**
 * Opens the store of the configuration for reading, runs the work and closes the store. The service may run meanwhile.
 * Throws CommandError for problems that an operator can fix.
 * @param configFile path of the configuration; undefined for the default
 * @param work gets the store, and a function that returns a plugin's section of the configuration
 * @example
 * const { size } = await readStore(undefined, (store) => store.head());
 */
export async function readStore<T>(
  configFile: string | undefined,
  work: (store: StorageReader, optionsOf: (plugin: string) => unknown) => Promise<T>,
): Promise<T> {
  return (await import("./cli/with-store.ts")).readStore(configFile, work);
}

/**
 * Checks a folder of policies. Prints its faults, and throws CommandError if there are any.
 * @param consequence end of the message
 * @example
 * await assertValidFolder("policies", "the files were written", io);
 */
export async function assertValidFolder(folder: string, consequence: string, io: Output): Promise<void> {
  const { checkPolicyFolder } = await import("./policies/folder.ts");
  const { assertNoFaults } = await import("./cli/policy/folder-argument.ts");
  assertNoFaults(folder, (await checkPolicyFolder(folder)).faults, consequence, EXIT_CODES.failure, io);
}

/**
 * Returns the valid policies of a folder, and its path: the argument of the command, else ASSENT_POLICIES, else
 * `./policies`. Prints the faults of the folder, and throws CommandError if there are any.
 * @param verb name of the subcommand of `assent policy`
 * @param values of the options `--recursive` and `--environment`
 * @param consequence end of the message
 * @example
 * const { path, documents } = await readPolicyFolder("backtest", positionals, values, "nothing was evaluated", io);
 */
export async function readPolicyFolder(
  verb: string,
  positionals: readonly string[],
  values: { recursive?: boolean | undefined; environment?: string | undefined },
  consequence: string,
  io: Output,
): Promise<{ path: string; documents: readonly { document: PolicyDocument; file: string }[] }> {
  const { checkPolicyFolder } = await import("./policies/folder.ts");
  const { assertNoFaults, folderOptions, resolvePolicyFolder } = await import("./cli/policy/folder-argument.ts");
  const path = resolvePolicyFolder(verb, positionals);
  const { documents, faults } = await checkPolicyFolder(path, folderOptions(values));
  assertNoFaults(path, faults, consequence, EXIT_CODES.failure, io);
  return { path, documents };
}

/**
 * Returns an error message for an invalid policy document; null if it is valid.
 * @example
 * const fault = await findPolicyFault({ policy: "refunds", rules: [] });
 */
export async function findPolicyFault(document: object): Promise<string | null> {
  const { validatePolicyDocument } = await import("./domain/policy/parse/parse.ts");
  return validatePolicyDocument(document)[0]?.detail ?? null;
}

/**
 * Returns this user's home folder. Throws CommandError if it is unknown.
 * @example
 * const home = homeFolder(); // "/home/ada"
 */
export function homeFolder(): string {
  const home = homedir();
  if (!isAbsolute(home)) throw new CommandError("the home folder is unknown; set HOME");
  return home;
}

/**
 * Starts the service in this process, without a server. Throws CommandError for problems that an operator can fix.
 * @example
 * const runtime = await startService(loadServeConfig(process.env, "assent.yaml"));
 */
export async function startService(config: Config): Promise<Runtime> {
  const { assertStorageUsable } = await import("./cli/with-store.ts");
  const { startRuntime } = await import("./cli/serve.ts");
  const { createRuntime } = await import("./runtime/runtime.ts");
  const { ServerResponse } = await import("./serve/index.ts");
  await assertStorageUsable(config);
  return startRuntime(() => createRuntime(config, { Response: ServerResponse }));
}

/**
 * Starts an HTTP server. Throws CommandError if it cannot listen.
 * @param option the option that selects another port
 * @example
 * const { url, stop } = await startServer(async () => new Response("hello"), { host: "127.0.0.1", port: 0 });
 */
export async function startServer(
  handler: FetchHandler,
  { option = "--port", ...address }: { host: string; port: number; option?: string },
): Promise<RunningServer> {
  const { serve } = await import("./serve/index.ts");
  const { listen } = await import("./cli/listen.ts");
  return listen(serve(handler, address), option);
}

/**
 * Resolves when the process receives a signal to stop. The caller then has to end the process; a second signal ends it
 * at once.
 * @param waiting is called once a signal would be noticed
 * @example
 * await waitForStopSignal(() => io.out("press Ctrl+C to stop"));
 */
export async function waitForStopSignal(waiting: () => void): Promise<void> {
  const { stopOnSignals } = await import("./serve/index.ts");
  await new Promise<void>((stop) => {
    stopOnSignals(() => new Promise(() => stop()));
    waiting();
  });
}

/**
 * Serves HTTP until the process is asked to stop. Throws CommandError if it cannot listen.
 * @param listening is called with the URL once the server listens
 * @param close ends what the handler uses, before the server stops, or if it cannot listen
 * @example
 * await serveUntilStopped(async () => new Response("hello"), { host: "127.0.0.1", port: 0 }, (url) => io.out(url));
 */
export async function serveUntilStopped(
  handler: FetchHandler,
  address: { host: string; port: number; option?: string },
  listening: (url: string) => void,
  close: () => Promise<void> = async () => {},
): Promise<void> {
  const server = await startServer(handler, address).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  const { stopOnSignals } = await import("./serve/index.ts");
  const stopped = new Promise<void>((resolve) =>
    stopOnSignals(async () => {
      await close();
      await server.stop();
      resolve();
    }),
  );
  listening(server.url);
  await stopped;
}
