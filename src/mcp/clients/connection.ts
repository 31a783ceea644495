/** One client on one channel, in either era of the protocol: which, its first message says. */
import type { Caller } from "./caller.ts";
import {
  CODE,
  LEGACY,
  META,
  failure,
  isObject,
  metaOf,
  type JsonObject,
  type Reply,
  type Request,
} from "../transport/message.ts";
import { createModernEdge } from "./stateless-clients.ts";
import { createPeer, type Channel, type Incoming, type Peer } from "../transport/peer.ts";
import { createSession, type Session, type SessionOptions } from "../session/client-session.ts";

export interface Connection {
  /** Resolves to a sentence when it is over. */
  readonly closed: Promise<string>;
  /** Whether a client was greeted, or is being greeted. */
  readonly begun: boolean;
  close(): Promise<void>;
}

export function connect(channel: Channel, options: SessionOptions): Connection {
  let over = (_why: string): void => {};
  const closed = new Promise<string>((resolve) => (over = resolve));
  let greeted: Session | null = null;
  let ready = (): void => {};
  /** In 2025-11-25 a client is asked nothing before it says that it is ready. */
  const initialized = new Promise<void>((resolve) => (ready = resolve));

  const peer: Peer = createPeer(channel, {
    onrequest(incoming) {
      const { request } = incoming;
      return META.version in metaOf(request.params)
        ? modern.answer(incoming, (method, params) => void peer.notify(method, params, request.id))
        : answer(incoming);
    },
    onnotification(notification) {
      if (notification.method === "notifications/initialized") ready();
      else greeted?.tell(notification);
    },
    onclose: (why) => void end(why),
  });
  const modern = createModernEdge(options, (why) => void end(why));

  async function answer({ request, signal }: Incoming): Promise<Reply> {
    if (request.method === "initialize") return greet(request);
    if (greeted === null)
      return request.method === "ping"
        ? { result: {} }
        : failure(CODE.invalidRequest, `"${request.method}" came before "initialize"`);
    return greeted.handle(request, callerOf(peer, request, signal, greeted));
  }

  async function greet({ params = {} }: Request): Promise<Reply> {
    if (greeted !== null) return failure(CODE.invalidRequest, "this connection has begun already");
    const { protocolVersion, clientInfo, capabilities } = params;
    if (typeof protocolVersion !== "string") return failure(CODE.invalidParams, "protocolVersion is a text");
    const facts = {
      version: LEGACY.includes(protocolVersion) ? protocolVersion : (LEGACY[0] as string),
      info: isObject(clientInfo) ? clientInfo : {},
      capabilities: isObject(capabilities) ? capabilities : {},
    };
    const session = createSession(options, {
      notify: (method, params) => void peer.notify(method, params),
      async ask({ method, params: of }, given) {
        await initialized;
        return peer.request(method, of, { signal: given });
      },
      ended: (why) => void end(why),
    });
    greeted = session;
    try {
      await session.open(facts);
      const greeting = await session.greeting();
      const version =
        LEGACY.includes(greeting.version) && greeting.version < facts.version ? greeting.version : facts.version;
      return {
        result: {
          protocolVersion: version,
          capabilities: greeting.capabilities,
          serverInfo: { name: "assent-mcp-proxy", version: "0", ...greeting.info },
          ...(greeting.instructions === undefined ? {} : { instructions: greeting.instructions }),
        },
      };
    } catch (error) {
      greeted = null;
      await session.close();
      const why = error instanceof Error ? error.message : String(error);
      options.log(why);
      return failure(CODE.internal, `the proxy cannot begin: ${why}`);
    }
  }

  async function end(why: string): Promise<void> {
    over(why);
    await Promise.all([peer.closed === null ? peer.close() : null, greeted?.close(), modern.close()]);
  }

  return {
    closed,
    get begun() {
      return greeted !== null;
    },
    close: () => end("closed"),
  };
}

function callerOf(peer: Peer, { id, params }: Request, signal: AbortSignal, { facts }: Session): Caller {
  const token = metaOf(params)["progressToken"];
  return {
    signal,
    info: facts.info,
    capabilities: facts.capabilities,
    attached: () => Promise.resolve(),
    wantsProgress: token !== undefined,
    progress: (params: JsonObject) =>
      void peer.notify("notifications/progress", { ...params, progressToken: token ?? null }, id),
    notify: (method, params) => void peer.notify(method, params, id),
    ask: ({ method, params: of }) => peer.request(method, of, { signal, related: id }),
  };
}
