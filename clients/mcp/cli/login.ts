import {
  CommandError,
  EXIT_CODES,
  type Output,
  parseArguments,
  toPrintable,
  usageError,
  withJsonReport,
} from "../../../src/command.ts";
import { createAssent } from "../../typescript/index.ts";
import type { HttpTarget } from "../config/server-config.ts";
import { requestConsent } from "../sign-in/consent.ts";
import { PROXY_FLAGS, readProxySetting } from "./proxy-flags.ts";

export async function login(args: string[], io: Output): Promise<number> {
  const { http, config: file, name, data } = PROXY_FLAGS;
  const flags = { http, config: file, name, data, remove: { type: "boolean" }, json: { type: "boolean" } } as const;
  const { values, positionals } = parseArguments(args, flags);
  const { remove = false, json, ...given } = values;
  return withJsonReport(io, json, (report) => signInAt(positionals, given, remove, report));
}

async function signInAt(
  positionals: readonly string[],
  given: Parameters<typeof readProxySetting>[0],
  remove: boolean,
  io: Output,
): Promise<number> {
  const { config, url, apiKey } = readProxySetting(given, [], io);
  const servers = config.servers.filter(({ target }) => "url" in target && target.oauth !== null);
  const [wanted, another] = positionals;
  const found = wanted === undefined ? servers : servers.filter((server) => server.name === wanted);
  const [server, second] = found;
  if (another !== undefined || server === undefined || second !== undefined)
    throw usageError(
      servers.length === 0
        ? "no server has an https URL (or a URL of this machine) without an Authorization header of its own"
        : `name one server: ${servers.map((each) => each.name).join(", ")}`,
    );
  const target = server.target as HttpTarget;
  const store = target.signIns;
  if (store === null) throw usageError("the configuration listens without a token; set ASSENT_MCP_TOKEN");
  if (remove) {
    // A renewal that is in progress would store the sign-in again.
    await store.withLock(async () => store.remove());
    io.out(`removed the sign-in at ${target.url}`);
    return EXIT_CODES.ok;
  }
  try {
    const owner = await readOwner(url, apiKey);
    const signIn = await requestConsent(target, (link, issuer) =>
      io.err(
        toPrintable(`Sign in at ${issuer}, for the server ${target.url}. Its tools then run as you. Open this link:`) +
          `\n\n  ${toPrintable(link)}\n`,
      ),
    );
    await store.withLock(async () => store.write(signIn));
    io.out(toPrintable(`signed in at ${target.url}; calls of ${owner} use it`));
    return EXIT_CODES.ok;
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`not signed in at ${target.url}: ${toPrintable((error as Error).message)}`);
  }
}

/** Describes for whom the calls of the proxy are decided. */
async function readOwner(url: string, apiKey: string): Promise<string> {
  const me = await createAssent({ url, apiKey, timeout: 10 }).call<{
    key: { name: string; agent_id: string | null; owner: string | null };
  }>("GET", "/v1/me");
  const { name, agent_id, owner } = me.key;
  return `${agent_id === null ? `the key "${name}"` : `the agent ${agent_id}`}${owner === null ? "" : ` of ${owner}`}`;
}
