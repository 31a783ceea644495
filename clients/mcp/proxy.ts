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
  // Use one session for all clients. With a session per connection, a client could escape its history by reconnecting.
  const session = config.sessions === true ? `mcp-proxy:${crypto.randomUUID()}` : undefined;
  const authority = config.authority ?? null;
  const assent = createAssent({ url, apiKey, session, authority, timeout: SERVICE_TIMEOUT, retries: 1 });
  const page = config.approval_page ?? `${url.replace(/\/+$/, "")}/approve#{id}`;
  const gate = new CallGate({
    assent,
    agentId: createAgentIdResolver(assent, config.agent, "--agent"),
    authority,
    maxWait: (client) => approvalWaitFor(client, config.wait),
    approvalPage: (id) => page.replaceAll("{id}", encodeURIComponent(id)),
    log,
  });
  const store = createDefinitionStore(folder);
  /** Creates the options for a new client session. */
  const newSessionOptions = (): SessionOptions => ({
    servers: config.servers,
    store,
    gate,
    log,
    session: crypto.randomUUID(),
    hideDenied: config.hide_denied === true,
    offerAuthority: config.offer_authority === true,
  });

  return {
    /** Serves many clients over Streamable HTTP. */
    async serveHttp(): Promise<HttpEndpoint> {
      const endpoint = await import("./clients/http-endpoint.ts");
      return new endpoint.HttpEndpoint({
        newSessionOptions,
        token: config.token ?? null,
        hosts: config.listen?.hosts ?? [],
        replyTo: replyToInvalidMessage,
        log,
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
      return connectClient(channel, newSessionOptions());
    },
  };
}

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
