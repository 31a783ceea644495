/** The interface of a tracing plugin. A trace never affects a decision. */

/** Stages of a request, in order. Each stage is measured when the request has completed it. */
export type TraceStage =
  /** Read the key, the session or the token. */
  | "authenticate"
  /** Read and validate the body. */
  | "read_body"
  /** Wait for the batch, and for the lock of the ledger's head. */
  | "queue"
  /** Evaluate the policies and write the entry, under the lock. */
  | "decide"
  /** Wait until the batch is durable. */
  | "commit"
  /** Wait for approvals, as the client requested with `Prefer: wait`. */
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

/** A completed run of an action's tool. Times are milliseconds since the epoch. */
export interface TracedExecution {
  started_at: number;
  ended_at: number;
  success: boolean;
}

/** The trace of one request. All times of stages are from `performance.now()`. */
export interface RequestTrace {
  /** Trace id in lowercase hex. */
  readonly traceId: string;
  readonly spanId: string;
  /** W3C `traceparent` whose parent is this request's span. */
  readonly traceparent: string;
  addStage(stage: TraceStage, start: number, end: number): void;
  /**
   * Describes the action, and links this trace to the trace of the action's submission, if another request submitted
   * it.
   */
  describeAction(action: TracedAction): void;
  /** Records the run of the action's tool in the trace of the action's submission. */
  addExecution(action: TracedAction, execution: TracedExecution): void;
  end(response: { route: string | null; status: number }): void;
}

/** Starts the traces of a service. At most one plugin contributes a tracer. */
export interface Tracer {
  /**
   * Returns null if the request is not traced. If it throws, the error is logged, and the request continues without a
   * trace.
   */
  startRequest(request: { method: string; headers: Headers }): RequestTrace | null;
}

/** The traces of the requests that are being handled. */
export interface Tracing {
  /** Returns the trace of the running request; null outside a traced request. */
  current(): RequestTrace | null;
  /**
   * Runs the work within the trace of a request. A request that the service sends to itself belongs to the trace of the
   * outer request.
   */
  run(request: Request, work: () => Promise<Response>, route: () => string | null): Promise<Response>;
  /** Runs the work and records it as one stage of the current trace. */
  stage<T>(stage: TraceStage, work: () => Promise<T>): Promise<T>;
}
