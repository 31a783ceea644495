/** The whole service on an empty SQLite store, for measuring. Prints one JSON line: `{url, key}`. */
import { createLogger, createRuntime, loadConfig } from "../src/index.ts";
import { onSignals, serve, ServerResponse } from "../src/serve/index.ts";

const [data, policies] = process.argv.slice(2) as [string, string];
const { config } = loadConfig({ cwd: data, env: { ASSENT_DATA: data, ASSENT_POLICIES: policies, ASSENT_PORT: "0" } });
let key = "";
const runtime = await createRuntime(config, {
  log: createLogger("info", () => {}),
  Response: ServerResponse,
  firstKeys: (keys) => (key = keys.agent ?? ""),
});
await runtime.start();
const { url, stop } = await serve(runtime.fetch, config.server);
// A clean end writes the profile that --cpu-prof asks for.
onSignals(async () => {
  await stop();
  await runtime.stop();
});
process.stdout.write(`${JSON.stringify({ url, key })}\n`);
