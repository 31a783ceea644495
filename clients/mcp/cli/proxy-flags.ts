/** Options that the verbs of `assent mcp` share: servers, service, and the folder of accepted definitions. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  findAvailableKey,
  type Output,
  parseSeconds,
  programCommand,
  serviceUrl,
  stateFolder,
  usageError,
} from "../../../src/command.ts";
import {
  ProxyConfigError,
  deriveServerName,
  readHeadersVariable,
  readProxyConfig,
  readServerConfig,
  type ProxyConfig,
} from "../config/proxy-config.ts";
import type { ServerConfig } from "../config/server-config.ts";
import { createSignInStore } from "../sign-in/stored-sign-in.ts";
import { isStderrRead } from "../transport/stderr.ts";
import { decodeUtf8 } from "../../../src/domain/json.ts";

export const PROXY_FLAGS = {
  http: { type: "string" },
  listen: { type: "string" },
  config: { type: "string" },
  name: { type: "string" },
  agent: { type: "string" },
  wait: { type: "string" },
  data: { type: "string" },
} as const;

const FILE = "assent-mcp.yaml";

type Flags = Partial<Record<keyof typeof PROXY_FLAGS, string>>;

interface Setting {
  config: ProxyConfig;
  url: string;
  apiKey: string;
  folder: string;
  log(line: string): void;
}

/** Splits the arguments at `--`, which precedes the command of the MCP server. */
export function splitCommand(args: string[]): { ours: string[]; command: string[] } {
  const end = args.indexOf("--");
  return end < 0 ? { ours: args, command: [] } : { ours: args.slice(0, end), command: args.slice(end + 1) };
}

/** Maximum value of `--wait`. Seconds. */
const MAX_WAIT = 86_400;

/** Default port for clients over HTTP. The service and the witness use 8000 and 8001 by default. */
const DEFAULT_PORT = 8010;

/** Returns the address on which to listen for clients over HTTP; null for standard input and output. */
export function parseListenAddress({ listen }: Flags, { config }: Setting): { host: string; port: number } | null {
  if (listen === undefined && config.listen === undefined) return null;
  const [, flagHost, flagPort] = /^(?:(.+):)?(\d{1,5})$/.exec(listen ?? "") ?? [];
  if (listen !== undefined && !(Number(flagPort) <= 65_535))
    throw usageError(`--listen must be PORT or HOST:PORT; got "${listen}"`);
  const host = flagHost ?? config.listen?.host ?? "127.0.0.1";
  const isOpen = config.token === undefined && config.listen?.users === undefined;
  if (!["127.0.0.1", "localhost", "::1"].includes(host) && isOpen)
    throw usageError(
      `listening on ${host} needs a token that clients send: set ASSENT_MCP_TOKEN, or listen.token in the file`,
    );
  return { host, port: flagPort === undefined ? (config.listen?.port ?? DEFAULT_PORT) : Number(flagPort) };
}

export function readProxySetting(values: Flags, command: string[], io: Output): Setting {
  const url = serviceUrl();
  const { config, base } = loadProxyConfig(values, command);
  const hasUsers = config.listen?.users !== undefined;
  // The credential of each client decides its calls, so the proxy must have none to fall back to.
  const apiKey = hasUsers ? "" : findAvailableKey(url);
  if (apiKey === null)
    throw usageError(
      `no key to submit calls with: run "${programCommand()} login" with a key of the agent, or set ASSENT_API_KEY`,
    );
  const wait = values.wait === undefined ? config.wait : parseSeconds("--wait", values.wait, MAX_WAIT);
  const agent = values.agent ?? config.agent;
  const authority = config.authority ?? (process.env["ASSENT_AUTHORITY"] || undefined);
  const token = process.env["ASSENT_MCP_TOKEN"] || config.listen?.token;
  if (hasUsers && (token !== undefined || agent !== undefined))
    throw usageError(
      "with listen.users, set neither ASSENT_MCP_TOKEN nor --agent: each client's own token names its agent",
    );
  if (token !== undefined && token.length < 16) throw usageError("ASSENT_MCP_TOKEN is shorter than 16 characters");
  const folder = folderOf(values.data, config.data, base);
  // Without a token, every user of the machine could call tools as the person who signed in.
  const usesSignIns = token !== undefined || (values.listen === undefined && config.listen === undefined);
  return {
    config: {
      ...config,
      servers: usesSignIns
        ? config.servers.map((server) => withSignIns(server, folder, { url, apiKey }))
        : config.servers,
      ...(wait === undefined ? {} : { wait }),
      ...(agent === undefined ? {} : { agent }),
      ...(authority === undefined ? {} : { authority }),
      ...(token === undefined ? {} : { token }),
    },
    url,
    apiKey,
    folder,
    log: (line) => isStderrRead() && io.err(`assent mcp: ${line}`),
  };
}

function withSignIns(server: ServerConfig, folder: string, service: { url: string; apiKey: string }): ServerConfig {
  const { target } = server;
  if (!("url" in target) || target.oauth === null) return server;
  return { ...server, target: { ...target, signIns: createSignInStore(folder, service, target.url) } };
}

/**
 * Returns the configuration of the servers in the options, and the folder to which paths in the file are
 * relative.
 */
export function loadProxyConfig(values: Flags, command: string[]): { config: ProxyConfig; base: string } {
  const { http, config: file, name } = values;
  if ([http !== undefined, file !== undefined, command.length > 0].filter(Boolean).length > 1)
    throw usageError("give one of --http URL, --config FILE and -- COMMAND");
  try {
    if (http !== undefined) {
      if (!URL.canParse(http)) throw usageError(`--http must be a URL; got "${http}"`);
      return {
        config: {
          servers: [
            readServerConfig(name ?? deriveServerName(new URL(http)), {
              url: http,
              headers: readHeadersVariable(process.env),
            }),
          ],
        },
        base: ".",
      };
    }
    const [program, ...args] = command;
    if (program !== undefined)
      return {
        config: { servers: [readServerConfig(name ?? deriveServerName(command), { command: program, args })] },
        base: ".",
      };
    const path = file ?? FILE;
    if (name !== undefined)
      throw usageError("--name goes with --http or a command; in a file each server has its name");
    if (!existsSync(path))
      throw usageError(`there is no ${path}; give a server by "-- COMMAND", --http URL or --config FILE`);
    return { config: readConfigFile(path), base: dirname(resolve(path)) };
  } catch (error) {
    if (error instanceof ProxyConfigError) throw usageError(error.message);
    throw error;
  }
}

function readConfigFile(path: string): ProxyConfig {
  try {
    const text = decodeUtf8(readFileSync(path));
    if (text === null) throw new ProxyConfigError("the file is not UTF-8");
    return readProxyConfig(text, process.env);
  } catch (error) {
    if (error instanceof ProxyConfigError) throw usageError(`${path}: ${error.message}`);
    throw usageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Returns ASSENT_STATE, or else the default state folder; null if the home folder is unknown. */
export function mcpStateFolder(): string | null {
  return process.env["ASSENT_STATE"] ? resolve(process.env["ASSENT_STATE"]) : stateFolder(process.env);
}

/**
 * Returns the folder of accepted definitions. The default is not the working folder, because a client can start the
 * proxy in any folder.
 */
function folderOf(flag: string | undefined, configured: string | undefined, base: string): string {
  if (flag !== undefined) return resolve(flag);
  if (configured !== undefined) return resolve(base, configured);
  const state = mcpStateFolder();
  if (state === null) throw usageError("give --data FOLDER: there is no home folder to store accepted definitions in");
  return join(state, "mcp");
}
