/** One end of a JSON-RPC conversation, whatever carries it: pairs answers with requests, in both directions. */
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
} from "./message.ts";

/** What carries messages. */
export interface Channel {
  /** Resolves when the message is on its way; rejects when it cannot be sent. */
  send(message: Message, options?: SendOptions): Promise<void>;
  close(): Promise<void>;
  onmessage: (message: Message) => void;
  /** Called once, also after `close`. `why` is a sentence. */
  onclose: (why: string) => void;
  /** Called for a request whose answer will not come, where each has a connection of its own. */
  onAnswerLost?: (id: RequestId, why: string) => void;
}

export interface SendOptions {
  /** The request of the other side that this message belongs to. */
  related?: RequestId | undefined;
  /** Ends what carries the answer, where each request has its own. */
  signal?: AbortSignal | undefined;
  /** Of this message, where it is a request of HTTP. */
  headers?: Readonly<Record<string, string>> | undefined;
}

export interface IncomingRequest {
  request: Request;
  /** Aborted when the other side has cancelled it, or is gone. */
  signal: AbortSignal;
}

export interface PeerHandlers {
  onrequest(incoming: IncomingRequest): Promise<Reply>;
  onnotification(notification: Notification): void;
  onclose(why: string): void;
}

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  related?: RequestId | undefined;
  headers?: SendOptions["headers"];
  /** Asks for progress, and gets each notification's params. */
  onprogress?: ((params: JsonObject) => void) | undefined;
}

/** The other side is gone, or the request was cancelled. Whether it was carried out is not known. */
export class AnswerLostError extends Error {}

export type Peer = ReturnType<typeof createPeer>;

export function createPeer(channel: Channel, handlers: PeerHandlers) {
  const pendingRequests = new Map<
    RequestId,
    { settle(reply: Reply): void; lose(why: string): void; onprogress: RequestOptions["onprogress"] }
  >();
  const runningRequests = new Map<RequestId, AbortController>();
  let closed: string | null = null;
  let last = 0;

  async function answer(request: Request): Promise<void> {
    const { id } = request;
    if (runningRequests.has(id)) return;
    const abort = new AbortController();
    runningRequests.set(id, abort);
    let reply: Reply;
    try {
      reply = await handlers.onrequest({ request, signal: abort.signal });
    } catch (error) {
      reply = errorReply(
        ERROR_CODE.internal,
        `the proxy failed: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    if (runningRequests.get(id) === abort) runningRequests.delete(id);
    // Nobody reads an answer to what was cancelled.
    if (abort.signal.aborted || closed !== null) return;
    await channel.send({ jsonrpc: "2.0", id, ...reply }).catch(() => {});
  }

  channel.onmessage = (message) => {
    if (isResponse(message)) {
      const { id } = message;
      if (id === null) return;
      const pending = pendingRequests.get(id);
      pendingRequests.delete(id);
      pending?.settle("result" in message ? { result: message.result } : { error: message.error });
    } else if (isRequest(message)) void answer(message);
    else if (message.method === "notifications/cancelled") {
      const id = message.params?.["requestId"] as RequestId | undefined;
      const abort = id === undefined ? undefined : runningRequests.get(id);
      if (abort === undefined) handlers.onnotification(message);
      else {
        runningRequests.delete(id as RequestId);
        const why = message.params?.["reason"];
        abort.abort(
          new AnswerLostError(typeof why === "string" ? `cancelled by the client: ${why}` : "cancelled by the client"),
        );
      }
    } else if (message.method === "notifications/progress") {
      const token = message.params?.["progressToken"];
      const pending = typeof token === "number" ? pendingRequests.get(token) : undefined;
      if (pending?.onprogress !== undefined) pending.onprogress(message.params as JsonObject);
      else handlers.onnotification(message);
    } else handlers.onnotification(message);
  };

  channel.onAnswerLost = (id, why) => {
    const pending = pendingRequests.get(id);
    pendingRequests.delete(id);
    pending?.lose(why);
  };

  channel.onclose = (why) => {
    if (closed !== null) return;
    closed = why;
    for (const { lose } of pendingRequests.values()) lose(why);
    pendingRequests.clear();
    for (const abort of runningRequests.values()) abort.abort(new AnswerLostError("the client has hung up"));
    runningRequests.clear();
    handlers.onclose(why);
  };

  return {
    get closed(): string | null {
      return closed;
    },
    /** Resolves to the answer, an error among them. @throws RequestLost */
    request(method: string, params: JsonObject | undefined, options: RequestOptions = {}): Promise<Reply> {
      const { signal, onprogress, related, headers } = options;
      if (closed !== null) return Promise.reject(new AnswerLostError(closed));
      if (signal?.aborted === true) return Promise.reject(new AnswerLostError("cancelled"));
      const id = ++last;
      const { progressToken: _theirs, ...meta } = readMeta(params);
      const ours = withMeta(params, onprogress === undefined ? meta : { ...meta, progressToken: id });
      return new Promise((resolve, reject) => {
        const cancel = (): void => {
          if (!pendingRequests.delete(id)) return;
          void channel
            .send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } }, { related })
            .catch(() => {});
          reject(new AnswerLostError("cancelled"));
        };
        const over = (): void => signal?.removeEventListener("abort", cancel);
        pendingRequests.set(id, {
          onprogress,
          settle(reply) {
            over();
            resolve(reply);
          },
          lose(why) {
            over();
            reject(new AnswerLostError(why));
          },
        });
        signal?.addEventListener("abort", cancel, { once: true });
        channel
          .send(
            {
              jsonrpc: "2.0",
              id,
              method,
              ...(params === undefined && onprogress === undefined ? {} : { params: ours }),
            },
            { related, signal, headers },
          )
          .catch((error: unknown) => {
            if (pendingRequests.delete(id)) {
              over();
              reject(new AnswerLostError(error instanceof Error ? error.message : String(error)));
            }
          });
      });
    },
    async notify(method: string, params?: JsonObject, related?: RequestId): Promise<void> {
      if (closed !== null) return;
      await channel
        .send({ jsonrpc: "2.0", method, ...(params === undefined ? {} : { params }) }, { related })
        .catch(() => {});
    },
    /** Ends the requests of the other side, as if it had hung up, and what carries the conversation. */
    close: () => channel.close(),
  };
}

/** What a server says a request failed with, as a sentence. */
export function errorMessage(reply: Reply): string | null {
  return "error" in reply && isObject(reply.error) ? reply.error.message : null;
}
