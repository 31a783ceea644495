import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { ConfigError, loadConfig } from "../config.ts";
import { StorageError } from "../contract/storage.ts";
import { LedgerTampered } from "../ledger/index.ts";
import { ChannelError } from "../kernel/channels.ts";
import { VaultError } from "../kernel/vault.ts";
import { PluginError } from "../registry.ts";
import { PluginLoadError } from "../plugin-loader.ts";
import { createRuntime, type Runtime } from "../runtime.ts";
import { guardStrays } from "../kernel/strays.ts";
import { onSignals, serve as listen, ServerResponse, type Listening } from "../serve/index.ts";
import { CommandError, parse, type Command, type Output } from "./command.ts";

export const serve: Command = {
  summary: "run the service",
  help: `usage: assent serve [--config FILE] [--host HOST] [--port PORT] [--accept-rollback] [--accept-secret]

Runs the service until SIGINT or SIGTERM. Reads assent.yaml in the working folder when it is there;
environment variables win over it (docs/configuration.md). The first start of an empty store prints an
admin key and an agent key, once.

  --config FILE   configuration file
  --host HOST     address to listen on (127.0.0.1)
  --port PORT     port; 0 picks a free one (8000)
  --accept-rollback   start though the store is older than the checkpoint kept beside it: after a restore
  --accept-secret     take another token secret than the other processes on this database had

examples:
  assent serve
  assent serve --port 9000
  ASSENT_DATA=/var/lib/assent assent serve --config /etc/assent.yaml
`,
  async run(args, io) {
    const { values } = parse(args, { config: { type: "string" }, host: { type: "string" }, port: { type: "string" }, "accept-rollback": { type: "boolean" }, "accept-secret": { type: "boolean" } });
    const env = { ...process.env, ...(values.host === undefined ? {} : { ASSENT_HOST: values.host }), ...(values.port === undefined ? {} : { ASSENT_PORT: values.port }) };
    const config = configFrom(env, values.config);
    let keys: { admin: string | null; agent: string | null } | null = null;
    const runtime = await startRuntime(() => createRuntime(config, {
      Response: ServerResponse,
      firstKeys: (first) => (keys = first),
      acceptRollback: values["accept-rollback"] === true,
      acceptSecret: values["accept-secret"] === true,
    }));
    guardStrays(runtime.host.log);
    let listening: Listening;
    try {
      listening = await listen(runtime.fetch, config.server);
    } catch (error) {
      await runtime.stop();
      throw new CommandError(error instanceof Error ? error.message : String(error));
    }
    return new Promise<number>((resolve) => {
      // Before the address is told: who reads it may send a signal at once.
      onSignals(async () => {
        // Waits end first, so that their requests can finish; then connections; then the ledger.
        runtime.beginStop();
        await listening.stop();
        await runtime.stop();
        resolve(0);
      });
      if (keys !== null) greet(io, listening.url, keys);
      io.out(`assent is listening on ${listening.url}`);
    });
  },
};

export function configFrom(env: Record<string, string | undefined>, file: string | undefined): ReturnType<typeof loadConfig>["config"] {
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
    const known = [StorageError, LedgerTampered, VaultError, PluginError, PluginLoadError, ChannelError].some((kind) => error instanceof kind);
    if (known) throw new CommandError((error as Error).message);
    throw error;
  }
}

/** How the reader of the greeting calls this program from where it was started, on the runtime that runs it. */
function commandName(): string {
  const bin = relative(process.cwd(), fileURLToPath(new URL("./assent.mjs", import.meta.url)));
  if (bin.startsWith("..") || bin.includes("node_modules")) return "assent";
  if (process.versions["deno"] !== undefined) return "deno task assent";
  return `${process.versions["bun"] === undefined ? "node" : "bun"} ${bin}`;
}

function greet(io: Output, url: string, keys: { admin: string | null; agent: string | null }): void {
  io.out(`
This store is new. These two keys are shown once; keep them:

  export ASSENT_URL=${url}
  export ADMIN_KEY=${keys.admin ?? ""}
  export AGENT_KEY=${keys.agent ?? ""}

An agent submits with its key:

  curl -s $ASSENT_URL/v1/actions -H "Authorization: Bearer $AGENT_KEY" \\
    -H 'Content-Type: application/json' \\
    -d '{"agent_id":"support-bot","tool":"stripe","operation":"refund","params":{"amount":50,"currency":"USD"}}'

You approve with yours:

  ASSENT_API_KEY=$ADMIN_KEY ${commandName()} actions --status pending_approval
`);
}
