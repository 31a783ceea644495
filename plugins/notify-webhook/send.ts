/**
 * One POST to an address that was checked. The name is resolved once, here, and the connection goes to what was checked:
 * a name that resolves differently a moment later changes nothing. Redirects are not followed, and no proxy is used.
 */
import { lookup } from "node:dns/promises";
import { request as httpRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { NotifierError } from "../../src/plugin.ts";
import { isPublicAddress } from "./address.ts";

/** Bytes of an answer that are read before the connection is closed. */
const MAX_ANSWER = 65_536;
/** An address that was not reached; the next one is tried. Nothing was sent. */
const UNREACHED = ["ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "ConnectionRefused"];

export interface Target {
  url: URL;
  allowPrivate: boolean;
  timeoutMs: number;
  /** Certificate authorities in PEM instead of the usual ones. */
  ca?: string | undefined;
}

export interface Answer {
  status: number;
  /** As it was sent. */
  retryAfter: string | undefined;
}

/** Every address of a name. */
export type Resolve = (name: string) => Promise<string[]>;

const resolveName: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/** Rejects when there is no answer, and with NotifierError when an address of the name is not public. */
export async function post(
  target: Target,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
  resolve: Resolve = resolveName,
): Promise<Answer> {
  const late = AbortSignal.timeout(target.timeoutMs);
  const over = AbortSignal.any([signal, late]);
  try {
    const addresses = await checkedAddresses(target, resolve, over);
    for (const [i, address] of addresses.entries()) {
      try {
        return await postTo(address, target, headers, body, over);
      } catch (error) {
        const unreached = UNREACHED.includes((error as NodeJS.ErrnoException).code ?? "");
        if (over.aborted || !unreached || i === addresses.length - 1) throw error;
      }
    }
    throw new Error(`${target.url.hostname} has no address`);
  } catch (error) {
    if (late.aborted && !signal.aborted)
      throw new Error(`${target.url.host} gave no answer within ${target.timeoutMs / 1000} s`, { cause: error });
    throw error;
  }
}

/** IPv4 first: a machine without IPv6 often waits long before it knows. */
async function checkedAddresses({ url, allowPrivate }: Target, resolve: Resolve, over: AbortSignal): Promise<string[]> {
  const name = bare(url.hostname);
  const addresses = isIP(name) === 0 ? await raced(resolve(name), over) : [name];
  const closed = addresses.find((address) => isIP(address) === 0 || !isPublicAddress(address));
  if (!allowPrivate && closed !== undefined)
    throw new NotifierError(
      `${url.hostname} stands for ${closed}, which is no public address; set allow_private to send there all the same`,
    );
  return [...addresses].sort((a, b) => isIP(a) - isIP(b));
}

function postTo(
  address: string,
  { url, ca }: Target,
  headers: Readonly<Record<string, string>>,
  body: string,
  over: AbortSignal,
): Promise<Answer> {
  const secure = url.protocol === "https:";
  const name = bare(url.hostname);
  const options: RequestOptions & { servername?: string; ca?: string } = {
    host: address,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    method: "POST",
    // The name is what the receiver is asked for and what its certificate must say; the address is only where to.
    headers: { ...headers, host: url.host, "content-length": String(Buffer.byteLength(body)), connection: "close" },
    agent: false,
    signal: over,
    ...(secure && isIP(name) === 0 ? { servername: name } : {}),
    ...(secure && ca !== undefined ? { ca } : {}),
  };
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(over.reason as Error);
    over.addEventListener("abort", onAbort, { once: true });
    let answered = false;
    const settle = (): void => over.removeEventListener("abort", onAbort);
    const sent: ClientRequest = (secure ? httpsRequest : httpRequest)(options, (response) => {
      const retryAfter = response.headers["retry-after"];
      answered = true;
      settle();
      void drained(response, over).then(() => {
        sent.destroy();
        resolve({ status: response.statusCode ?? 0, retryAfter });
      });
    });
    sent.on("error", (error) => {
      settle();
      if (!answered) reject(over.aborted ? (over.reason as Error) : error);
    });
    sent.end(body);
  });
}

/** Reads to the end, to the limit or until the time is over. The status line has said it all, so a body that breaks off changes nothing. */
function drained(response: IncomingMessage, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let size = 0;
    response.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_ANSWER) resolve();
    });
    for (const event of ["end", "close", "error"] as const) response.on(event, () => resolve());
    over.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** `[::1]` without its brackets. */
function bare(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

function raced<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
