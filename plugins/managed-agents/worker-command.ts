/** `assent managed-agents`: runs the worker. */
import { setTimeout as delay } from "node:timers/promises";
import {
  colourText,
  CommandError,
  createClient,
  EXIT_CODES,
  parseArguments,
  toPrintable,
  usageError,
  withServiceErrors,
  type Command,
} from "../../src/command.ts";
import { checkSetup } from "./check-setup.ts";
import { createVendorApi } from "./vendor-api.ts";
import { Worker } from "./worker.ts";

const DEFAULT_URL = "https://api.anthropic.com";
const LOOPBACK: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];
/** Longest pause after rounds that failed. Seconds. */
const MAX_PAUSE = 300;

export const managedAgents: Command = {
  help: `usage: assent managed-agents [--vendor-agent ID] [--agent NAME] [--tool NAME] [--interval SECONDS] [--once]
       assent managed-agents doctor [--vendor-agent ID] [--agent NAME] [--tool NAME]

Answers the tool confirmations of Claude Managed Agents from decisions of the service, so that people approve in one place.
Runs until it is stopped. While it does not run, or the service or the vendor is unreachable, sessions keep waiting.
Set ANTHROPIC_API_KEY, ASSENT_URL and ASSENT_API_KEY (an agent's key). Tools need the permission policy always_ask.
doctor checks the keys, the permission policies of the agents of all sessions, and the policies. It answers nothing, and
exits with 1 if there is a problem.

  --vendor-agent ID   only sessions of this agent at the vendor
  --agent NAME        agent of the actions; default: the agent that the key is bound to
  --tool NAME         tool of the vendor's own tools; default: claude. Tools of MCP servers have mcp.<server>
  --interval SECONDS  time between two rounds; default: 5
  --once              run one round, and exit

examples:
  assent managed-agents
  assent managed-agents --vendor-agent agent_01AbC --once
  assent managed-agents doctor
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      "vendor-agent": { type: "string" },
      agent: { type: "string" },
      tool: { type: "string" },
      interval: { type: "string" },
      once: { type: "boolean" },
    });
    const [verb, ...more] = positionals;
    if (more.length > 0 || (verb !== undefined && verb !== "doctor"))
      throw usageError("assent managed-agents takes options, or doctor and options");
    const interval = Number(values.interval ?? "5");
    if (!Number.isFinite(interval) || interval < 1)
      throw usageError(`--interval must be a number of seconds from 1; got "${values.interval}"`);
    const apiKey = process.env["ANTHROPIC_API_KEY"] ?? "";
    if (apiKey === "") throw usageError("ANTHROPIC_API_KEY is not set: it is the vendor's key");
    const url = readVendorUrl(process.env["ANTHROPIC_BASE_URL"] ?? DEFAULT_URL);
    const assent = await createClient();
    const agent = values.agent ?? (await boundAgent(assent));
    const vendorAgent = values["vendor-agent"];
    const tool = values.tool ?? "claude";
    const stop = new AbortController();
    const vendor = createVendorApi(url, apiKey, stop.signal);
    if (verb === "doctor") {
      const findings = await checkSetup({ vendor, assent, agent, vendorAgent, tool });
      const mark = { ok: "green", problem: "red", note: "yellow" } as const;
      for (const { check, state, text } of findings)
        io.out(`${colourText(io, mark[state], state.padEnd(7))}  ${check.padEnd(8)}  ${toPrintable(text)}`);
      return findings.some(({ state }) => state === "problem") ? EXIT_CODES.failure : EXIT_CODES.ok;
    }
    const abort = (): void => stop.abort();
    const signals = ["SIGTERM", "SIGINT"] as const;
    for (const signal of signals) process.once(signal, abort);
    const log = (line: string): void => io.err(toPrintable(`assent managed-agents: ${line}`));
    const worker = new Worker({ vendor, assent, agent, vendorAgent, tool, log });
    try {
      if (values.once === true) {
        await worker.runOnce();
        return EXIT_CODES.ok;
      }
      for (let failures = 0; !stop.signal.aborted;) {
        try {
          await worker.runOnce();
          failures = 0;
        } catch (error) {
          failures++;
          log(`${error instanceof Error ? error.message : String(error)}; trying again`);
        }
        const pause = Math.min(interval * 2 ** Math.min(failures, 6), Math.max(interval, MAX_PAUSE));
        await delay(pause * 1000, undefined, { signal: stop.signal }).catch(() => {});
      }
      return EXIT_CODES.ok;
    } finally {
      for (const signal of signals) process.off(signal, abort);
    }
  },
};

/** Returns the address of the vendor's API. Each request contains the vendor's key, so others must not read it. */
function readVendorUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.includes(url.hostname)))
    return text.replace(/\/+$/, "");
  throw usageError(`ANTHROPIC_BASE_URL must begin with https://, except for an address of this machine; got "${text}"`);
}

async function boundAgent(assent: Awaited<ReturnType<typeof createClient>>): Promise<string> {
  const { key } = await withServiceErrors(() => assent.call<{ key?: { agent_id?: string | null } }>("GET", "/v1/me"));
  if (typeof key?.agent_id === "string") return key.agent_id;
  throw new CommandError(
    "the key is not bound to an agent: use a key that is bound to one, or set --agent",
    EXIT_CODES.usage,
  );
}
