/**
 * The forward proxy. It reads the requests of an agent to listed hosts, requests a decision on each, and swaps
 * placeholders for credentials. Connections to other hosts pass unread, after a decision on host and port.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { connect as connectTcp, createServer, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer, type Server as TlsServer, type TLSSocket } from "node:tls";
import { toHttpAction } from "../../src/domain/http-action.ts";
import { UnreadableRequest } from "../../src/domain/json-body.ts";
import type { Assent } from "../typescript/index.ts";
import { createLookup, InternalAddress, isAddressLiteral, resolveWithSystem, type Resolve } from "./addresses.ts";
import { createAuthority } from "./certificates.ts";
import { Redactor, swapCredentials } from "./credentials.ts";
import { decidedHeaders, RequestGate } from "./decide-request.ts";
import { originKey, type EgressConfig, type Origin } from "./egress-config.ts";
import { ByteReader, headerOf, readBody, readHead, type RequestHead } from "./http-reader.ts";
import { Refusal, unreadableRefusal, writeRefusal } from "./refusal.ts";
import { authorityOf, forwardResponse, internalRefusal, sendUpstream, unreachableRefusal } from "./upstream.ts";

export interface EgressOptions {
  config: EgressConfig;
  assent: Assent;
  /** Certificates that sign the certificates of servers, in PEM. Default: those of Node. */
  roots?: readonly string[];
  resolve?: Resolve;
  log(line: string): void;
}

export interface EgressProxy {
  /** The proxy's address, with the credential that it demands. */
  url: string;
  /** Certificate of the authority that signs for listed hosts. */
  authority: string;
  close(): Promise<void>;
}

/** Bounds the memory of requests that wait, together with `max_body_bytes`. */
const MAX_CONNECTIONS = 128;
/** Maximum time in which a client must send the proxy's credential and start TLS. */
const HANDSHAKE_MS = 10_000;
/** Time in which an agent reads a refusal before its connection is closed. */
const LINGER_MS = 2_000;
const USER = "assent";
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/;

