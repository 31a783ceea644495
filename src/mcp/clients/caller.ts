/** The client that sent a request, while the proxy works on the request. */
import type { JsonObject, Reply } from "../transport/rpc-message.ts";
import type { ServerQuestion } from "../upstreams/upstream.ts";

export interface Caller {
  /** Aborted when the client cancels the request or disconnects. */
  readonly signal: AbortSignal;
  /** Name and version of the client program. */
  readonly info: JsonObject;
  readonly capabilities: JsonObject;
  /**
   * Resolves as soon as the client is connected, or has disconnected for good. A client of protocol revision 2026-07-28
   * disconnects while it answers a question.
   */
  whenAttached(): Promise<void>;
  /** Seconds that the call may wait for an approval, if the client set a limit. */
  readonly maxWait?: number;
  /** Whether the client asked for progress notifications. */
  readonly wantsProgress: boolean;
  /** Sends a progress notification. `params` do not contain the progress token. */
  sendProgress(params: JsonObject): void;
  notify(method: string, params: JsonObject): void;
  /** Asks the client for input as part of this request. */
  askClient(question: ServerQuestion): Promise<Reply>;
}
