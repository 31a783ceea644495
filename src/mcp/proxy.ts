/** The proxy as a whole: a service to ask, servers to reach, and clients on standard input and output or over HTTP. */
import type { Readable, Writable } from "node:stream";
import { createAssent } from "../client/index.ts";
import { createAgentIdResolver } from "./decisions/agent-id.ts";
import { approvalWaitFor, type ProxyConfig } from "./config/proxy-config.ts";
import { connectClient, type ClientConnection } from "./clients/connection.ts";
import { createDefinitionStore } from "./tools/accepted-definitions.ts";
import { createCallGate } from "./decisions/decide-call.ts";
import type { HttpEndpoint } from "./clients/http-endpoint.ts";
import { createLineChannel } from "./transport/line-channel.ts";
import { errorReply, parseMessage, type MessageError, type Reply } from "./transport/message.ts";
import { refusalToolResult, proxyRefusal } from "./decisions/refusal.ts";
import type { SessionOptions } from "./session/client-session.ts";

export interface ProxyOptions {
  config: ProxyConfig;
  /** Address and key of the service. */
  url: string;
  apiKey: string;
  /** Folder of what was accepted. */
  folder: string;
  log(line: string): void;
}

/** An answer of the service that takes longer is none: the client waits, and its patience is short. Seconds. */
const SERVICE_TIMEOUT = 10;

export type Proxy = ReturnType<typeof createProxy>;

export function createProxy({ config, url, apiKey, folder, log }: ProxyOptions) {
  const assent = createAssent({ url, apiKey, timeout: SERVICE_TIMEOUT, retries: 1 });
  const page = config.approval_page ?? `${url.replace(/\/+$/, "")}/approve#{id}`;
  const gate = createCallGate({
    assent,
    agentId: createAgentIdResolver(assent, config.agent),
    maxWait: (client) => approvalWaitFor(client, config.wait),
    approvalPage: (id) => page.replaceAll("{id}", encodeURIComponent(id)),
    log,
  });
  const store = createDefinitionStore(folder);
  /** Options of one client's session. */
  const session = (): SessionOptions => ({
    servers: config.servers,
    store,
    gate,
    log,
    session: crypto.randomUUID(),
    hideDenied: config.hide_denied === true,
  });

  return {
    /** Serves many clients over Streamable HTTP. */
    async serveHttp(): Promise<HttpEndpoint> {
      const { createHttpEndpoint: createHttpEdge } = await import("./clients/http-endpoint.ts");
      return createHttpEdge({
        session,
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
        parse: parseMessage,
        closeReason: () => "the client has ended",
        // A client that keeps it open would keep the proxy alive.
        onClose: () => Promise.resolve(void input.destroy()),
        onInvalidMessage(fault, send) {
          log(`a message of the client is refused: ${fault.message}`);
          send({ jsonrpc: "2.0", id: fault.request?.id ?? null, ...replyToInvalidMessage(fault) });
        },
      });
      return connectClient(channel, session());
    },
  };
}

/** What a message is answered with that does not mean one thing to everybody, or nothing at all. */
export function replyToInvalidMessage({ code, message, request }: MessageError): Reply {
  if (request?.method !== "tools/call") return errorReply(code, message);
  const why = `The arguments cannot be passed on exactly: ${message}. Write them otherwise, for instance a large number as a text.`;
  return { result: refusalToolResult(proxyRefusal(why, "NOT_EXACT"), false) };
}
