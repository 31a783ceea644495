import { isIP } from "node:net";
import { connect } from "node:tls";
import {
  colourText,
  CommandError,
  EXIT_CODES,
  findAvailableKey,
  type Output,
  parseArguments,
  printJson,
  serviceUrl,
  toPrintable,
  usageError,
} from "../../../src/command.ts";
import { createLookup, resolveWithSystem } from "../addresses.ts";
import { readSystemRoots } from "../agent-environment.ts";
import { RequestGate } from "../decide-request.ts";
import type { EgressConfig, Origin } from "../egress-config.ts";
import { type Assent, createAssent } from "../../typescript/index.ts";
import { loadEgressConfig } from "./config-file.ts";

interface Finding {
  check: string;
  state: "ok" | "problem" | "note";
  text: string;
}

/** Timeout of one connection. Short, because a person waits at the terminal. */
const TIMEOUT_MS = 10_000;
/** Operations of usual requests. */
const METHODS = ["get", "head", "post", "put", "patch", "delete"];

export async function doctor(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, { config: { type: "string" }, json: { type: "boolean" } });
  if (positionals.length > 0) throw usageError("assent egress doctor takes options only");
  const findings = await findProblems(values.config);
  if (values.json === true) printJson(io, { findings });
  else
    for (const { check, state, text } of findings) {
      const mark = { ok: "green", problem: "red", note: "yellow" } as const;
      io.out(`${colourText(io, mark[state], state.padEnd(7))}  ${check.padEnd(13)}  ${toPrintable(text)}`);
    }
  return findings.some(({ state }) => state === "problem") ? EXIT_CODES.failure : EXIT_CODES.ok;
}

async function findProblems(file: string | undefined): Promise<Finding[]> {
  let config: EgressConfig;
  try {
    config = loadEgressConfig(file);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return [{ check: "configuration", state: "problem", text: error.message }];
  }
  const origins = [...config.origins.values()];
  const credentials = origins.reduce((sum, origin) => sum + origin.credentials.length, 0);
  const roots = readSystemRoots(process.env);
  return [
    { check: "configuration", state: "ok", text: `${origins.length} hosts, ${credentials} credentials` },
    process.getuid?.() === 0
      ? { check: "user", state: "note", text: "run the command with --user, or it can read the credentials" }
      : {
          check: "user",
          state: "note",
          text: "only root can use --user; without it, the command can read the credentials",
        },
    ...(await checkService(config)),
    ...(await Promise.all(origins.map((origin) => checkOrigin(origin, roots)))),
  ];
}

async function checkService({ agent, wait, origins }: EgressConfig): Promise<Finding[]> {
  const check = "service";
  try {
    const url = serviceUrl();
    const apiKey = findAvailableKey(url);
    if (apiKey === null)
      return [{ check, state: "problem", text: 'there is no key: run "assent login", or set ASSENT_API_KEY' }];
    const assent = createAssent({ url, apiKey, timeout: TIMEOUT_MS / 1000, retries: 0 });
    await assent.call("GET", "/v1/me");
    const id = await new RequestGate({ assent, agent, wait, log: () => undefined }).agentId();
    const tools = [...new Set([...origins.values()].map(({ tool }) => tool))];
    return [
      { check, state: "ok", text: `${url} decides the requests of the agent ${id}` },
      ...(await Promise.all(tools.map((tool) => checkPolicies(assent, id, tool)))),
    ];
  } catch (error) {
    return [{ check, state: "problem", text: (error as Error).message }];
  }
}

/** Asks the service for each method whether the policies deny all requests. Such a question is not recorded. */
async function checkPolicies(assent: Assent, agent_id: string, tool: string): Promise<Finding> {
  const check = "policies";
  const answers = await Promise.all(
    METHODS.map((operation) => assent.gate({ agent_id, tool, operation, params: {}, context: {} })),
  );
  const possible = METHODS.filter((_, i) => answers[i]?.never_allowed !== true);
  return possible.length > 0
    ? { check, state: "ok", text: `requests of "${tool}" that they may let through: ${possible.join(", ")}` }
    : { check, state: "problem", text: `they deny every request of "${tool}"; write a policy (docs/egress.md)` };
}

/** Connects as the proxy does: resolves the name, checks the addresses, and verifies the certificate. */
async function checkOrigin(
  { scheme, host, port, ca, private: isPrivate, tool }: Origin,
  roots: string[],
): Promise<Finding> {
  const check = `${scheme}://${host}:${port}`;
  if (scheme === "http") return { check, state: "note", text: "is not encrypted, so it was not checked" };
  return new Promise((resolve) => {
    const done = (state: Finding["state"], text: string): void => {
      socket.destroy();
      resolve({ check, state, text });
    };
    const socket = connect({
      host,
      port,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ca: ca === null ? roots : [ca],
      lookup: createLookup(resolveWithSystem, isPrivate),
      rejectUnauthorized: true,
      ALPNProtocols: ["http/1.1"],
    });
    socket.setTimeout(TIMEOUT_MS, () => done("problem", "did not respond within 10 seconds"));
    socket.once("secureConnect", () => done("ok", `has a valid certificate; its requests have the tool ${tool}`));
    socket.once("error", (error) => done("problem", error.message));
  });
}
