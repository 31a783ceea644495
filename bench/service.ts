/**
 * Runs the whole service for a measurement, on an empty SQLite store or on `DATABASE_URL`. Prints one JSON line: `{url,
 * key}`.
 */
import { allowOptimization, prepareForLoading, prepareForRequests } from "../src/serve/v8-flags.ts";
import { answerCounts, countedSqlite } from "./counters.ts";

// Before other modules are loaded, as the command line does it.
prepareForLoading();
const { createLogger, createRuntime, loadConfig } = await import("../src/index.ts");
const { stopOnSignals, serve, ServerResponse } = await import("../src/serve/index.ts");

const [data, policies] = process.argv.slice(2) as [string, string];
const given = [
  "DATABASE_URL",
  "ASSENT_SECRET",
  "ASSENT_LOG_KEY",
  "ASSENT_PERMIT_KEY",
  "ASSENT_LOG_ORIGIN",
  "ASSENT_ADMIN_KEY",
  "ASSENT_PUBLIC_URL",
].map((name) => [name, process.env[name]]);
const { config } = loadConfig({
  cwd: data,
  env: {
    ...Object.fromEntries(given),
    ASSENT_DATA: data,
    ASSENT_POLICIES: policies,
    ASSENT_PORT: "0",
    ASSENT_AGENTS: "any",
  },
});
await countedSqlite();
let key = process.env["ASSENT_ADMIN_KEY"] ?? "";
const runtime = await createRuntime(config, {
  log: createLogger("info", () => {}),
  Response: ServerResponse,
});
allowOptimization();
await runtime.start();
await runtime.createFirstKeys((keys) => (key = keys.agent));
const { url, stop } = await serve(runtime.fetch, config.server);
prepareForRequests();
// Node writes the profile of --cpu-prof only on a graceful exit.
stopOnSignals(async () => {
  await stop();
  await runtime.stop();
});
answerCounts();
process.stdout.write(`${JSON.stringify({ url, key })}\n`);
