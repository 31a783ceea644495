/** One client on one channel, in either era of the protocol: which, its first message says. */
import type { Caller } from "./caller.ts";
import {
  ERROR_CODE,
  LEGACY_VERSIONS,
  META_KEY,
  errorReply,
  isObject,
  readMeta,
  type JsonObject,
  type Reply,
  type Request,
} from "../transport/message.ts";
import { createStatelessEndpoint } from "./stateless-clients.ts";
import { createPeer, type Channel, type IncomingRequest, type Peer } from "../transport/peer.ts";
import { createClientSession, type ClientSession, type SessionOptions } from "../session/client-session.ts";

export interface ClientConnection {
  /** Resolves to a sentence when it is over. */
  readonly closed: Promise<string>;
  /** Whether a client was greeted, or is being greeted. */
  readonly isInitialized: boolean;
  close(): Promise<void>;
}

export function connectClient(channel: Channel, options: SessionOptions): ClientConnection {
  let over = (_why: string): void => {};
  const closed = new Promise<string>((resolve) => (over = resolve));
  let greeted: ClientSession | null = null;
  let ready = (): void => {};
  /** In 2025-11-25 a client is asked nothing before it says that it is ready. */
  const initialized = new Promise<void>((resolve) => (ready = resolve));

  const peer: Peer = createPeer(channel, {
    onrequest(incoming) {
      const { request } = incoming;
      return META_KEY.version in readMeta(request.params)
        ? modern.answer(incoming, (method, params) => void peer.notify(method, params, request.id))
        : answer(incoming);
    },
    onnotification(notification) {
      if (notification.method === "notifications/initialized") ready();
      else greeted?.forwardNotification(notification);
    },
    onclose: (why) => void end(why),
  });
  const modern = createStatelessEndpoint(options, (why) => void end(why));

  async function answer({ request, signal }: IncomingRequest): Promise<Reply> {
    if (request.method === "initialize") return greet(request);
    if (greeted === null)
      return request.method === "ping"
        ? { result: {} }
        : errorReply(ERROR_CODE.invalidRequest, `"${request.method}" came before "initialize"`);
    return greeted.handle(request, callerOf(peer, request, signal, greeted));
  }

  async function greet({ params = {} }: Request): Promise<Reply> {
    if (greeted !== null) return errorReply(ERROR_CODE.invalidRequest, "this connection has begun already");
    const { protocolVersion, clientInfo, capabilities } = params;
    if (typeof protocolVersion !== "string") return errorReply(ERROR_CODE.invalidParams, "protocolVersion is a text");
    const facts = {
      version: LEGACY_VERSIONS.includes(protocolVersion) ? protocolVersion : (LEGACY_VERSIONS[0] as string),
      info: isObject(clientInfo) ? clientInfo : {},
      capabilities: isObject(capabilities) ? capabilities : {},
    };
    const session = createClientSession(options, {
      notify: (method, params) => void peer.notify(method, params),
      async askClient({ method, params: of }, given) {
        await initialized;
        return peer.request(method, of, { signal: given });
      },
      ended: (why) => void end(why),
    });
    greeted = session;
    try {
      await session.open(facts);
      const greeting = await session.serverInfo();
      const version =
        LEGACY_VERSIONS.includes(greeting.version) && greeting.version < facts.version
          ? greeting.version
          : facts.version;
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
      return errorReply(ERROR_CODE.internal, `the proxy cannot begin: ${why}`);
    }
  }

  async function end(why: string): Promise<void> {
    over(why);
    await Promise.all([peer.closed === null ? peer.close() : null, greeted?.close(), modern.close()]);
  }

  return {
    closed,
    get isInitialized() {
      return greeted !== null;
    },
    close: () => end("closed"),
  };
}

function callerOf(peer: Peer, { id, params }: Request, signal: AbortSignal, { facts }: ClientSession): Caller {
  const token = readMeta(params)["progressToken"];
  return {
    signal,
    info: facts.info,
    capabilities: facts.capabilities,
    whenAttached: () => Promise.resolve(),
    wantsProgress: token !== undefined,
    sendProgress: (params: JsonObject) =>
      void peer.notify("notifications/progress", { ...params, progressToken: token ?? null }, id),
    notify: (method, params) => void peer.notify(method, params, id),
    askClient: ({ method, params: of }) => peer.request(method, of, { signal, related: id }),
  };
}
