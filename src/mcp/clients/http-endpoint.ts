/**
 * Clients over Streamable HTTP, in both eras: sessions of 2025-11-25 each have servers of their own, requests of
 * 2026-07-28 share theirs. The official server transports write the answers; the text of a request is read here first.
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
import { connectClient, type ClientConnection } from "./connection.ts";
import {
  ERROR_CODE,
  META_KEY,
  MODERN_VERSION,
  MessageError,
  isObject,
  isRequest,
  readMeta,
  parseMessage,
  type JsonObject,
  type Message,
  type Reply,
  type Request as RpcRequest,
} from "../transport/message.ts";
import { headerMismatch, paramHeaderMismatch } from "../transport/http-headers.ts";
import { createStatelessEndpoint } from "./stateless-clients.ts";
import { createPeer, type Channel } from "../transport/peer.ts";
import type { SessionOptions } from "../session/client-session.ts";

export interface HttpEndpointOptions {
  /** Of one client. */
  session(): SessionOptions;
  /** What a client shows as `Authorization: Bearer`; null where the address alone is trusted. */
  token: string | null;
  /** Names under which the proxy is reached, besides those of this machine to itself. */
  hosts: readonly string[];
  /** What a text is answered with that is no exact message. */
  replyTo(fault: MessageError): Reply;
  log(line: string): void;
}

export const MCP_PATH = "/mcp";
/** Sessions at once: each has its own servers. */
const MAX_SESSIONS = 64;
/** After which a session is ended that nobody uses. Milliseconds. */
const SESSION_IDLE_MS = 30 * 60_000;

interface HttpSession {
  transport: WebStandardStreamableHTTPServerTransport;
  connection: ClientConnection;
  lastUsed: number;
  streams: number;
}

export type HttpEndpoint = ReturnType<typeof createHttpEndpoint>;

