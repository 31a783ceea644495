/**
 * Determines which service the commands call, and with which key: from the environment, from `assent login`, or from
 * input on the terminal.
 */
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isHttpUrl, resolveLocalName } from "../../clients/typescript/url.ts";
import { ConfigError, loadConfig } from "../config/index.ts";
import { isJsonObject } from "../domain/json.ts";
import { isLoopbackHost } from "../domain/loopback.ts";
import { readSettings, userConfigFolder, writeSettings } from "../../clients/settings/settings-files.ts";
import { CommandError, toPrintable, usageError } from "./command.ts";
import { readSecret } from "./secret-input.ts";

type Variables = Readonly<Record<string, string | undefined>>;

export interface StoredLogin {
  url: string;
  apiKey: string;
}

/** Path of the file that `assent login` writes; null if the home folder is unknown. */
function loginFile(env: Variables = process.env): string | null {
  const folder = userConfigFolder(env);
  return folder === null ? null : join(folder, "login.json");
}

/**
 * Returns the stored login; null if there is none. Throws CommandError if the file is damaged or other users can read
 * it.
 * @example
 * const login = readLogin();
 */
export function readLogin(env: Variables = process.env): StoredLogin | null {
  const path = loginFile(env);
  const text = path === null ? null : readFile(path);
  if (path === null || text === null) return null;
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0)
    throw new CommandError(`${path} contains a key and other users can read it; run "chmod 600 ${path}"`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (
    !isJsonObject(value) ||
    typeof value["url"] !== "string" ||
    typeof value["api_key"] !== "string" ||
    !isHttpUrl(value["url"])
  )
    throw new CommandError(`${path} is not a file that "assent login" wrote; run "assent logout" to remove it`);
  return { url: value["url"], apiKey: value["api_key"] };
}

export function writeLogin({ url, apiKey }: StoredLogin): string {
  const path = loginFile();
  if (path === null) throw new CommandError("the home folder is unknown; set HOME");
  const before = readFile(path);
  try {
    // Remove an existing file first, because its mode may let others read it.
    if (before !== null) rmSync(path);
    writeSettings(path, null, `${JSON.stringify({ url, api_key: apiKey }, null, 2)}\n`, 0o600);
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
  return path;
}

/** Removes the stored login. Returns the path of the removed file; null if there was none. */
export function removeLogin(): string | null {
  const path = loginFile();
  if (path === null || readFile(path) === null) return null;
  rmSync(path);
  return path;
}

function readFile(path: string): string | null {
  try {
    return readSettings(path);
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}

/**
 * Returns ASSENT_URL, or else the URL from `assent login`, or else the address of the service that `assent.yaml` or the
 * environment configures here. Throws a usage error if `assent.yaml` is not valid, because the command would talk to
 * another service.
 * @example
 * const url = serviceUrl(); // "http://localhost:8000"
 */
export function serviceUrl(): string {
  const url = process.env["ASSENT_URL"];
  if (!url) return readLogin()?.url ?? configuredUrl();
  if (!isHttpUrl(url)) throw usageError(`ASSENT_URL must be an http or https URL; got "${toPrintable(url)}"`);
  return resolveLocalName(url);
}

function configuredUrl(): string {
  try {
    const { host, port } = loadConfig({ cwd: process.cwd(), env: process.env }).config.server;
    const isAny = host === "0.0.0.0" || host === "::" || isLoopbackHost(host);
    return `http://${isAny ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host}:${port}`;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw usageError(`the address of the service is not known: ${error.message}; or set ASSENT_URL`);
  }
}

/**
 * Returns ASSENT_API_KEY, or else the key from `assent login`, or else null. Never returns a key that was stored for
 * another service.
 * @example
 * const apiKey = findAvailableKey(serviceUrl());
 */
export function findAvailableKey(url: string): string | null {
  const apiKey = process.env["ASSENT_API_KEY"];
  if (apiKey) return apiKey;
  const login = readLogin();
  if (login === null) return null;
  if (login.url !== url)
    throw usageError(
      `you are logged in to ${login.url}, and ASSENT_URL is ${toPrintable(url)}: set ASSENT_API_KEY to a key of that service`,
    );
  return login.apiKey;
}

/**
 * Returns the key for one command. Asks for it on the terminal if no key is known. Ignores the key that `assent login`
 * stored if the command needs `privileges` (votes, stops, keys), because a stored key cannot have them.
 */
export async function requireKey(url: string, privileges: boolean): Promise<string> {
  const apiKey = privileges ? process.env["ASSENT_API_KEY"] || null : findAvailableKey(url);
  if (apiKey !== null) return apiKey;
  if (process.stdin.isTTY === true && process.stderr.isTTY === true) {
    const entered = (await readSecret(`API key for ${url} (not displayed, not stored): `)).trim();
    if (entered !== "") return entered;
  }
  throw usageError("set ASSENT_API_KEY to the key that this command acts with");
}
