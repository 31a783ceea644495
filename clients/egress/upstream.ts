/** Forwards decided requests to their servers, and their responses to the agent. */
import { once } from "node:events";
import { request as httpRequest, STATUS_CODES, type ClientRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { pipeline, type Duplex, type Readable } from "node:stream";
import { rootCertificates } from "node:tls";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { createLookup, InternalAddress, isPublicAddress, type Resolve } from "./addresses.ts";
import type { PlainRequest, Redactor } from "./credentials.ts";
import type { Origin } from "./egress-config.ts";
import { Refusal } from "./refusal.ts";

/** Headers that apply to one connection. The proxy writes its own for each side. */
const HOP_BY_HOP =
  "connection keep-alive proxy-connection proxy-authorization proxy-authenticate te trailer transfer-encoding upgrade alt-svc".split(
    " ",
  );
/** Time without a byte from the server. Long, because models can think for minutes. */
const IDLE_MS = 600_000;

export interface UpstreamOptions {
  resolve: Resolve;
  /** Certificates that sign the certificates of servers, in PEM. */
  roots: readonly string[];
}

/** Sends the request. Resolves to the response, whose body has not been read. Throws Refusal if there is none. */
export async function sendUpstream(
  origin: Origin,
  method: string,
  { headers, uri, body }: PlainRequest,
  { resolve, roots }: UpstreamOptions,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { host, port, scheme } = origin;
  if (isIP(host) !== 0 && !origin.private && !isPublicAddress(host)) throw internalRefusal(host);
  // Without a prototype, because the agent chooses the names.
  const sent = Object.create(null) as Record<string, string[]>;
  for (const [name, value] of headers) {
    if (HOP_BY_HOP.includes(name) || ["host", "content-length"].includes(name)) continue;
    // The response must not be compressed, so that credentials can be removed from it.
    if (name === "accept-encoding" && origin.credentials.length > 0) continue;
    (sent[name] ??= []).push(value);
  }
  if (origin.credentials.length > 0) sent["accept-encoding"] = ["identity"];
  const hasBody = body.length > 0 || !["GET", "HEAD", "OPTIONS", "DELETE"].includes(method);
  const options = {
    host,
    port,
    method,
    path: uri,
    headers: {
      host: authorityOf(origin),
      ...sent,
      ...(hasBody ? { "content-length": String(body.length) } : {}),
      connection: "close",
    },
    agent: false,
    lookup: createLookup(resolve, origin.private),
    timeout: IDLE_MS,
    signal,
  } as const;
  const request: ClientRequest =
    scheme === "http"
      ? httpRequest(options)
      : httpsRequest({
          ...options,
          ...(isIP(host) === 0 ? { servername: host } : {}),
          ca: origin.ca === null ? [...(roots.length > 0 ? roots : rootCertificates)] : [origin.ca],
          // Not disabled by NODE_TLS_REJECT_UNAUTHORIZED.
          rejectUnauthorized: true,
          minVersion: "TLSv1.2",
        });
  request.on("timeout", () => request.destroy(new Error("the server sent nothing for 10 minutes")));
  try {
    return await new Promise<IncomingMessage>((resolve, reject) => {
      // Also catches errors after the response, which the reader of the body reports.
      request.on("error", reject);
      request.once("response", (response) => resolve(response.on("error", () => undefined)));
      request.once("upgrade", (_, socket) => {
        socket.destroy();
        reject(new Error("the server changed the protocol"));
      });
      request.once("close", () => reject(new Error("the server closed the connection")));
      request.end(body);
    });
  } catch (error) {
    request.destroy();
    signal.throwIfAborted();
    throw error instanceof InternalAddress
      ? internalRefusal(host)
      : unreachableRefusal(host, error as NodeJS.ErrnoException);
  }
}

/** The authority of a URL at this origin, as in the header Host. */
export const authorityOf = ({ scheme, host, port }: Pick<Origin, "scheme" | "host" | "port">): string =>
  port === (scheme === "https" ? 443 : 80) ? host : `${host}:${port}`;

export const internalRefusal = (host: string): Refusal =>
  new Refusal(
    `Not sent: ${host} has an internal address; set private for this host in egress.yaml if that is intended`,
    { status: 403, code: "INTERNAL_ADDRESS" },
  );

export const unreachableRefusal = (host: string, error: NodeJS.ErrnoException): Refusal =>
  new Refusal(`${host} did not respond (${error.code ?? error.message})`, { status: 502, code: "UPSTREAM_FAILED" });

const DECODERS = new Map<string, () => NodeJS.ReadWriteStream>([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
]);

/**
 * Forwards the response, without credentials. Resolves to whether the connection can serve another request. Throws
 * Refusal before the first byte if the body cannot be read.
 */
export async function forwardResponse(
  response: IncomingMessage,
  to: Duplex,
  { method, redactor, close }: { method: string; redactor: Redactor | null; close: boolean },
): Promise<boolean> {
  const status = response.statusCode ?? 502;
  const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
  const encoding = (response.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  const decodes = redactor !== null && hasBody && encoding !== "identity" && encoding !== "";
  const decoder = decodes ? DECODERS.get(encoding) : undefined;
  // Node removes the coding chunked only.
  const transfer = (response.headers["transfer-encoding"] ?? "chunked").trim().toLowerCase();
  if ((decodes && decoder === undefined) || transfer !== "chunked") {
    response.destroy();
    throw new Refusal("The request was sent, but the response is compressed in a way that the proxy cannot unpack", {
      status: 502,
      code: "RESPONSE_UNREADABLE",
    });
  }
  const named = (response.headers.connection ?? "").toLowerCase().split(/[ \t]*,[ \t]*/);
  const dropped = new Set([...HOP_BY_HOP, ...named, ...(decoder === undefined ? [] : ["content-encoding"])]);
  const isChunked = hasBody && (decoder !== undefined || response.headers["content-length"] === undefined);
  // The framing is the proxy's, whatever the server names in Connection.
  if (isChunked) dropped.add("content-length");
  else dropped.delete("content-length");
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`];
  for (let i = 0; i + 1 < response.rawHeaders.length; i += 2) {
    const [name, value] = response.rawHeaders.slice(i, i + 2) as [string, string];
    const line = `${name}: ${value}`;
    if (!dropped.has(name.toLowerCase())) lines.push(redactor?.redactText(line) ?? line);
  }
  if (isChunked) lines.push("Transfer-Encoding: chunked");
  if (close) lines.push("Connection: close");
  await write(to, Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));
  if (!hasBody) {
    response.resume();
    return !close;
  }
  const stages = [
    response,
    ...(decoder === undefined ? [] : [decoder()]),
    ...(redactor === null ? [] : [redactor.stream()]),
  ];
  const body = (stages.length === 1 ? response : pipeline(stages, () => undefined)) as Readable;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (chunk.length === 0) continue;
    if (!isChunked) await write(to, chunk);
    else await write(to, Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]));
  }
  if (isChunked) await write(to, Buffer.from("0\r\n\r\n"));
  return !close;
}

/** Writes, and waits while the agent reads slowly. */
async function write(to: Duplex, bytes: Buffer): Promise<void> {
  if (to.destroyed) throw new Error("the agent disconnected");
  if (to.write(bytes)) return;
  const done = new AbortController();
  try {
    await Promise.race([once(to, "drain", done), once(to, "close", done)]);
  } finally {
    done.abort();
  }
}
