/** One end of a JSON-RPC connection over any channel. Matches replies with requests in both directions. */
import {
  ERROR_CODE,
  errorReply,
  isObject,
  isRequest,
  isResponse,
  MessageError,
  readMeta,
  toRequestNumber,
  withMeta,
  type RequestId,
  type JsonObject,
  type Message,
  type Notification,
  type OutgoingMessage,
  type Reply,
  type Request,
} from "./rpc-message.ts";

/** Transports messages. */
export interface Channel {
  /** Sends a message. Resolves when the transport has accepted it; rejects if it cannot be sent. */
  send(message: OutgoingMessage, options?: SendOptions): Promise<void>;
  close(): Promise<void>;
  onmessage: (message: Message) => void;
  /** Called once when the channel closes, including after `close`. `reason` is a sentence. */
  onclose: (reason: string) => void;
  /** Called if the reply to a request was lost, on channels with one connection per request. */
  onAnswerLost?: (id: RequestId, reason: string) => void;
  /** Called for each string of the other side that is not a valid message. */
  onInvalidMessage?: (fault: MessageError) => void;
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

/** Thrown if a request could not be sent, so that it has had no effect. */
export class NotSentError extends ResponseLostError {}

/** Thrown if a request was cancelled by the signal of its options after it was sent. */
export class RequestCancelledError extends ResponseLostError {}

/** Rethrows an error of a follow-up request, which says nothing about whether the first request was sent. */
export function rethrowAsLost(error: unknown): never {
  throw error instanceof NotSentError ? new ResponseLostError(error.message, { cause: error }) : error;
}

/**
 * Delay before a request with an unreadable reply counts as lost. A program that also writes other text, such as its
 * log, can still send the reply. Milliseconds.
 */
const UNREADABLE_REPLY_MS = 2000;
/** Maximum number of running requests of the other side. */
const MAX_RUNNING_REQUESTS = 1000;

interface PendingRequest {
  settle(reply: Reply): void;
  lose(reason: string): void;
  onprogress: RequestOptions["onprogress"];
}

export class Peer {
  private readonly channel: Channel;
  private readonly handlers: PeerHandlers;
  private readonly pendingRequests = new Map<RequestId, PendingRequest>();
  private readonly runningRequests = new Map<RequestId, AbortController>();
  /** The running requests, until their replies have been sent. */
  private readonly answering = new Set<Promise<void>>();
  private isClosed: string | null = null;
  private lastId = 0;

  constructor(channel: Channel, handlers: PeerHandlers) {
    this.channel = channel;
    this.handlers = handlers;
    channel.onmessage = (message) => {
      if (isResponse(message)) {
        const pending = this.takePending(message.id);
        pending?.settle("result" in message ? { result: message.result } : { error: message.error });
        if (pending === undefined && !this.wasSent(message.id))
          this.loseUnreadable("unknown", "its id is of no request");
      } else if (isRequest(message)) {
        const answering = this.answer(message).finally(() => this.answering.delete(answering));
        this.answering.add(answering);
      } else if (message.method === "notifications/cancelled") {
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
    channel.onAnswerLost = (id, reason) => this.takePending(id)?.lose(reason);
    channel.onInvalidMessage = ({ answers, message }) => this.loseUnreadable(answers, message);
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
    if (this.isClosed !== null) return Promise.reject(new NotSentError(this.isClosed));
    if (signal?.aborted === true) return Promise.reject(new NotSentError("cancelled"));
    const id = ++this.lastId;
    const { progressToken: _clientToken, ...meta } = readMeta(params);
    const requestParams = withMeta(params, onprogress === undefined ? meta : { ...meta, progressToken: id });
    return new Promise((resolve, reject) => {
      const cancel = (): void => {
        if (!this.pendingRequests.delete(id)) return;
        void this.channel
          .send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } }, { related })
          .catch(() => {});
        reject(new RequestCancelledError("cancelled"));
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
            reject(error instanceof ResponseLostError ? error : new ResponseLostError(describe(error)));
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

  /** Resolves when the replies to all running requests of the other side have been sent. */
  async answered(): Promise<void> {
    while (this.answering.size > 0) await Promise.all(this.answering);
  }

  /** Closes the channel and aborts the other side's running requests. */
  close(): Promise<void> {
    return this.channel.close();
  }

  /** Ends requests whose reply cannot be read, if no other reply arrives. */
  private loseUnreadable(answers: MessageError["answers"], reason: string): void {
    const ids = answers === "unknown" ? [...this.pendingRequests.keys()] : answers;
    if (ids.length === 0) return;
    const loseRequests = (): void => {
      for (const id of ids) this.takePending(id)?.lose(`the reply was not readable: ${reason}`);
    };
    setTimeout(loseRequests, UNREADABLE_REPLY_MS).unref();
  }

  /** Returns true if a request with this id was sent, even if it was answered or cancelled since. */
  private wasSent(id: RequestId): boolean {
    const number = toRequestNumber(id);
    return number !== null && number <= this.lastId;
  }

  /** Removes and returns the pending request that a reply with this id answers. */
  private takePending(id: RequestId): PendingRequest | undefined {
    const key = toRequestNumber(id) ?? id;
    const pending = this.pendingRequests.get(key);
    this.pendingRequests.delete(key);
    return pending;
  }

  private async answer(request: Request): Promise<void> {
    const { id } = request;
    if (this.runningRequests.has(id)) return;
    if (this.runningRequests.size >= MAX_RUNNING_REQUESTS)
      return this.channel
        .send({ jsonrpc: "2.0", id, ...errorReply(ERROR_CODE.internal, "too many requests are running") })
        .catch(() => {});
    const abort = new AbortController();
    this.runningRequests.set(id, abort);
    let reply: Reply;
    try {
      reply = await this.handlers.onrequest({ request, signal: abort.signal });
    } catch (error) {
      reply = errorReply(ERROR_CODE.internal, `internal error of the proxy: ${describe(error)}`);
    }
    if (this.runningRequests.get(id) === abort) this.runningRequests.delete(id);
    // Do not reply to a cancelled request.
    if (abort.signal.aborted || this.isClosed !== null) return;
    await this.channel.send({ jsonrpc: "2.0", id, ...reply }).catch(() => {});
  }
}

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the message of an error reply; null for a result. */
export function readErrorMessage(reply: Reply): string | null {
  return "error" in reply && isObject(reply.error) ? reply.error.message : null;
}
