/**
 * Edits the settings of MCP clients for `assent mcp install`: the entry of a server with and without the proxy.
 */
import { isDeepStrictEqual } from "node:util";
import { foldName } from "../../../src/domain/names.ts";
import { insertValue, removeValue, replaceValue, SettingsError } from "../../settings/jsonc.ts";
import { readServers, SERVERS_MEMBER, type Client } from "../../settings/mcp-servers.ts";
import { isObject, type JsonObject } from "../transport/rpc-message.ts";
import { HEADERS_VARIABLE, ProxyConfigError, readServerConfig } from "../config/proxy-config.ts";

/** The command line that clients use to start the proxy. */
interface ProxyCommand {
  /** The program and its arguments in front of `mcp proxy`. */
  program: readonly string[];
  /** Options that every proxy gets, such as `--agent`. */
  options: readonly string[];
}

const STARTS_ASSENT = /(?:^|[/\\:])assent(?:@[^/\\]*)?(?:\.mjs|\.cmd|\.exe)?$|[/\\]cli[/\\]bin\.[cm]?[jt]s$/;

/** Returns the arguments that follow `mcp proxy` in the entry; null if the entry does not start the proxy. */
function proxyArguments({ command, args }: JsonObject): string[] | null {
  if (typeof command !== "string" || !isTexts(args)) return null;
  const words = [command, ...args];
  const at = words.findIndex((word, i) => word === "mcp" && words[i + 1] === "proxy");
  return at > 0 && STARTS_ASSENT.test(words[at - 1] as string) ? words.slice(at + 2) : null;
}

export const isProxied = (entry: JsonObject): boolean => proxyArguments(entry) !== null;

/**
 * Returns the entry that reaches a server through the proxy. Throws SettingsError for a server that the proxy cannot
 * reach.
 */
export function proxiedEntry(name: string, entry: JsonObject, { program, options }: ProxyCommand): JsonObject {
  const { type, url, httpUrl, headers, command, args = [], ...others } = entry;
  const [first, ...before] = [...program, "mcp", "proxy", "--name", name, ...options] as [string, ...string[]];
  try {
    if (typeof command === "string" && url === undefined && httpUrl === undefined) {
      if (!isTexts(args)) throw new SettingsError("its args are not a list of strings");
      readServerConfig(name, { command, args });
      return { ...entry, command: first, args: [...before, "--", command, ...args] };
    }
    const address = httpUrl ?? url;
    if (typeof address !== "string" || command !== undefined) throw new SettingsError("it has no command and no url");
    if (type === "sse" || (httpUrl === undefined && type === undefined && /\/sse\/?$/.test(address)))
      throw new SettingsError("it uses the old transport SSE, which the proxy does not support");
    readServerConfig(name, { url: address });
    const { env = {}, ...rest } = others;
    const variables = { ...(env as JsonObject), ...headersVariable(headers) };
    return {
      ...(type === undefined ? {} : { type: "stdio" }),
      ...rest,
      command: first,
      args: [...before, "--http", address],
      ...(Object.keys(variables).length === 0 ? {} : { env: variables }),
    };
  } catch (error) {
    if (error instanceof ProxyConfigError) throw new SettingsError(error.message.replace(/^\/servers\/[^:]*: /, ""));
    throw error;
  }
}

/**
 * Returns the variable that passes the server's headers to the proxy. They stay in the settings file, because other
 * users can see the arguments of a process. Clients replace `${NAME}` in variables as they do in headers.
 */
function headersVariable(headers: unknown): JsonObject {
  if (headers === undefined || (isObject(headers) && Object.keys(headers).length === 0)) return {};
  if (!isObject(headers) || !isTexts(Object.values(headers)))
    throw new SettingsError("its headers are not an object of strings");
  return { [HEADERS_VARIABLE]: JSON.stringify(headers) };
}