export function createHttpEndpoint({ session, token, hosts, replyTo, log }: HttpEndpointOptions) {
  const names = [...localhostAllowedHostnames(), ...hosts];
  const sessions = new Map<string, HttpSession>();
  const modern = createStatelessEndpoint(session(), log);
  const sweep = setInterval(() => {
    for (const kept of sessions.values())
      if (kept.streams === 0 && Date.now() - kept.lastUsed > SESSION_IDLE_MS) void kept.connection.close();
  }, 60_000);
  sweep.unref();

  async function post(request: Request): Promise<Response> {
    if (!isJsonContentType(request.headers.get("content-type")))
      return errorResponse(415, ERROR_CODE.invalidRequest, "the body is JSON: say so in Content-Type");
    const body = await readRequestBody(request);
    if (body.tooLarge) return errorResponse(413, ERROR_CODE.invalidRequest, "the body is too large");
    let message: Message;
    try {
      message = parseMessage(body.text);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      log(`a message of a client is refused: ${error.message}`);
      const reply = replyTo(error);
      return Response.json(
        { jsonrpc: "2.0", id: error.request?.id ?? null, ...reply },
        { status: "result" in reply ? 200 : 400 },
      );
    }
    const header = (name: string) => request.headers.get(name) ?? undefined;
    const kind = classifyInboundRequest({
      httpMethod: "POST",
      body: message,
      ...optional("protocolVersionHeader", header("mcp-protocol-version")),
      ...optional("mcpMethodHeader", header("mcp-method")),
      ...optional("mcpNameHeader", header("mcp-name")),
    } as never);
    if (kind.kind === "legacy") return legacy(request, message);
    if (kind.kind !== "modern")
      return Response.json(
        { jsonrpc: "2.0", id: isRequest(message) ? message.id : null, error: classificationError(kind) },
        { status: kind.httpStatus },
      );
    return isRequest(message) ? inOneExchange(request, message) : new Response(null, { status: 202 });
  }

  /** A request of 2026-07-28: everything is in it, and the end of its answer's stream ends it. */
  async function inOneExchange(request: Request, message: RpcRequest): Promise<Response> {
    const fault = headerMismatch(request.headers, message) ?? (await ofParams(request.headers, message));
    if (fault !== null) return errorResponse(400, ERROR_CODE.headerMismatch, fault, message.id);
    if (readMeta(message.params)[META_KEY.version] !== MODERN_VERSION)
      return errorResponse(
        400,
        ERROR_CODE.unsupportedVersion,
        `only ${MODERN_VERSION} is served without a session`,
        message.id,
        {
          supported: [MODERN_VERSION],
        },
      );
    const transport = new PerRequestHTTPServerTransport({
      classification: { era: "modern", revision: MODERN_VERSION },
      responseMode: STREAMED_METHODS.has(message.method) ? "sse" : "auto",
    });
    const peer = createPeer(toChannel(transport), {
      onrequest: (incoming) =>
        modern.answer(incoming, (method, params) => void peer.notify(method, params, message.id)),
      onnotification() {},
      onclose() {},
    });
    await transport.start();
    return transport.handleMessage(message as never, { request });
  }

  async function ofParams(headers: Headers, message: RpcRequest): Promise<string | null> {
    if (message.method !== "tools/call") return null;
    // A server that cannot be asked now has no tool that wants headers. What is decided is the body all the same.
    const tool = await modern.findTool(message).catch(() => undefined);
    const given = message.params?.["arguments"];
    return paramHeaderMismatch(headers, tool?.item["inputSchema"], isObject(given) ? given : {});
  }

  async function legacy(request: Request, message: Message | null): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    let kept = id === null ? undefined : sessions.get(id);
    if (id !== null && kept === undefined)
      return errorResponse(404, -32001, "there is no such session; begin a new one");
    if (kept === undefined) {
      if (message === null || !isRequest(message) || message.method !== "initialize")
        return errorResponse(400, ERROR_CODE.invalidRequest, "a session begins with initialize");
      if (sessions.size >= MAX_SESSIONS) await dropUnbegun();
      if (sessions.size >= MAX_SESSIONS) return errorResponse(503, ERROR_CODE.internal, "there are too many sessions");
      kept = begin();
    }
    kept.lastUsed = Date.now();
    const response = await kept.transport.handleRequest(request, message === null ? {} : { parsedBody: message });
    return message !== null && isRequest(message) ? watched(response, kept, message) : onEnd(response, kept);
  }

  function begin(): HttpSession {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, kept),
      onsessionclosed: () => void kept.connection.close(),
    });
    const kept: HttpSession = {
      transport,
      connection: connectClient(toChannel(transport), session()),
      lastUsed: Date.now(),
      streams: 0,
    };
    void kept.connection.closed.then(() => {
      if (transport.sessionId !== undefined) sessions.delete(transport.sessionId);
      return kept.connection.close();
    });
    return kept;
  }

  /** Sessions whose servers did not start: their clients are told so, and begin others. */
  function dropUnbegun(): Promise<unknown> {
    const idle = [...sessions.values()].filter(({ connection, streams }) => !connection.isInitialized && streams === 0);
    return Promise.all(idle.map(({ connection }) => connection.close()));
  }

  /** Without its stream no answer reaches the client: a call that waits must not be made any more. */
  function watched(response: Response, kept: HttpSession, { id }: RpcRequest): Response {
    return onEnd(response, kept, (cut) => {
      if (cut)
        kept.transport.onmessage?.({
          jsonrpc: "2.0",
          method: "notifications/cancelled",
          params: { requestId: id, reason: "the client has hung up" },
        });
    });
  }

  function onEnd(response: Response, kept: HttpSession, ended?: (cut: boolean) => void): Response {
    const { body } = response;
    if (body === null || !response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    kept.streams++;
    const reader = body.getReader();
    let open = true;
    const end = (cut: boolean): void => {
      if (!open) return;
      open = false;
      kept.streams--;
      kept.lastUsed = Date.now();
      ended?.(cut);
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

  return {
    async fetch(request: Request): Promise<Response> {
      const refused = hostHeaderValidationResponse(request, names) ?? originValidationResponse(request, names);
      if (refused !== undefined) return refused;
      if (token !== null && !hasBearerToken(request.headers.get("authorization"), token))
        return new Response(null, { status: 401, headers: { "www-authenticate": 'Bearer realm="assent mcp proxy"' } });
      if (new URL(request.url).pathname !== MCP_PATH)
        return errorResponse(404, ERROR_CODE.invalidRequest, `MCP is served at ${MCP_PATH}`);
      try {
        if (request.method === "POST") return await post(request);
        if (request.method === "GET" || request.method === "DELETE") return await legacy(request, null);
        return new Response(null, { status: 405, headers: { allow: "GET, POST, DELETE" } });
      } catch (error) {
        log(
          `a request failed in the proxy: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        );
        return errorResponse(500, ERROR_CODE.internal, "the proxy failed");
      }
    },
    async close(): Promise<void> {
      clearInterval(sweep);
      await Promise.all([modern.close(), ...[...sessions.values()].map(({ connection }) => connection.close())]);
    },
  };
}

/** Requests that may wait for a person: their answer begins at once, so that the client sees it live. */
const STREAMED_METHODS = new Set(["tools/call", "prompts/get", "resources/read"]);

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
      over();
    },
  };
  const over = (): void => {
    if (closed) return;
    closed = true;
    channel.onclose("the client has ended");
  };
  transport.onmessage = (message: unknown) => channel.onmessage(message as Message);
  transport.onclose = over;
  return channel;
}