/** Starts the proxy on a loopback address. */
export async function startEgressProxy(options: EgressOptions): Promise<EgressProxy> {
  const { config, assent, log, roots = [], resolve = resolveWithSystem } = options;
  const password = randomBytes(24).toString("base64url");
  const proxy = new Proxy({
    config,
    log,
    upstream: { roots, resolve },
    gate: new RequestGate({ assent, agent: config.agent, wait: config.wait, log }),
    credential: `Basic ${Buffer.from(`${USER}:${password}`).toString("base64")}`,
  });
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    void proxy.serve(socket);
  });
  server.maxConnections = MAX_CONNECTIONS;
  await new Promise<void>((started, failed) => {
    server.once("error", failed);
    server.listen(0, "127.0.0.1", started);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${USER}:${password}@127.0.0.1:${port}`,
    authority: proxy.authority.pem,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

interface Parts {
  config: EgressConfig;
  gate: RequestGate;
  upstream: { roots: readonly string[]; resolve: Resolve };
  /** The value of Proxy-Authorization that the proxy demands. */
  credential: string;
  log(line: string): void;
}

class Proxy {
  readonly authority = createAuthority();
  private readonly parts: Parts;
  private readonly interceptors = new Map<Origin, TlsServer>();
  private readonly redactors = new Map<Origin, Redactor>();

  constructor(parts: Parts) {
    this.parts = parts;
  }

  /** Serves one connection of the agent. Never rejects. */
  async serve(socket: Socket): Promise<void> {
    socket.setNoDelay(true);
    // Other users of the machine could otherwise take all connections.
    const timer = setTimeout(() => socket.destroy(), HANDSHAKE_MS);
    socket.once("close", () => clearTimeout(timer));
    await this.serveRequests(socket, async (head, reader) => {
      this.assertCredential(head);
      clearTimeout(timer);
      if (head.method !== "CONNECT") return this.exchange(head, reader, socket, this.plainOrigin(head), plainUri(head));
      await this.connect(head, reader, socket);
      return "detached";
    });
  }

  /** Calls `serveOne` for each request on the connection, one after another. */
  private async serveRequests(
    stream: Duplex,
    serveOne: (head: RequestHead, reader: ByteReader) => Promise<boolean | "detached">,
  ): Promise<void> {
    stream.on("error", () => undefined);
    const reader = new ByteReader(stream, this.parts.config.maxBodyBytes + 65_536);
    try {
      for (;;) {
        const head = await readHead(reader);
        const goesOn = head !== null && (await serveOne(head, reader));
        if (goesOn === "detached") return;
        if (!goesOn) return void stream.end();
      }
    } catch (error) {
      if (stream.destroyed) return;
      if (!(error instanceof Refusal || error instanceof UnreadableRequest)) {
        this.parts.log(`a connection was closed: ${(error as Error).message}`);
        return void stream.destroy();
      }
      writeRefusal(stream, error instanceof Refusal ? error : unreadableRefusal(error.message), true);
      stream.end();
      // Keep reading for a while. Closing at once could reset the connection, and the agent would lose the refusal.
      reader.detach();
      stream.resume();
      setTimeout(() => stream.destroy(), LINGER_MS).unref();
    }
  }

  private assertCredential(head: RequestHead): void {
    const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
    const authorization = (headerOf(head, "proxy-authorization") ?? "").replace(/^basic +/i, "Basic ");
    if (timingSafeEqual(digest(authorization), digest(this.parts.credential))) return;
    throw new Refusal("send the credential of the proxy's URL", {
      status: 407,
      code: "PROXY_CREDENTIAL_MISSING",
      headers: { "Proxy-Authenticate": 'Basic realm="assent egress"' },
    });
  }

  /** Returns the listed origin of an absolute-form request. */
  private plainOrigin({ target }: RequestHead): Origin {
    const [, host = "", port = "80"] = /^http:\/\/([^/?#@\\:]+)(?::([1-9]\d{0,4}))?(?:[/?]|$)/i.exec(target) ?? [];
    if (host === "")
      throw unreadableRefusal("the target of the request must be an http URL, or CONNECT must come first");
    const origin = this.parts.config.origins.get(originKey("http", host.toLowerCase(), Number(port)));
    if (origin !== undefined) return origin;
    throw new Refusal(`http://${host.toLowerCase()}:${port} is not listed in egress.yaml`, {
      status: 403,
      code: "HOST_NOT_LISTED",
    });
  }

  private async connect(head: RequestHead, reader: ByteReader, socket: Socket): Promise<void> {
    const [, given = "", port = ""] = /^([^:@/?#[\]]+|\[[0-9a-f:.]+\]):([1-9]\d{0,4})$/i.exec(head.target) ?? [];
    const host = given.toLowerCase();
    const target = `${host}:${port}`;
    if (host === "") throw unreadableRefusal("the target of CONNECT must be HOST:PORT");
    if (![target, ...(port === "443" ? [host] : [])].includes(headerOf(head, "host")?.toLowerCase() ?? target))
      throw unreadableRefusal("the header Host differs from the target of CONNECT");
    if ((headerOf(head, "content-length") ?? "0") !== "0" || headerOf(head, "transfer-encoding") !== null)
      throw unreadableRefusal("CONNECT has a body");
    const origin = this.parts.config.origins.get(originKey("https", host, Number(port)));
    const tunnel = origin === undefined ? await this.openTunnel(host, Number(port), socket) : null;
    if (reader.detach().length > 0) {
      tunnel?.destroy();
      throw unreadableRefusal("the agent sent data before the response to CONNECT");
    }
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    if (origin !== undefined) this.interceptorFor(origin).emit("connection", socket);
    else if (tunnel !== null) joinTunnel(socket, tunnel, this.parts.config.tunnel.seconds);
  }

  /** Returns the TLS server that takes the place of a listed host. */
  private interceptorFor(origin: Origin): TlsServer {
    const cached = this.interceptors.get(origin);
    if (cached !== undefined) return cached;
    const server = createTlsServer({
      ...this.authority.issue(origin.host),
      SNICallback: (name, done) => done(name === origin.host ? null : new Error("the name differs from CONNECT")),
      ALPNProtocols: ["http/1.1"],
      handshakeTimeout: HANDSHAKE_MS,
    });
    server.on("tlsClientError", (_, socket) => socket.destroy());
    server.on("secureConnection", (socket: TLSSocket) => {
      // Clients send no name for an address.
      if (socket.servername !== origin.host && !isAddressLiteral(origin.host)) return void socket.destroy();
      void this.serveRequests(socket, (head, reader) => {
        if (!head.target.startsWith("/")) throw unreadableRefusal("the target of the request must be a path");
        return this.exchange(head, reader, socket, origin, head.target);
      });
    });
    this.interceptors.set(origin, server);
    return server;
  }

  /** Decides on one request, forwards it, and forwards the response. Resolves to true if the connection stays open. */
  private async exchange(
    head: RequestHead,
    reader: ByteReader,
    stream: Duplex,
    origin: Origin,
    uri: string,
  ): Promise<boolean> {
    const { config, gate, upstream, log } = this.parts;
    const { method } = head;
    if (!isHostOf(origin, headerOf(head, "host") ?? ""))
      throw unreadableRefusal("the header Host differs from the host of the connection or the URL");
    const headers = head.headers.filter(([name]) => !name.startsWith("proxy-"));
    const closes = (headerOf(head, "connection") ?? "").toLowerCase().includes("close");
    const body = await readBody(reader, head, config.maxBodyBytes);
    const gone = new AbortController();
    const leave = (): void => gone.abort(new Error("the agent disconnected"));
    stream.once("close", leave);
    try {
      const { signal } = gone;
      const { tool, operation, params } = toHttpAction(
        {
          method,
          host: authorityOf(origin),
          uri,
          headers: new Headers(headers),
          gatewayHeaders: [],
          body,
          declaredLength: null,
        },
        origin.tool,
        "",
      );
      // Do this before the decision, so that no one approves a request that is not sent.
      const swapped = swapCredentials(origin.credentials, { headers, uri, body });
      const decided = { ...params, ...decidedHeaders(headers, origin.credentials) };
      const started = await gate.start({ tool, operation, params: decided }, signal);
      let response;
      try {
        signal.throwIfAborted();
        response = await sendUpstream(origin, method, swapped, upstream, signal);
      } catch (error) {
        started.report(false, { error: `no response: ${(error as Error).message}` });
        throw error;
      }
      const status = response.statusCode ?? 0;
      started.report(status < 400, {
        status,
        ...(status < 400 ? {} : { error: `the server answered with ${status}` }),
      });
      const redactor = origin.credentials.length === 0 ? null : this.redactorFor(origin);
      return await forwardResponse(response, stream, { method, redactor, close: closes });
    } catch (error) {
      if (gone.signal.aborted) return false;
      if (!(error instanceof Refusal || error instanceof UnreadableRequest)) {
        // The response has begun. The agent must not take it as complete.
        log(`a response of ${origin.host} was cut: ${(error as Error).message}`);
        stream.destroy();
        return false;
      }
      // The request has been read in full, so the next one can follow.
      writeRefusal(stream, error instanceof Refusal ? error : unreadableRefusal(error.message), closes);
      return !closes;
    } finally {
      stream.off("close", leave);
    }
  }

  private redactorFor(origin: Origin): Redactor {
    const cached = this.redactors.get(origin) ?? new Redactor(origin.credentials.map(({ secret }) => secret));
    this.redactors.set(origin, cached);
    return cached;
  }

  /** Decides on a connection to a host that is not listed, and opens it. */
  private async openTunnel(host: string, port: number, socket: Socket): Promise<Socket> {
    const { config, gate, upstream } = this.parts;
    const refuse = (message: string, code: string): never => {
      throw new Refusal(message, { status: 403, code });
    };
    if (isAddressLiteral(host))
      refuse(`${host} is an address; use a name, or list it in egress.yaml`, "ADDRESS_LITERAL");
    if (!HOST_NAME.test(host)) throw unreadableRefusal("the host in the CONNECT request is not a valid name");
    // A tunnel to a listed host would pass unread requests.
    if ([...config.origins.values()].some((origin) => origin.host === host) || !config.tunnel.ports.includes(port))
      refuse(`port ${port} of ${host} is not listed in egress.yaml`, "PORT_NOT_LISTED");
    const gone = new AbortController();
    const leave = (): void => gone.abort(new Error("the agent disconnected"));
    socket.once("close", leave);
    try {
      const params = { host, port };
      const started = await gate.start({ tool: config.tunnel.tool, operation: "connect", params }, gone.signal);
      try {
        const tunnel = await openSocket(host, port, upstream.resolve, gone.signal);
        started.report(true, {});
        return tunnel;
      } catch (error) {
        started.report(false, { error: `not connected: ${(error as Error).message}` });
        throw error;
      }
    } finally {
      socket.off("close", leave);
    }
  }
}

function plainUri({ target }: RequestHead): string {
  const rest = target.replace(/^http:\/\/[^/?]*/i, "");
  return rest.startsWith("/") ? rest : `/${rest}`;
}

function isHostOf(origin: Origin, host: string): boolean {
  const { port } = origin;
  return [authorityOf(origin), `${origin.host}:${port}`].includes(host.toLowerCase());
}

function openSocket(host: string, port: number, resolve: Resolve, signal: AbortSignal): Promise<Socket> {
  return new Promise((done, fail) => {
    const socket = connectTcp({ host, port, lookup: createLookup(resolve, false), noDelay: true });
    const abort = (): void => void socket.destroy(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    socket.once("connect", () => {
      signal.removeEventListener("abort", abort);
      done(socket);
    });
    socket.on("error", (error) =>
      fail(error instanceof InternalAddress ? internalRefusal(host) : unreachableRefusal(host, error)),
    );
  });
}

/** Connects both sockets. The agent's bytes must begin with a TLS handshake, so that no plain text passes. */
export function joinTunnel(agent: Socket, server: Socket, seconds: number): void {
  const end = (): void => {
    clearTimeout(timer);
    agent.destroy();
    server.destroy();
  };
  const timer = setTimeout(end, seconds * 1000);
  timer.unref();
  for (const socket of [agent, server]) {
    socket.on("error", end);
    socket.on("close", end);
  }
  let begun = 0;
  const check = (chunk: Buffer): void => {
    // A TLS record of a handshake: 22, 3.
    for (const byte of chunk.subarray(0, 2 - begun)) if (byte !== [22, 3][begun++]) return end();
    if (begun === 2) agent.off("data", check);
  };
  agent.on("data", check);
  agent.pipe(server);
  server.pipe(agent);
  if (agent.destroyed || server.destroyed) end();
}