/** Returns the headers that `headersVariable` encoded; undefined if the variable is absent or was edited. */
function headersIn(text: unknown): JsonObject | undefined {
  try {
    const headers: unknown = JSON.parse(text as string);
    return isObject(headers) ? headers : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the entry without the proxy, derived from the proxy's arguments. */
function directEntry(entry: JsonObject): JsonObject {
  const words = proxyArguments(entry) as string[];
  const { command: _command, args: _args, ...others } = entry;
  const end = words.indexOf("--");
  if (end >= 0) return { ...others, command: words[end + 1] as string, args: words.slice(end + 2) };
  const http = words.indexOf("--http");
  if (http < 0) throw new SettingsError("its proxy reads a configuration file; change it by hand");
  const { env, ...rest } = others;
  const { [HEADERS_VARIABLE]: encoded, ...variables } = isObject(env) ? env : {};
  const headers = headersIn(encoded);
  return {
    ...rest,
    ...("type" in rest ? { type: "http" } : {}),
    url: words[http + 1] as string,
    ...(headers === undefined ? {} : { headers }),
    ...(Object.keys(variables).length === 0 ? {} : { env: variables }),
  };
}

/** The changes of an installation, so that it can be undone exactly. */
export interface Backup {
  /** The whole file before the installation; null if it already contained servers behind the proxy. */
  before: string | null;
  after: string;
  /** Each changed entry before and after the installation, keyed by server name. */
  servers: Record<string, { direct: JsonObject; proxied: JsonObject }>;
}

/**
 * Puts every server behind the proxy, unless it is already behind the proxy. Throws SettingsError with the name of each
 * server that cannot be put behind the proxy and is not in `skipped`.
 */
export function addProxy(
  text: string,
  client: Client,
  command: ProxyCommand,
  skipped: readonly string[],
  previous: Backup | null,
): Backup {
  const servers = readServers(text, client);
  const unknown = skipped.find((name) => !Object.hasOwn(servers, name));
  if (unknown !== undefined) throw new SettingsError(`it has no server "${unknown}" to skip`);
  const faults: string[] = [];
  const names = new Map<string, string>();
  const changed: Backup["servers"] = {};
  let after = text;
  for (const [name, direct] of Object.entries(servers)) {
    const sameName = names.get(foldName(name));
    if (sameName !== undefined) faults.push(`"${name}": policies cannot tell it from "${sameName}"`);
    names.set(foldName(name), name);
    if (skipped.includes(name) || isProxied(direct)) continue;
    try {
      const proxied = proxiedEntry(name, direct, command);
      changed[name] = { direct, proxied };
      after = withEntry(after, [SERVERS_MEMBER[client], name], direct, proxied);
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      faults.push(`"${name}": ${error.message}; --skip ${name} leaves it as it is, and its calls need no decision`);
    }
  }
  if (faults.length > 0) throw new SettingsError(faults.join("; "));
  if (after === text && previous !== null) return { ...previous, after: text };
  const wasDirect = !Object.values(servers).some(isProxied);
  return { before: wasDirect ? text : null, after, servers: { ...previous?.servers, ...changed } };
}

/** Restores the direct connection of every server. Throws SettingsError. */
export function removeProxy(text: string, client: Client, backup: Backup | null): string {
  if (backup !== null && backup.before !== null && backup.after === text) return backup.before;
  let after = text;
  for (const [name, entry] of Object.entries(readServers(text, client))) {
    if (!isProxied(entry)) continue;
    const known = backup !== null && Object.hasOwn(backup.servers, name) ? backup.servers[name] : undefined;
    const direct = known !== undefined && isDeepStrictEqual(known.proxied, entry) ? known.direct : directEntry(entry);
    after = withEntry(after, [SERVERS_MEMBER[client], name], entry, direct);
  }
  return after;
}

/** Replaces only the members that differ, so that comments and secrets next to them are preserved. */
function withEntry(text: string, path: readonly string[], before: JsonObject, after: JsonObject): string {
  let edited = text;
  for (const [name, value] of Object.entries(after)) {
    if (!Object.hasOwn(before, name)) edited = insertValue(edited, path, name, value);
    else if (!isDeepStrictEqual(before[name], value)) edited = replaceValue(edited, [...path, name], value);
  }
  for (const name of Object.keys(before))
    if (!Object.hasOwn(after, name)) edited = removeValue(edited, [...path, name]);
  return edited;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
