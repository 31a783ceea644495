/** Checks each server of a client: whether it is behind the proxy, starts, and has tools that the policies do not deny. */
import { createInterface } from "node:readline";
import { programArguments, serviceUrl, type StoredLogin } from "../../../src/command.ts";
import { AssentError } from "../../typescript/index.ts";
import { checkKey, createCheckClient } from "../../settings/check-key.ts";
import { SettingsError } from "../../settings/jsonc.ts";
import { isObject, type JsonObject } from "../transport/rpc-message.ts";
import { readServerConfig } from "../config/proxy-config.ts";
import { ProgramError, type StartedProgram, startProgram } from "../../../src/programs/run-program.ts";
import { VERSION } from "../../../src/version.ts";
import { readServers, type Client } from "../../settings/mcp-servers.ts";
import { isProxied, proxiedEntry } from "./clients.ts";

const START_MS = 30_000;
const MAX_ERROR = 300;

export type FindingState = "ok" | "problem" | "note";

interface CheckedSettings {
  path: string;
  text: string;
  client: Client;
  /** The key of the proxy; null if it does not work, in which case the policies are not checked. */
  login: StoredLogin | null;
  agent: string | null;
}

/** Returns whether a server has no key of its own in its entry, so that its proxy uses the key of `assent login`. */
export function needsStoredKey(text: string, client: Client): boolean {
  try {
    return Object.values(readServers(text, client)).some((entry) => keyOf(entry) === null);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return true;
  }
}

/** Returns the key and the service in the environment of an entry; null if it has no key. */
function keyOf({ env }: JsonObject): StoredLogin | null {
  if (!isObject(env) || typeof env["ASSENT_API_KEY"] !== "string" || env["ASSENT_API_KEY"] === "") return null;
  return {
    url: typeof env["ASSENT_URL"] === "string" ? env["ASSENT_URL"] : serviceUrl(),
    apiKey: env["ASSENT_API_KEY"],
  };
}

export async function checkServers(
  { path, text, client, login, agent }: CheckedSettings,
  report: (state: FindingState, text: string) => void,
): Promise<void> {
  let servers: Record<string, JsonObject>;
  try {
    servers = readServers(text, client);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return report("problem", `${path}: ${error.message}`);
  }
  for (const [name, entry] of Object.entries(servers)) {
    const server = `${path}: "${name}"`;
    if (!isProxied(entry)) report("problem", `${server} is not behind the proxy; ${adviceFor(name, entry, client)}`);
    else if (JSON.stringify(entry).includes("${"))
      report(
        "note",
        `${server} is behind the proxy; it has variables that only ${client} fills in, so it was not started`,
      );
    else {
      const { tools, fault } = await start(entry);
      const own = keyOf(entry);
      const faults = own === null ? [] : (await checkKey({ ...own, agent })).faults;
      if (faults.length > 0) report("problem", `${server} has a key that does not work: ${faults.join("; ")}`);
      else if (fault !== null) report("problem", `${server} is behind the proxy, which does not work: ${fault}`);
      else {
        const offers = `${server} is behind the proxy, which starts and offers ${tools.length} ${tools.length === 1 ? "tool" : "tools"}`;
        const key = own ?? login;
        const denied = key === null ? [] : await deniedTools(key, agent, name, tools);
        if (denied.length === 0) report("ok", offers);
        else if (denied.length < tools.length)
          report("ok", `${offers}; the policies deny ${denied.length} of them: ${denied.join(", ")}`);
        else
          report(
            "problem",
            `${offers}, but the policies deny every call: write a policy for ${toolOf(name)} (docs/mcp.md, "Set up")`,
          );
      }
    }
  }
}

/** Says how to put the server behind the proxy, or why the proxy cannot reach it. */
function adviceFor(name: string, entry: JsonObject, client: Client): string {
  try {
    proxiedEntry(name, entry, { program: programArguments(), options: [] });
    return `run "assent mcp install --client ${client}"`;
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return `it cannot be, because ${error.message}. "assent mcp install --client ${client} --skip ${name}" installs the proxy for the others`;
  }
}

const toolOf = (name: string): string => readServerConfig(name, { command: "-" }).tool;

/** Returns the tools that the active policies deny with any arguments. */
async function deniedTools(
  { url, apiKey }: StoredLogin,
  agent: string | null,
  name: string,
  tools: readonly string[],
): Promise<string[]> {
  const assent = createCheckClient(url, apiKey);
  const denied: string[] = [];
  try {
    const agent_id = agent ?? (await assent.agent());
    for (const operation of tools) {
      const answer = await assent.gate({ agent_id, tool: toolOf(name), operation, params: {}, context: {} });
      if (answer.never_allowed === true) denied.push(operation);
    }
  } catch (error) {
    // The check of the key reports a service that does not respond.
    if (!(error instanceof AssentError)) throw error;
  }
  return denied;
}

interface StartResult {
  tools: string[];
  fault: string | null;
}

/** Starts the proxy in the same way as the client, and reads its tools. */
async function start(entry: JsonObject): Promise<StartResult> {
  // Remove variables of this shell that the client would not pass to the proxy.
  const { ASSENT_API_KEY: _key, ASSENT_URL: _url, ...env } = process.env;
  try {
    const proxy = await startProgram(entry["command"] as string, entry["args"] as string[], {
      env: { ...env, ...(isObject(entry["env"]) ? (entry["env"] as Record<string, string>) : {}) },
      stderr: "pipe",
    });
    try {
      return await readTools(proxy);
    } finally {
      await proxy.end();
    }
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    return { tools: [], fault: error.message };
  }
}

function readTools({ stdin, stdout, stderr, exited }: StartedProgram): Promise<StartResult> {
  const send = (message: object): void => void stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  return new Promise((resolve) => {
    let errors = "";
    const finish = (tools: string[], fault: string | null): void => {
      clearTimeout(timer);
      lines.close();
      resolve({ tools, fault });
    };
    const timer = setTimeout(() => finish([], `no answer within ${START_MS / 1000} s`), START_MS);
    const lines = createInterface({ input: stdout });
    stderr?.on("data", (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-MAX_ERROR)));
    // Read the error messages that have arrived first.
    void exited.then((code) => setImmediate(() => finish([], errors.trim() || `it ended with ${code}`)));
    lines.on("line", (line) => {
      const message = messageOf(line);
      if (message === null || (message["id"] !== 1 && message["id"] !== 2)) return;
      const { error, result } = message;
      if (isObject(error))
        return finish([], typeof error["message"] === "string" ? error["message"] : JSON.stringify(error));
      if (message["id"] === 1) {
        send({ method: "notifications/initialized" });
        send({ id: 2, method: "tools/list" });
      } else finish(toolNames(result), null);
    });
    send({
      id: 1,
      method: "initialize",
      params: {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "assent-doctor", version: VERSION },
      },
    });
  });
}

function messageOf(line: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function toolNames(result: unknown): string[] {
  const tools = isObject(result) && Array.isArray(result["tools"]) ? (result["tools"] as unknown[]) : [];
  return tools.flatMap((tool) => (isObject(tool) && typeof tool["name"] === "string" ? [tool["name"]] : []));
}
