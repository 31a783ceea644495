/**
 * Serves clients over Streamable HTTP, in both protocol revisions. Each session of 2025-11-25 has its own connections
 * to the servers; all requests of 2026-07-28 share one set of connections. The official SDK's transports write the
 * responses. This file parses the request body first, so that ambiguous JSON is rejected.
 */
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
  MCP_PATH,
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
import type { ProxyUser, ProxyUsers } from "./users.ts";

interface HttpEndpointOptions {
  /** Creates the options for a new client session. @param user null if the proxy has no users */
  newSessionOptions(user: ProxyUser | null): SessionOptions;
  /** Identifies the user of each request; null if all clients act as one agent. */
  users: ProxyUsers | null;
  /** Token that clients must send as `Authorization: Bearer`; null if every client that can connect is trusted. */
  token: string | null;
  /** Host names that clients may use, in addition to the loopback names. */
  hosts: readonly string[];
  /** Returns the reply to a body that is invalid or ambiguous. */
  replyTo(fault: MessageError): Reply;
  log(line: string): void;
}

/** Where clients look for the metadata of the resource (RFC 9728). */
const METADATA_PATHS = [`/.well-known/oauth-protected-resource${MCP_PATH}`, "/.well-known/oauth-protected-resource"];
/** Maximum number of concurrent sessions, because each session has its own server connections. */
const MAX_SESSIONS = 64;
/** Maximum number of users with clients of 2026-07-28, because each has its own server connections. */
const MAX_USERS = 256;
/** Idle timeout of a session. Milliseconds. */
const SESSION_IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;

interface HttpSession {
  /** The user who opened it; null if the proxy has no users. */
  user: ProxyUser | null;
  transport: WebStandardStreamableHTTPServerTransport;
  connection: ClientConnection;
  lastUsed: number;
  streams: number;
}

/** What serves the clients of 2026-07-28 of one user, or of a proxy without users. */
interface ModernClients {
  endpoint: StatelessEndpoint;
  lastUsed: number;
  /** Number of requests that are being answered. */
  running: number;
}

export class HttpEndpoint {
  private readonly options: HttpEndpointOptions;
  private readonly allowedHosts: string[];
  private readonly sessions = new Map<string, HttpSession>();
  /** What serves the clients of 2026-07-28, by the user. */
  private readonly modern = new Map<ProxyUser | null, ModernClients>();
  private readonly sweep: NodeJS.Timeout;

  constructor(options: HttpEndpointOptions) {
    this.options = options;
    this.allowedHosts = [...localhostAllowedHostnames(), ...options.hosts];
    this.sweep = setInterval(() => {
      for (const { connection, streams, lastUsed } of this.sessions.values())
        if (streams === 0 && Date.now() - lastUsed > SESSION_IDLE_MS) void connection.close();
      for (const [user, { running, lastUsed }] of this.modern)
        if (user !== null && running === 0 && Date.now() - lastUsed > SESSION_IDLE_MS) this.closeModern(user);
      void this.closeEndedUsers().catch((error: unknown) => options.log(String(error)));
    }, SWEEP_MS);
    this.sweep.unref();
  }

