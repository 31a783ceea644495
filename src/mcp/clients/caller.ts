/** Who made a request, while it is being dealt with. */
import type { JsonObject, Reply } from "../transport/message.ts";
import type { ServerQuestion } from "../upstreams/upstream.ts";

export interface Caller {
  /** Aborted when the client has cancelled the request or has hung up. */
  readonly signal: AbortSignal;
  /** Name and version of the client's program. */
  readonly info: JsonObject;
  readonly capabilities: JsonObject;
  /** Resolves while the client is there, or when it is gone for good. Since 2026-07-28 it goes away to answer a question. */
  whenAttached(): Promise<void>;
  /** How long its call may wait for an approval, where the client has said so. Seconds. */
  readonly maxWait?: number;
  /** Whether it was asked for progress. */
  readonly wantsProgress: boolean;
  /** The params of a progress notification, without the token. */
  sendProgress(params: JsonObject): void;
  notify(method: string, params: JsonObject): void;
  /** Asks the client, in the course of the request. */
  askClient(question: ServerQuestion): Promise<Reply>;
}
