/** The interface of a tracing plugin. A trace never affects a decision. */

/** Stages of a request, in order. Each is measured when the request has passed it. */
export type TraceStage =
  /** Reads the key, the session or the token. */
  | "authenticate"
  /** Reads and validates the body. */
  | "read_body"
  /** Waits for the batch, and for the lock of the ledger's head. */
  | "queue"
  /** Evaluates the policies and writes the entry, under the lock. */
  | "decide"
  /** Waits until the batch is durable. */
  | "commit"
  /** Waits for approvals, because the client asked for it with `Prefer: wait`. */
  | "wait_for_approval";

/** The action that a request is about, without its parameters. */
export interface TracedAction {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  status: string;
  /** The effect of the newest decision. */
  decision: string;
  reason_code: string;
  policy: string | null;
  rule: string | null;
  /** `traceparent` of the submission; null if it was not traced or was erased. */
  submission: string | null;
}

/** A finished execution of an action's tool. Times are milliseconds since the epoch. */
export interface TracedExecution {
  started_at: number;
  ended_at: number;
  success: boolean;
}

/** The trace of one request. All times of stages are from `performance.now()`. */
export interface RequestTrace {
  /** Lowercase hex. */
  readonly traceId: string;
  readonly spanId: string;
  /** W3C `traceparent` that names this request as the parent. */
  readonly traceparent: string;
  addStage(stage: TraceStage, start: number, end: number): void;
  /** Describes the action, and links the trace to its submission if that was another request. */
  describeAction(action: TracedAction): void;
  /** Records the execution of the action's tool, in the trace of its submission. */
  addExecution(action: TracedAction, execution: TracedExecution): void;
  end(response: { route: string | null; status: number }): void;
}

/** Starts the traces of a service. One plugin contributes it. */
export interface Tracer {
  /**
   * Returns null if the request is not traced. If it throws, the error is logged, and the request continues without a
   * trace.
   */
  startRequest(request: { method: string; headers: Headers }): RequestTrace | null;
}

/** The traces of the running requests. */
export interface Tracing {
  /** Returns the trace of the running request; null outside a traced request. */
  current(): RequestTrace | null;
  /**
   * Runs the work inside the trace of a request. Requests that the service sends to itself belong to the outer trace.
   */
  run(request: Request, work: () => Promise<Response>, route: () => string | null): Promise<Response>;
  /** Runs the work and records it as one stage of the current trace. */
  stage<T>(stage: TraceStage, work: () => Promise<T>): Promise<T>;
}
