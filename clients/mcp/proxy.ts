/**
 * The MCP proxy. It connects clients, on standard input and output or over HTTP, with servers, and requests a decision
 * on each call from the service.
 */
import type { Readable, Writable } from "node:stream";
import { type Assent, createAssent } from "../typescript/index.ts";
import { createAgentIdResolver } from "../typescript/agent-id.ts";
import { approvalWaitFor, type ProxyConfig } from "./config/proxy-config.ts";
import { CLIENT_CLOSED, connectClient, type ClientConnection } from "./clients/connection.ts";
import { createDefinitionStore } from "./tools/accepted-definitions.ts";
import { CallGate } from "./decisions/decide-call.ts";
import type { HttpEndpoint } from "./clients/http-endpoint.ts";
import { type ProxyUser, ProxyUsers } from "./clients/users.ts";
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
  const page = config.approval_page ?? `${url.replace(/\/+$/, "")}/approve#{id}`;
  const authority = config.authority ?? null;
  const createGate = (assent: Assent, agentId: () => Promise<string>): CallGate =>
    new CallGate({
      assent,
      agentId,
      authority,
      maxWait: (client) => approvalWaitFor(client, config.wait),
      approvalPage: (id) => page.replaceAll("{id}", encodeURIComponent(id)),
      log,
    });
  // Use one session for all clients. With a session per connection, a client could escape its history by reconnecting.
  const clientOptions = () => {
    const session = config.sessions === true ? `mcp-proxy:${crypto.randomUUID()}` : undefined;
    return { url, session, authority, timeout: SERVICE_TIMEOUT, retries: 1 };
  };
  const createOwnGate = (): CallGate => {
    const assent = createAssent({ ...clientOptions(), apiKey });
    return createGate(assent, createAgentIdResolver(assent, config.agent, "--agent"));
  };
  // A proxy with users never acts as itself.
  const ownGate = config.resource === undefined ? createOwnGate() : null;
  const gates = new WeakMap<ProxyUser, CallGate>();
  const gateOf = (user: ProxyUser | null): CallGate => {
    if (user === null) {
      if (ownGate === null) throw new Error("a request has no user");
      return ownGate;
    }
    let gate = gates.get(user);
    if (gate === undefined) {
      const assent = createAssent({ ...clientOptions(), apiKey: null, fetch: user.fetch });
      gates.set(user, (gate = createGate(assent, () => Promise.resolve(user.agentId))));
    }
    return gate;
  };
  const store = createDefinitionStore(folder);
  /** Creates the options for a new client session. */
  const newSessionOptions = (user: ProxyUser | null): SessionOptions => ({
    servers: config.servers,
    store,
    gate: gateOf(user),
    log,
    session: crypto.randomUUID(),
    hideDenied: config.hide_denied === true,
    offerAuthority: config.offer_authority === true,
  });

  return {
    /** Serves many clients over Streamable HTTP. */
    async serveHttp(): Promise<HttpEndpoint> {
      const endpoint = await import("./clients/http-endpoint.ts");
      const { resource } = config;
      const users = resource === undefined ? null : new ProxyUsers({ url, apiKey, resource, log });
      const fault = await users?.findFault();
      if (fault != null) log(`users cannot sign in now: ${fault}`);
      return new endpoint.HttpEndpoint({
        newSessionOptions,
        users,
        token: config.token ?? null,
        hosts: [...(config.listen?.hosts ?? []), ...(resource === undefined ? [] : [new URL(resource).hostname])],
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
      return connectClient(channel, newSessionOptions(null));
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
