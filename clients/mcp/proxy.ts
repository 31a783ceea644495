/**
 * The MCP proxy. It connects clients, on standard input and output or over HTTP, with servers, and requests a decision
 * on each call from the service.
 */
import type { Readable, Writable } from "node:stream";
import { createAssent } from "../typescript/index.ts";
import { createAgentIdResolver } from "../typescript/agent-id.ts";
import { approvalWaitFor, type ProxyConfig } from "./config/proxy-config.ts";
import { CLIENT_CLOSED, connectClient, type ClientConnection } from "./clients/connection.ts";
import { createDefinitionStore } from "./tools/accepted-definitions.ts";
import { CallGate } from "./decisions/decide-call.ts";
import type { HttpEndpoint } from "./clients/http-endpoint.ts";
import type { ServerConfig } from "./config/server-config.ts";
import { createLineChannel } from "./transport/line-channel.ts";
import { errorReply, parseMessage, MessageError, type Message, type Reply } from "./transport/rpc-message.ts";
import { refusalToolResult, proxyRefusal } from "./decisions/refusal-result.ts";
import type { SessionOptions } from "./session/client-session.ts";

interface ProxyOptions {
  config: ProxyConfig;
  /** URL and API key of the Assent service. */
  url: string;
  apiKey: string;
  /** Folder of the accepted tool definitions. */
  folder: string;
  log(line: string): void;
}

/** Timeout of requests to the service. Short, because a client is waiting. Seconds. */
const SERVICE_TIMEOUT = 10;

export function createProxy({ config, url, apiKey, folder, log }: ProxyOptions) {
  const authority = config.authority ?? null;
  const page = config.approval_page ?? `${url.replace(/\/+$/, "")}/approve#{id}`;
  const store = createDefinitionStore(folder);
  /**
   * Returns a function that creates the options for a new client session.
   * @param credential returns the credential of the service with which calls are decided
   */
  const createSessions = (
    credential: () => string,
    servers: readonly ServerConfig[],
    agent: string | undefined,
  ): (() => SessionOptions) => {
    // Use one session for all clients. With a session per connection, a client could escape its history by reconnecting.
    const session = config.sessions === true ? `mcp-proxy:${crypto.randomUUID()}` : undefined;
    const assent = createAssent({ ...serviceOptions(credential), session, authority, retries: 1 });
    const gate = new CallGate({
      assent,
      agentId: createAgentIdResolver(assent, agent, "--agent"),
      authority,
      maxWait: (client) => approvalWaitFor(client, config.wait),
      approvalPage: (id) => page.replaceAll("{id}", encodeURIComponent(id)),
      log,
    });
    return () => ({
      servers,
      store,
      gate,
      log,
      session: crypto.randomUUID(),
      hideDenied: config.hide_denied === true,
      offerAuthority: config.offer_authority === true,
    });
  };
  const serviceOptions = (credential: () => string) => ({
    url,
    apiKey: credential(),
    timeout: SERVICE_TIMEOUT,
    // A user's credential can be replaced while a session lasts.
    fetch: ((input, init) => {
      const headers = new Headers(init?.headers);
      headers.set("authorization", `Bearer ${credential()}`);
      return fetch(input, { ...init, headers });
    }) as typeof fetch,
  });

  return {
    /** Serves many clients over Streamable HTTP. */
    async serveHttp(): Promise<Pick<HttpEndpoint, "fetch" | "close">> {
      const { HttpEndpoint: Endpoint } = await import("./clients/http-endpoint.ts");
      const common = { hosts: config.listen?.hosts ?? [], replyTo: replyToInvalidMessage, log };
      const users = config.listen?.users;
      if (users === undefined) {
        const newSessionOptions = createSessions(() => apiKey, config.servers, config.agent);
        return new Endpoint({ ...common, newSessionOptions, token: config.token ?? null });
      }
      const { UserEndpoints } = await import("./clients/user-endpoints.ts");
      return new UserEndpoints({
        ...users,
        hosts: common.hosts,
        log,
        identify: (token) => createAssent({ ...serviceOptions(() => token), retries: 0 }).call("GET", "/v1/me"),
        createEndpoint: ({ credential, agent, isIssued, hasRoom }) => {
          const servers = isIssued ? config.servers.map(actingFor(credential)) : config.servers;
          return new Endpoint({
            ...common,
            newSessionOptions: createSessions(credential, servers, agent),
            token: null,
            hasRoom,
          });
        },
      });
    },
    /** Serves one client on standard input and output. */
    serveStdio(input: Readable, output: Writable): ClientConnection {
      const channel = createLineChannel({
        input,
        output,
        parse: parseClientLine,
        onTooLong: "close",
        closeReason: () => CLIENT_CLOSED,
        // Destroy the input, because it would otherwise keep the process alive.
        onClose: () => Promise.resolve(void input.destroy()),
        onInvalidMessage(fault, send) {
          log(`rejected a message of the client: ${fault.message}`);
          // An error with the id of a response would look like the reply to a request of the client.
          if (fault.request === null && typeof fault.answers !== "string" && fault.answers.length > 0) return;
          const reply = replyToInvalidMessage(fault);
          send(
            fault.request === null
              ? { jsonrpc: "2.0", id: null, ...reply }
              : { jsonrpc: "2.0", id: fault.request.id, ...reply },
          );
        },
      });
      return connectClient(channel, createSessions(() => apiKey, config.servers, config.agent)());
    },
  };
}

/** Returns a function that adds the credential of a user, as the subject of token exchanges, to a server. */
const actingFor =
  (subject: () => string) =>
  (server: ServerConfig): ServerConfig =>
    "url" in server.target ? { ...server, target: { ...server.target, subject } } : server;

function parseClientLine(line: string): [Message | MessageError] {
  try {
    return [parseMessage(line)];
  } catch (error) {
    if (error instanceof MessageError) return [error];
    throw error;
  }
}

/** Returns the reply to an invalid or ambiguous message. */
function replyToInvalidMessage({ code, message, request }: MessageError): Reply {
  if (request?.method !== "tools/call") return errorReply(code, message);
  const reason = `The arguments are ambiguous JSON: ${message}. Write them differently, for example a large number as a string.`;
  return { result: refusalToolResult(proxyRefusal(reason, "NOT_EXACT"), false) };
}
