/**
 * Serves clients over Streamable HTTP, in both protocol revisions. Each session of 2025-11-25 has its own connections
 * to the servers; all requests of 2026-07-28 share one set of connections. The official SDK's transports write the
 * responses. This file parses the request body first, so that ambiguous JSON is rejected.
 */
import type { IncomingRequest } from "../transport/peer.ts";
import type { SendNotification } from "./multi-round-request.ts";
import type { Tool } from "../tools/tool-catalog.ts";
import { createHash, timingSafeEqual } from "node:crypto";
import {
  PerRequestHTTPServerTransport,
  WebStandardStreamableHTTPServerTransport,
  classifyInboundRequest,
  hostHeaderValidationResponse,
  isJsonContentType,
  localhostAllowedHostnames,
  originValidationResponse,
  readRequestBody,
} from "@modelcontextprotocol/server";
import { CLIENT_CLOSED, connectClient, type ClientConnection } from "./connection.ts";
import {
  ERROR_CODE,
  MODERN_VERSION,
  MessageError,
  isObject,
  isRequest,
  parseMessage,
  type JsonObject,
  type Message,
  type Reply,
  type Request as RpcRequest,
} from "../transport/rpc-message.ts";
import { headerMismatch, paramHeaderMismatch } from "../transport/http-headers.ts";
import { StatelessEndpoint } from "./stateless-clients.ts";
import { Peer, type Channel } from "../transport/peer.ts";
import type { SessionOptions } from "../session/client-session.ts";

interface HttpEndpointOptions {
  /** Creates the options for a new client session. */
  newSessionOptions(): SessionOptions;
  /** Token that clients must send as `Authorization: Bearer`; null if every client that can connect is trusted. */
  token: string | null;
  /** Host names that clients may use, in addition to the loopback names. */
  hosts: readonly string[];
  /** Whether another session can be opened; the default is true. */
  hasRoom?(): boolean;
  /** Returns the reply to a body that is invalid or ambiguous. */
  replyTo(fault: MessageError): Reply;
  log(line: string): void;
}

export const MCP_PATH = "/mcp";
/** Maximum number of concurrent sessions, because each session has its own server connections. */
const MAX_SESSIONS = 64;
/** Idle timeout of a session. Milliseconds. */
const SESSION_IDLE_MS = 30 * 60_000;

interface HttpSession {
  transport: WebStandardStreamableHTTPServerTransport;
  connection: ClientConnection;
  lastUsed: number;
  streams: number;
}

export class HttpEndpoint {
  private readonly options: HttpEndpointOptions;
  private readonly sessions = new Map<string, HttpSession>();
  private readonly modern: {
    answer: ({ request, signal }: IncomingRequest, notify: SendNotification) => Promise<Reply>;
    findTool({ params }: RpcRequest): Promise<Tool | undefined>;
    readonly isIdle: boolean;
    endSubscriptions(): void;
    close(): Promise<void>;
  };
  private readonly sweep: NodeJS.Timeout;

  constructor(options: HttpEndpointOptions) {
    this.options = options;
    this.modern = new StatelessEndpoint(options.newSessionOptions(), options.log);
    this.sweep = setInterval(() => {
      for (const session of this.sessions.values())
        if (session.streams === 0 && Date.now() - session.lastUsed > SESSION_IDLE_MS) void session.connection.close();
    }, 60_000);
    this.sweep.unref();
  }

  /** Number of open sessions of 2025-11-25. */
  get openSessions(): number {
    return this.sessions.size;
  }

  /** Whether there is no session and nothing that a client will come back for. Requests are not included. */
  get isIdle(): boolean {
    return this.sessions.size === 0 && this.modern.isIdle;
  }

  /** Ends the streams that wait for notifications. Calls and sessions continue. */
  endStreams(): void {
    for (const { transport } of this.sessions.values()) transport.closeStandaloneSSEStream();
    this.modern.endSubscriptions();
  }

