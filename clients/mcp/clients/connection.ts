/** Serves one client on one channel. Each request shows which protocol revision the client speaks. */
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
} from "../transport/rpc-message.ts";
import { settlesWithin } from "../upstreams/slow-upstreams.ts";
import { StatelessEndpoint } from "./stateless-clients.ts";
import { Peer, type Channel, type IncomingRequest } from "../transport/peer.ts";
import { ClientSession, type SessionOptions } from "../session/client-session.ts";

/** Reason with which a connection closes if the client closed it. */
export const CLIENT_CLOSED = "the client closed the connection";

export interface ClientConnection {
  /** Resolves when the connection closes, to the reason (a sentence). */
  readonly closed: Promise<string>;
  /** Whether the client has sent `initialize`, and the initialization has not failed. */
  readonly isInitialized: boolean;
  close(): Promise<void>;
}

export function connectClient(channel: Channel, options: SessionOptions): ClientConnection {
  let resolveClosed = (_why: string): void => {};
  const closed = new Promise<string>((resolve) => (resolveClosed = resolve));
  let session: ClientSession | null = null;
  /** Settles when the servers of the session are connected, or when that has failed. */
  let opened: Promise<unknown> = Promise.resolve();
  let markInitialized = (): void => {};
  /**
   * Resolves when the client sends `notifications/initialized`. A client of protocol revision 2025-11-25 must not be
   * asked anything before that.
   */
  const initialized = new Promise<void>((resolve) => (markInitialized = resolve));

  const peer: Peer = new Peer(channel, {
    onrequest(incoming) {
      const { request } = incoming;
      return META_KEY.version in readMeta(request.params)
        ? modern.answer(incoming, (method, params) => void peer.notify(method, params, request.id))
        : answer(incoming);
    },
    onnotification(notification) {
      if (notification.method === "notifications/initialized") markInitialized();
      else session?.forwardNotification(notification);
    },
    onclose: (reason) => void endConnection(reason),
  });
  const modern = new StatelessEndpoint(options, (reason) => void endAfterReplies(reason));

  async function answer({ request, signal }: IncomingRequest): Promise<Reply> {
    if (request.method === "initialize") return initialize(request);
    // Without its servers, a session would answer with empty lists.
    if (request.method !== "ping") await opened;
    if (session === null)
      return request.method === "ping"
        ? { result: {} }
        : errorReply(ERROR_CODE.invalidRequest, `"${request.method}" was sent before "initialize"`);
    return session.handle(request, createCaller(peer, request, signal, session));
  }

  async function initialize({ params = {} }: Request): Promise<Reply> {
    if (session !== null) return errorReply(ERROR_CODE.invalidRequest, "this connection is initialized already");
    const { protocolVersion, clientInfo, capabilities } = params;
    if (typeof protocolVersion !== "string")
      return errorReply(ERROR_CODE.invalidParams, "protocolVersion must be a string");
    const facts = {
      version: LEGACY_VERSIONS.includes(protocolVersion) ? protocolVersion : (LEGACY_VERSIONS[0] as string),
      info: isObject(clientInfo) ? clientInfo : {},
      capabilities: isObject(capabilities) ? capabilities : {},
    };
    const newSession = new ClientSession(options, {
      notify: (method, params) => void peer.notify(method, params),
      async askClient({ method, params: questionParams }, questionSignal) {
        await initialized;
        return peer.request(method, questionParams, { signal: questionSignal });
      },
      ended: (reason) => void endAfterReplies(reason),
    });
    session = newSession;
    try {
      const opening = newSession.open(facts);
      opened = opening.catch(() => undefined);
      await opening;
      const serverInfo = await newSession.serverInfo();
      const version =
        LEGACY_VERSIONS.includes(serverInfo.version) && serverInfo.version < facts.version
          ? serverInfo.version
          : facts.version;
      return {
        result: {
          protocolVersion: version,
          capabilities: serverInfo.capabilities,
          serverInfo: { name: "assent-mcp-proxy", version: "0", ...serverInfo.info },
          instructions: serverInfo.instructions,
        },
      };
    } catch (error) {
      session = null;
      await newSession.close();
      const reason = error instanceof Error ? error.message : String(error);
      options.log(reason);
      return errorReply(ERROR_CODE.internal, `the proxy cannot start the session: ${reason}`);
    }
  }

  /** Ends the connection because its only server has exited, when the client has its replies. */
  async function endAfterReplies(reason: string): Promise<void> {
    modern.endSubscriptions();
    await settlesWithin(peer.answered());
    await endConnection(reason);
  }

  async function endConnection(reason: string): Promise<void> {
    resolveClosed(reason);
    await Promise.all([peer.closed === null ? peer.close() : null, session?.close(), modern.close()]);
  }

  return {
    closed,
    get isInitialized() {
      return session !== null;
    },
    close: () => endConnection("closed"),
  };
}

function createCaller(peer: Peer, { id, params }: Request, signal: AbortSignal, { facts }: ClientSession): Caller {
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
    askClient: (question) => peer.request(question.method, question.params, { signal, related: id }),
  };
}
