/**
 * Sends one request to a checked address. Resolves the name once and connects to the address that was checked. A later
 * change of the name to a private address (DNS rebinding) therefore has no effect. Does not follow redirects and does
 * not use a proxy.
 */
import { rejectOnAbort } from "../cluster/reject-on-abort.ts";
import { lookup } from "node:dns/promises";
import { request as httpRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { NotifierError } from "../contract/notifier.ts";
import { decodeUtf8 } from "../domain/json.ts";
import { isPublicAddress } from "./address.ts";

/** Maximum number of bytes of a response that are read. */
const MAX_ANSWER = 65_536;
/** Error codes after which the next address is tried, because nothing was sent. */
const UNREACHED_CODES = ["ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "ConnectionRefused"];

export interface RequestTarget {
  url: URL;
  allowPrivate: boolean;
  timeoutMs: number;
  /** Replaces POST, for services that expect another method with a body. */
  method?: "POST" | "PATCH" | undefined;
  /** Certificate authorities in PEM. They replace the default authorities. */
  ca?: string | undefined;
}

/**
 * Converts a Retry-After header in seconds to milliseconds. Returns null for a date and for any other string.
 * @example
 * retryAfterMs("30"); // 30000
 */
export function retryAfterMs(text: string | null | undefined): number | null {
  const seconds = Number(text ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
}

export interface WebhookResponse {
  status: number;
  /** Value of the header, unparsed. */
  retryAfter: string | undefined;
  /** The response body; null if it is longer than 64 KiB, incomplete, or not UTF-8. */
  body: string | null;
}

/** Resolves to all addresses of a name. */
export type ResolveName = (name: string) => Promise<string[]>;

const resolveName: ResolveName = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/**
 * Sends a POST. Rejects with Error if there is no response. Rejects with NotifierError if an address of the name is not
 * public, unless `allowPrivate` is set.
 * @example
 * const { status, body } = await post(target, { "content-type": "application/json" }, "{}", signal);
 */
export function post(
  target: RequestTarget,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array,
  signal: AbortSignal,
  resolve?: ResolveName,
): Promise<WebhookResponse> {
  return send(target, headers, body, signal, resolve);
}

/**
 * Sends a GET, with the same checks as `post`.
 * @example
 * const { status, body } = await get(target, { accept: "application/json" }, signal);
 */
export function get(
  target: RequestTarget,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  resolve?: ResolveName,
): Promise<WebhookResponse> {
  return send(target, headers, null, signal, resolve);
}

/** @param body the body; null for a GET */
async function send(
  target: RequestTarget,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array | null,
  signal: AbortSignal,
  resolve: ResolveName = resolveName,
): Promise<WebhookResponse> {
  const late = AbortSignal.timeout(target.timeoutMs);
  const aborted = AbortSignal.any([signal, late]);
  try {
    const addresses = await checkedAddresses(target, resolve, aborted);
    for (const [i, address] of addresses.entries()) {
      try {
        return await sendTo(address, target, headers, body, aborted);
      } catch (error) {
        const unreached = UNREACHED_CODES.includes((error as NodeJS.ErrnoException).code ?? "");
        if (aborted.aborted || !unreached || i === addresses.length - 1) throw error;
      }
    }
    throw new Error(`${target.url.hostname} has no address`);
  } catch (error) {
    if (late.aborted && !signal.aborted)
      throw new Error(`${target.url.host} did not respond within ${target.timeoutMs / 1000} s`, { cause: error });
    throw error;
  }
}

/**
 * Resolves and checks the addresses. Sorts IPv4 first, because connecting over IPv6 can time out on machines without
 * it.
 */
async function checkedAddresses(
  { url, allowPrivate }: RequestTarget,
  resolve: ResolveName,
  aborted: AbortSignal,
): Promise<string[]> {
  const name = withoutBrackets(url.hostname);
  const addresses = isIP(name) === 0 ? await rejectOnAbort(resolve(name), aborted) : [name];
  const closed = addresses.find((address) => isIP(address) === 0 || !isPublicAddress(address));
  if (!allowPrivate && closed !== undefined)
    throw new NotifierError(
      `${url.hostname} resolves to ${closed}, which is not a public address; set allow_private to send there anyway`,
    );
  return [...addresses].sort((a, b) => isIP(a) - isIP(b));
}

function sendTo(
  address: string,
  { url, ca, method = "POST" }: RequestTarget,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array | null,
  aborted: AbortSignal,
): Promise<WebhookResponse> {
  const secure = url.protocol === "https:";
  const name = withoutBrackets(url.hostname);
  const options: RequestOptions & { servername?: string; ca?: string } = {
    host: address,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    method: body === null ? "GET" : method,
    // Use the name for the Host header and the certificate check. Only the connection uses the address.
    headers: {
      ...headers,
      host: url.host,
      ...(body === null ? {} : { "content-length": String(Buffer.byteLength(body)) }),
      connection: "close",
    },
    agent: false,
    signal: aborted,
    ...(secure && isIP(name) === 0 ? { servername: name } : {}),
    ...(secure && ca !== undefined ? { ca } : {}),
  };
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(aborted.reason as Error);
    aborted.addEventListener("abort", onAbort, { once: true });
    let answered = false;
    const settle = (): void => aborted.removeEventListener("abort", onAbort);
    const sent: ClientRequest = (secure ? httpsRequest : httpRequest)(options, (response) => {
      const retryAfter = response.headers["retry-after"];
      answered = true;
      settle();
      void readBody(response, aborted).then((body) => {
        sent.destroy();
        resolve({ status: response.statusCode ?? 0, retryAfter, body });
      });
    });
    sent.on("error", (error) => {
      settle();
      if (!answered) reject(aborted.aborted ? (aborted.reason as Error) : error);
    });
    sent.end(body ?? undefined);
  });
}

/** Reads the body to its end, the limit or the timeout. Resolves to null unless it is complete. */
function readBody(response: IncomingMessage, aborted: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_ANSWER) resolve(null);
      else chunks.push(chunk);
    });
    response.on("end", () => resolve(response.complete ? decodeUtf8(Buffer.concat(chunks)) : null));
    for (const event of ["close", "error"] as const) response.on(event, () => resolve(null));
    aborted.addEventListener("abort", () => resolve(null), { once: true });
  });
}

/** Removes the brackets of an IPv6 host such as `[::1]`. */
function withoutBrackets(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}