  async fetch(request: Request): Promise<Response> {
    const refused = refuseForeignSite(request, this.options.hosts);
    if (refused !== undefined) return refused;
    if (this.options.token !== null && !hasBearerToken(request.headers.get("authorization"), this.options.token))
      return new Response(null, { status: 401, headers: { "www-authenticate": 'Bearer realm="assent mcp proxy"' } });
    if (new URL(request.url).pathname !== MCP_PATH)
      return errorResponse(404, ERROR_CODE.invalidRequest, `MCP is served at ${MCP_PATH}`);
    try {
      if (request.method === "POST") return await this.handlePost(request);
      if (request.method === "GET" || request.method === "DELETE")
        return await this.handleSessionRequest(request, null);
      return new Response(null, { status: 405, headers: { allow: "GET, POST, DELETE" } });
    } catch (error) {
      this.options.log(
        `a request failed in the proxy: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
      return errorResponse(500, ERROR_CODE.internal, "internal error of the proxy");
    }
  }

  async close(): Promise<void> {
    clearInterval(this.sweep);
    await Promise.all([
      this.modern.close(),
      ...[...this.sessions.values()].map(({ connection }) => connection.close()),
    ]);
  }

  private async handlePost(request: Request): Promise<Response> {
    if (!isJsonContentType(request.headers.get("content-type")))
      return errorResponse(415, ERROR_CODE.invalidRequest, "Content-Type must be application/json");
    const body = await readRequestBody(request);
    if (body.tooLarge) return errorResponse(413, ERROR_CODE.invalidRequest, "the body is too large");
    let message: Message;
    try {
      message = parseMessage(body.text);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.options.log(`rejected a message of a client: ${error.message}`);
      const reply = this.options.replyTo(error);
      return Response.json(
        { jsonrpc: "2.0", id: error.request?.id ?? null, ...reply },
        { status: "result" in reply ? 200 : 400 },
      );
    }
    const header = (name: string) => request.headers.get(name) ?? undefined;
    const classification = classifyInboundRequest({
      httpMethod: "POST",
      body: message,
      ...optional("protocolVersionHeader", header("mcp-protocol-version")),
      ...optional("mcpMethodHeader", header("mcp-method")),
      ...optional("mcpNameHeader", header("mcp-name")),
    } as never);
    if (classification.kind === "legacy") return this.handleSessionRequest(request, message);
    if (classification.kind !== "modern")
      return Response.json(
        { jsonrpc: "2.0", id: isRequest(message) ? message.id : null, error: classificationError(classification) },
        { status: classification.httpStatus },
      );
    return isRequest(message) ? this.handleStatelessRequest(request, message) : new Response(null, { status: 202 });
  }

  /** Handles a request of 2026-07-28, which does not need a session. Closing its response stream cancels it. */
  private async handleStatelessRequest(request: Request, message: RpcRequest): Promise<Response> {
    const mismatch = headerMismatch(request.headers, message) ?? (await this.paramMismatch(request.headers, message));
    if (mismatch !== null) return errorResponse(400, ERROR_CODE.headerMismatch, mismatch, message.id);
    const transport = new PerRequestHTTPServerTransport({
      classification: { era: "modern", revision: MODERN_VERSION },
      responseMode: STREAMED_METHODS.has(message.method) ? "sse" : "auto",
    });
    /** Resolves to a reply that nothing preceded; null once the response is a stream for another reason. */
    let settleFirst = (_reply: Reply | null): void => {};
    const first = new Promise<Reply | null>((resolve) => (settleFirst = resolve));
    const timer = setTimeout(() => settleFirst(null), OPEN_STREAM_MS);
    const peer = new Peer(toChannel(transport), {
      async onrequest(incoming) {
        const reply = await modern.answer(incoming, (method, params) => {
          settleFirst(null);
          void peer.notify(method, params, message.id);
        });
        settleFirst(reply);
        return reply;
      },
      onnotification() {},
      onclose: () => settleFirst(null),
    });
    const { modern } = this;
    await transport.start();
    const response = await transport.handleMessage(message as never, { request });
    // The revision states the status of some errors. A stream has status 200, so return it only after a while.
    const reply = await first;
    clearTimeout(timer);
    const status = reply !== null && "error" in reply ? ERROR_STATUS[reply.error.code] : undefined;
    if (reply === null || status === undefined) return response;
    await response.body?.cancel();
    return Response.json({ jsonrpc: "2.0", id: message.id, ...reply }, { status });
  }

  private async paramMismatch(headers: Headers, message: RpcRequest): Promise<string | null> {
    if (message.method !== "tools/call") return null;
    // If the server cannot be reached, the header rules of its tool are unknown, so do not check the headers. That is
    // safe, because the policy decides on the body.
    const tool = await this.modern.findTool(message).catch(() => undefined);
    const given = message.params?.["arguments"];
    return paramHeaderMismatch(headers, tool?.item["inputSchema"], isObject(given) ? given : {});
  }

  private async handleSessionRequest(request: Request, message: Message | null): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    let session = id === null ? undefined : this.sessions.get(id);
    if (id !== null && session === undefined)
      return errorResponse(404, -32001, "the session does not exist or has expired; start a new one with initialize");
    if (session === undefined) {
      if (message === null || !isRequest(message) || message.method !== "initialize")
        return errorResponse(400, ERROR_CODE.invalidRequest, "the first request of a session must be initialize");
      const isFull = (): boolean => this.sessions.size >= MAX_SESSIONS || this.options.hasRoom?.() === false;
      if (isFull()) await this.closeUninitialized();
      if (isFull()) return errorResponse(503, ERROR_CODE.internal, "there are too many sessions");
      session = this.openSession();
    }
    session.lastUsed = Date.now();
    const response = await session.transport.handleRequest(request, message === null ? {} : { parsedBody: message });
    return message !== null && isRequest(message)
      ? this.cancelOnDisconnect(response, session, message)
      : this.trackStream(response, session);
  }

  private openSession(): HttpSession {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void this.sessions.set(id, session),
      onsessionclosed: () => void session.connection.close(),
    });
    const session: HttpSession = {
      transport,
      connection: connectClient(toChannel(transport), this.options.newSessionOptions()),
      lastUsed: Date.now(),
      streams: 0,
    };
    void session.connection.closed.then(() => {
      if (transport.sessionId !== undefined) this.sessions.delete(transport.sessionId);
      return session.connection.close();
    });
    return session;
  }

  /** Closes sessions that failed to initialize. Their clients received an error and will open new sessions. */
  private closeUninitialized(): Promise<unknown> {
    const idle = [...this.sessions.values()].filter(
      ({ connection, streams }) => !connection.isInitialized && streams === 0,
    );
    return Promise.all(idle.map(({ connection }) => connection.close()));
  }

  /**
   * Cancels the request when the client closes the response stream, because the response can no longer reach the
   * client. A call that still waits for approval must then not run.
   */
  private cancelOnDisconnect(response: Response, session: HttpSession, { id }: RpcRequest): Response {
    return this.trackStream(response, session, (interrupted) => {
      if (interrupted)
        session.transport.onmessage?.({
          jsonrpc: "2.0",
          method: "notifications/cancelled",
          params: { requestId: id, reason: "the client disconnected" },
        });
    });
  }

  private trackStream(response: Response, session: HttpSession, onEnd?: (interrupted: boolean) => void): Response {
    session.streams++;
    return onStreamEnd(response, (interrupted) => {
      session.streams--;
      session.lastUsed = Date.now();
      onEnd?.(interrupted);
    });
  }
}

/**
 * Returns the response, and calls `onEnd` once its stream has ended; at once if it is not a stream.
 * @param onEnd called with true if the client disconnected before the end
 */
export function onStreamEnd(response: Response, onEnd: (interrupted: boolean) => void): Response {
  const { body } = response;
  if (body === null || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
    onEnd(false);
    return response;
  }
  const reader = body.getReader();
  let open = true;
  const end = (interrupted: boolean): void => {
    if (!open) return;
    open = false;
    onEnd(interrupted);
  };
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        end(true);
        throw error;
      });
      if (!done) return controller.enqueue(value);
      end(false);
      controller.close();
    },
    async cancel(reason) {
      end(true);
      await reader.cancel(reason);
    },
  });
  return new Response(stream, { status: response.status, headers: response.headers });
}

/**
 * Methods whose requests may wait for an approval. Their response is a stream, so that the client sees progress.
 */
const STREAMED_METHODS = new Set(["tools/call", "prompts/get", "resources/read"]);
/** Maximum delay before such a stream opens. Milliseconds. */
const OPEN_STREAM_MS = 5000;
/** HTTP status of errors of 2026-07-28. Other errors have the status 200. */
const ERROR_STATUS: Readonly<Record<number, number>> = {
  [ERROR_CODE.methodNotFound]: 404,
  [ERROR_CODE.headerMismatch]: 400,
  [ERROR_CODE.missingCapability]: 400,
  [ERROR_CODE.unsupportedVersion]: 400,
};

/**
 * Returns the refusal of a request with an unknown `Host`, or from a page of another site; undefined for other requests.
 * @param hosts host names that are accepted in addition to the loopback names
 */
export function refuseForeignSite(request: Request, hosts: readonly string[]): Response | undefined {
  const accepted = [...localhostAllowedHostnames(), ...hosts];
  return hostHeaderValidationResponse(request, accepted) ?? originValidationResponse(request, accepted);
}

function hasBearerToken(header: string | null, token: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  const [scheme = "", value = ""] = (header ?? "").split(" ");
  return scheme.toLowerCase() === "bearer" && timingSafeEqual(digest(value), digest(token));
}

export function errorResponse(
  status: number,
  code: number,
  message: string,
  id: string | number | null = null,
  data?: JsonObject,
): Response {
  return Response.json(
    { jsonrpc: "2.0", id, error: { code, message, ...(data === undefined ? {} : { data }) } },
    { status },
  );
}

function classificationError(rejection: unknown): JsonObject {
  const { code, message, data } = rejection as JsonObject;
  return { code: code as number, message: message as string, ...(isObject(data) ? { data } : {}) };
}

const optional = (name: string, value: string | undefined): JsonObject =>
  value === undefined ? {} : { [name]: value };

type ServerTransport = PerRequestHTTPServerTransport | WebStandardStreamableHTTPServerTransport;

function toChannel(transport: ServerTransport): Channel {
  let closed = false;
  const channel: Channel = {
    onmessage: () => {},
    onclose: () => {},
    send: (message, { related } = {}) =>
      transport.send(message as never, related === undefined ? {} : { relatedRequestId: related }),
    async close() {
      await transport.close();
      markClosed();
    },
  };
  const markClosed = (): void => {
    if (closed) return;
    closed = true;
    channel.onclose(CLIENT_CLOSED);
  };
  transport.onmessage = (message: unknown) => channel.onmessage(message as Message);
  transport.onclose = markClosed;
  return channel;
}
