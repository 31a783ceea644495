import { constants } from "node:os";
import {
  CommandError,
  findAvailableKey,
  type Output,
  parseArguments,
  parseSeconds,
  serviceUrl,
  toPrintable,
  usageError,
} from "../../../src/command.ts";
import { agentEnvironment, createCertificateFolder, readSystemRoots } from "../agent-environment.ts";
import { startEgressProxy } from "../proxy.ts";
import { createAssent } from "../../typescript/index.ts";
import { ProgramError, runInForeground } from "../../../src/programs/run-program.ts";
import { loadEgressConfig } from "./config-file.ts";

const FLAGS = {
  config: { type: "string" },
  agent: { type: "string" },
  wait: { type: "string" },
  user: { type: "string" },
} as const;

/** Timeout of requests to the service. Short, because an agent is waiting. Seconds. */
const SERVICE_TIMEOUT = 10;
/** Maximum value of `--wait`. Seconds. */
const MAX_WAIT = 3_600;

export async function run(args: string[], io: Output): Promise<number> {
  const end = args.indexOf("--");
  const [program, ...rest] = end < 0 ? [] : args.slice(end + 1);
  const { values, positionals } = parseArguments(end < 0 ? args : args.slice(0, end), FLAGS);
  if (program === undefined || positionals.length > 0)
    throw usageError(
      `write the command after "--", for example: assent egress run -- ${positionals.join(" ") || "claude"}`,
    );
  const user = parseUser(values.user);
  const read = loadEgressConfig(values.config);
  const config = {
    ...read,
    agent: values.agent ?? read.agent,
    wait: values.wait === undefined ? read.wait : parseSeconds("--wait", values.wait, MAX_WAIT),
  };
  const url = serviceUrl();
  const apiKey = findAvailableKey(url);
  if (apiKey === null)
    throw usageError(
      'no key to submit requests with: run "assent login" with a key of the agent, or set ASSENT_API_KEY',
    );
  const assent = createAssent({ url, apiKey, timeout: SERVICE_TIMEOUT, retries: 1 });
  const log = (line: string): void => io.err(`assent egress: ${toPrintable(line)}`);
  const roots = readSystemRoots(process.env);
  if (user === null && config.secrets.length > 0)
    log("the command runs as the same user as the proxy, and can read its credentials; use --user (docs/egress.md)");
  const proxy = await startEgressProxy({ config, assent, roots, log });
  const files = createCertificateFolder(proxy.authority, roots, user !== null);
  try {
    const { placeholders, secrets } = config;
    const { hostname } = new URL(url);
    const isListed = [...config.origins.values()].some(({ host }) => host === hostname);
    const env = agentEnvironment(process.env, {
      url: proxy.url,
      serviceHost: isListed ? null : hostname,
      files,
      placeholders,
      secrets: [...secrets, apiKey],
    });
    const { code, endedBy } = await runInForeground(program, rest, { env }, user);
    return code ?? 128 + (endedBy === null ? 0 : constants.signals[endedBy]);
  } catch (error) {
    throw error instanceof ProgramError ? new CommandError(error.message) : error;
  } finally {
    files.remove();
    await proxy.close();
  }
}

function parseUser(text: string | undefined): { uid: number; gid: number } | null {
  if (text === undefined) return null;
  const [, uid, gid] = /^(\d{1,9}):(\d{1,9})$/.exec(text) ?? [];
  if (uid === undefined || gid === undefined)
    throw usageError(`--user must be UID:GID, two numbers such as 1001:1001; got "${text}"`);
  if (process.getuid?.() !== 0)
    throw usageError("--user needs root, because only root can start a command as another user");
  return { uid: Number(uid), gid: Number(gid) };
}
