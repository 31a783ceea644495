/** Helpers for commands that call a running service: clients, exit codes, and values of flags. */
import { AssentError, createAssent, type ActionRecord, type Assent } from "../../clients/typescript/index.ts";
import { displayPrincipal } from "../domain/principals.ts";
import { parseJson } from "../domain/json.ts";
import { requireKey, serviceUrl } from "./credentials.ts";
import { CommandError, EXIT_CODES, toPrintable, usageError } from "./command.ts";

/**
 * Timeout of one request in seconds. Long, because a backtest evaluates up to a million decisions before it responds.
 */
export const REQUEST_TIMEOUT = 600;

/** Response of `GET /v1/me`. */
export interface Me {
  principal: string;
  scopes: string[];
  key: { name: string; agent_id: string | null; expires_at: string | null };
}

/**
 * Returns a client with the key from ASSENT_API_KEY, from `assent login`, or from the terminal.
 * @example
 * const service = await createClient();
 */
export async function createClient(): Promise<Assent> {
  const url = serviceUrl();
  return createAssent({ url, apiKey: await requireKey(url, false), timeout: REQUEST_TIMEOUT });
}

/**
 * Returns a client for commands that vote, stop, erase or manage keys. Unlike `createClient`, it never uses a stored
 * key.
 * @example
 * const service = await createPrivilegedClient();
 */
export async function createPrivilegedClient(): Promise<Assent> {
  const url = serviceUrl();
  return createAssent({ url, apiKey: await requireKey(url, true), timeout: REQUEST_TIMEOUT });
}

/**
 * Runs the work. Converts AssentError to CommandError with the matching exit code.
 * @example
 * const page = await withServiceErrors(() => service.call("GET", "/v1/stop"));
 */
export async function withServiceErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AssentError)) throw error;
    throw new CommandError(
      error.status === 0 ? error.message : `${error.code}: ${toPrintable(error.message)}`,
      error.status === 0 ? EXIT_CODES.unreachable : EXIT_CODES.failure,
    );
  }
}

/**
 * Reads all pages of a list.
 * @param path path with a query, such as `/v1/break-glass?status=open`
 * @param member name of the list in the response
 * @example
 * const open = await readAllPages<StopView>(service, "/v1/stop?status=open", "stops");
 */
export async function readAllPages<T>(service: Assent, path: string, member: string): Promise<T[]> {
  const rows: T[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const after: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: Record<string, unknown> = await withServiceErrors(() => service.call("GET", `${path}${after}`));
    rows.push(...(page[member] as T[]));
    cursor = page["next_cursor"] as string | null;
  }
  return rows;
}

const PRINCIPAL = /^(?:user|key):([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})$/;
/** Maximum number of ids in one request for names. */
const MAX_IDS = 100;

/**
 * Returns a response for people to read: replaces principals with the names of users and keys, if this command's key
 * can read them.
 * @example
 * const shown = await withNames(service, stop);
 */
export async function withNames<T>(service: Assent, response: T): Promise<T> {
  const ids = new Set<string>();
  replacePrincipals(response, (principal, id) => {
    ids.add(id);
    return principal;
  });
  const names = new Map<string, string>();
  try {
    for (let from = 0; from < ids.size; from += MAX_IDS) {
      const some = [...ids].slice(from, from + MAX_IDS).join(",");
      const { keys } = await service.call<{ keys: { id: string; name: string }[] }>(
        "GET",
        `/v1/api-keys/names?ids=${some}`,
      );
      for (const { id, name } of keys) names.set(id, name);
    }
  } catch (error) {
    if (!(error instanceof AssentError)) throw error;
  }
  return replacePrincipals(response, (principal, id) => displayPrincipal(principal, names.get(id) ?? null));
}

function replacePrincipals<T>(value: T, replace: (principal: string, id: string) => string): T {
  if (typeof value === "string") {
    const id = PRINCIPAL.exec(value)?.[1];
    return (id === undefined ? value : replace(value, id)) as T;
  }
  if (Array.isArray(value)) return value.map((each: unknown) => replacePrincipals(each, replace)) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, replacePrincipals<unknown>(each, replace)]),
  ) as T;
}

/**
 * Returns the exit code of a command that submitted the action.
 * @example
 * return actionExitCode(await service.submit(request));
 */
export function actionExitCode(action: ActionRecord): number {
  if (action.status === "pending_approval") return EXIT_CODES.pending;
  return ["denied", "expired", "cancelled", "failed"].includes(action.status) ? EXIT_CODES.denied : EXIT_CODES.ok;
}

/**
 * Parses a flag's value as a JSON object: the value, the file for `@file`, or standard input for `-`. Throws
 * CommandError.
 * @example
 * const terms = await readJsonFlag("from", "@task.json");
 */
export async function readJsonFlag(
  name: string,
  value: string | undefined,
): Promise<Record<string, unknown> | undefined> {
  if (value === undefined) return undefined;
  let parsed: unknown;
  try {
    // Use the strict parser, because parsers disagree on the value of duplicate keys.
    parsed = parseJson(await readTextFlag(value, (text) => text));
  } catch (error) {
    throw usageError(
      `--${name} takes a JSON object, @file or -: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw usageError(`--${name} takes a JSON object`);
  return parsed as Record<string, unknown>;
}

/**
 * Returns the content of standard input for `-`, or of the file for `@file`. Passes any other value to `plain`.
 * @example
 * await readTextFlag("@key.txt", (key) => key);
 */
export async function readTextFlag(value: string, plain: (value: string) => string | Promise<string>): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  if (value === "-") {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return decodeText(Buffer.concat(chunks));
  }
  if (!value.startsWith("@")) return plain(value);
  const bytes = await readFile(value.slice(1)).catch((error: Error) => {
    throw usageError(`"${value.slice(1)}" cannot be read: ${error.message}`);
  });
  return decodeText(bytes);
}

/** Decodes UTF-8, without the byte order mark that editors and shells of Windows write. */
const decodeText = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/**
 * Reads a secret, which can be given as `@file` or `-`. Removes the newline at the end of a file.
 * @example
 * const subject = await readSecretFlag(values.subject);
 */
export async function readSecretFlag(flag: string): Promise<string> {
  const text = await readTextFlag(flag, (plain) => plain);
  return text === flag ? text : text.replace(/\r?\n$/, "");
}