  async fetch(request: Request): Promise<Response> {
    const refused =
      hostHeaderValidationResponse(request, this.allowedHosts) ?? originValidationResponse(request, this.allowedHosts);
    if (refused !== undefined) return refused;
    if (this.options.token !== null && !hasBearerToken(request.headers.get("authorization"), this.options.token))
      return new Response(null, { status: 401, headers: { "www-authenticate": 'Bearer realm="assent mcp proxy"' } });
    const { users } = this.options;
    const { pathname } = new URL(request.url);
    if (users !== null && METADATA_PATHS.includes(pathname)) return users.describeResource();
    if (pathname !== MCP_PATH) return errorResponse(404, ERROR_CODE.invalidRequest, `MCP is served at ${MCP_PATH}`);
    try {
      const user = users === null ? null : await users.identify(request.headers.get("authorization"));
      if (user instanceof Response) return user;
      if (request.method === "POST") return await this.handlePost(request, user);
      if (request.method === "GET" || request.method === "DELETE")
        return await this.handleSessionRequest(request, null, user);
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
      ...[...this.modern.values()].map(({ endpoint }) => endpoint.close()),
      ...[...this.sessions.values()].map(({ connection }) => connection.close()),
    ]);
  }

  /** Closes what is open for users who disconnected the client, whose token has expired, or who were deactivated. */
  private async closeEndedUsers(): Promise<void> {
    const { users } = this.options;
    const open = new Set([...this.sessions.values()].map(({ user }) => user).concat(...this.modern.keys()));
    for (const user of open) {
      if (users === null || user === null || (await users.isCurrent(user))) continue;
      for (const session of this.sessions.values()) if (session.user === user) void session.connection.close();
      this.closeModern(user);
    }
  }

  private closeModern(user: ProxyUser): void {
    const clients = this.modern.get(user);
    this.modern.delete(user);
    void clients?.endpoint.close();
  }

  private async handlePost(request: Request, user: ProxyUser | null): Promise<Response> {
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
    if (classification.kind === "legacy") return this.handleSessionRequest(request, message, user);
    if (classification.kind !== "modern")
      return Response.json(
        { jsonrpc: "2.0", id: isRequest(message) ? message.id : null, error: classificationError(classification) },
        { status: classification.httpStatus },
      );
    if (!isRequest(message)) return new Response(null, { status: 202 });
    const clients = this.modernClients(user);
    return clients === null
      ? errorResponse(503, ERROR_CODE.internal, "there are too many users")
      : this.handleStatelessRequest(request, message, clients);
  }

  /** Returns what serves the user's clients of 2026-07-28; null if there are too many users. */
  private modernClients(user: ProxyUser | null): ModernClients | null {
    let clients = this.modern.get(user);
    if (clients === undefined) {
      if (this.modern.size >= MAX_USERS) return null;
      const endpoint = new StatelessEndpoint(this.options.newSessionOptions(user), this.options.log);
      this.modern.set(user, (clients = { endpoint, lastUsed: 0, running: 0 }));
    }
    clients.lastUsed = Date.now();
    return clients;
  }

  /** Handles a request of 2026-07-28, which does not need a session. Closing its response stream cancels it. */
  private async handleStatelessRequest(
    request: Request,
    message: RpcRequest,
    clients: ModernClients,
  ): Promise<Response> {
    const { endpoint } = clients;
    const mismatch =
      headerMismatch(request.headers, message) ?? (await this.paramMismatch(endpoint, request.headers, message));
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
        clients.running++;
        try {
          const reply = await endpoint.answer(incoming, (method, params) => {
            settleFirst(null);
            void peer.notify(method, params, message.id);
          });
          settleFirst(reply);
          return reply;
        } finally {
          clients.running--;
          clients.lastUsed = Date.now();
        }
      },
      onnotification() {},
      onclose: () => settleFirst(null),
    });
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

  private async paramMismatch(
    endpoint: StatelessEndpoint,
    headers: Headers,
    message: RpcRequest,
  ): Promise<string | null> {
    if (message.method !== "tools/call") return null;
    // If the server cannot be reached, the header rules of its tool are unknown, so do not check the headers. That is
    // safe, because the policy decides on the body.
    const tool = await endpoint.findTool(message).catch(() => undefined);
    const given = message.params?.["arguments"];
    return paramHeaderMismatch(headers, tool?.item["inputSchema"], isObject(given) ? given : {});
  }

  private async handleSessionRequest(
    request: Request,
    message: Message | null,
    user: ProxyUser | null,
  ): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    let session = id === null ? undefined : this.sessions.get(id);
    // A session belongs to its user: its id alone gives no one else access.
    if (id !== null && session?.user !== user)
      return errorResponse(404, -32001, "the session does not exist or has expired; start a new one with initialize");
    if (session === undefined) {
      if (message === null || !isRequest(message) || message.method !== "initialize")
        return errorResponse(400, ERROR_CODE.invalidRequest, "the first request of a session must be initialize");
      if (this.sessions.size >= MAX_SESSIONS) await this.closeUninitialized();
      if (this.sessions.size >= MAX_SESSIONS)
        return errorResponse(503, ERROR_CODE.internal, "there are too many sessions");
      session = this.openSession(user);
    }
    session.lastUsed = Date.now();
    const response = await session.transport.handleRequest(request, message === null ? {} : { parsedBody: message });
    return message !== null && isRequest(message)
      ? this.cancelOnDisconnect(response, session, message)
      : this.trackStream(response, session);
  }

  private openSession(user: ProxyUser | null): HttpSession {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void this.sessions.set(id, session),
      onsessionclosed: () => void session.connection.close(),
    });
    const session: HttpSession = {
      user,
      transport,
      connection: connectClient(toChannel(transport), this.options.newSessionOptions(user)),
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
    const { body } = response;
    if (body === null || !response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    session.streams++;
    const reader = body.getReader();
    let open = true;
    const end = (interrupted: boolean): void => {
      if (!open) return;
      open = false;
      session.streams--;
      session.lastUsed = Date.now();
      onEnd?.(interrupted);
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

function hasBearerToken(header: string | null, token: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  const [scheme = "", value = ""] = (header ?? "").split(" ");
  return scheme.toLowerCase() === "bearer" && timingSafeEqual(digest(value), digest(token));
}

function errorResponse(
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
