/** The client that sent a request that the proxy is working on. */
import type { JsonObject, Reply } from "../transport/rpc-message.ts";
import type { RequestFromServer } from "../upstreams/upstream.ts";

export interface Caller {
  /** Aborts when the client cancels the request or disconnects. */
  readonly signal: AbortSignal;
  /** Name and version of the client program. */
  readonly info: JsonObject;
  readonly capabilities: JsonObject;
  /**
   * Resolves once the client is connected, or has disconnected for good. A client of protocol revision 2026-07-28
   * disconnects between a question and its answer.
   */
  whenAttached(): Promise<void>;
  /** Maximum number of seconds that the call may wait for an approval, if the client set a limit. */
  readonly maxWait?: number;
  /** Whether the client requested progress notifications. */
  readonly wantsProgress: boolean;
  /**
   * Sends a progress notification.
   * @param params members of the notification, without the progress token
   */
  sendProgress(params: JsonObject): void;
  notify(method: string, params: JsonObject): void;
  /** Asks the client for input as part of this request. */
  askClient(question: RequestFromServer): Promise<Reply>;
  /** Least severe level of the log messages that the client wants; absent if it wants none or the session decides. */
  readonly logLevel?: string | undefined;
  /**
   * Replies to the request with a task, so that the client can disconnect. Returns the number of seconds that the task
   * may still run; null if the client does not support tasks.
   */
  continueAsTask?(): number | null;
}
