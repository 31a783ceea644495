/** The proxy as a whole: a service to ask, servers to reach, and clients on standard input and output or over HTTP. */
import type { Readable, Writable } from "node:stream";
import { createAssent } from "../client/index.ts";
import { agentOf } from "./decisions/agent-id.ts";
import { patienceOf, type ProxyConfig } from "./config/proxy-config.ts";
import { connect, type Connection } from "./clients/connection.ts";
import { definitionStore } from "./tools/accepted-definitions.ts";
import { createGate } from "./decisions/decide-call.ts";
import type { HttpEdge } from "./clients/http-endpoint.ts";
import { lineChannel } from "./transport/line-channel.ts";
import { failure, parseMessage, type MessageFault, type Reply } from "./transport/message.ts";
import { asToolResult, refusalBecause } from "./decisions/refusal.ts";
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
const ANSWER = 10;

export type Proxy = ReturnType<typeof createProxy>;

export function createProxy({ config, url, apiKey, folder, log }: ProxyOptions) {
  const assent = createAssent({ url, apiKey, timeout: ANSWER, retries: 1 });
  const page = config.approval_page ?? `${url.replace(/\/+$/, "")}/approve#{id}`;
  const gate = createGate({
    assent,
    agentId: agentOf(assent, config.agent),
    budget: (client) => patienceOf(client, config.wait),
    approvalPage: (id) => page.replaceAll("{id}", encodeURIComponent(id)),
    log,
  });
  const store = definitionStore(folder);
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
    async serveHttp(): Promise<HttpEdge> {
      const { createHttpEdge } = await import("./clients/http-endpoint.ts");
      return createHttpEdge({ session, token: config.token ?? null, hosts: config.listen?.hosts ?? [], replyTo, log });
    },
    /** Serves one client on standard input and output. */
    serveLines(input: Readable, output: Writable): Connection {
      const channel = lineChannel({
        input,
        output,
        parse: parseMessage,
        gone: () => "the client has ended",
        // A client that keeps it open would keep the proxy alive.
        end: () => Promise.resolve(void input.destroy()),
        onfault(fault, send) {
          log(`a message of the client is refused: ${fault.message}`);
          send({ jsonrpc: "2.0", id: fault.request?.id ?? null, ...replyTo(fault) });
        },
      });
      return connect(channel, session());
    },
  };
}

/** What a message is answered with that does not mean one thing to everybody, or nothing at all. */
export function replyTo({ code, message, request }: MessageFault): Reply {
  if (request?.method !== "tools/call") return failure(code, message);
  const why = `The arguments cannot be passed on exactly: ${message}. Write them otherwise, for instance a large number as a text.`;
  return { result: asToolResult(refusalBecause(why, "NOT_EXACT"), false) };
}
