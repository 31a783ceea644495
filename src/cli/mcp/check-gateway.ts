/** `assent mcp doctor` checks that every server of a client is behind the proxy, and that the proxy starts. */
import { createInterface } from "node:readline";
import { checkKey } from "../../hook/install/check-service.ts";
import { SettingsError } from "../../hook/install/jsonc.ts";
import { isObject, type JsonObject } from "../../hook/payload.ts";
import { ProgramError, type StartedProgram, startProgram } from "../../programs/run-program.ts";
import { VERSION } from "../../version.ts";
import {
  colourText,
  CommandError,
  EXIT_CODES,
  parseArguments,
  printJson,
  toPrintable,
  usageError,
  type Output,
} from "../command.ts";
import { readLogin } from "../credentials.ts";
import { isProxied, readServers } from "./clients.ts";
import { parseClient, readExistingSettings } from "./install.ts";

const START_MS = 30_000;
const MAX_ERROR = 300;

export async function doctor(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    client: { type: "string" },
    scope: { type: "string" },
    json: { type: "boolean" },
  });
  if (positionals.length > 0) throw usageError("assent mcp doctor takes options only");
  const client = parseClient(values.client);
  const findings: { state: "ok" | "problem" | "note"; text: string }[] = [];
  const report = (state: "ok" | "problem" | "note", text: string): void => {
    const mark = { ok: "green", problem: "red", note: "yellow" } as const;
    if (values.json !== true) io.out(`${colourText(io, mark[state], state.padEnd(7))}  ${toPrintable(text)}`);
    findings.push({ state, text });
  };

  const files = readExistingSettings(client, values.scope);
  if (files.length === 0) report("note", `${client} has no settings with servers here`);
  const key = await keyFault();
  report(key === null ? "ok" : "problem", key ?? "the stored key is valid, and acts as one agent");
  for (const { path, text } of files) {
    let servers: Record<string, JsonObject>;
    try {
      servers = readServers(text, client);
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      report("problem", `${path}: ${error.message}`);
      continue;
    }
    for (const [name, entry] of Object.entries(servers)) {
      const server = `${path}: "${name}"`;
      if (!isProxied(entry))
        report("problem", `${server} is not behind the proxy; run "assent mcp install --client ${client}"`);
      else if (JSON.stringify(entry).includes("${"))
        report(
          "note",
          `${server} is behind the proxy; it has variables that only ${client} fills in, so it was not started`,
        );
      else {
        const { tools, fault } = await start(entry);
        if (fault === null) report("ok", `${server} is behind the proxy, which starts and offers ${tools} tools`);
        else report("problem", `${server} is behind the proxy, which does not work: ${fault}`);
      }
    }
  }
  if (values.json === true) printJson(io, { findings });
  return findings.some(({ state }) => state === "problem") ? EXIT_CODES.failure : EXIT_CODES.ok;
}

async function keyFault(): Promise<string | null> {
  try {
    const login = readLogin();
    if (login === null) return 'no key is stored for the proxy; run "assent login" with a key of the agent';
    const { faults } = await checkKey({ ...login, agent: null });
    return faults.length === 0 ? null : `the stored key does not work: ${faults.join("; ")}`;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return error.message;
  }
}

/** Starts the proxy in the same way as the client, and reads its tools. */
async function start(entry: JsonObject): Promise<{ tools: number; fault: string | null }> {
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
    return { tools: 0, fault: error.message };
  }
}

function readTools({
  stdin,
  stdout,
  stderr,
  exited,
}: StartedProgram): Promise<{ tools: number; fault: string | null }> {
  const send = (message: object): void => void stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  return new Promise((resolve) => {
    let errors = "";
    const finish = (tools: number, fault: string | null): void => {
      clearTimeout(timer);
      lines.close();
      resolve({ tools, fault });
    };
    const timer = setTimeout(() => finish(0, `no answer within ${START_MS / 1000} s`), START_MS);
    const lines = createInterface({ input: stdout });
    stderr?.on("data", (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-MAX_ERROR)));
    // Read the error messages that have arrived first.
    void exited.then((code) => setImmediate(() => finish(0, errors.trim() || `it ended with ${code}`)));
    lines.on("line", (line) => {
      const message = messageOf(line);
      if (message === null || (message["id"] !== 1 && message["id"] !== 2)) return;
      const { error, result } = message;
      if (isObject(error)) return finish(0, String(error["message"]));
      if (message["id"] === 1) {
        send({ method: "notifications/initialized" });
        send({ id: 2, method: "tools/list" });
      } else finish(isObject(result) && Array.isArray(result["tools"]) ? result["tools"].length : 0, null);
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
