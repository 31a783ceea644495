/** One end of a JSON-RPC connection over any channel. Matches replies with requests in both directions. */
import {
  ERROR_CODE,
  errorReply,
  isObject,
  isRequest,
  isResponse,
  readMeta,
  withMeta,
  type RequestId,
  type JsonObject,
  type Message,
  type Notification,
  type Reply,
  type Request,
} from "./rpc-message.ts";

/** Transports messages. */
export interface Channel {
  /** Sends a message. Resolves when the transport has accepted it; rejects if it cannot be sent. */
  send(message: Message, options?: SendOptions): Promise<void>;
  close(): Promise<void>;
  onmessage: (message: Message) => void;
  /** Called once when the channel closes, including after `close`. `reason` is a sentence. */
  onclose: (reason: string) => void;
  /** Called if the reply to a request was lost, on channels with one connection per request. */
  onAnswerLost?: (id: RequestId, reason: string) => void;
}

interface SendOptions {
  /** The incoming request that this message belongs to. */
  related?: RequestId | undefined;
  /** Aborting it closes the connection of this request, on channels with one connection per request. */
  signal?: AbortSignal | undefined;
  /** Additional HTTP headers for this message. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Headers that contain this message's credential. They replace configured headers with the same name. */
  credentialHeaders?: Readonly<Record<string, string>> | undefined;
}

export interface IncomingRequest {
  request: Request;
  /** Aborts when the other side cancels the request or disconnects. */
  signal: AbortSignal;
}

interface PeerHandlers {
  onrequest(incoming: IncomingRequest): Promise<Reply>;
  onnotification(notification: Notification): void;
  onclose(reason: string): void;
}

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  related?: RequestId | undefined;
  headers?: SendOptions["headers"];
  credentialHeaders?: SendOptions["credentialHeaders"];
  /** Called with the params of each progress notification. If present, the request asks for these notifications. */
  onprogress?: ((params: JsonObject) => void) | undefined;
}

/**
 * Thrown if a request gets no reply: the other side disconnected, the request was cancelled, or sending it failed. The
 * request may have taken effect.
 */
export class ResponseLostError extends Error {}

export class Peer {
  private readonly channel: Channel;
  private readonly handlers: PeerHandlers;
  private readonly pendingRequests = new Map<
    RequestId,
    { settle(reply: Reply): void; lose(reason: string): void; onprogress: RequestOptions["onprogress"] }
  >();
  private readonly runningRequests = new Map<RequestId, AbortController>();
  private isClosed: string | null = null;
  private lastId = 0;

  constructor(channel: Channel, handlers: PeerHandlers) {
    this.channel = channel;
    this.handlers = handlers;
    channel.onmessage = (message) => {
      if (isResponse(message)) {
        const { id } = message;
        if (id === null) return;
        const pending = this.pendingRequests.get(id);
        this.pendingRequests.delete(id);
        pending?.settle("result" in message ? { result: message.result } : { error: message.error });
      } else if (isRequest(message)) void this.answer(message);
      else if (message.method === "notifications/cancelled") {
        const id = message.params?.["requestId"] as RequestId | undefined;
        const abort = id === undefined ? undefined : this.runningRequests.get(id);
        if (abort === undefined) handlers.onnotification(message);
        else {
          this.runningRequests.delete(id as RequestId);
          const reason = message.params?.["reason"];
          abort.abort(
            new ResponseLostError(
              typeof reason === "string" ? `cancelled by the client: ${reason}` : "cancelled by the client",
            ),
          );
        }
      } else if (message.method === "notifications/progress") {
        const token = message.params?.["progressToken"];
        const pending = typeof token === "number" ? this.pendingRequests.get(token) : undefined;
        if (pending?.onprogress !== undefined) pending.onprogress(message.params as JsonObject);
        else handlers.onnotification(message);
      } else handlers.onnotification(message);
    };
    channel.onAnswerLost = (id, reason) => {
      const pending = this.pendingRequests.get(id);
      this.pendingRequests.delete(id);
      pending?.lose(reason);
    };
    channel.onclose = (reason) => {
      if (this.isClosed !== null) return;
      this.isClosed = reason;
      for (const { lose } of this.pendingRequests.values()) lose(reason);
      this.pendingRequests.clear();
      for (const abort of this.runningRequests.values()) abort.abort(new ResponseLostError("the client disconnected"));
      this.runningRequests.clear();
      handlers.onclose(reason);
    };
  }

  get closed(): string | null {
    return this.isClosed;
  }

  /** Sends a request. Resolves to the reply, which may be an error. @throws ResponseLostError */
  request(method: string, params: JsonObject | undefined, options: RequestOptions = {}): Promise<Reply> {
    const { signal, onprogress, related, headers, credentialHeaders } = options;
    if (this.isClosed !== null) return Promise.reject(new ResponseLostError(this.isClosed));
    if (signal?.aborted === true) return Promise.reject(new ResponseLostError("cancelled"));
    const id = ++this.lastId;
    const { progressToken: _clientToken, ...meta } = readMeta(params);
    const requestParams = withMeta(params, onprogress === undefined ? meta : { ...meta, progressToken: id });
    return new Promise((resolve, reject) => {
      const cancel = (): void => {
        if (!this.pendingRequests.delete(id)) return;
        void this.channel
          .send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } }, { related })
          .catch(() => {});
        reject(new ResponseLostError("cancelled"));
      };
      const removeListener = (): void => signal?.removeEventListener("abort", cancel);
      this.pendingRequests.set(id, {
        onprogress,
        settle(reply) {
          removeListener();
          resolve(reply);
        },
        lose(reason) {
          removeListener();
          reject(new ResponseLostError(reason));
        },
      });
      signal?.addEventListener("abort", cancel, { once: true });
      this.channel
        .send(
          {
            jsonrpc: "2.0",
            id,
            method,
            ...(params === undefined && onprogress === undefined ? {} : { params: requestParams }),
          },
          { related, signal, headers, credentialHeaders },
        )
        .catch((error: unknown) => {
          if (this.pendingRequests.delete(id)) {
            removeListener();
            reject(new ResponseLostError(error instanceof Error ? error.message : String(error)));
          }
        });
    });
  }

  async notify(method: string, params?: JsonObject, related?: RequestId): Promise<void> {
    if (this.isClosed !== null) return;
    await this.channel
      .send({ jsonrpc: "2.0", method, ...(params === undefined ? {} : { params }) }, { related })
      .catch(() => {});
  }

  /** Closes the channel and aborts the other side's running requests. */
  close(): Promise<void> {
    return this.channel.close();
  }

  private async answer(request: Request): Promise<void> {
    const { id } = request;
    if (this.runningRequests.has(id)) return;
    const abort = new AbortController();
    this.runningRequests.set(id, abort);
    let reply: Reply;
    try {
      reply = await this.handlers.onrequest({ request, signal: abort.signal });
    } catch (error) {
      reply = errorReply(
        ERROR_CODE.internal,
        `internal error of the proxy: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    if (this.runningRequests.get(id) === abort) this.runningRequests.delete(id);
    // Do not reply to a cancelled request.
    if (abort.signal.aborted || this.isClosed !== null) return;
    await this.channel.send({ jsonrpc: "2.0", id, ...reply }).catch(() => {});
  }
}

/** Returns the message of an error reply; null for a result. */
export function readErrorMessage(reply: Reply): string | null {
  return "error" in reply && isObject(reply.error) ? reply.error.message : null;
}
