/**
 * Follows the trace of a request through the service. Without a tracer, requests run no code of this file except
 * `logWithTraceIds`.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Logger } from "../contract/host.ts";
import type { RequestTrace, Tracer, Tracing } from "../contract/tracer.ts";

/** @param log a logger for errors of the tracer, which never affect the request */
export function createTracing(tracer: Tracer, log: Logger): Tracing {
  const traces = new AsyncLocalStorage<RequestTrace | null>();
  /**
   * Traces that have ended. Timers that a request started can run after the request, still in the context of its trace.
   */
  const ended = new WeakSet<RequestTrace>();
  const current = (): RequestTrace | null => {
    const trace = traces.getStore() ?? null;
    return trace === null || ended.has(trace) ? null : trace;
  };

  function guard<T>(call: () => T): T | null {
    try {
      return call();
    } catch (error) {
      log.error("the tracing plugin threw an error; the request is not affected", { error: String(error) });
      return null;
    }
  }

  /** Wraps each member of a trace, because an error of a plugin must not make a decision fail. */
  function guarded(trace: RequestTrace): RequestTrace {
    const { traceId, spanId, traceparent } = trace;
    return {
      traceId,
      spanId,
      traceparent,
      addStage: (...args) => void guard(() => trace.addStage(...args)),
      describeAction: (...args) => void guard(() => trace.describeAction(...args)),
      addExecution: (...args) => void guard(() => trace.addExecution(...args)),
      end: (...args) => void guard(() => trace.end(...args)),
    };
  }

  return {
    current,
    async run(request, work, route) {
      if (traces.getStore() !== undefined) return work();
      const { method, headers } = request;
      const trace = guard(() => {
        const started = tracer.startRequest({ method, headers });
        return started === null ? null : guarded(started);
      });
      return traces.run(trace, async () => {
        const response = await work();
        if (trace !== null) {
          trace.end({ route: route(), status: response.status });
          ended.add(trace);
        }
        return response;
      });
    },
    async stage(stage, work) {
      const trace = current();
      if (trace === null) return work();
      const start = performance.now();
      try {
        return await work();
      } finally {
        trace.addStage(stage, start, performance.now());
      }
    },
  };
}

/** Returns a logger that adds `trace_id` and `span_id` to lines that a traced request causes. */
export function logWithTraceIds(log: Logger, current: () => RequestTrace | null): Logger {
  const at =
    (level: keyof Logger): Logger["info"] =>
    (message, fields) => {
      const trace = current();
      if (trace === null) log[level](message, fields);
      else log[level](message, { ...fields, trace_id: trace.traceId, span_id: trace.spanId });
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
